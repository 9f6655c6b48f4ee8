// SPDX-License-Identifier: Apache-2.0
//! The reconnecting client, over drivers that are killed and restarted in virtual time.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use taran::{
    CommandError, ConnectError, ConnectionState, ErrorCode, ImageHandlers, Lost, ManualClock,
    MemoryStorage, Publication, Reconnecting, ReconnectingClient, Subscription, Version,
};

use taran_protocol::command::Command;
use taran_protocol::response::Response;

use crate::fake_driver::{FakeDriver, OfDestinations, REFUSED, START, UNRESOLVED, builder};

/// A machine whose driver is killed and restarted. Each driver has new files.
pub(crate) struct Machine {
    clock: ManualClock,
    storage: Arc<Mutex<MemoryStorage>>,
    driver: Option<FakeDriver>,
    pub(crate) client: ReconnectingClient,
    publication: Reconnecting<Publication>,
    subscription: Reconnecting<Subscription>,
}

impl Machine {
    pub(crate) fn without_driver() -> Self {
        let clock = ManualClock::new(START);
        let storage = Arc::new(Mutex::new(MemoryStorage::new()));
        let (files, time) = (Arc::clone(&storage), clock.clone());
        let configure = move || builder(&files.lock().unwrap(), &time);
        let mut client = ReconnectingClient::new(configure).suspect_after(Duration::from_secs(3));
        let publication = client.add_publication("aeron:ipc", 10);
        let subscription = client.add_subscription("aeron:ipc", 10);
        Self {
            clock,
            storage,
            driver: None,
            client,
            publication,
            subscription,
        }
    }

    pub(crate) fn start_driver(&mut self) {
        self.start_driver_with(|_| ());
    }

    fn start_driver_with(&mut self, configure: impl FnOnce(&mut FakeDriver)) {
        let storage = MemoryStorage::new();
        *self.storage.lock().unwrap() = storage.clone();
        let mut driver = FakeDriver::start_in(storage, self.clock.clone());
        configure(&mut driver);
        self.driver = Some(driver);
        // An attempt in progress sees the old files, until it fails after the driver timeout.
        self.advance(Duration::from_secs(12));
    }

    /// Starts a driver that refuses all publications and subscriptions with this error.
    pub(crate) fn start_driver_that_refuses(&mut self, code: ErrorCode) {
        self.start_driver_with(|driver| driver.refuses_streams = Some(code));
    }

    /// Stops the driver without a shutdown: its files remain, its heartbeat stops.
    pub(crate) fn kill_driver(&mut self) {
        self.driver = None;
    }

    pub(crate) fn advance(&mut self, time: Duration) {
        let step = Duration::from_millis(100);
        for _ in 0..time.as_millis() / step.as_millis() {
            self.clock.advance(step);
            if let Some(driver) = &mut self.driver {
                driver.update_heartbeat();
                driver.do_work();
            }
            self.client.do_work(self.clock.read()).unwrap();
        }
    }

    fn driver(&mut self) -> &mut FakeDriver {
        self.driver.as_mut().expect("there is a driver")
    }

    /// Returns the channels that the driver was told to add since the last call, in order.
    fn added_destinations(&mut self) -> Vec<String> {
        let commands = self.driver().take_commands();
        let added = commands
            .iter()
            .filter_map(|command| match command.command() {
                Command::AddDestination { channel, .. }
                | Command::AddReceiveDestination { channel, .. } => Some(channel.to_owned()),
                _ => None,
            });
        added.collect()
    }

    /// Returns the destinations that the driver has, sorted.
    fn destinations(&mut self) -> Vec<String> {
        let known = self.driver().destinations.iter();
        let mut channels: Vec<_> = known.map(|(_, channel)| channel.clone()).collect();
        channels.sort();
        channels
    }

    /// The driver times the client out; the machine connects again.
    fn time_client_out(&mut self) {
        assert!(self.publication.get().unwrap().is_some());
        let before = self.publication.generation();
        self.send_client_timeout();
        self.advance(Duration::from_secs(2));
        assert!(self.publication.get().unwrap().is_some());
        assert_eq!(self.publication.generation(), before + 1);
    }

    /// Lets the driver time the client out.
    fn send_client_timeout(&mut self) {
        let client = self.client.client().expect("connected");
        let client_id = client.client_id();
        self.driver()
            .respond(&Response::ClientTimeout { client_id });
    }

