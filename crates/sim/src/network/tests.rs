// SPDX-License-Identifier: Apache-2.0
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use taran_core::clock::Now;
use taran_net::{
    MulticastSpec, Network, ReceiveBatch, SocketSpec, Transmit, Transport, conformance,
};

use super::*;

const MILLI: Duration = Duration::from_millis(1);

/// Two hosts, and a connected pair of transports from the first to the second.
struct Pair {
    clock: ManualClock,
    network: SimNetwork,
    hosts: [SimHost; 2],
    sender: Box<dyn Transport>,
    receiver: Box<dyn Transport>,
    batch: ReceiveBatch,
}

fn address(host: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, host])
}

impl Pair {
    fn new(seed: u64) -> Self {
        let clock = ManualClock::new(Now {
            nanos: 1_000,
            epoch_millis: 1_700_000_000_000,
        });
        let network = SimNetwork::new(seed, clock.clone());
        let mut hosts = [1, 2].map(|host| network.host(&[address(host)]));
        let receiver = hosts[1]
            .open(&SocketSpec::bound(SocketAddr::new(address(2), 40_123)))
            .unwrap();
        let spec =
            SocketSpec::bound(SocketAddr::new(address(1), 0)).connected(receiver.local_address());
        let sender = hosts[0].open(&spec).unwrap();
        Self {
            clock,
            network,
            hosts,
            sender,
            receiver,
            batch: ReceiveBatch::new(16),
        }
    }

    fn send(&mut self, numbers: std::ops::Range<u64>) -> usize {
        let payload: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        self.sender
            .send(&[Transmit::connected(&payload).segmented(8)])
            .unwrap()
            / 8
    }

    fn received(&mut self) -> Vec<u64> {
        let mut numbers = Vec::new();
        while self.receiver.receive(&mut self.batch).unwrap() > 0 {
            numbers.extend(
                self.batch
                    .datagrams()
                    .map(|it| u64::from_le_bytes(it.payload.try_into().unwrap())),
            );
        }
        numbers
    }

    /// Sends `count` datagrams, one each millisecond, and returns all that arrive eventually.
    fn run(&mut self, count: u64) -> Vec<u64> {
        let mut numbers = Vec::new();
        for number in 0..count {
            self.send(number..number + 1);
            self.clock.advance(MILLI);
            numbers.extend(self.received());
        }
        while let Some(arrival) = self.network.next_arrival() {
            self.clock.advance(Duration::from_nanos(
                (arrival - self.clock.read().nanos) as u64,
            ));
            numbers.extend(self.received());
        }
        numbers
    }
}

#[test]
fn transport_passes_the_conformance_suite() {
    let clock = ManualClock::default();
    let network = SimNetwork::new(1, clock.clone());
    let v6: IpAddr = "fd00::1".parse().unwrap();
    let mut host = network.host(&[address(1), v6]);
    let settle = &mut || clock.advance(MILLI);
    for ip in [
        Ipv4Addr::LOCALHOST.into(),
        Ipv6Addr::LOCALHOST.into(),
        address(1),
        v6,
    ] {
        conformance::run(&mut host, ip, settle);
    }
    network.set_faults(LinkFaults {
        delay: 3 * MILLI,
        jitter: MILLI,
        ..LinkFaults::default()
    });
    conformance::run(&mut host, address(1), settle);
}

#[test]
fn delay_postpones_arrival() {
    let mut pair = Pair::new(1);
    pair.network.set_faults(LinkFaults {
        delay: 5 * MILLI,
        ..LinkFaults::default()
    });
    pair.send(0..3);
    assert_eq!(pair.network.next_arrival(), Some(5_001_000));
    pair.clock.advance(Duration::from_nanos(4_999_999));
    assert_eq!(pair.received(), [0; 0]);
    pair.clock.advance(Duration::from_nanos(1));
    assert_eq!(pair.received(), [0, 1, 2]);
    assert_eq!(pair.network.next_arrival(), None);
}

