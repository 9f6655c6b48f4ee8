// SPDX-License-Identifier: Apache-2.0
//! A driver for tests, with real shared memory, no threads and no network, controlled by the test.
//!
//! [`FakeDriver::do_work`] reads commands, stores them for the test, and responds like a driver that has only IPC. A
//! test that needs other responses clears `auto_respond` and sends them with [`FakeDriver::respond`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use taran::{ClientBuilder, Clock, ManualClock, MemoryStorage, Now, Progress, Storage};
use taran_core::broadcast::Transmitter;
use taran_core::counters::{Counter, CounterSpec, CounterTable};
use taran_core::memory::{CreateOptions, LockFile};
use taran_core::ring::many_to_one::{Consumer, Producer};
use taran_protocol::cnc::{Cnc, CncSpec, driver_lock_contents, driver_lock_path};
use taran_protocol::command::Command;
use taran_protocol::counter::{StreamKey, type_id};
use taran_protocol::error_code::ErrorCode;
use taran_protocol::log::{LogBuffers, LogKind, LogSpec};
use taran_protocol::response::Response;

pub(crate) const DIRECTORY: &str = "/fake/aeron";
pub(crate) const TERM_LENGTH: i32 = 64 * 1024;
/// Channel of a destination that the driver refuses.
pub(crate) const REFUSED: &str = "aeron:udp?endpoint=127.0.0.1:1";
/// Channel of a destination whose host the driver cannot resolve.
pub(crate) const UNRESOLVED: &str = "aeron:udp?endpoint=unresolved:1";
const WINDOW: i64 = TERM_LENGTH as i64 / 2;

/// A command as read from the ring buffer.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedCommand {
    type_id: i32,
    bytes: Vec<u8>,
}

impl ReceivedCommand {
    pub(crate) fn command(&self) -> Command<'_> {
        Command::decode(self.type_id, &self.bytes).unwrap()
    }
}

/// A stream of the driver.
pub(crate) struct Stream {
    pub(crate) registration_id: i64,
    pub(crate) stream_id: i32,
    pub(crate) session_id: i32,
    pub(crate) log: LogBuffers,
    pub(crate) log_name: String,
    pub(crate) limit: Counter,
    registrations: Vec<i64>,
    clean_position: i64,
    /// Registration ids of the subscriptions, with their position counters.
    subscribers: Vec<(i64, Counter)>,
}

/// Reaction of a driver to commands for destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfDestinations {
    Execute,
    /// Executes them; the answers are lost.
    ExecuteSilently,
    /// Refuses removals with this error.
    RefuseRemovals(ErrorCode),
}

pub(crate) struct FakeDriver {
    pub(crate) storage: MemoryStorage,
    pub(crate) cnc: Cnc,
    pub(crate) responses: Transmitter,
    pub(crate) counters: CounterTable,
    pub(crate) received_commands: Vec<ReceivedCommand>,
    pub(crate) streams: Vec<Stream>,
    /// Respond to commands like a driver.
    pub(crate) auto_respond: bool,
    /// Destinations of all resources, which are taken to share one endpoint: ids of their commands and channels, in order.
    pub(crate) destinations: Vec<(i64, String)>,
    /// Reaction to commands for destinations.
    pub(crate) of_destinations: OfDestinations,
    /// Error of each command that adds a publication or subscription; they are executed if there is none.
    pub(crate) refuses_streams: Option<ErrorCode>,
    /// Lock of a Taran driver; official drivers have none.
    pub(crate) lock: Option<LockFile>,
    clock: Box<dyn Clock>,
    commands: Consumer,
    subscriptions: Vec<(i64, i32)>,
    clients: Vec<(i64, i32)>,
    next_session: i32,
}

/// More than any test uses, including tests that add and remove counters faster than their cool-down ends.
pub(crate) const COUNTER_COUNT: usize = 4_096;

pub(crate) fn small_cnc() -> CncSpec {
    CncSpec {
        to_driver_length: 64 * 1024 + 768,
        to_clients_length: 64 * 1024 + 128,
        counters_metadata_length: COUNTER_COUNT * 512,
        counters_values_length: COUNTER_COUNT * 128,
        error_log_length: 4096,
        ..CncSpec::default()
    }
}