    /// Sends a message and receives it.
    fn exchange(&mut self) {
        self.advance(Duration::from_secs(1));
        let publication = self.publication.get().unwrap().expect("there is a driver");
        publication.offer(b"message").unwrap();
        let subscription = self.subscription.get().unwrap().expect("there is a driver");
        assert_eq!(subscription.poll(|_, _| (), 10), Ok(1));
    }
}

#[test]
fn invalid_option_is_an_error_of_each_attempt_and_in_the_state() {
    let clock = ManualClock::new(START);
    let (storage, time) = (MemoryStorage::new(), clock.clone());
    let configure = move || builder(&storage, &time).keepalive_interval(Duration::ZERO);
    let mut client = ReconnectingClient::new(configure);
    for _ in 0..3 {
        let error = client.do_work(clock.read()).unwrap_err();
        assert!(matches!(error, ConnectError::Option(_)), "{error}");
        let expected = ConnectionState::Reconnecting {
            lost: None,
            failure: Some(error),
        };
        assert_eq!(*client.state(), expected);
        clock.advance(Duration::from_millis(999));
        assert_eq!(client.do_work(clock.read()), Ok(0));
        clock.advance(Duration::from_millis(1));
    }
}

#[test]
fn driver_of_another_version_is_an_error_until_it_is_replaced() {
    let mut machine = Machine::without_driver();
    machine.start_driver();
    machine.kill_driver();
    machine.advance(Duration::from_secs(12));
    let storage = MemoryStorage::new();
    *machine.storage.lock().unwrap() = storage.clone();
    let driver = FakeDriver::start_in(storage, machine.clock.clone());
    let version = &driver.cnc.header.version;
    let supported = version.swap(Version::new(1, 0, 0).0, Ordering::Relaxed);
    let mut errors = 0;
    for _ in 0..300 {
        machine.clock.advance(Duration::from_millis(100));
        driver.set_heartbeat_ms(machine.clock.read().epoch_millis);
        match machine.client.do_work(machine.clock.read()) {
            Ok(_) => {}
            Err(error) => {
                assert!(matches!(error, ConnectError::Version { .. }), "{error}");
                errors += 1;
            }
        }
    }
    // The attempt in progress waits for the driver timeout, each later one fails at once and follows a second later.
    assert!((15..=30).contains(&errors), "{errors}");
    version.store(supported, Ordering::Relaxed);
    machine.driver = Some(driver);
    machine.advance(Duration::from_secs(2));
    machine.exchange();
}

#[test]
fn resources_are_made_anew_on_each_driver() {
    let mut machine = Machine::without_driver();
    machine.advance(Duration::from_secs(60));
    assert!(machine.publication.get().unwrap().is_none());
    assert!(matches!(
        machine.client.state(),
        ConnectionState::Reconnecting {
            lost: None,
            failure: Some(_)
        }
    ));
    for generation in 1..=3 {
        machine.start_driver();
        assert_eq!(*machine.client.state(), ConnectionState::Connected);
        machine.exchange();
        assert_eq!(machine.publication.generation(), generation);
        assert_eq!(machine.subscription.generation(), generation);
        machine.kill_driver();
        machine.advance(Duration::from_secs(12));
        assert!(
            machine.publication.get().unwrap().is_none()
                && machine.subscription.get().unwrap().is_none()
        );
        assert!(matches!(
            machine.client.state(),
            ConnectionState::Reconnecting {
                lost: Some(Lost::DriverTimeout { .. }),
                ..
            }
        ));
    }
}

#[test]
fn killed_driver_is_lost_within_half_a_second_and_not_connected_again() {
    let mut machine = Machine::without_driver();
    machine.start_driver();
    let mut driver = machine.driver.take().unwrap();
    driver.take_lock();
    machine.driver = Some(driver);
    // The client of the machine connected before the lock was taken.
    let (files, clock) = (Arc::clone(&machine.storage), machine.clock.clone());
    let mut client = ReconnectingClient::new(move || builder(&files.lock().unwrap(), &clock));
    client.do_work(machine.clock.read()).unwrap();
    assert_eq!(*client.state(), ConnectionState::Connected);
    machine.driver.as_mut().unwrap().lock = None;
    for step in 0..50 {
        machine.clock.advance(Duration::from_millis(100));
        client.do_work(machine.clock.read()).unwrap();
        if step >= 5 {
            assert!(matches!(
                client.state(),
                ConnectionState::Reconnecting {
                    lost: Some(Lost::DriverProcessEnded),
                    ..
                }
            ));
        }
    }
}

