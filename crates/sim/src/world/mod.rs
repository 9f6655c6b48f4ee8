// SPDX-License-Identifier: Apache-2.0
//! Hosts, drivers, clients and their traffic in one thread and virtual time.
//!
//! Contract: a scenario adds hosts, clients, publishers, subscribers and other
//! processes, and changes the network, then lets time pass
//! with [`World::run_for`], [`World::run_until`] or [`World::step`]. In each step the clock advances, then all agents
//! run a duty cycle in random order, some none and some two. While duty cycles have effects, the clock advances by short
//! random times. Once none has, it advances to the next deadline of a process or arrival of a datagram, now and then too
//! early or too late, if all processes know their deadlines. Then none may have an effect before its deadline. All
//! randomness comes from the seed.
//!
//! The invariants are checked after each step; the world panics on a violation and prints its last events.

mod client;
mod clock;
mod deadlines;
mod driver;
mod error_logs;
mod hosts;
#[cfg(test)]
mod jump_tests;
mod keys;
mod parks;
mod power;
mod processes;
mod resolver;
mod step;
mod time_stepper;

use std::sync::Arc;
use std::time::Duration;

use taran::Client;
use taran_core::clock::{ManualClock, Now, WallClock, saturating_nanos};

use crate::check::delivery::ImageCheck;
use crate::history::{Event, History};
use crate::network::{LinkFaults, SimNetwork};
use crate::process::{AgentId, Invariant, ProcessId, ProcessTable, Shared};
use crate::scenario::Coverage;
use crate::seeds;
use crate::traffic::{Ledger, Publisher, PublisherSpec, Subscriber, SubscriberSpec};

use client::ClientProcess;
pub use client::ClientState;
use deadlines::Deadlines;
use hosts::Host;
pub(crate) use hosts::HostParts;
pub use hosts::HostSpec;
pub(crate) use power::Boot;
use resolver::Names;
use time_stepper::TimeStepper;

/// Index of a host in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostIndex(pub(crate) usize);

impl HostIndex {
    /// Returns the index with this number, from 0.
    #[must_use]
    pub fn at(number: usize) -> Self {
        Self(number)
    }

    /// Returns the number, from 0.
    #[must_use]
    pub fn number(self) -> usize {
        self.0
    }
}

/// Index of a client in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId(pub(crate) usize);

/// Index of a publisher in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublisherId(pub(crate) usize);

/// Index of a subscriber in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubscriberId(pub(crate) usize);

/// Start time: November 2023.
const START: Now = Now {
    nanos: 1_000_000_000_000,
    epoch_millis: 1_700_000_000_000,
};

/// A simulated world; see the module.
pub struct World {
    clock: ManualClock,
    network: SimNetwork,
    names: Names,
    random: fastrand::Rng,
    /// Seeds of the disks of hosts.
    disk_seeds: fastrand::Rng,
    time_stepper: TimeStepper,
    history: History,
    ledger: Ledger,
    hosts: Vec<Host>,
    processes: ProcessTable,
    shared: Shared,
    invariants: Vec<Box<dyn Invariant>>,
    /// Start the processes of a host when it boots.
    boot: Vec<Arc<Boot>>,
    /// Processes of the clients.
    clients: Vec<ProcessId>,
    publishers: Vec<Owned>,
    subscribers: Vec<Owned>,
    /// Buffer for the agents of one step.
    order: Vec<AgentId>,
    checks_content: bool,
    /// Number of changes so far that may give an agent something to do.
    changes: u64,
    /// Activity of the network at the last change that was caused by it.
    network_activity: u64,
    /// Times of the next work of all processes, while nothing changes.
    deadlines: Option<Deadlines>,
}

/// A publisher or subscriber of a client.
#[derive(Clone, Copy, Debug)]
struct Owned {
    client: ClientId,
    /// Index among those of the client.
    index: usize,
}