#[test]
fn jitter_keeps_the_order_and_reordering_does_not() {
    let mut pair = Pair::new(2);
    let jitter = LinkFaults {
        delay: MILLI,
        jitter: 20 * MILLI,
        ..LinkFaults::default()
    };
    pair.network.set_faults(jitter);
    assert!(pair.run(500).into_iter().eq(0..500));

    pair.network.set_faults(LinkFaults {
        reorder: 0.1,
        reorder_delay: 20 * MILLI,
        ..jitter
    });
    let mut arrived = pair.run(500);
    assert!(!arrived.is_sorted());
    arrived.sort_unstable();
    assert!(arrived.into_iter().eq(0..500));
    assert!((20..100).contains(&pair.network.counts().reordered));
}

#[test]
fn loss_and_duplicates_occur_at_their_rates() {
    let mut pair = Pair::new(3);
    pair.network.set_faults(LinkFaults {
        loss: 0.1,
        duplicate: 0.1,
        ..LinkFaults::default()
    });
    let arrived = pair.run(5_000).len() as u64;
    let counts = pair.network.counts();
    assert!(
        (400..600).contains(&counts.lost) && (350..550).contains(&counts.duplicated),
        "{counts:?}"
    );
    assert_eq!((counts.sent, counts.delivered), (5_000, arrived));
    assert_eq!(arrived, 5_000 - counts.lost + counts.duplicated);
}

#[test]
fn same_seed_gives_the_same_arrivals() {
    let run = |seed| {
        let mut pair = Pair::new(seed);
        pair.network.set_faults(LinkFaults {
            jitter: 3 * MILLI,
            reorder_delay: 9 * MILLI,
            loss: 0.1,
            duplicate: 0.1,
            reorder: 0.1,
            refuse: 0.1,
            ..LinkFaults::default()
        });
        (pair.run(1_000), pair.network.counts())
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn cut_is_one_way_and_drops_datagrams_in_flight() {
    let mut pair = Pair::new(4);
    let [left, right] = pair.hosts.each_ref().map(SimHost::id);
    pair.network.set_faults(LinkFaults {
        delay: MILLI,
        ..LinkFaults::default()
    });
    pair.send(0..1);
    pair.network.cut(left, right);
    pair.send(1..2);
    pair.clock.advance(MILLI);
    assert_eq!(pair.received(), [0; 0]);
    assert_eq!(pair.network.counts().cut, 2);

    pair.receiver
        .send(&[Transmit::to(pair.sender.local_address(), b"back")])
        .unwrap();
    pair.clock.advance(MILLI);
    assert_eq!(pair.sender.receive(&mut pair.batch).unwrap(), 1);

    pair.network.heal(left, right);
    pair.send(2..3);
    pair.network.separate(left, right);
    pair.network.heal_all();
    pair.clock.advance(MILLI);
    assert_eq!(pair.received(), [2]);
}

#[test]
fn link_faults_override_the_default_faults() {
    let mut pair = Pair::new(5);
    let [left, right] = pair.hosts.each_ref().map(SimHost::id);
    pair.network
        .set_link_faults(left, right, Some(LinkFaults::loss(1.0)));
    pair.send(0..1);
    assert_eq!(pair.received(), [0; 0]);
    pair.receiver
        .send(&[Transmit::to(pair.sender.local_address(), b"back")])
        .unwrap();
    assert_eq!(pair.sender.receive(&mut pair.batch).unwrap(), 1);
    pair.network.set_link_faults(left, right, None);
    pair.send(1..2);
    assert_eq!(pair.received(), [1]);
}

#[test]
fn full_queue_drops_and_full_send_buffer_refuses() {
    let mut pair = Pair::new(6);
    let count = 1_000;
    assert_eq!(pair.send(0..count), 1_000);
    let arrived = pair.received();
    assert_eq!(arrived.len(), 212_992 / (8 + 512));
    assert!(
        arrived.iter().copied().eq(0..arrived.len() as u64),
        "the oldest stay"
    );
    assert_eq!(
        pair.network.counts().overflowed,
        count - arrived.len() as u64
    );

    pair.network.set_faults(LinkFaults {
        refuse: 0.1,
        ..LinkFaults::default()
    });
    let accepted = pair.send(0..100);
    assert!(accepted < 100);
    assert!(pair.received().into_iter().eq(0..accepted as u64));
}

#[test]
fn corruption_flips_one_bit_and_truncation_shortens() {
    let mut pair = Pair::new(7);
    pair.network.set_faults(LinkFaults {
        corrupt: 1.0,
        ..LinkFaults::default()
    });
    pair.send(0..1);
    assert_eq!(pair.received()[0].count_ones(), 1);
    pair.network.set_faults(LinkFaults {
        truncate: 1.0,
        ..LinkFaults::default()
    });
    pair.send(0..1);
    pair.receiver.receive(&mut pair.batch).unwrap();
    assert!(pair.batch.datagrams().next().unwrap().payload.len() < 8);
}

#[test]
fn loopback_and_ports_are_private_to_each_host() {
    let mut pair = Pair::new(8);
    let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 40_123));
    let open = |host: &mut SimHost, bind| host.open(&SocketSpec::bound(bind));
    let mut first = open(&mut pair.hosts[0], bind).unwrap();
    let mut second = open(&mut pair.hosts[1], bind).unwrap();
    assert!(
        open(&mut pair.hosts[0], bind)
            .unwrap_err()
            .is_address_in_use()
    );
    let wildcard = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 40_123));
    assert!(
        open(&mut pair.hosts[0], wildcard)
            .unwrap_err()
            .is_address_in_use()
    );
    first.send(&[Transmit::to(bind, b"to myself")]).unwrap();
    assert_eq!(second.receive(&mut pair.batch).unwrap(), 0);
    assert_eq!(first.receive(&mut pair.batch).unwrap(), 1);
}

