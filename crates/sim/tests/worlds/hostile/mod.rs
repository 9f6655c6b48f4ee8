// SPDX-License-Identifier: Apache-2.0
//! An attacker on the network sends arbitrary datagrams with arbitrary source addresses, beside an honest stream.
//!
//! Each scenario states the allowed cost of one kind of attack: the bytes sent in reply, the resources that the driver
//! keeps, the slowdown of the honest stream in virtual time, and the recorded errors. The figures are those of
//! docs/threat-model.md.

mod data;
mod error_frames;
mod malformed;
mod naks;
mod names;
mod receivers;
mod responses;
mod round_trips;
mod setups;
mod status;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use taran_core::counters::CounterMeta;
use taran_protocol::counter::SystemCounter;
use taran_sim::network::{DatagramCounts, HostId, LinkFaults, SimNetwork};
use taran_sim::traffic::StreamKey;
use taran_sim::{
    ClientId, HostIndex, HostSpec, Lengths, PublisherId, PublisherSpec, SubscriberId,
    SubscriberSpec, World,
};

use super::common::{LONG, STREAM, channel};

/// Number of messages of the honest stream.
const MESSAGES: u64 = 5_000;

/// Maximum time between two duty cycles of a driver: the attack of one millisecond fits into the sockets.
const TURN: Duration = Duration::from_millis(1);

/// Longer than the lifetime of anything that an attack may leave behind: images, counters, destinations, cool-downs.
const AFTERMATH: Duration = Duration::from_secs(45);

/// Two hosts with an honest stream from the first to the second, and an attacker.
pub(super) struct Scene {
    pub(super) world: World,
    pub(super) hosts: [HostIndex; 2],
    pub(super) clients: [ClientId; 2],
    pub(super) attacker: Attacker,
    pub(super) subscriber: SubscriberId,
    pub(super) publisher: PublisherId,
    /// Number of counters before the attack.
    counters: usize,
}

/// Source of forged datagrams.
pub(super) struct Attacker {
    network: SimNetwork,
    host: HostId,
    pub(super) random: fastrand::Rng,
    /// Datagrams sent so far.
    pub(super) sent: DatagramCounts,
}

impl Attacker {
    /// Returns the attacker's own address with a random port.
    pub(super) fn address(&mut self) -> SocketAddr {
        SocketAddr::new(own_ip(), self.random.u16(1_024..))
    }

    /// Sends from its own address: replies reach the attacker.
    pub(super) fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        let source = self.address();
        self.send_as(source, to, datagram);
    }

    /// Sends with a forged source address.
    pub(super) fn send_as(&mut self, source: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        self.sent.datagrams += 1;
        self.sent.bytes += datagram.len() as u64;
        self.network.forge(self.host, source, to, datagram);
    }
}

fn own_ip() -> IpAddr {
    IpAddr::from([10, 66, 0, 1])
}

/// Returns the endpoint of the second host.
pub(super) fn endpoint() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 2], 40_123))
}

impl Scene {
    /// Unicast, with the publication's socket connected to its receiver.
    pub(super) fn new(seed: u64) -> Self {
        Self::with(seed, &HostSpec::new(), &channel(1), &channel(1))
    }

    /// Unicast, with unconnected sockets.
    pub(super) fn open(seed: u64) -> Self {
        let spec = HostSpec::new().option("aeron.driver.connect", "false");
        Self::with(seed, &spec, &channel(1), &channel(1))
    }

