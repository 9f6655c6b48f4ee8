//! Hosts, drivers, clients and their traffic in one thread and virtual time.
//!
//! Contract: the story of a test adds hosts, clients, publishers and subscribers, and changes the network; then it lets
//! time pass by [`World::run_for`], [`World::run_until`] or [`World::step`]. In each step the clock moves on, then all
//! agents take their turns in a random order, some none and some two. All chance comes from the seed.
//!
//! What must always hold is checked after each step; the world panics where it does not, and prints its last events.

mod client;
mod clock;
mod hosts;
mod pace;
mod records;
mod resolver;
mod running;

use std::any::Any;
use std::time::Duration;

use taran::Client;
use taran_core::clock::{ManualClock, Now, WallClock, saturating_nanos};

use crate::check::delivery::ImageCheck;
use crate::history::{Event, History};
use crate::network::{LinkFaults, SimNetwork};
use crate::seeds;
use crate::story::Coverage;
use crate::traffic::{Ledger, Publisher, Publishing, Subscriber, Subscribing};

use client::ClientSlot;
pub use client::ClientState;
use hosts::Host;
pub use hosts::HostSpec;
use pace::Pace;
use resolver::Names;
use running::Actor;

/// Which host, in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostIndex(pub(crate) usize);

impl HostIndex {
    /// The host with this number, from 0.
    #[must_use]
    pub fn at(number: usize) -> Self {
        Self(number)
    }

    /// Its number, from 0.
    #[must_use]
    pub fn number(self) -> usize {
        self.0
    }
}

/// Which client, in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId(pub(crate) usize);

/// Which publisher, in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublisherId(pub(crate) usize);

/// Which subscriber, in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubscriberId(pub(crate) usize);

/// When all begins: some time in 2023.
const START: Now = Now {
    nanos: 1_000_000_000_000,
    epoch_millis: 1_700_000_000_000,
};

/// A world; see the module.
pub struct World {
    clock: ManualClock,
    network: SimNetwork,
    names: Names,
    random: fastrand::Rng,
    pace: Pace,
    history: History,
    ledger: Ledger,
    hosts: Vec<Host>,
    clients: Vec<ClientSlot>,
    publishers: Vec<Owned<Publisher>>,
    subscribers: Vec<Owned<Subscriber>>,
    order: Vec<Actor>,
    checks_content: bool,
    /// What dead processes left: never closed, as they are not.
    graveyard: Vec<Box<dyn Any>>,
}

/// Something that lives and dies with a client.
#[derive(Debug)]
struct Owned<T> {
    client: ClientId,
    it: T,
}