#[test]
fn silent_driver_is_suspect_until_its_next_heartbeat() {
    let mut machine = Machine::without_driver();
    machine.start_driver();
    machine.exchange();
    let stopped = machine.driver.take();
    machine.advance(Duration::from_secs(2));
    assert_eq!(*machine.client.state(), ConnectionState::Connected);
    machine.advance(Duration::from_secs(2));
    assert!(matches!(
        machine.client.state(),
        ConnectionState::Suspect { silence } if *silence >= Duration::from_secs(3)
    ));
    // The resources are still there.
    machine.driver = stopped;
    machine.exchange();
    assert_eq!(*machine.client.state(), ConnectionState::Connected);
    assert_eq!(machine.publication.generation(), 1);
}

#[test]
fn dropped_resource_is_not_added_again() {
    let mut machine = Machine::without_driver();
    let other = machine.client.add_counter(1_001, b"", "gone");
    machine.start_driver();
    machine.exchange();
    assert_eq!(counters_labelled(&machine, "gone"), 1);
    drop(other);
    machine.kill_driver();
    machine.advance(Duration::from_secs(12));
    machine.start_driver();
    machine.exchange();
    assert_eq!(counters_labelled(&machine, "gone"), 0);
}

#[test]
fn image_handlers_are_made_for_each_driver() {
    let mut machine = Machine::without_driver();
    let available = Arc::new(Mutex::new(0));
    let count = Arc::clone(&available);
    let _subscription = machine
        .client
        .add_subscription_with("aeron:ipc", 10, move || {
            let count = Arc::clone(&count);
            ImageHandlers::new().on_available(move |_| *count.lock().unwrap() += 1)
        });
    for drivers in 1..=2 {
        machine.start_driver();
        machine.exchange();
        assert_eq!(*available.lock().unwrap(), drivers);
        machine.kill_driver();
        machine.advance(Duration::from_secs(12));
    }
}

fn counters_labelled(machine: &Machine, label: &str) -> usize {
    let mut count = 0;
    let client = machine.client.client().expect("connected");
    client
        .counters()
        .for_each(|meta| count += usize::from(meta.label.as_str() == label));
    count
}

const ONE: &str = "aeron:udp?endpoint=127.0.0.1:40456";
const TWO: &str = "aeron:udp?endpoint=127.0.0.1:40457";

#[test]
fn destinations_are_added_on_each_driver_before_the_resource_is_there() {
    let mut machine = Machine::without_driver();
    machine.publication.add_destination(ONE).unwrap();
    machine.subscription.add_destination(TWO).unwrap();
    machine.publication.add_destination(ONE).unwrap();
    assert_eq!(machine.publication.destinations(), [ONE]);
    for generation in 1..=2 {
        machine.start_driver();
        assert!(machine.publication.get().unwrap().is_some());
        assert_eq!(machine.publication.generation(), generation);
        assert_eq!(machine.added_destinations().len(), 2);
        assert_eq!(machine.destinations(), [ONE, TWO]);
        machine.kill_driver();
        machine.advance(Duration::from_secs(12));
    }

    // No answer to the command for the destination: the resource is not there yet.
    machine.start_driver();
    let mut late = machine.client.add_publication("aeron:ipc", 11);
    late.add_destination(ONE).unwrap();
    machine.advance(Duration::from_millis(200));
    machine.driver.as_mut().unwrap().auto_respond = false;
    machine.advance(Duration::from_secs(1));
    assert!(late.get().unwrap().is_none());
}

#[test]
fn changed_destinations_reach_the_driver_and_its_successor() {
    let mut machine = Machine::without_driver();
    machine.start_driver();
    machine.publication.add_destination(ONE).unwrap();
    machine.publication.add_destination(TWO).unwrap();
    machine.advance(Duration::from_secs(1));
    assert_eq!(machine.added_destinations(), [ONE, TWO]);
    machine.publication.remove_destination(ONE);
    machine.advance(Duration::from_secs(1));
    assert_eq!(machine.destinations(), [TWO]);
    machine.kill_driver();
    machine.advance(Duration::from_secs(12));
    machine.start_driver();
    assert_eq!(machine.added_destinations(), [TWO]);
    assert_eq!(machine.destinations(), [TWO]);
    assert_eq!(machine.publication.failure(), None);
}

