// SPDX-License-Identifier: Apache-2.0
//! A whole driver in memory and virtual time, with clients that communicate with it through `cnc.dat` only.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use taran_core::broadcast::Receiver;
use taran_core::clock::{ManualClock, Now};
use taran_core::counters::CounterMeta;
use taran_core::error_log;
use taran_core::memory::{MemoryStorage, Storage};
use taran_core::ring::many_to_one::Producer;
use taran_driver::{DriverContext, DriverParts, Environment, NameResolver};
use taran_protocol::cnc::{CNC_FILE_NAME, Cnc};
use taran_protocol::command::Command;
use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::error_code::ErrorCode;
use taran_protocol::log::LogBuffers;
use taran_protocol::response::Response;

use crate::memory_network::MemoryNetwork;

pub(crate) const DIRECTORY: &str = "/aeron";
const START_MS: i64 = 1_700_000_000_000;

/// A message from the driver, copied out.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    type_id: i32,
    bytes: Vec<u8>,
}

impl Message {
    pub(crate) fn get(&self) -> Response<'_> {
        Response::decode(self.type_id, &self.bytes).expect("the driver speaks the protocol")
    }
}

/// Resolver whose lookups stay pending until the test answers them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts {
    state: Arc<Mutex<HostState>>,
}

#[derive(Debug, Default)]
struct HostState {
    fails: bool,
    asked: Vec<(u64, String)>,
    answers: Vec<(u64, Result<Vec<IpAddr>, String>)>,
}

impl Hosts {
    /// Returns the names of pending lookups.
    pub(crate) fn asked(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        state.asked.iter().map(|(_, name)| name.clone()).collect()
    }

    /// Completes all pending lookups of a name.
    pub(crate) fn answer(&self, name: &str, answer: &Result<Vec<IpAddr>, String>) {
        let mut state = self.state.lock().unwrap();
        let (now, later) = std::mem::take(&mut state.asked)
            .into_iter()
            .partition(|(_, asked)| asked == name);
        state.asked = later;
        let now: Vec<(u64, String)> = now;
        state
            .answers
            .extend(now.into_iter().map(|(ticket, _)| (ticket, answer.clone())));
    }
}

impl Hosts {
    /// Lets all later lookups fail.
    pub(crate) fn fail_all(&self) {
        self.state.lock().unwrap().fails = true;
    }
}

impl NameResolver for Hosts {
    fn start(&mut self, ticket: u64, host: &str) {
        let mut state = self.state.lock().unwrap();
        if state.fails {
            state.answers.push((ticket, Err("no such name".to_owned())));
        } else {
            state.asked.push((ticket, host.to_owned()));
        }
    }

    fn poll(&mut self) -> Option<(u64, Result<Vec<IpAddr>, String>)> {
        self.state.lock().unwrap().answers.pop()
    }
}

/// A driver with its environment.
pub(crate) struct DriverFixture {
    pub(crate) storage: MemoryStorage,
    pub(crate) network: MemoryNetwork,
    pub(crate) hosts: Hosts,
    pub(crate) parts: DriverParts,
    pub(crate) cnc: Cnc,
    pub(crate) commands: Producer,
    pub(crate) terminations: Arc<Mutex<usize>>,
    responses: Receiver,
    now: Now,
    living: Vec<i64>,
}

impl DriverFixture {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// Builds a driver with additional options; by default, terms are small.
    pub(crate) fn with(options: &[(&str, &str)]) -> Self {
        Self::in_storage(MemoryStorage::new(), options)
    }

    pub(crate) fn in_storage(storage: MemoryStorage, options: &[(&str, &str)]) -> Self {
        let set =
            |context: DriverContext, (name, value): &(&str, &str)| context.option(name, value);
        Self::built(storage, |context| options.iter().fold(context, set))
    }

    /// Builds a driver with a changed context.
    pub(crate) fn built(
        storage: MemoryStorage,
        change: impl FnOnce(DriverContext) -> DriverContext,
    ) -> Self {
        Self::on(storage.clone(), Arc::new(storage), change)
    }