impl FakeDriver {
    pub(crate) fn start(clock: impl Clock + 'static) -> Self {
        Self::start_in(MemoryStorage::new(), clock)
    }

    pub(crate) fn start_in(storage: MemoryStorage, mut clock: impl Clock + 'static) -> Self {
        let directory = PathBuf::from(DIRECTORY);
        for part in ["", "publications", "images"] {
            storage.create_dir_all(&directory.join(part)).unwrap();
        }
        let spec = CncSpec {
            start_timestamp_ms: clock.now().epoch_millis,
            ..small_cnc()
        };
        let length = spec.file_length() as u64;
        let region = storage
            .create(&directory.join("cnc.dat"), length, CreateOptions::RESERVED)
            .unwrap();
        let cnc = Cnc::create(&region, &spec).unwrap();
        let mut driver = Self {
            storage,
            responses: Transmitter::open(&cnc.to_clients).unwrap(),
            counters: CounterTable::new(
                cnc.counters_metadata.clone(),
                cnc.counters_values.clone(),
                Duration::from_secs(1),
            ),
            received_commands: Vec::new(),
            streams: Vec::new(),
            auto_respond: true,
            destinations: Vec::new(),
            of_destinations: OfDestinations::Execute,
            refuses_streams: None,
            lock: None,
            clock: Box::new(clock),
            commands: Consumer::open(&cnc.to_driver).unwrap(),
            subscriptions: Vec::new(),
            clients: Vec::new(),
            next_session: 100,
            cnc,
        };
        // As in a driver, so that no client has the id 0.
        Producer::open(&driver.cnc.to_driver)
            .unwrap()
            .next_correlation_id();
        driver.update_heartbeat();
        driver.cnc.publish();
        driver
    }

    /// Takes the lock of a Taran driver.
    pub(crate) fn take_lock(&mut self) {
        let path = driver_lock_path(&PathBuf::from(DIRECTORY));
        let contents = driver_lock_contents(self.cnc.spec());
        let lock = self.storage.create_locked(&path, contents.as_bytes());
        self.lock = Some(lock.unwrap());
    }

    pub(crate) fn update_heartbeat(&mut self) {
        let now = self.clock.now();
        self.commands.set_heartbeat_ms(now.epoch_millis);
    }

    pub(crate) fn set_heartbeat_ms(&self, epoch_ms: i64) {
        self.commands.set_heartbeat_ms(epoch_ms);
    }

    /// Reads commands and responds to them. Returns the number of commands.
    pub(crate) fn do_work(&mut self) -> usize {
        let mut taken = Vec::new();
        let count = self
            .commands
            .read(usize::MAX, |type_id, bytes| {
                taken.push(ReceivedCommand {
                    type_id,
                    bytes: bytes.to_vec(),
                });
            })
            .unwrap();
        for command in taken {
            if self.auto_respond {
                self.respond_to(&command.command());
            }
            self.received_commands.push(command);
        }
        self.update_limits();
        count
    }

    /// Returns the commands received since the last call.
    pub(crate) fn take_commands(&mut self) -> Vec<ReceivedCommand> {
        std::mem::take(&mut self.received_commands)
    }

    pub(crate) fn respond(&mut self, response: &Response<'_>) {
        let mut bytes = Vec::new();
        let type_id = response.encode(&mut bytes);
        self.responses.transmit(type_id, &bytes).unwrap();
    }