/// The publication has one destination, the subscription another one.
fn machine_with_destinations() -> Machine {
    let mut machine = Machine::without_driver();
    machine.publication.add_destination(ONE).unwrap();
    machine.subscription.add_destination(TWO).unwrap();
    machine.start_driver();
    assert_eq!(machine.destinations(), [ONE, TWO]);
    machine
}

#[test]
fn destination_whose_answer_was_lost_is_there_once() {
    let mut machine = machine_with_destinations();
    let (three, four) = (
        "aeron:udp?endpoint=127.0.0.1:40458",
        "aeron:udp?endpoint=127.0.0.1:40459",
    );
    machine.driver().of_destinations = OfDestinations::ExecuteSilently;
    machine.publication.add_destination(three).unwrap();
    machine.subscription.add_destination(four).unwrap();
    machine.advance(Duration::from_secs(25));
    let is_timeout =
        |failure: Option<CommandError>| matches!(failure, Some(CommandError::Timeout { .. }));
    assert!(is_timeout(machine.publication.failure()));
    assert!(is_timeout(machine.subscription.failure()));
    machine.driver().of_destinations = OfDestinations::Execute;
    machine.advance(Duration::from_secs(25));
    assert_eq!(machine.destinations(), [ONE, TWO, three, four]);
    assert_eq!(machine.publication.failure(), None);
    assert_eq!(machine.subscription.failure(), None);
}

#[test]
fn destination_without_answer_that_is_no_longer_wanted_is_removed() {
    let mut machine = machine_with_destinations();
    let three = "aeron:udp?endpoint=127.0.0.1:40458";
    machine.driver().of_destinations = OfDestinations::ExecuteSilently;
    machine.publication.add_destination(three).unwrap();
    machine.advance(Duration::from_secs(1));
    machine.publication.remove_destination(three);
    machine.advance(Duration::from_secs(12));
    machine.driver().of_destinations = OfDestinations::Execute;
    machine.advance(Duration::from_secs(25));
    assert_eq!(machine.destinations(), [ONE, TWO]);
    assert_eq!(machine.publication.failure(), None);
}

#[test]
fn failed_removal_of_a_destination_is_reported_and_tried_again() {
    for code in [ErrorCode::GenericError, ErrorCode::InvalidChannel] {
        let mut machine = machine_with_destinations();
        machine.driver().of_destinations = OfDestinations::RefuseRemovals(code);
        machine.publication.remove_destination(ONE);
        machine.subscription.remove_destination(TWO);
        for _ in 0..5 {
            machine.advance(Duration::from_secs(1));
            let failures = [
                machine.publication.failure(),
                machine.subscription.failure(),
            ];
            assert!(
                failures
                    .iter()
                    .flatten()
                    .filter(|it| is_refused_with(it, code))
                    .count()
                    == 2,
                "{failures:?}"
            );
        }
        assert_eq!(machine.destinations(), [ONE, TWO]);
        machine.driver().of_destinations = OfDestinations::Execute;
        machine.advance(Duration::from_secs(2));
        assert_eq!(machine.destinations(), [] as [&str; 0]);
        assert_eq!(machine.publication.failure(), None);
        assert_eq!(machine.subscription.failure(), None);
    }
}

#[test]
fn failure_is_that_of_a_destination_that_is_not_there() {
    let mut machine = Machine::without_driver();
    machine.start_driver();
    machine.driver().of_destinations = OfDestinations::ExecuteSilently;
    machine.publication.add_destination(ONE).unwrap();
    machine.publication.add_destination(REFUSED).unwrap();
    machine.advance(Duration::from_secs(1));
    let failure = machine.publication.failure().unwrap();
    assert!(
        is_refused_with(&failure, ErrorCode::InvalidChannel),
        "{failure}"
    );
    machine.advance(Duration::from_secs(25));
    let failure = machine.publication.failure().unwrap();
    assert!(matches!(failure, CommandError::Timeout { .. }), "{failure}");

    machine.driver().of_destinations = OfDestinations::Execute;
    machine.advance(Duration::from_secs(25));
    assert_eq!(machine.destinations(), [ONE]);
    let failure = machine.publication.failure().unwrap();
    assert!(
        is_refused_with(&failure, ErrorCode::InvalidChannel),
        "{failure}"
    );
    machine.publication.remove_destination(REFUSED);
    machine.advance(Duration::from_secs(1));
    assert_eq!(machine.publication.failure(), None);
}

