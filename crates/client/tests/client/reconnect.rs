//! The reconnecting client, over drivers that are killed and restarted in virtual time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use taran::{
    ConnectionState, ImageHandlers, Lost, ManualClock, MemoryStorage, Publication, Reconnecting,
    ReconnectingClient, Subscription,
};

use taran_protocol::command::Command;

use crate::fake_driver::{FakeDriver, REFUSED, START, builder};

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
        let storage = MemoryStorage::new();
        *self.storage.lock().unwrap() = storage.clone();
        self.driver = Some(FakeDriver::start_in(storage, self.clock.clone()));
        // An attempt in progress sees the old files, until it fails after the driver timeout.
        self.advance(Duration::from_secs(12));
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

    /// Returns the commands for destinations since the last call, in order: true for an added one.
    fn destination_commands(&mut self) -> Vec<(bool, String)> {
        let driver = self.driver.as_mut().expect("there is a driver");
        let commands = driver.take_commands();
        let of_destination = commands.iter().filter_map(|command| {
            let (adds, channel) = match command.command() {
                Command::AddDestination { channel, .. }
                | Command::AddReceiveDestination { channel, .. } => (true, channel),
                Command::RemoveDestination { channel, .. }
                | Command::RemoveReceiveDestination { channel, .. } => (false, channel),
                _ => return None,
            };
            Some((adds, channel.to_owned()))
        });
        of_destination.collect()
    }

    /// Sends a message and receives it.
    fn exchange(&mut self) {
        self.advance(Duration::from_secs(1));
        let publication = self.publication.get().expect("there is a driver");
        publication.offer(b"message").unwrap();
        let subscription = self.subscription.get().expect("there is a driver");
        assert_eq!(subscription.poll(|_, _| (), 10), Ok(1));
    }
}

#[test]
fn resources_are_made_anew_on_each_driver() {
    let mut machine = Machine::without_driver();
    machine.advance(Duration::from_secs(60));
    assert!(machine.publication.get().is_none());
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
        assert!(machine.publication.get().is_none() && machine.subscription.get().is_none());
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
        assert!(machine.publication.get().is_some());
        assert_eq!(machine.publication.generation(), generation);
        let mut commands = machine.destination_commands();
        commands.sort();
        assert_eq!(commands, [(true, ONE.to_owned()), (true, TWO.to_owned())]);
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
    assert!(late.get().is_none());
}

#[test]
fn changed_destinations_reach_the_driver_and_its_successor() {
    let mut machine = Machine::without_driver();
    machine.start_driver();
    assert_eq!(machine.destination_commands(), []);
    machine.publication.add_destination(ONE).unwrap();
    machine.publication.add_destination(TWO).unwrap();
    machine.advance(Duration::from_secs(1));
    let added = |channel: &str| (true, channel.to_owned());
    assert_eq!(machine.destination_commands(), [added(ONE), added(TWO)]);
    machine.publication.remove_destination(ONE);
    machine.advance(Duration::from_secs(1));
    assert_eq!(machine.destination_commands(), [(false, ONE.to_owned())]);
    machine.kill_driver();
    machine.advance(Duration::from_secs(12));
    machine.start_driver();
    assert_eq!(machine.destination_commands(), [added(TWO)]);
    assert_eq!(machine.publication.failure(), None);
}

#[test]
fn refused_destination_is_reported_and_tried_again() {
    let mut machine = Machine::without_driver();
    machine.publication.add_destination(REFUSED).unwrap();
    machine.publication.add_destination(ONE).unwrap();
    machine.start_driver();
    // The publication is usable, and has the other destination.
    machine.exchange();
    machine.advance(Duration::from_secs(10));
    assert!(machine.publication.failure().is_some());
    let commands = machine.destination_commands();
    let count = |channel: &str| commands.iter().filter(|(_, it)| it == channel).count();
    assert!(
        count(REFUSED) > 5,
        "tried once per second: {}",
        count(REFUSED)
    );
    assert_eq!(count(ONE), 1);
    machine.publication.remove_destination(REFUSED);
    machine.advance(Duration::from_secs(3));
    assert_eq!(machine.publication.failure(), None);
    assert_eq!(machine.destination_commands(), []);

    let too_long = "x".repeat(1 << 20);
    assert!(machine.publication.add_destination(too_long).is_err());
}