    /// Creates the stream from one channel to the other; nothing is published yet.
    pub(super) fn with(seed: u64, spec: &HostSpec, to: &str, on: &str) -> Self {
        let mut world = World::new(seed);
        world.set_faults(LinkFaults {
            delay: Duration::from_micros(50),
            jitter: Duration::from_micros(50),
            ..LinkFaults::default()
        });
        let hosts = [(); 2].map(|()| world.add_host(spec.clone()));
        let clients = hosts.map(|host| world.connect(host));
        let subscriber = world.subscribe(clients[1], SubscriberSpec::new(on, STREAM));
        let publication = PublisherSpec::new(to, STREAM).lengths(Lengths::Framed);
        let publisher = world.publish(clients[0], publication);
        world.run_until("the stream flows", LONG, |world| {
            world.publisher(publisher).is_connected()
                && world.subscriber(subscriber).images().next().is_some()
        });
        let attacker = Attacker {
            network: world.network().clone(),
            host: world.network().host(&[own_ip()]).id(),
            random: world.random().fork(),
            sent: DatagramCounts::default(),
        };
        let mut scene = Self {
            world,
            hosts,
            clients,
            attacker,
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

    /// Returns the socket address of the honest publication.
    pub(super) fn sender_address(&self) -> SocketAddr {
        let publication = self.world.publisher(self.publisher).shared().unwrap();
        let address = publication.local_socket_addresses()[0];
        // An unconnected socket is bound to the wildcard address.
        SocketAddr::new(IpAddr::from([10, 0, 0, 1]), address.port())
    }

    /// Returns the current term id and offset of the honest stream.
    pub(super) fn term(&self) -> (i32, i32) {
        let position = self.world.publisher(self.publisher).position();
        let (term, offset) = (position / TERM, position % TERM);
        (
            self.key().initial_term_id.wrapping_add(term as i32),
            offset as i32,
        )
    }

    /// Lets time pass while `attack` is called this many times per millisecond.
    pub(super) fn attack_for(
        &mut self,
        time: Duration,
        per_ms: u64,
        mut attack: impl FnMut(&mut Attacker),
    ) {
        let (from, mut done) = (self.world.elapsed(), 0);
        while self.world.elapsed() < from + time {
            self.step(from, per_ms, &mut done, &mut attack);
        }
    }

    /// Publishes on the honest stream until everything has arrived, under an attack. Returns the time that took.
    pub(super) fn deliver(
        &mut self,
        per_ms: u64,
        mut attack: impl FnMut(&mut Attacker),
    ) -> Duration {
        self.world
            .publisher_mut(self.publisher)
            .publish_more(MESSAGES);
        let (from, mut done) = (self.world.elapsed(), 0);
        while !self.world.has_all(self.subscriber, self.publisher) {
            assert!(
                self.world.elapsed() < from + LONG,
                "the honest stream is stuck at {} of {MESSAGES}",
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
        attack: &mut impl FnMut(&mut Attacker),
    ) {
        self.world.step_within(TURN);
        let due =
            ((self.world.elapsed() - from).as_nanos() * u128::from(per_ms) / 1_000_000) as u64;
        while *done < due {
            attack(&mut self.attacker);
            *done += 1;
        }
    }

    /// Returns what a host has sent to the attacker.
    pub(super) fn answers(&self, host: usize) -> DatagramCounts {
        let host = self.world.network_id(self.hosts[host]);
        self.world.network().link_counts(host, self.attacker.host)
    }

    /// Checks that a host has sent at most this many bytes to the attacker per byte received from it.
    pub(super) fn expect_amplification(&self, host: usize, most: f64) {
        let (answers, sent) = (self.answers(host), self.attacker.sent);
        let factor = answers.bytes as f64 / sent.bytes as f64;
        assert!(
            factor <= most,
            "{factor:.2} bytes for each byte, {most} are allowed: {answers:?} for {sent:?}"
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

    /// Returns the value of a host's counter of this type.
    pub(super) fn value_of(&self, host: usize, type_id: i32) -> i64 {
        let counters = self.world.counters(self.hosts[host]);
        let found = counters.find(|meta: &CounterMeta| meta.type_id == type_id);
        counters.value(found.unwrap().id).unwrap()
    }

    /// Checks that some time after the attack nothing of it is left, that the honest stream continues, and that the
    /// error logs contain only errors with one of these texts, at most `most` distinct ones per host.
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

/// Term length of the honest stream.
pub(super) const TERM: i64 = 64 * 1024;

/// Returns how long the honest stream takes without an attack.
pub(super) fn undisturbed(scene: Scene) -> Duration {
    let mut scene = scene;
    scene.deliver(0, |_| {})
}

/// Maximum slowdown of an honest stream under any attack that does not forge the identity of its ends.
const TIMES: f64 = 1.5;

/// Checks the slowdown of the honest stream. Losses on the path or in full sockets cost more: they are detected by
/// heartbeats after 100 ms, and status messages are repeated after 200 ms.
pub(super) fn expect_progress(took: Duration, undisturbed: Duration) {
    let factor = took.as_secs_f64() / undisturbed.as_secs_f64();
    assert!(
        factor <= TIMES,
        "{factor:.2} times as long ({took:?} instead of {undisturbed:?}), {TIMES} times is allowed"
    );
}