/// Another client can have kept the endpoint of the publication, with its destinations.
#[test]
fn destinations_are_there_once_after_the_same_driver_has_timed_the_client_out() {
    let mut machine = machine_with_destinations();
    machine.time_client_out();
    assert_eq!(machine.destinations(), [ONE, TWO]);
    // One of unknown outcome, and one that is no longer wanted.
    let three = "aeron:udp?endpoint=127.0.0.1:40458";
    machine.driver().of_destinations = OfDestinations::ExecuteSilently;
    machine.publication.add_destination(three).unwrap();
    machine.advance(Duration::from_secs(1));
    machine.publication.remove_destination(ONE);
    machine.driver().of_destinations = OfDestinations::Execute;
    machine.time_client_out();
    assert_eq!(machine.destinations(), [TWO, three]);
}

#[test]
fn failure_of_a_destination_ends_with_its_connection() {
    let mut machine = machine_with_destinations();
    let three = "aeron:udp?endpoint=127.0.0.1:40458";
    machine.driver().of_destinations = OfDestinations::ExecuteSilently;
    machine.publication.add_destination(three).unwrap();
    machine.advance(Duration::from_secs(25));
    assert!(machine.publication.failure().is_some());
    assert!(machine.publication.get().unwrap().is_some());
    machine.send_client_timeout();
    machine.advance(Duration::from_secs(2));
    // The destinations are not tried yet on the new connection.
    assert!(machine.publication.get().unwrap().is_none());
    assert_eq!(machine.publication.failure(), None);
    machine.driver().of_destinations = OfDestinations::Execute;
    machine.advance(Duration::from_secs(25));
    assert!(machine.publication.get().unwrap().is_some());
    assert_eq!(machine.publication.failure(), None);
    assert_eq!(machine.destinations(), [ONE, TWO, three]);
}

/// Ids of the last driver can belong to others on the next one.
#[test]
fn new_driver_gets_no_removals() {
    let mut machine = machine_with_destinations();
    machine.kill_driver();
    machine.advance(Duration::from_secs(12));
    machine.start_driver();
    let commands = machine.driver().take_commands();
    assert!(commands.iter().all(|command| !matches!(
        command.command(),
        Command::RemoveDestinationById { .. } | Command::RemoveReceiveDestination { .. }
    )));
    assert_eq!(machine.destinations(), [ONE, TWO]);
}

/// Returns how many commands of the last time have added a stream.
fn additions(machine: &mut Machine) -> usize {
    let commands = machine.driver().take_commands();
    let is_addition = |command: &Command<'_>| {
        matches!(
            command,
            Command::AddPublication { .. } | Command::AddSubscription { .. }
        )
    };
    let commands = commands
        .iter()
        .filter(|command| is_addition(&command.command()));
    commands.count()
}

fn is_refused_with(error: &CommandError, code: ErrorCode) -> bool {
    matches!(error, CommandError::Registration(refused) if refused.code == code)
}

#[test]
fn stream_refused_for_good_is_an_error_and_is_added_on_the_next_connection() {
    for code in [
        ErrorCode::InvalidChannel,
        ErrorCode::UnknownCommandTypeId,
        ErrorCode::MalformedCommand,
        ErrorCode::NotSupported,
    ] {
        let mut machine = Machine::without_driver();
        machine.start_driver_that_refuses(code);
        machine.advance(Duration::from_secs(60));
        for _ in 0..2 {
            let error = machine.publication.get().unwrap_err();
            assert!(is_refused_with(&error, code), "{error}");
            assert_eq!(machine.publication.failure(), Some(error));
            let error = machine.subscription.get().unwrap_err();
            assert!(is_refused_with(&error, code), "{error}");
        }
        assert_eq!(additions(&mut machine), 2, "each was asked for once");

        machine.kill_driver();
        machine.advance(Duration::from_secs(12));
        assert!(machine.publication.get().unwrap().is_none());
        machine.start_driver();
        machine.exchange();
        assert_eq!(machine.publication.failure(), None);
        assert_eq!(machine.publication.generation(), 1);
    }
}