    fn respond_to(&mut self, command: &Command<'_>) {
        if let Some(code) = self.refuses_streams
            && let Command::AddPublication { correlation_id, .. }
            | Command::AddExclusivePublication { correlation_id, .. }
            | Command::AddSubscription { correlation_id, .. } = *command
        {
            self.refuse(correlation_id, code);
            return;
        }
        match *command {
            Command::AddPublication {
                client_id,
                correlation_id,
                stream_id,
                ..
            } => {
                self.register_client(client_id);
                self.add_publication(client_id, correlation_id, stream_id, true);
            }
            Command::AddExclusivePublication {
                client_id,
                correlation_id,
                stream_id,
                ..
            } => {
                self.register_client(client_id);
                self.add_publication(client_id, correlation_id, stream_id, false);
            }
            Command::AddSubscription {
                client_id,
                correlation_id,
                stream_id,
                ..
            } => {
                self.register_client(client_id);
                self.subscriptions.push((correlation_id, stream_id));
                self.respond(&Response::SubscriptionReady {
                    correlation_id,
                    status_counter_id: -1,
                });
                for index in 0..self.streams.len() {
                    if self.streams[index].stream_id == stream_id {
                        self.add_image(client_id, index, correlation_id);
                    }
                }
            }
            Command::RemovePublication {
                correlation_id,
                registration_id,
                revoke,
                ..
            } => {
                self.respond(&Response::OperationSuccess { correlation_id });
                self.remove_publication(registration_id, revoke);
            }
            Command::RemoveSubscription {
                correlation_id,
                registration_id,
                ..
            } => {
                self.respond(&Response::OperationSuccess { correlation_id });
                self.subscriptions.retain(|(id, _)| *id != registration_id);
                for stream in &mut self.streams {
                    stream.subscribers.retain(|(id, _)| *id != registration_id);
                }
            }
            Command::AddCounter {
                client_id,
                correlation_id,
                counter_type_id,
                key,
                label,
            } => {
                self.register_client(client_id);
                let spec = CounterSpec {
                    type_id: counter_type_id,
                    key,
                    label,
                    registration_id: correlation_id,
                    owner_id: client_id,
                    ..CounterSpec::default()
                };
                let counter_id = self.allocate(&spec).id();
                self.respond(&Response::CounterReady {
                    correlation_id,
                    counter_id,
                });
            }
            Command::AddStaticCounter {
                client_id,
                correlation_id,
                registration_id,
                counter_type_id,
                key,
                label,
            } => {
                self.register_client(client_id);
                let known = self
                    .counters
                    .reader()
                    .find_by_type_and_registration(counter_type_id, registration_id);
                let counter_id = known.unwrap_or_else(|| {
                    let spec = CounterSpec {
                        type_id: counter_type_id,
                        key,
                        label,
                        registration_id,
                        owner_id: -1,
                        ..CounterSpec::default()
                    };
                    self.allocate(&spec).id()
                });
                self.respond(&Response::StaticCounter {
                    correlation_id,
                    counter_id,
                });
            }
            Command::RemoveCounter {
                correlation_id,
                registration_id,
                ..
            } => {
                let found = self
                    .counters
                    .reader()
                    .find(|meta| meta.registration_id == registration_id);
                self.respond(&Response::OperationSuccess { correlation_id });
                if let Some(meta) = found {
                    self.respond(&Response::UnavailableCounter {
                        registration_id,
                        counter_id: meta.id,
                    });
                    let now = self.clock.now().epoch_millis;
                    self.counters.free(meta.id, now);
                }
            }
            Command::NextAvailableSessionId { correlation_id, .. } => {
                self.respond(&Response::NextAvailableSessionId {
                    correlation_id,
                    session_id: 4242,
                });
            }
            Command::AddDestination {
                correlation_id,
                channel: REFUSED,
                ..
            } => self.refuse(correlation_id, ErrorCode::InvalidChannel),
            Command::AddDestination {
                correlation_id,
                channel: UNRESOLVED,
                ..
            } => self.refuse(correlation_id, ErrorCode::UnknownHost),
            Command::AddDestination { correlation_id, .. }
            | Command::RemoveDestination { correlation_id, .. }
            | Command::RemoveDestinationById { correlation_id, .. }
            | Command::AddReceiveDestination { correlation_id, .. }
            | Command::RemoveReceiveDestination { correlation_id, .. } => {
                self.change_destinations(command, correlation_id);
            }
            Command::RejectImage { correlation_id, .. } => {
                self.respond(&Response::OperationSuccess { correlation_id });
            }
            Command::ClientKeepalive { .. }
            | Command::ClientClose { .. }
            | Command::TerminateDriver { .. } => {}
        }
    }