    /// Builds a driver that accesses the files through another `Storage`.
    pub(crate) fn on(
        storage: MemoryStorage,
        files: Arc<dyn Storage>,
        change: impl FnOnce(DriverContext) -> DriverContext,
    ) -> Self {
        let network = MemoryNetwork::default();
        let hosts = Hosts::default();
        let terminations = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&terminations);
        let context = DriverContext::new()
            .aeron_dir(DIRECTORY)
            .term_buffer_length(64 * 1024)
            .ipc_term_buffer_length(64 * 1024)
            .termination_hook(move || *counted.lock().unwrap() += 1);
        let context = change(context);
        let now = Now {
            nanos: 1_000_000_000_000,
            epoch_millis: START_MS,
        };
        let environment = Environment::new(
            files,
            Box::new(network.clone()),
            Box::new(hosts.clone()),
            Arc::new(ManualClock::new(now)),
            now,
            7,
        )
        .with_pid(42);
        let parts = DriverParts::build(context, environment).expect("the driver can be built");
        let region = storage
            .open(&PathBuf::from(DIRECTORY).join(CNC_FILE_NAME))
            .unwrap();
        let cnc = Cnc::open(&region).unwrap();
        Self {
            commands: Producer::open(&cnc.to_driver).unwrap(),
            responses: Receiver::open(&cnc.to_clients).unwrap(),
            storage,
            network,
            hosts,
            parts,
            cnc,
            terminations,
            now,
            living: Vec::new(),
        }
    }

    /// Runs one duty cycle of every agent.
    pub(crate) fn duty_cycle(&mut self) {
        self.parts.conductor.do_work(self.now);
        self.parts.sender.do_work(self.now);
        self.parts.receiver.do_work(self.now);
    }

    /// Runs enough duty cycles for all requests to complete, without advancing time.
    pub(crate) fn settle(&mut self) {
        for _ in 0..40 {
            self.duty_cycle();
        }
    }

    /// Changes the wall clock.
    pub(crate) fn set_clock_by(&mut self, ms: i64) {
        self.now.epoch_millis += ms;
    }

    /// Advances time in steps of 5 ms, with heartbeats of all living clients.
    pub(crate) fn run_for(&mut self, time: Duration) {
        for _ in 0..(time.as_millis() / 5).max(1) {
            self.now.nanos += 5_000_000;
            self.now.epoch_millis += 5;
            for client in &self.living {
                let reader = &self.parts.counters;
                let found =
                    reader.find_by_type_and_registration(type_id::CLIENT_HEARTBEAT, *client);
                if let Some(counter) = found.and_then(|id| reader.counter(id)) {
                    counter.set(self.now.epoch_millis);
                }
            }
            self.duty_cycle();
            self.duty_cycle();
        }
    }

    pub(crate) fn now(&self) -> Now {
        self.now
    }

    /// Returns the id of a new client, which sends heartbeats from now on.
    pub(crate) fn client(&mut self) -> i64 {
        let id = self.commands.next_correlation_id();
        self.living.push(id);
        id
    }

    /// Stops the heartbeats of a client.
    pub(crate) fn kill(&mut self, client: i64) {
        self.living.retain(|id| *id != client);
    }

    pub(crate) fn id(&self) -> i64 {
        self.commands.next_correlation_id()
    }

    /// Writes a command to the ring.
    pub(crate) fn send(&self, command: &Command<'_>) {
        let mut bytes = Vec::new();
        let type_id = command.encode(&mut bytes);
        self.commands
            .write(type_id, &bytes)
            .expect("the ring has room");
    }

    /// Returns the messages since the last call.
    pub(crate) fn messages(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while self
            .responses
            .receive(|type_id, bytes| {
                messages.push(Message {
                    type_id,
                    bytes: bytes.to_vec(),
                });
            })
            .expect("tests read often enough")
        {}
        messages
    }

    /// Discards all messages.
    pub(crate) fn drain(&mut self) {
        while !matches!(self.responses.receive(|_, _| {}), Ok(false)) {}
    }

    /// Sends a command and returns the messages of the driver.
    pub(crate) fn ask(&mut self, command: &Command<'_>) -> Vec<Message> {
        self.messages();
        self.send(command);
        self.settle();
        self.messages()
    }

    /// Adds a publication and returns the response or the error.
    pub(crate) fn add_publication(
        &mut self,
        client: i64,
        channel: &str,
        stream_id: i32,
    ) -> Result<Ready, CommandError> {
        self.publication(client, channel, stream_id, false)
    }

    pub(crate) fn add_exclusive(
        &mut self,
        client: i64,
        channel: &str,
        stream_id: i32,
    ) -> Result<Ready, CommandError> {
        self.publication(client, channel, stream_id, true)
    }

    fn publication(
        &mut self,
        client_id: i64,
        channel: &str,
        stream_id: i32,
        exclusive: bool,
    ) -> Result<Ready, CommandError> {
        let correlation_id = self.id();
        let answers = self.ask(&if exclusive {
            Command::AddExclusivePublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            }
        } else {
            Command::AddPublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            }
        });
        answers
            .iter()
            .find_map(|message| ready(message, correlation_id))
            .expect("an add is answered")
    }

    /// Adds a subscription and returns its id and status counter, or the error.
    pub(crate) fn add_subscription(
        &mut self,
        client_id: i64,
        channel: &str,
        stream_id: i32,
    ) -> Result<(i64, i32), CommandError> {
        let correlation_id = self.id();
        let answers = self.ask(&Command::AddSubscription {
            client_id,
            correlation_id,
            stream_id,
            channel,
        });
        answers
            .iter()
            .find_map(|message| match message.get() {
                Response::SubscriptionReady {
                    correlation_id: id,
                    status_counter_id,
                } if id == correlation_id => Some(Ok((id, status_counter_id))),
                _ => error_response(message, correlation_id).map(Err),
            })
            .expect("an add is answered")
    }

    /// Opens the log at a path.
    pub(crate) fn log(&self, path: &str) -> LogBuffers {
        LogBuffers::open(&self.storage.open(Path::new(path)).unwrap()).unwrap()
    }

    pub(crate) fn system(&self, counter: SystemCounter) -> i64 {
        self.parts.counters.value(counter.id()).unwrap()
    }

    pub(crate) fn value(&self, counter_id: i32) -> i64 {
        self.parts.counters.value(counter_id).unwrap()
    }

    pub(crate) fn set(&self, counter_id: i32, value: i64) {
        self.parts.counters.counter(counter_id).unwrap().set(value);
    }

    /// Returns all counters except system counters.
    pub(crate) fn counters(&self) -> Vec<CounterMeta> {
        let mut found = Vec::new();
        self.parts.counters.for_each(|meta| {
            if meta.type_id != type_id::SYSTEM {
                found.push(meta.clone());
            }
        });
        found
    }

    /// Returns the labels of all counters except system counters, by type.
    pub(crate) fn labels(&self) -> BTreeMap<i32, String> {
        self.counters()
            .into_iter()
            .map(|meta| (meta.type_id, meta.label.to_string()))
            .collect()
    }

    /// Returns the paths of all log files.
    pub(crate) fn log_files(&self) -> Vec<String> {
        let names = self.storage.mapped_files().into_iter();
        names
            .map(|path| path.display().to_string())
            .filter(|name| name.ends_with(".logbuffer"))
            .collect()
    }

    /// Returns the distinct errors with their counts.
    pub(crate) fn errors(&self) -> Vec<(String, i32)> {
        let mut errors = Vec::new();
        error_log::read(&self.cnc.error_log, 0, |error| {
            errors.push((error.text.clone(), error.count));
        });
        errors
    }
}