#[test]
fn wildcard_socket_sends_from_the_host_address() {
    let mut pair = Pair::new(9);
    let mut wildcard = pair.hosts[0]
        .open(&SocketSpec::bound(SocketAddr::from((
            Ipv4Addr::UNSPECIFIED,
            0,
        ))))
        .unwrap();
    let port = wildcard.local_address().port();
    wildcard
        .send(&[Transmit::to(pair.receiver.local_address(), b"hello")])
        .unwrap();
    pair.receiver.receive(&mut pair.batch).unwrap();
    let source = pair.batch.datagrams().next().unwrap().source;
    assert_eq!(source, SocketAddr::new(address(1), port));
    pair.receiver
        .send(&[Transmit::to(source, b"hello")])
        .unwrap();
    assert_eq!(wildcard.receive(&mut pair.batch).unwrap(), 1);
    wildcard
        .connect(SocketAddr::from((Ipv4Addr::LOCALHOST, 9)))
        .unwrap();
    assert_eq!(
        wildcard.local_address(),
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    );
}

#[test]
fn multicast_reaches_all_members_of_the_group() {
    let mut pair = Pair::new(10);
    let group = IpAddr::from([224, 20, 30, 39]);
    let mut open = |host: usize, join: Option<IpAddr>, port: u16| {
        let interface = address(host as u8 + 1);
        let mut role = MulticastSpec::sending(interface).with_interface_index(2);
        role.join = join;
        let bind = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let spec = SocketSpec::bound(bind).with_multicast(role, true);
        pair.hosts[host].open(&spec).unwrap()
    };
    let mut members = [
        open(0, Some(group), 40_456),
        open(0, Some(group), 40_456),
        open(1, Some(group), 40_456),
    ];
    let mut other = open(1, Some(IpAddr::from([224, 20, 30, 41])), 40_456);
    let mut sender = open(0, None, 0);
    sender.connect(SocketAddr::new(group, 40_456)).unwrap();
    assert_eq!(sender.send(&[Transmit::connected(b"to all")]).unwrap(), 6);
    for member in &mut members {
        assert_eq!(member.receive(&mut pair.batch).unwrap(), 1);
        assert_eq!(
            pair.batch.datagrams().next().unwrap().source.ip(),
            address(1)
        );
    }
    assert_eq!(other.receive(&mut pair.batch).unwrap(), 0);
}

#[test]
fn unreachable_datagrams_are_counted() {
    let mut pair = Pair::new(11);
    for nowhere in [
        SocketAddr::new(address(9), 1_000),
        SocketAddr::new(address(2), 1_000),
    ] {
        assert_eq!(
            pair.sender.send(&[Transmit::to(nowhere, b"lost")]).unwrap(),
            4
        );
    }
    pair.received();
    assert_eq!(pair.network.counts().unreachable, 2);
}