    fn refuse(&mut self, correlation_id: i64, code: ErrorCode) {
        self.respond(&Response::Error {
            correlation_id,
            error_code: code.code(),
            message: b"refused",
        });
    }

    fn change_destinations(&mut self, command: &Command<'_>, correlation_id: i64) {
        let is_addition = matches!(
            command,
            Command::AddDestination { .. } | Command::AddReceiveDestination { .. }
        );
        if let OfDestinations::RefuseRemovals(code) = self.of_destinations
            && !is_addition
        {
            self.refuse(correlation_id, code);
            return;
        }
        let known = &mut self.destinations;
        match *command {
            Command::AddDestination { channel, .. }
            | Command::AddReceiveDestination { channel, .. } => {
                known.push((correlation_id, channel.to_owned()));
            }
            Command::RemoveDestination { channel, .. }
            | Command::RemoveReceiveDestination { channel, .. } => {
                if let Some(newest) = known.iter().rposition(|(_, it)| it == channel) {
                    known.remove(newest);
                }
            }
            Command::RemoveDestinationById { destination_id, .. } => {
                known.retain(|(id, _)| *id != destination_id);
            }
            _ => {}
        }
        if self.of_destinations != OfDestinations::ExecuteSilently {
            self.respond(&Response::OperationSuccess { correlation_id });
        }
    }

    /// Allocates the heartbeat counter of a client at its first command.
    fn register_client(&mut self, client_id: i64) {
        if self.clients.iter().any(|(id, _)| *id == client_id) {
            return;
        }
        let value = self.clock.now().epoch_millis;
        let spec = CounterSpec {
            type_id: type_id::CLIENT_HEARTBEAT,
            key: &client_id.to_le_bytes(),
            label: &format!("client-heartbeat: id={client_id}"),
            registration_id: client_id,
            owner_id: client_id,
            value,
            ..CounterSpec::default()
        };
        let counter_id = self.allocate(&spec).id();
        self.clients.push((client_id, counter_id));
        self.respond(&Response::CounterReady {
            correlation_id: client_id,
            counter_id,
        });
    }

    /// Returns the counter id of a client's heartbeat.
    pub(crate) fn heartbeat_of(&self, client_id: i64) -> Option<i32> {
        self.clients
            .iter()
            .find(|(id, _)| *id == client_id)
            .map(|(_, counter_id)| *counter_id)
    }

    pub(crate) fn allocate(&mut self, spec: &CounterSpec<'_>) -> Counter {
        let now = self.clock.now().epoch_millis;
        self.counters.allocate_with(spec, now).unwrap()
    }

    fn add_publication(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        stream_id: i32,
        is_shared: bool,
    ) {
        let known = self
            .streams
            .iter()
            .position(|stream| is_shared && stream.stream_id == stream_id);
        let index = known
            .unwrap_or_else(|| self.create_stream(client_id, correlation_id, stream_id, is_shared));
        let stream = &mut self.streams[index];
        stream.registrations.push(correlation_id);
        let (registration_id, session_id) = (stream.registration_id, stream.session_id);
        let (limit_counter_id, log_name) = (stream.limit.id(), stream.log_name.clone());
        if is_shared {
            self.respond(&Response::PublicationReady {
                correlation_id,
                registration_id,
                session_id,
                stream_id,
                limit_counter_id,
                status_counter_id: -1,
                log_name: &log_name,
            });
        } else {
            self.respond(&Response::ExclusivePublicationReady {
                correlation_id,
                registration_id,
                session_id,
                stream_id,
                limit_counter_id,
                status_counter_id: -1,
                log_name: &log_name,
            });
        }
        if known.is_none() {
            let subscriptions = self.subscriptions.clone();
            for (subscription_id, _) in subscriptions.iter().filter(|(_, id)| *id == stream_id) {
                self.add_image(client_id, index, *subscription_id);
            }
        }
    }