#[test]
fn refusal_that_may_pass_is_reported_and_repeated_after_a_pause() {
    for code in [
        ErrorCode::UnknownHost,
        ErrorCode::ResourceTemporarilyUnavailable,
        ErrorCode::GenericError,
        ErrorCode::StorageSpace,
    ] {
        let mut machine = Machine::without_driver();
        machine.start_driver_that_refuses(code);
        machine.driver().take_commands();
        machine.advance(Duration::from_secs(10));
        let count = additions(&mut machine);
        assert!(
            (16..=20).contains(&count),
            "two streams, once per second: {count}"
        );
        assert!(machine.publication.get().unwrap().is_none());
        let failure = machine.publication.failure().unwrap();
        assert!(is_refused_with(&failure, code), "{failure}");
        machine.driver().refuses_streams = None;
        machine.exchange();
        assert_eq!(machine.publication.failure(), None);
    }
}

/// The publication with the tag may be added later, and the host may be resolved later.
#[test]
fn invalid_channel_that_names_other_streams_or_a_host_is_repeated() {
    for channel in ["aeron:udp?tags=7", "aeron:udp?endpoint=server:40456"] {
        let mut machine = Machine::without_driver();
        machine.subscription = machine.client.add_subscription(channel, 10);
        machine.start_driver_that_refuses(ErrorCode::InvalidChannel);
        machine.driver().take_commands();
        machine.advance(Duration::from_secs(10));
        let count = additions(&mut machine);
        assert!((8..=10).contains(&count), "the subscription only: {count}");
        assert!(machine.subscription.get().unwrap().is_none());
        assert!(machine.publication.get().is_err());
        machine.driver().refuses_streams = None;
        machine.advance(Duration::from_secs(1));
        assert!(machine.subscription.get().unwrap().is_some());
    }
}

#[test]
fn channel_that_is_too_long_is_an_error() {
    let mut machine = Machine::without_driver();
    let mut publication = machine.client.add_publication("x".repeat(1 << 20), 10);
    assert!(publication.get().unwrap().is_none());
    machine.start_driver();
    let error = publication.get().unwrap_err();
    assert!(matches!(error, CommandError::TooLong { .. }), "{error}");
}

#[test]
fn destination_refused_for_good_is_reported_and_not_tried_again_on_this_connection() {
    let mut machine = Machine::without_driver();
    machine.publication.add_destination(REFUSED).unwrap();
    machine.publication.add_destination(ONE).unwrap();
    for _ in 0..2 {
        machine.start_driver();
        // The publication is usable, and has the other destination.
        machine.exchange();
        machine.advance(Duration::from_secs(10));
        let failure = machine.publication.failure().unwrap();
        assert!(is_refused_with(&failure, ErrorCode::InvalidChannel));
        assert_eq!(machine.added_destinations(), [REFUSED, ONE]);
        machine.kill_driver();
        machine.advance(Duration::from_secs(12));
    }
    machine.start_driver();
    machine.publication.remove_destination(REFUSED);
    machine.publication.add_destination(TWO).unwrap();
    machine.advance(Duration::from_secs(3));
    assert_eq!(machine.publication.failure(), None);
    assert_eq!(machine.destinations(), [ONE, TWO]);
}

#[test]
fn destination_whose_host_is_unknown_is_reported_and_tried_again() {
    let mut machine = Machine::without_driver();
    machine.publication.add_destination(UNRESOLVED).unwrap();
    machine.publication.add_destination(ONE).unwrap();
    machine.start_driver();
    // The publication is usable, and has the other destination.
    machine.exchange();
    machine.advance(Duration::from_secs(10));
    assert!(machine.publication.failure().is_some());
    let added = machine.added_destinations();
    let count = |channel: &str| added.iter().filter(|it| *it == channel).count();
    assert!(
        count(UNRESOLVED) > 5,
        "tried once per second: {}",
        count(UNRESOLVED)
    );
    assert_eq!(count(ONE), 1);
    machine.publication.remove_destination(UNRESOLVED);
    machine.advance(Duration::from_secs(3));
    assert_eq!(machine.publication.failure(), None);
    assert_eq!(machine.added_destinations(), [] as [&str; 0]);

    let too_long = "x".repeat(1 << 20);
    assert!(machine.publication.add_destination(too_long).is_err());
}