impl World {
    /// A world without hosts, on a network without faults.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let clock = ManualClock::new(START);
        let network = SimNetwork::new(random.u64(..), clock.clone());
        Self {
            names: Names::new(network.clone()),
            network,
            clock,
            pace: Pace::new(random.fork()),
            random,
            history: History::new(),
            ledger: Ledger::default(),
            hosts: Vec::new(),
            clients: Vec::new(),
            publishers: Vec::new(),
            subscribers: Vec::new(),
            order: Vec::new(),
            checks_content: true,
            graveyard: Vec::new(),
        }
    }

    // --- making ---

    /// Publishes: the command to the driver is sent at once, its answer is taken in when it comes.
    ///
    /// # Panics
    /// If the client is not connected.
    pub fn publish(&mut self, client: ClientId, spec: Publishing) -> PublisherId {
        let number = self.publishers.len();
        let random = self.random.fork();
        let it = Publisher::new(number, self.client(client), spec, random);
        self.publishers.push(Owned { client, it });
        self.tell("publish", number);
        PublisherId(number)
    }

    /// Subscribes: the command to the driver is sent at once, its answer is taken in when it comes.
    ///
    /// # Panics
    /// If the client is not connected.
    pub fn subscribe(&mut self, client: ClientId, spec: Subscribing) -> SubscriberId {
        let number = self.subscribers.len();
        let random = self.random.fork();
        let checks_content = self.checks_content;
        let it = Subscriber::new(number, self.client(client), spec, random, checks_content);
        self.subscribers.push(Owned { client, it });
        self.tell("subscribe", number);
        SubscriberId(number)
    }

    /// Subscribers made from now on hold no message against what was sent: for networks that damage them.
    pub fn distrust_content(&mut self) {
        self.checks_content = false;
    }

    /// Subscribers made from now on hold messages against what was sent again.
    pub fn trust_content(&mut self) {
        self.checks_content = true;
    }

    /// Lets a publisher claim room for a message, and stand still from then on. True if it did.
    pub fn hold(&mut self, id: PublisherId) -> bool {
        self.tell("hold", id.0);
        self.publishers[id.0].it.hold(&mut self.ledger)
    }

    // --- looking ---

    /// A publisher.
    #[must_use]
    pub fn publisher(&self, id: PublisherId) -> &Publisher {
        &self.publishers[id.0].it
    }

    /// A publisher, to change what it does.
    pub fn publisher_mut(&mut self, id: PublisherId) -> &mut Publisher {
        &mut self.publishers[id.0].it
    }

    /// A subscriber.
    #[must_use]
    pub fn subscriber(&self, id: SubscriberId) -> &Subscriber {
        &self.subscribers[id.0].it
    }

    /// A subscriber, to change what it does.
    pub fn subscriber_mut(&mut self, id: SubscriberId) -> &mut Subscriber {
        &mut self.subscribers[id.0].it
    }

    /// A connected client.
    ///
    /// # Panics
    /// If it is not connected.
    #[must_use]
    pub fn client(&self, id: ClientId) -> &Client {
        let slot = &self.clients[id.0];
        match slot.connected() {
            Some(client) => client,
            None => panic!("client {} is not connected but {:?}", id.0, slot.state),
        }
    }

    /// The host of a client.
    #[must_use]
    pub fn host_of(&self, client: ClientId) -> HostIndex {
        self.clients[client.0].host
    }

    /// Whose a publisher is.
    #[must_use]
    pub fn client_of(&self, publisher: PublisherId) -> ClientId {
        self.publishers[publisher.0].client
    }

    /// What was sent.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What was sent, to settle what the story itself claimed.
    pub fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// The network, to change its faults.
    #[must_use]
    pub fn network(&self) -> &SimNetwork {
        &self.network
    }

    /// Sets the longest step of time while nobody has anything to do, and in which part of the time, per mille, steps are
    /// smaller while somebody has. In the rest of the time every process may be that late, as on a busy machine.
    pub fn set_pace(&mut self, longest: Duration, fine: u32) {
        self.pace.set(saturating_nanos(longest).max(2), fine);
    }

    /// Sets the faults of all links that have none of their own.
    pub fn set_faults(&mut self, faults: LinkFaults) {
        self.network.set_faults(faults);
    }

    /// Chance for the story itself.
    pub fn random(&mut self) -> &mut fastrand::Rng {
        &mut self.random
    }

    /// Time since the beginning.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Self::elapsed_at(self.clock.read().nanos)
    }

    /// Time from the beginning to this moment of the world's clock; none for earlier ones.
    pub(crate) fn elapsed_at(nanos: i64) -> Duration {
        Duration::from_nanos((nanos - START.nanos).max(0).unsigned_abs())
    }

    /// The time of day, in nanoseconds since 1970, as hosts see it whose clocks are right.
    #[must_use]
    pub fn epoch_nanos(&self) -> i64 {
        self.clock.epoch_nanos()
    }

    /// A number made from all that has happened: the same for the same seed and story.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.history.fingerprint()
    }

    /// How many events there were.
    #[must_use]
    pub fn event_count(&self) -> u64 {
        self.history.count()
    }

    /// How many messages the subscribers of a host have got of the images that they have at present.
    #[must_use]
    pub fn delivered_on(&self, host: HostIndex) -> u64 {
        let here = self
            .subscribers
            .iter()
            .filter(|it| self.host_of(it.client) == host);
        here.flat_map(|it| it.it.images())
            .map(ImageCheck::delivered)
            .sum()
    }

    /// True when the subscriber has consumed all that was published on the stream of the publisher, which has nothing
    /// left to publish.
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

    /// Adds what has happened to a table.
    pub(crate) fn add_to(&self, coverage: &mut Coverage) {
        coverage.events += self.history.count();
        self.history.add_to(coverage);
        let counts = self.network.counts();
        for (what, much) in [
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
            coverage.add(format!("datagrams {what}"), much);
        }
        coverage.add("segment runs received directly", counts.direct_receives);
    }

    fn tell(&mut self, what: &'static str, number: usize) {
        let now_ns = self.clock.read().nanos;
        self.history.note(now_ns, Event::Told(what, number));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        seeds::account(self.elapsed());
        if std::thread::panicking() && !crate::story::is_silent() {
            eprintln!("{}after {:?} of virtual time", self.history, self.elapsed());
        }
    }
}