impl World {
    /// Creates a world without hosts, on a network without faults.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let clock = ManualClock::new(START);
        let network = SimNetwork::new(random.u64(..), clock.clone());
        Self {
            names: Names::new(network.clone()),
            network,
            clock,
            time_stepper: TimeStepper::new(random.fork()),
            random,
            disk_seeds: fastrand::Rng::with_seed(!seed),
            history: History::new(),
            ledger: Ledger::default(),
            hosts: Vec::new(),
            processes: ProcessTable::default(),
            shared: Shared::default(),
            invariants: Vec::new(),
            boot: Vec::new(),
            clients: Vec::new(),
            publishers: Vec::new(),
            subscribers: Vec::new(),
            order: Vec::new(),
            checks_content: true,
            changes: 0,
            network_activity: 0,
            deadlines: None,
        }
    }

    // --- creation ---

    /// Adds a publisher. The command is sent at once; the response is processed when it arrives.
    ///
    /// # Panics
    /// If the client is not connected.
    pub fn publish(&mut self, client: ClientId, spec: PublisherSpec) -> PublisherId {
        let number = self.publishers.len();
        let random = self.random.fork();
        let publisher = Publisher::new(number, self.client(client), spec, random);
        let process = self.process_mut::<ClientProcess>(self.clients[client.0]);
        let index = process.publishers.len();
        process.publishers.push(publisher);
        self.publishers.push(Owned { client, index });
        self.record_op("publish", number);
        PublisherId(number)
    }

    /// Adds a subscriber. The command is sent at once; the response is processed when it arrives.
    ///
    /// # Panics
    /// If the client is not connected.
    pub fn subscribe(&mut self, client: ClientId, spec: SubscriberSpec) -> SubscriberId {
        let number = self.subscribers.len();
        let random = self.random.fork();
        let checks_content = self.checks_content;
        let subscriber = Subscriber::new(number, self.client(client), spec, random, checks_content);
        let process = self.process_mut::<ClientProcess>(self.clients[client.0]);
        let index = process.subscribers.len();
        process.subscribers.push(subscriber);
        self.subscribers.push(Owned { client, index });
        self.record_op("subscribe", number);
        SubscriberId(number)
    }

    /// Disables the content check of subscribers added from now on, for networks that damage datagrams.
    pub fn disable_content_checks(&mut self) {
        self.checks_content = false;
    }

    /// Enables the content check of subscribers added from now on.
    pub fn enable_content_checks(&mut self) {
        self.checks_content = true;
    }

    /// Lets a publisher claim a message and stop. Returns true if the claim succeeded.
    pub fn hold_claim(&mut self, id: PublisherId) -> bool {
        self.record_op("hold", id.0);
        let Owned { client, index } = self.publishers[id.0];
        let slot = self.processes.slot_mut(self.clients[client.0]);
        let process = slot.expect_mut::<ClientProcess>();
        process.publishers[index].hold_claim(&mut self.ledger)
    }

    // --- queries ---

    /// Returns a publisher.
    #[must_use]
    pub fn publisher(&self, id: PublisherId) -> &Publisher {
        let Owned { client, index } = self.publishers[id.0];
        &self.client_process(client).publishers[index]
    }

    /// Returns a publisher for changes.
    pub fn publisher_mut(&mut self, id: PublisherId) -> &mut Publisher {
        let Owned { client, index } = self.publishers[id.0];
        let process = self.process_mut::<ClientProcess>(self.clients[client.0]);
        &mut process.publishers[index]
    }

    /// Returns a subscriber.
    #[must_use]
    pub fn subscriber(&self, id: SubscriberId) -> &Subscriber {
        let Owned { client, index } = self.subscribers[id.0];
        &self.client_process(client).subscribers[index]
    }

    /// Returns a subscriber for changes.
    pub fn subscriber_mut(&mut self, id: SubscriberId) -> &mut Subscriber {
        let Owned { client, index } = self.subscribers[id.0];
        let process = self.process_mut::<ClientProcess>(self.clients[client.0]);
        &mut process.subscribers[index]
    }

    /// Returns a connected client.
    ///
    /// # Panics
    /// If it is not connected.
    #[must_use]
    pub fn client(&self, id: ClientId) -> &Client {
        let process = self.client_process(id);
        match process.connected() {
            Some(client) => client,
            None => panic!("client {} is not connected but {:?}", id.0, process.state),
        }
    }

    /// Returns the host of a client.
    #[must_use]
    pub fn host_of(&self, client: ClientId) -> HostIndex {
        self.host_of_process(self.clients[client.0])
    }

    /// Returns the client of a publisher.
    #[must_use]
    pub fn client_of(&self, publisher: PublisherId) -> ClientId {
        self.publishers[publisher.0].client
    }

    /// Returns the record of sent messages.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the record of sent messages for changes, for claims made by the scenario itself.
    pub fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Returns the network.
    #[must_use]
    pub fn network(&self) -> &SimNetwork {
        &self.network
    }

    /// Sets the longest time step without work, and the share of the time, per mille, in which steps are smaller while
    /// there is work. In the rest of the time every process may be late by the longest step, as on a busy machine.
    pub fn set_time_steps(&mut self, longest: Duration, fine: u32) {
        self.time_stepper
            .set(saturating_nanos(longest).max(2), fine);
    }

    /// Sets the faults of all links that have none of their own.
    pub fn set_faults(&mut self, faults: LinkFaults) {
        self.network.set_faults(faults);
    }

    /// Returns the random number generator of the scenario.
    pub fn random(&mut self) -> &mut fastrand::Rng {
        &mut self.random
    }

    /// Returns the time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Self::elapsed_at(self.clock.read().nanos)
    }

    /// Returns the time from the start to a moment of the world's clock, zero for earlier ones.
    pub(crate) fn elapsed_at(nanos: i64) -> Duration {
        Duration::from_nanos((nanos - START.nanos).max(0).unsigned_abs())
    }

    /// Returns the time of the world's clock in nanoseconds.
    fn world_ns(&self) -> i64 {
        self.clock.read().nanos
    }

    /// Returns the time of day in nanoseconds since 1970, as on a host without clock offset.
    #[must_use]
    pub fn epoch_nanos(&self) -> i64 {
        self.clock.epoch_nanos()
    }

    /// Returns a hash of all events so far: the same for the same seed and scenario.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.history.fingerprint()
    }

    /// Returns the number of events.
    #[must_use]
    pub fn event_count(&self) -> u64 {
        self.history.count()
    }

    /// Returns the number of messages delivered on the current images of a host's subscribers.
    #[must_use]
    pub fn delivered_on(&self, host: HostIndex) -> u64 {
        let clients = (0..self.clients.len()).map(ClientId);
        let here = clients.filter(|client| self.host_of(*client) == host);
        here.flat_map(|client| &self.client_process(client).subscribers)
            .flat_map(Subscriber::images)
            .map(ImageCheck::delivered)
            .sum()
    }

    /// Returns true when the subscriber has consumed everything on the stream of the publisher, which has nothing left
    /// to publish.
    #[must_use]
    pub fn has_all(&self, subscriber: SubscriberId, publisher: PublisherId) -> bool {
        let publisher = self.publisher(publisher);
        let Some(stream) = publisher.key().and_then(|key| self.ledger.stream(&key)) else {
            return false;
        };
        let subscriber = self.subscriber(subscriber);
        let image = publisher.key().and_then(|key| subscriber.image(&key));
        publisher.is_done() && image.is_some_and(|image| image.has_all(stream))
    }

    /// Adds the event counts to a coverage table.
    pub(crate) fn add_to(&self, coverage: &mut Coverage) {
        coverage.events += self.history.count();
        self.history.add_to(coverage);
        let counts = self.network.counts();
        for (what, count) in [
            ("sent", counts.sent),
            ("delivered", counts.delivered),
            ("lost", counts.lost),
            ("lost on cut links", counts.cut),
            ("unreachable", counts.unreachable),
            ("lost in full buffers", counts.overflowed),
            ("duplicated", counts.duplicated),
            ("reordered", counts.reordered),
            ("corrupted", counts.corrupted),
            ("truncated", counts.truncated),
            ("refused to senders", counts.refused),
        ] {
            coverage.add(format!("datagrams {what}"), count);
        }
        coverage.add("segment runs received directly", counts.direct_receives);
    }

    fn record_op(&mut self, name: &'static str, number: usize) {
        self.disturb();
        let now_ns = self.clock.read().nanos;
        self.history.record(now_ns, Event::Op(name, number));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        seeds::account(self.elapsed());
        if std::thread::panicking() && !crate::scenario::is_silent() {
            eprintln!("{}after {:?} of virtual time", self.history, self.elapsed());
        }
    }
}