    /// Creates the log and the position limit of a stream. Returns its index.
    pub(crate) fn create_stream(
        &mut self,
        client_id: i64,
        registration_id: i64,
        stream_id: i32,
        is_shared: bool,
    ) -> usize {
        self.next_session += 1;
        let session_id = self.next_session;
        let kind = if is_shared {
            LogKind::Concurrent
        } else {
            LogKind::Exclusive
        };
        let spec = LogSpec {
            correlation_id: registration_id,
            mtu: 1408,
            publication_window: WINDOW as i32,
            ..LogSpec::new(kind, session_id, stream_id, 7, TERM_LENGTH)
        };
        let log_name = format!("{DIRECTORY}/publications/{registration_id}.logbuffer");
        let log = self.create_log(&log_name, &spec);
        let key = stream_key(registration_id, session_id, stream_id);
        let limit = self.allocate(&CounterSpec {
            type_id: type_id::PUBLISHER_LIMIT,
            key: &key,
            label: "pub-lmt",
            registration_id,
            owner_id: client_id,
            ..CounterSpec::default()
        });
        self.streams.push(Stream {
            registration_id,
            stream_id,
            session_id,
            log,
            log_name,
            limit,
            registrations: Vec::new(),
            clean_position: 0,
            subscribers: Vec::new(),
        });
        self.streams.len() - 1
    }

    pub(crate) fn create_log(&mut self, name: &str, spec: &LogSpec) -> LogBuffers {
        let length = taran_protocol::log::file_length(spec.term_length, spec.page_size) as u64;
        let region = self
            .storage
            .create(name.as_ref(), length, CreateOptions::RESERVED)
            .unwrap();
        LogBuffers::create(&region, spec, 0).unwrap()
    }

    /// Allocates the position counter of a subscription to a stream.
    pub(crate) fn add_position_counter(
        &mut self,
        client_id: i64,
        index: usize,
        subscription_id: i64,
    ) -> Counter {
        let stream = &self.streams[index];
        let (session_id, stream_id, reference_id) =
            (stream.session_id, stream.stream_id, stream.registration_id);
        let value = stream.log.producer_position();
        let key = stream_key(subscription_id, session_id, stream_id);
        let position = self.allocate(&CounterSpec {
            type_id: type_id::SUBSCRIBER_POSITION,
            key: &key,
            label: "sub-pos",
            registration_id: subscription_id,
            owner_id: client_id,
            reference_id,
            value,
        });
        self.streams[index]
            .subscribers
            .push((subscription_id, position.clone()));
        position
    }

    fn add_image(&mut self, client_id: i64, index: usize, subscription_id: i64) {
        let position = self.add_position_counter(client_id, index, subscription_id);
        self.announce_image(index, subscription_id, position.id());
    }

    pub(crate) fn announce_image(
        &mut self,
        index: usize,
        subscription_id: i64,
        position_counter_id: i32,
    ) {
        let stream = &self.streams[index];
        stream.log.set_connected(true);
        let (image_id, session_id, stream_id) =
            (stream.registration_id, stream.session_id, stream.stream_id);
        let log_name = stream.log_name.clone();
        self.respond(&Response::AvailableImage {
            image_id,
            session_id,
            stream_id,
            subscription_id,
            position_counter_id,
            log_name: &log_name,
            source_identity: "aeron:ipc",
        });
    }

    fn remove_publication(&mut self, registration_id: i64, revoke: bool) {
        let Some(index) = self
            .streams
            .iter()
            .position(|stream| stream.registrations.contains(&registration_id))
        else {
            return;
        };
        let stream = &mut self.streams[index];
        stream.registrations.retain(|id| *id != registration_id);
        if stream.registrations.is_empty() || revoke {
            if revoke {
                stream.log.set_revoked();
            }
            stream
                .log
                .set_end_of_stream_position(stream.log.producer_position());
            stream.log.set_connected(false);
            self.end_stream(index);
        }
    }

    /// Ends a stream: its images become unavailable, and its log and counters are freed.
    pub(crate) fn end_stream(&mut self, index: usize) {
        let stream = self.streams.remove(index);
        let now = self.clock.now().epoch_millis;
        for (subscription_id, position) in &stream.subscribers {
            self.respond(&Response::UnavailableImage {
                image_id: stream.registration_id,
                subscription_id: *subscription_id,
                stream_id: stream.stream_id,
                channel: "aeron:ipc",
            });
            self.counters.free(position.id(), now);
        }
        self.counters.free(stream.limit.id(), now);
        self.storage.remove(stream.log_name.as_ref()).unwrap();
    }

