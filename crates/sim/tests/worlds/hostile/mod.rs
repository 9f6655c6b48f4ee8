//! A stranger on the network who sends what he likes, in whoever's name he likes, beside an honest stream.
//!
//! Each story says what one kind of attack may cost: how much is sent in answer to it, what it makes the driver keep,
//! how much slower the honest stream becomes in virtual time, and what is recorded. The figures are those of
//! docs/threat-model.md.

mod complaints;
mod data;
mod naks;
mod names;
mod receivers;
mod responses;
mod round_trips;
mod sense;
mod setups;
mod status;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use taran_core::counters::CounterMeta;
use taran_protocol::counter::SystemCounter;
use taran_sim::network::{DatagramCounts, HostId, LinkFaults, SimNetwork};
use taran_sim::traffic::StreamKey;
use taran_sim::{
    ClientId, HostIndex, HostSpec, Lengths, PublisherId, Publishing, SubscriberId, Subscribing,
    World,
};

use super::common::{LONG, STREAM, channel};

/// What the honest stream carries.
const MESSAGES: u64 = 5_000;

/// Time between two turns of a driver at most: a stranger's millisecond is one, and no socket holds what comes in many.
const TURN: Duration = Duration::from_millis(1);

/// Longer than anything takes that an attack may leave behind: images, counters, destinations, cool-downs.
const AFTERMATH: Duration = Duration::from_secs(45);

/// Two hosts with an honest stream from the first to the second, and a stranger.
pub(super) struct Scene {
    pub(super) world: World,
    pub(super) hosts: [HostIndex; 2],
    pub(super) clients: [ClientId; 2],
    pub(super) stranger: Stranger,
    pub(super) subscriber: SubscriberId,
    pub(super) publisher: PublisherId,
    /// What the driver that is attacked has before.
    counters: usize,
}

/// Who sends what he likes.
pub(super) struct Stranger {
    network: SimNetwork,
    host: HostId,
    pub(super) random: fastrand::Rng,
    /// How much he has sent.
    pub(super) sent: DatagramCounts,
}

impl Stranger {
    /// His own address, with any port.
    pub(super) fn address(&mut self) -> SocketAddr {
        SocketAddr::new(own_ip(), self.random.u16(1_024..))
    }

    /// Sends in his own name: whoever answers, answers him.
    pub(super) fn say(&mut self, to: SocketAddr, datagram: &[u8]) {
        let source = self.address();
        self.say_as(source, to, datagram);
    }

    /// Sends in the name of somebody.
    pub(super) fn say_as(&mut self, source: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        self.sent.datagrams += 1;
        self.sent.bytes += datagram.len() as u64;
        self.network.forge(self.host, source, to, datagram);
    }
}

fn own_ip() -> IpAddr {
    IpAddr::from([10, 66, 0, 1])
}

/// Where the second host listens.
pub(super) fn listens() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 2], 40_123))
}

impl Scene {
    /// Unicast, each publication's socket deaf to all but its receiver.
    pub(super) fn new(seed: u64) -> Self {
        Self::with(seed, &HostSpec::new(), &channel(1), &channel(1))
    }

    /// Unicast, sockets open to everybody.
    pub(super) fn open(seed: u64) -> Self {
        let spec = HostSpec::new().option("aeron.driver.connect", "false");
        Self::with(seed, &spec, &channel(1), &channel(1))
    }

    /// The stream flows on one channel to the other; nothing has been published yet.
    pub(super) fn with(seed: u64, spec: &HostSpec, to: &str, on: &str) -> Self {
        let mut world = World::new(seed);
        world.set_faults(LinkFaults {
            delay: Duration::from_micros(50),
            jitter: Duration::from_micros(50),
            ..LinkFaults::default()
        });
        let hosts = [(); 2].map(|()| world.add_host(spec.clone()));
        let clients = hosts.map(|host| world.connect(host));
        let subscriber = world.subscribe(clients[1], Subscribing::new(on, STREAM));
        let publishing = Publishing::new(to, STREAM).lengths(Lengths::Framed);
        let publisher = world.publish(clients[0], publishing);
        world.run_until("the stream flows", LONG, |world| {
            world.publisher(publisher).is_connected()
                && world.subscriber(subscriber).images().next().is_some()
        });
        let stranger = Stranger {
            network: world.network().clone(),
            host: world.network().host(&[own_ip()]).id(),
            random: world.random().fork(),
            sent: DatagramCounts::default(),
        };
        let mut scene = Self {
            world,
            hosts,
            clients,
            stranger,
            subscriber,
            publisher,
            counters: 0,
        };
        scene.counters = scene.counter_count();
        scene
    }

    pub(super) fn key(&self) -> StreamKey {
        self.world.publisher(self.publisher).key().unwrap()
    }

    /// The socket of the honest publication.
    pub(super) fn sends_from(&self) -> SocketAddr {
        let publication = self.world.publisher(self.publisher).shared().unwrap();
        let address = publication.local_socket_addresses()[0];
        // A socket that is open to everybody is bound to no address.
        SocketAddr::new(IpAddr::from([10, 0, 0, 1]), address.port())
    }

