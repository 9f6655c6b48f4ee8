// SPDX-License-Identifier: Apache-2.0
//! The conformance suite of [`Network`] implementations.
//!
//! The tests of a backend call [`run`] with its network, or [`run_between`] with two: datagrams then go from one to the
//! other, which may be another backend. The suite panics with the violated rule.

mod datagrams;
mod poller;
mod segments;

use std::net::{IpAddr, SocketAddr};

use crate::{NetError, Network, PollSource, ReceiveBatch, SocketSpec, Transport};

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
        self.backend();
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
        self.written_datagrams();
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

    /// A backend is known by its name, and no other one is used instead.
    fn backend(&mut self) {
        let name = self.near.network.backend();
        let named = |backend: &str| SocketSpec {
            backend: Some(backend.into()),
            ..SocketSpec::bound(SocketAddr::new(self.near.address, 0))
        };
        let (own, other) = (named(name), named("no such backend"));
        let transport = self.open(&own);
        assert_eq!(transport.capabilities().backend, name);
        assert_eq!(self.open_any().capabilities().backend, name);
        let source = transport.poll_source();
        assert!(
            source == PollSource::UNKNOWN || source.backend == name,
            "{source:?}"
        );
        let refused = self.near.network.open(&other).map(|_| ());
        assert!(
            matches!(&refused, Err(NetError::Unavailable { backend, .. }) if **backend == *"no such backend"),
            "a backend that is not there is refused, not {refused:?}"
        );
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
