//! The conformance suite of [`Network`] implementations.
//!
//! The tests of a backend call [`run`] with its network, or [`run_between`] with two: datagrams then go from one to the
//! other, which may be another backend. The suite panics with the violated rule.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::{AgentRole, NetError, Network, ReceiveBatch, SocketSpec, Transmit, Transport};

/// Polls without progress after which a datagram counts as lost.
const MAX_POLLS: usize = 20_000;

/// Runs the suite on transports bound to `address`, an address of `network`. `settle` lets a short time pass, real or
/// virtual.
pub fn run(network: &mut dyn Network, address: IpAddr, settle: &mut dyn FnMut()) {
    Suite {
        near: Host { network, address },
        far: None,
        settle,
    }
    .run();
}

/// Runs the suite on transports of two networks that reach each other, bound to `addresses`: what `near` and `far` send
/// is received by the other one. Rules that concern one network are checked on both.
pub fn run_between(
    near: &mut dyn Network,
    far: &mut dyn Network,
    addresses: [IpAddr; 2],
    settle: &mut dyn FnMut(),
) {
    let [near_address, far_address] = addresses;
    between(near, far, [near_address, far_address], settle);
    between(far, near, [far_address, near_address], settle);
}

fn between(
    near: &mut dyn Network,
    far: &mut dyn Network,
    [near_address, far_address]: [IpAddr; 2],
    settle: &mut dyn FnMut(),
) {
    Suite {
        near: Host {
            network: near,
            address: near_address,
        },
        far: Some(Host {
            network: far,
            address: far_address,
        }),
        settle,
    }
    .run();
}

/// A network and an address of it.
struct Host<'a> {
    network: &'a mut dyn Network,
    address: IpAddr,
}

struct Suite<'a> {
    near: Host<'a>,
    /// The other end; `None` if both are the same.
    far: Option<Host<'a>>,
    settle: &'a mut dyn FnMut(),
}

/// (source, bytes) of a datagram.
type Arrived = (SocketAddr, Vec<u8>);

impl Host<'_> {
    fn any(&self) -> SocketSpec {
        SocketSpec::bound(SocketAddr::new(self.address, 0))
    }
}

impl<'a> Suite<'a> {
    fn run(mut self) {
        self.addresses();
        self.limits_and_interfaces();
        self.single_datagrams();
        self.empty_batches();
        self.missing_destination();
        self.connected_pair();
        self.new_peer();
        self.segmented();
        self.parts();
        self.largest_datagrams();
        self.too_long_datagram();
        self.many_destinations();
        self.small_batches();
        self.closed_port();
        self.overflow();
        // From here on the sender's agent has a poller, which starts transmissions.
        self.poller();
    }