    /// The term and offset at which the honest stream is.
    pub(super) fn term(&self) -> (i32, i32) {
        let position = self.world.publisher(self.publisher).position();
        let (term, offset) = (position / TERM, position % TERM);
        (
            self.key().initial_term_id.wrapping_add(term as i32),
            offset as i32,
        )
    }

    /// Lets time pass while the stranger does `attack` so many times in each millisecond.
    pub(super) fn attack_for(
        &mut self,
        time: Duration,
        per_ms: u64,
        mut attack: impl FnMut(&mut Stranger),
    ) {
        let (from, mut done) = (self.world.elapsed(), 0);
        while self.world.elapsed() < from + time {
            self.step(from, per_ms, &mut done, &mut attack);
        }
    }

    /// Publishes on the honest stream until all of it has arrived, under an attack. How long that took.
    pub(super) fn deliver(
        &mut self,
        per_ms: u64,
        mut attack: impl FnMut(&mut Stranger),
    ) -> Duration {
        self.world.publisher_mut(self.publisher).more(MESSAGES);
        let (from, mut done) = (self.world.elapsed(), 0);
        while !self.world.has_all(self.subscriber, self.publisher) {
            assert!(
                self.world.elapsed() < from + LONG,
                "the honest stream stands still at {} of {MESSAGES}",
                self.world.publisher(self.publisher).offered()
            );
            self.step(from, per_ms, &mut done, &mut attack);
        }
        self.world.elapsed() - from
    }

    fn step(
        &mut self,
        from: Duration,
        per_ms: u64,
        done: &mut u64,
        attack: &mut impl FnMut(&mut Stranger),
    ) {
        self.world.step_within(TURN);
        let due =
            ((self.world.elapsed() - from).as_nanos() * u128::from(per_ms) / 1_000_000) as u64;
        while *done < due {
            attack(&mut self.stranger);
            *done += 1;
        }
    }

    /// What a host has sent to the stranger.
    pub(super) fn answers(&self, host: usize) -> DatagramCounts {
        let host = self.world.network_id(self.hosts[host]);
        self.world.network().link_counts(host, self.stranger.host)
    }

    /// Checks that a host has sent no more to the stranger than so many bytes for each of his.
    pub(super) fn expect_amplification(&self, host: usize, most: f64) {
        let (answers, sent) = (self.answers(host), self.stranger.sent);
        let factor = answers.bytes as f64 / sent.bytes as f64;
        assert!(
            factor <= most,
            "{factor:.2} bytes for each byte, {most} are promised: {answers:?} for {sent:?}"
        );
    }

    pub(super) fn system(&self, host: usize, counter: SystemCounter) -> i64 {
        self.world.system(self.hosts[host], counter)
    }

    pub(super) fn counter_count(&self) -> usize {
        let mut count = 0;
        for host in self.hosts {
            self.world.counters(host).for_each(|_| count += 1);
        }
        count
    }

    /// The value of the counter of a host that is of this type.
    pub(super) fn value_of(&self, host: usize, type_id: i32) -> i64 {
        let counters = self.world.counters(self.hosts[host]);
        let found = counters.find(|meta: &CounterMeta| meta.type_id == type_id);
        counters.value(found.unwrap().id).unwrap()
    }

    /// Checks that some time after the attack nothing is left of it, that the honest stream goes on, and that nothing
    /// was recorded but what contains one of these texts, each of which says what it says `most` times at most.
    pub(super) fn end(mut self, allowed: &[&str], most: usize) {
        self.world.run_for(AFTERMATH);
        assert_eq!(
            self.counter_count(),
            self.counters,
            "counters of the attack are left"
        );
        self.deliver(0, |_| {});
        self.world.expect_no_errors_but(allowed);
        for host in self.hosts {
            let records = self.world.error_log(host).len();
            assert!(records <= most, "{records} distinct records");
        }
        self.world.close_all();
        self.world.expect_nothing_left();
    }
}

/// Length of the terms of the honest stream.
pub(super) const TERM: i64 = 64 * 1024;

/// How long the honest stream takes if nobody attacks it.
pub(super) fn undisturbed(scene: Scene) -> Duration {
    let mut scene = scene;
    scene.deliver(0, |_| {})
}

/// How many times as long an honest stream may take under any attack that cannot speak in the name of its ends.
const TIMES: f64 = 1.5;

/// Checks that the honest stream kept its share of the time. (What is lost on the way, or in sockets that are full, costs
/// more: heartbeats tell of it after 100 ms, status messages come again after 200.)
pub(super) fn expect_progress(took: Duration, undisturbed: Duration) {
    let factor = took.as_secs_f64() / undisturbed.as_secs_f64();
    assert!(
        factor <= TIMES,
        "{factor:.2} times as long ({took:?} instead of {undisturbed:?}), {TIMES} times is promised"
    );
}