    fn update_limits(&mut self) {
        for stream in &mut self.streams {
            let Some(consumed) = stream
                .subscribers
                .iter()
                .map(|(_, position)| position.get())
                .min()
            else {
                continue;
            };
            // As the driver does for IPC: the term is cleaned before the limit is raised.
            while stream.clean_position < consumed {
                stream.clean_position = stream.log.clean(stream.clean_position, consumed);
            }
            stream.limit.set(consumed + WINDOW);
        }
    }
}

fn stream_key(registration_id: i64, session_id: i32, stream_id: i32) -> Vec<u8> {
    let key = StreamKey {
        registration_id,
        session_id,
        stream_id,
        channel: "aeron:ipc".into(),
    };
    key.encode().to_vec()
}

/// Creates a builder for the fake driver's directory, in invoker mode with virtual time.
pub(crate) fn builder(storage: &MemoryStorage, clock: &ManualClock) -> ClientBuilder {
    ClientBuilder::with_environment::<&str, &str>([])
        .aeron_dir(DIRECTORY)
        .storage(Arc::new(storage.clone()))
        .invoker(true)
        .clock(clock.clone())
}

/// A driver and a client in virtual time, run alternately.
pub(crate) struct Fixture {
    pub(crate) clock: ManualClock,
    pub(crate) driver: FakeDriver,
    pub(crate) client: taran::Client,
}

/// Initial time of the test clocks.
pub(crate) const START: Now = Now {
    nanos: 5_000_000_000,
    epoch_millis: 1_700_000_000_000,
};

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub(crate) fn with(configure: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Self {
        let clock = ManualClock::new(START);
        let driver = FakeDriver::start(clock.clone());
        let client = connect(configure(builder(&driver.storage, &clock)), &clock);
        Self {
            clock,
            driver,
            client,
        }
    }

    /// Runs a few duty cycles of both, without advancing the time.
    pub(crate) fn run_cycles(&mut self) {
        for _ in 0..3 {
            self.driver.do_work();
            self.client.do_work(self.clock.read());
        }
    }

    /// Advances the time in steps, and runs both at each step.
    pub(crate) fn advance(&mut self, time: Duration) {
        let step = Duration::from_millis(100);
        let mut left = time;
        while !left.is_zero() {
            let next = step.min(left);
            self.clock.advance(next);
            self.driver.update_heartbeat();
            self.run_cycles();
            left -= next;
        }
    }

    /// Runs both until the command is completed.
    pub(crate) fn complete<T>(
        &mut self,
        pending: Result<taran::Pending<T>, taran::CommandError>,
    ) -> Result<T, taran::CommandError> {
        let mut pending = pending?;
        for _ in 0..10 {
            if let Some(answer) = pending.poll() {
                return answer;
            }
            self.run_cycles();
        }
        panic!("no answer");
    }

    pub(crate) fn publication(&mut self, stream_id: i32) -> taran::Publication {
        let pending = self.client.async_add_publication("aeron:ipc", stream_id);
        self.complete(pending).unwrap()
    }

    pub(crate) fn exclusive_publication(&mut self, stream_id: i32) -> taran::ExclusivePublication {
        let pending = self
            .client
            .async_add_exclusive_publication("aeron:ipc", stream_id);
        self.complete(pending).unwrap()
    }

    pub(crate) fn subscription(&mut self, stream_id: i32) -> taran::Subscription {
        let pending = self.client.async_add_subscription("aeron:ipc", stream_id);
        self.complete(pending).unwrap()
    }

    pub(crate) fn stream(&self, registration_id: i64) -> &Stream {
        self.driver
            .streams
            .iter()
            .find(|stream| stream.registration_id == registration_id)
            .unwrap()
    }
}

pub(crate) fn connect(builder: ClientBuilder, clock: &ManualClock) -> taran::Client {
    match builder.connecting().poll(clock.read()) {
        Ok(Progress::Connected(client)) => client,
        other => panic!("not connected: {other:?}"),
    }
}