/// Response to an added publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) correlation_id: i64,
    pub(crate) registration_id: i64,
    pub(crate) session_id: i32,
    pub(crate) limit_counter_id: i32,
    pub(crate) status_counter_id: i32,
    pub(crate) log: String,
}

/// Error response to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandError {
    pub(crate) code: ErrorCode,
    pub(crate) text: String,
}

pub(crate) fn ready(message: &Message, wanted: i64) -> Option<Result<Ready, CommandError>> {
    match message.get() {
        Response::PublicationReady {
            correlation_id,
            registration_id,
            session_id,
            limit_counter_id,
            status_counter_id,
            log_name,
            ..
        }
        | Response::ExclusivePublicationReady {
            correlation_id,
            registration_id,
            session_id,
            limit_counter_id,
            status_counter_id,
            log_name,
            ..
        } if correlation_id == wanted => Some(Ok(Ready {
            correlation_id,
            registration_id,
            session_id,
            limit_counter_id,
            status_counter_id,
            log: log_name.to_owned(),
        })),
        _ => error_response(message, wanted).map(Err),
    }
}

pub(crate) fn error_response(message: &Message, wanted: i64) -> Option<CommandError> {
    match message.get() {
        Response::Error {
            correlation_id,
            error_code,
            message,
        } if correlation_id == wanted => Some(CommandError {
            code: ErrorCode::from_code(error_code),
            text: String::from_utf8_lossy(message).into_owned(),
        }),
        _ => None,
    }
}