    fn far(&mut self) -> &mut Host<'a> {
        self.far.as_mut().unwrap_or(&mut self.near)
    }

    fn open(&mut self, spec: &SocketSpec) -> Box<dyn Transport> {
        must(self.near.network.open(spec))
    }

    fn open_any(&mut self) -> Box<dyn Transport> {
        self.open(&self.near.any())
    }

    fn open_far(&mut self) -> Box<dyn Transport> {
        let far = self.far();
        must(far.network.open(&far.any()))
    }

    fn open_to(&mut self, peer: &dyn Transport) -> Box<dyn Transport> {
        self.open(&self.near.any().connected(peer.local_address()))
    }

    /// Receives `count` datagrams, in batches of `slots`.
    fn collect_in_batches(
        &mut self,
        transport: &mut dyn Transport,
        count: usize,
        slots: usize,
    ) -> Vec<Arrived> {
        let mut batch = ReceiveBatch::new(slots);
        let mut arrived = Vec::new();
        for _ in 0..MAX_POLLS {
            if arrived.len() >= count {
                break;
            }
            let taken = must(transport.receive(&mut batch));
            assert_eq!(
                taken,
                batch.datagram_count(),
                "the returned count is that of the batch"
            );
            arrived.extend(
                batch
                    .datagrams()
                    .map(|datagram| (datagram.source, datagram.payload.to_vec())),
            );
            if taken == 0 {
                (self.settle)();
            }
        }
        assert_eq!(arrived.len(), count, "every datagram arrives once");
        arrived
    }

    fn collect(&mut self, transport: &mut dyn Transport, count: usize) -> Vec<Arrived> {
        self.collect_in_batches(transport, count, 8)
    }

    fn addresses(&mut self) {
        let first = self.open_any();
        let second = self.open_any();
        assert_eq!(first.local_address().ip(), self.near.address);
        assert_ne!(first.local_address().port(), 0, "port zero gets a port");
        assert_ne!(
            first.local_address(),
            second.local_address(),
            "addresses differ"
        );
        assert_eq!(first.peer(), None);

        let taken = first.local_address();
        let refused = self
            .near
            .network
            .open(&SocketSpec::bound(taken))
            .map(|_| ());
        let in_use = matches!(&refused, Err(error) if error.is_address_in_use());
        assert!(in_use, "a used port is refused as in use, not {refused:?}");
        drop(first);
        self.open(&SocketSpec::bound(taken));

        let elsewhere = SocketAddr::new(IpAddr::from([203, 0, 113, 77]), 0);
        if self.near.address.is_ipv4() {
            let refused = self
                .near
                .network
                .open(&SocketSpec::bound(elsewhere))
                .map(|_| ());
            assert!(
                matches!(refused, Err(NetError::Bind { .. })),
                "a foreign address is refused, not {refused:?}"
            );
        }
    }

    fn limits_and_interfaces(&mut self) {
        let limits = must(self.near.network.buffer_limits());
        assert!(limits.default.send > 0 && limits.default.receive > 0);
        assert!(
            limits.max.send >= limits.default.send && limits.max.receive >= limits.default.receive
        );

        let interfaces = must(self.near.network.interfaces());
        assert!(
            interfaces
                .iter()
                .any(|entry| entry.address == self.near.address),
            "{} in {interfaces:?}",
            self.near.address
        );

        let asked = 64 * 1_024;
        let spec = SocketSpec {
            send_buffer: Some(asked),
            receive_buffer: Some(asked),
            ..self.near.any()
        };
        let granted = self.open(&spec).buffer_lengths();
        assert!(
            granted.send >= asked && granted.receive >= asked,
            "{granted:?}"
        );
        self.growing_buffers(&spec);
    }

    /// A buffer never shrinks.
    fn growing_buffers(&mut self, spec: &SocketSpec) {
        let mut socket = self.open(spec);
        let at_first = socket.buffer_lengths();
        must(socket.grow_receive_buffer(1));
        assert_eq!(socket.buffer_lengths(), at_first);
        let longer = at_first.receive;
        must(socket.grow_receive_buffer(longer));
        let grown = socket.buffer_lengths();
        assert!(grown.receive >= longer, "{grown:?}");
        assert_eq!(grown.send, at_first.send);
        must(socket.grow_receive_buffer(usize::MAX));
        assert!(socket.buffer_lengths().receive >= grown.receive);
    }

    fn single_datagrams(&mut self) {
        let mut left = self.open_any();
        let mut right = self.open_far();
        for text in [&b"first"[..], b"second", b"x"] {
            let ping = [Transmit::to(right.local_address(), text)];
            assert_eq!(must(left.send(&ping)), text.len());
            assert_eq!(
                self.collect(&mut *right, 1),
                [(left.local_address(), text.to_vec())]
            );
            let pong = [Transmit::to(left.local_address(), text)];
            assert_eq!(must(right.send(&pong)), text.len());
            assert_eq!(
                self.collect(&mut *left, 1),
                [(right.local_address(), text.to_vec())]
            );
        }
    }

    fn empty_batches(&mut self) {
        let mut transport = self.open_any();
        let mut batch = ReceiveBatch::new(2);
        batch.push(transport.local_address(), None, b"old");
        assert_eq!(must(transport.receive(&mut batch)), 0);
        assert!(
            batch.is_empty(),
            "the old contents of the batch are cleared"
        );
        assert_eq!(must(transport.send(&[])), 0);
        let own = transport.local_address();
        assert_eq!(must(transport.send(&[Transmit::to(own, b"")])), 0);
    }

    fn missing_destination(&mut self) {
        let mut transport = self.open_any();
        let own = transport.local_address();
        let refused = transport.send(&[Transmit::connected(b"lost")]);
        assert!(
            matches!(refused, Err(NetError::NoDestination { .. })),
            "{refused:?}"
        );
        let batch = [Transmit::to(own, b"kept"), Transmit::connected(b"lost")];
        assert_eq!(
            must(transport.send(&batch)),
            4,
            "the datagrams before the faulty one are accepted"
        );
        assert_eq!(self.collect(&mut *transport, 1), [(own, b"kept".to_vec())]);
    }

    fn connected_pair(&mut self) {
        let mut server = self.open_far();
        let mut third = self.open_far();
        let mut client = self.open_to(&*server);
        assert_eq!(client.peer(), Some(server.local_address()));
        let client_address = client.local_address();

        assert_eq!(must(client.send(&[Transmit::connected(b"hello")])), 5);
        assert_eq!(
            must(client.send(&[Transmit::to(server.local_address(), b"again")])),
            5
        );
        let expected = [
            (client_address, b"hello".to_vec()),
            (client_address, b"again".to_vec()),
        ];
        assert_eq!(self.collect(&mut *server, 2), expected);

        assert_eq!(
            must(client.send(&[Transmit::to(third.local_address(), b"aside")])),
            5
        );
        assert_eq!(
            self.collect(&mut *third, 1),
            [(client_address, b"aside".to_vec())]
        );

        must(third.send(&[Transmit::to(client_address, b"stray")]));
        must(server.send(&[Transmit::to(client_address, b"valid")]));
        assert_eq!(
            self.collect(&mut *client, 1),
            [(server.local_address(), b"valid".to_vec())]
        );
    }

    fn new_peer(&mut self) {
        let mut first = self.open_far();
        let mut second = self.open_far();
        let mut client = self.open_to(&*first);
        let own = client.local_address();
        must(client.connect(second.local_address()));
        assert_eq!(client.peer(), Some(second.local_address()));
        assert_eq!(client.local_address(), own, "the local address stays");
        must(client.send(&[Transmit::connected(b"to the second")]));
        self.collect(&mut *second, 1);
        must(first.send(&[Transmit::to(own, b"stray")]));
        must(second.send(&[Transmit::to(own, b"valid")]));
        assert_eq!(
            self.collect(&mut *client, 1),
            [(second.local_address(), b"valid".to_vec())]
        );
    }

    fn segmented(&mut self) {
        for (length, segment_size) in [
            (10, 4),
            (4_224, 1_408),
            (5_000, 1_408),
            (66_000, 1_408),
            (16_384, 8_192),
            (96, 1),
        ] {
            let mut receiver = self.open_far();
            let mut sender = self.open_to(&*receiver);
            let segment_size = segment_size.min(sender.capabilities().max_datagram);
            let payload = pattern(length);
            let run = Transmit::connected(&payload).segmented(segment_size);
            assert_eq!(
                must(sender.send(&[run])),
                length,
                "a run of {length} bytes by {segment_size}"
            );
            let arrived = self.collect(&mut *receiver, length.div_ceil(segment_size));
            let expected = payload.chunks(segment_size);
            for ((source, datagram), expected) in arrived.iter().zip(expected) {
                assert_eq!(*source, sender.local_address());
                assert_eq!(
                    datagram, expected,
                    "in a run of {length} bytes by {segment_size}"
                );
            }
        }
    }

    fn parts(&mut self) {
        let mut receiver = self.open_far();
        let mut sender = self.open_to(&*receiver);
        let (mut head, mut rest) = ([0; 32], vec![0; 65_504]);
        let nothing = must(receiver.receive_parts(&mut head, &mut rest));
        assert_eq!(nothing, None, "nothing was sent");
        if !receiver.capabilities().receives_parts {
            return;
        }
        let max_datagram = sender.capabilities().max_datagram;
        for length in [1, 32, 33, 4_224.min(max_datagram), max_datagram] {
            let payload = pattern(length);
            must(sender.send(&[Transmit::connected(&payload)]));
            let mut received = None;
            for _ in 0..MAX_POLLS {
                received = must(receiver.receive_parts(&mut head, &mut rest));
                if received.is_some() {
                    break;
                }
                (self.settle)();
            }
            let Some(received) = received else {
                panic!("a datagram of {length} bytes did not arrive in parts");
            };
            assert_eq!(received.source, sender.local_address());
            assert_eq!((received.length, received.stride), (length, length));
            let (first, behind) = payload.split_at(length.min(head.len()));
            assert_eq!(&head[..first.len()], first, "of {length} bytes");
            assert_eq!(&rest[..behind.len()], behind, "of {length} bytes");
        }
        self.segmented_parts(&mut *sender, &mut *receiver);
    }

    /// A batch arrives as a whole if the backend coalesces, else datagram by datagram.
    fn segmented_parts(&mut self, sender: &mut dyn Transport, receiver: &mut dyn Transport) {
        let (mut head, mut rest) = ([0; 32], vec![0; 65_504]);
        let payload = pattern(10_000);
        must(sender.send(&[Transmit::connected(&payload).segmented(1_408)]));
        let mut arrived = Vec::new();
        for _ in 0..MAX_POLLS {
            let Some(received) = must(receiver.receive_parts(&mut head, &mut rest)) else {
                (self.settle)();
                continue;
            };
            assert_eq!(received.stride, received.length.min(1_408));
            assert!(receiver.capabilities().coalesces || received.length <= 1_408);
            let first = received.length.min(head.len());
            arrived.extend_from_slice(&head[..first]);
            arrived.extend_from_slice(&rest[..received.length - first]);
            if arrived.len() >= payload.len() {
                break;
            }
        }
        assert_eq!(arrived, payload);
    }

    fn largest_datagrams(&mut self) {
        let far = self.far();
        let spec = SocketSpec {
            receive_buffer: Some(256 * 1_024),
            ..far.any()
        };
        let mut receiver = must(far.network.open(&spec));
        let mut sender = self.open_to(&*receiver);
        let max_datagram = sender.capabilities().max_datagram;
        let aligned = max_datagram / 32 * 32;
        let payload = pattern(2 * max_datagram);
        let largest = &payload[..max_datagram];
        assert_eq!(
            must(sender.send(&[Transmit::connected(largest)])),
            max_datagram
        );
        assert_eq!(self.collect(&mut *receiver, 1)[0].1, largest);
        let mut offered = &payload[..2 * aligned];
        let mut arrived = Vec::new();
        while !offered.is_empty() {
            let accepted = must(sender.send(&[Transmit::connected(offered).segmented(aligned)]));
            assert_eq!(accepted % aligned, 0, "only whole datagrams are accepted");
            offered = &offered[accepted..];
            arrived.extend(self.collect(&mut *receiver, accepted / aligned));
        }
        assert!(
            arrived
                .iter()
                .map(|(_, datagram)| &datagram[..])
                .eq(payload[..2 * aligned].chunks(aligned))
        );
    }

    fn too_long_datagram(&mut self) {
        let mut receiver = self.open_far();
        let mut sender = self.open_to(&*receiver);
        let length = sender.capabilities().max_datagram + 1;
        let payload = pattern(length);
        let refused = sender.send(&[Transmit::connected(&payload), Transmit::connected(b"next")]);
        assert!(
            matches!(refused, Err(NetError::Send { length: refused, .. }) if refused >= length),
            "{refused:?}"
        );
        let batch = [
            Transmit::connected(b"before"),
            Transmit::connected(&payload),
        ];
        assert_eq!(
            must(sender.send(&batch)),
            6,
            "the datagrams before the faulty one are accepted"
        );
        must(sender.send(&[Transmit::connected(b"behind")]));
        let arrived = self.collect(&mut *receiver, 2);
        assert_eq!(
            (&arrived[0].1[..], &arrived[1].1[..]),
            (&b"before"[..], &b"behind"[..])
        );
    }

    fn many_destinations(&mut self) {
        let mut sender = self.open_any();
        let mut receivers: Vec<_> = (0..3).map(|_| self.open_far()).collect();
        let payload = pattern(100 * 64);
        let batch: Vec<_> =
            (0..99)
                .map(|index| {
                    let destination = receivers[index % 3].local_address();
                    Transmit::to(destination, &payload[index * 64..][..64])
                        .segmented(if index < 50 { 16 } else { 64 })
                })
                .collect();
        assert_eq!(must(sender.send(&batch)), 99 * 64);
        for (index, receiver) in receivers.iter_mut().enumerate() {
            let mine = batch.iter().skip(index).step_by(3);
            let expected: Vec<_> = mine
                .flat_map(Transmit::datagrams)
                .map(<[u8]>::to_vec)
                .collect();
            let arrived = self.collect(&mut **receiver, expected.len());
            assert!(
                arrived
                    .into_iter()
                    .map(|(_, datagram)| datagram)
                    .eq(expected)
            );
        }
    }

    fn small_batches(&mut self) {
        let mut receiver = self.open_far();
        let mut sender = self.open_to(&*receiver);
        for slots in [1, 2, 40, 100] {
            let payload = pattern(150 * 32);
            let batch: Vec<_> = payload.chunks(32).map(Transmit::connected).collect();
            assert_eq!(must(sender.send(&batch)), payload.len());
            let arrived = self.collect_in_batches(&mut *receiver, 150, slots);
            assert!(
                arrived
                    .iter()
                    .map(|(_, datagram)| &datagram[..])
                    .eq(payload.chunks(32))
            );
        }
    }

    fn closed_port(&mut self) {
        let closed = self.open_far();
        let address = closed.local_address();
        let mut sender = self.open_to(&*closed);
        drop(closed);
        let mut batch = ReceiveBatch::new(2);
        let payload = pattern(96);
        for _ in 0..5 {
            let accepted = must(sender.send(&[Transmit::connected(&payload).segmented(32); 3]));
            assert_eq!(accepted % 32, 0);
            (self.settle)();
            assert_eq!(
                must(sender.receive(&mut batch)),
                0,
                "a refused connection is no error"
            );
            must(sender.send(&[Transmit::connected(b"stray")]));
            (self.settle)();
        }
        for _ in 0..20 {
            (self.settle)();
        }
        let mut reopened = must(self.far().network.open(&SocketSpec::bound(address)));
        assert_eq!(
            must(sender.send(&[Transmit::connected(b"valid")])),
            5,
            "an earlier ICMP error costs no datagram"
        );
        assert_eq!(self.collect(&mut *reopened, 1)[0].1, b"valid");
        must(reopened.send(&[Transmit::to(sender.local_address(), b"back")]));
        assert_eq!(self.collect(&mut *sender, 1)[0].1, b"back");
    }

    fn overflow(&mut self) {
        let mut receiver = self.open_far();
        let mut sender = self.open_to(&*receiver);
        let payload = pattern(1_024 * 1_408);
        let mut accepted = 0;
        for _ in 0..8 {
            let run = Transmit::connected(&payload).segmented(1_408);
            let bytes = must(sender.send(&[run]));
            assert_eq!(bytes % 1_408, 0, "only whole datagrams are accepted");
            accepted += bytes / 1_408;
        }
        let mut batch = ReceiveBatch::new(16);
        let mut arrived = 0;
        let mut idle = 0;
        while idle < 20 {
            let taken = must(receiver.receive(&mut batch));
            assert!(
                batch
                    .datagrams()
                    .all(|datagram| payload.chunks(1_408).any(|sent| sent == datagram.payload))
            );
            arrived += taken;
            idle = if taken == 0 { idle + 1 } else { 0 };
            (self.settle)();
        }
        assert!(
            arrived > 0 && arrived <= accepted,
            "{arrived} of {accepted} arrived"
        );
        must(sender.send(&[Transmit::connected(b"afterwards")]));
        assert_eq!(self.collect(&mut *receiver, 1)[0].1, b"afterwards");
    }

    /// A poller reports the transports that have something to receive, and starts transmissions.
    fn poller(&mut self) {
        let mut senders = must(self.near.network.poller(AgentRole::Sender));
        let mut receivers = must(self.far().network.poller(AgentRole::Receiver));
        senders.start();
        receivers.start();
        let mut nothing = |index: usize| -> usize { panic!("{index} is not in the set") };
        assert_eq!(receivers.poll(&mut nothing), 0, "there are no transports");

        let mut transports: Vec<_> = (0..12)
            .map(|_| {
                let far = self.far();
                must(far.network.open(&far.any().used_by(AgentRole::Receiver)))
            })
            .collect();
        let sources: Vec<_> = transports.iter().map(|each| each.poll_source()).collect();
        receivers.set_sources(&sources);
        let mut sender = self.open(&self.near.any().used_by(AgentRole::Sender));
        let mut batch = ReceiveBatch::new(4);
        for targets in [&[4][..], &[0, 11, 7], &[], &[3, 3]] {
            for &target in targets {
                let to = transports[target].local_address();
                must(sender.send(&[Transmit::to(to, &[target as u8])]));
            }
            senders.flush();
            let mut arrived = Vec::new();
            for _ in 0..MAX_POLLS {
                if arrived.len() >= targets.len() {
                    break;
                }
                let mut reported = Vec::new();
                let sum = receivers.poll(&mut |index| {
                    reported.push(index);
                    let taken = must(transports[index].receive(&mut batch));
                    arrived.extend(
                        batch
                            .datagrams()
                            .map(|datagram| (index, datagram.payload[0])),
                    );
                    taken
                });
                assert!(
                    reported.is_sorted_by(|left, right| left < right),
                    "in ascending order, each once: {reported:?}"
                );
                if sum == 0 {
                    (self.settle)();
                }
            }
            let mut expected: Vec<_> = targets.iter().map(|&at| (at, at as u8)).collect();
            expected.sort_unstable();
            arrived.sort_unstable();
            assert_eq!(arrived, expected, "what a transport receives is its own");
        }

        let waker = receivers.waker();
        waker.wake();
        // Hangs for as long as a suite may take if the wake is lost.
        receivers.wait(Duration::from_secs(3_600));

        // The set is replaced, also by a part of it.
        receivers.set_sources(&sources[5..6]);
        let to = transports[5].local_address();
        must(sender.send(&[Transmit::to(to, b"x")]));
        senders.flush();
        let mut taken = 0;
        for _ in 0..MAX_POLLS {
            taken += receivers.poll(&mut |index| {
                assert_eq!(index, 0);
                must(transports[5].receive(&mut batch))
            });
            if taken > 0 {
                break;
            }
            (self.settle)();
        }
        assert_eq!(taken, 1);
        receivers.set_sources(&[]);
    }
}

/// Bytes that differ from one datagram to the next.
fn pattern(length: usize) -> Vec<u8> {
    let words = 0..=(length / 4) as u32;
    words
        .flat_map(|word| word.wrapping_mul(2_654_435_761).to_le_bytes())
        .take(length)
        .collect()
}

fn must<T>(result: Result<T, NetError>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
