// SPDX-License-Identifier: Apache-2.0
//! Sending and receiving allocate nothing after set-up.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "not all of it is used here")]
#[path = "ring_backend/network.rs"]
mod network;
#[allow(dead_code, reason = "not all of it is used here")]
#[path = "ring_backend/queue.rs"]
mod queue;
#[allow(dead_code, reason = "not all of it is used here")]
#[path = "shared/sealer.rs"]
mod sealer;
#[allow(dead_code, reason = "not all of it is used here")]
#[path = "ring_backend/transport.rs"]
mod transport;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};

use network::{RingNetwork, Wire};
use sealer::SealerLayer;
use taran_net::{
    FaultLayer, FaultRates, FaultSpec, LayeredNetwork, Network, ReceiveBatch, SocketNetwork,
    SocketSpec, Transmit, Transport,
};

thread_local! {
    // Per thread, because the test harness allocates on other threads.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is forwarded unchanged to the system's allocator; counting allocates nothing (the thread local has
// a constant initial value and no destructor).
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's guarantees are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ROUNDS: usize = 2_000;

/// Exchanges single datagrams, vectors and batches, and provokes an error.
fn exchange<'a>(
    client: &'a mut dyn Transport,
    server: &'a mut dyn Transport,
    batch: &mut ReceiveBatch,
) {
    let payload = [7; 14_080];
    let to_client = client.local_address();
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let _ = client.send(&[Transmit::connected(&payload[..288])]);
    let _ = client.send(&[Transmit::connected(&payload[..1_408]); 5]);
    let _ = client.send(&[Transmit::connected(&payload).segmented(1_408)]);
    let _ = server.send(&[Transmit::to(to_client, &payload[..36]); 2]);
    let _ = server.send(&[Transmit::to(nowhere, &payload[..36])]);
    for transport in [client, server] {
        while transport.receive(batch).is_ok_and(|count| count > 0) {
            assert!(
                batch
                    .datagrams()
                    .all(|datagram| !datagram.payload.is_empty())
            );
        }
    }
}

fn allocations_of(network: &mut dyn Network) -> usize {
    allocations_at(network, Ipv4Addr::LOCALHOST)
}

fn allocations_at(network: &mut dyn Network, address: Ipv4Addr) -> usize {
    let any = SocketAddr::from((address, 0));
    let mut server = network.open(&SocketSpec::bound(any)).unwrap();
    let spec = SocketSpec::bound(any).connected(server.local_address());
    let mut client = network.open(&spec).unwrap();
    let mut batch = ReceiveBatch::new(8);
    for _ in 0..ROUNDS {
        exchange(&mut *client, &mut *server, &mut batch);
    }
    let before = ALLOCATIONS.get();
    for _ in 0..ROUNDS {
        exchange(&mut *client, &mut *server, &mut batch);
    }
    ALLOCATIONS.get() - before
}

#[test]
fn sockets_allocate_nothing() {
    assert_eq!(allocations_of(&mut SocketNetwork::new()), 0);
    assert_eq!(allocations_of(&mut SocketNetwork::without_offload()), 0);
}

#[test]
fn faults_allocate_nothing() {
    let rates = FaultRates {
        loss: 0.1,
        duplicate: 0.1,
        reorder: 0.1,
    };
    let spec = FaultSpec {
        incoming: rates,
        outgoing: rates,
        seed: 1,
    };
    assert_eq!(
        allocations_of(&mut LayeredNetwork::with_layer(
            SocketNetwork::new(),
            FaultLayer::new(spec)
        )),
        0
    );
}

#[test]
fn backend_with_frames_of_its_own_allocates_nothing() {
    let address = Ipv4Addr::new(10, 0, 0, 1);
    let mut network = RingNetwork::new(&Wire::default(), address.into());
    assert_eq!(allocations_at(&mut network, address), 0);
}

#[test]
fn expanding_layer_allocates_nothing() {
    for network in [SocketNetwork::new(), SocketNetwork::without_offload()] {
        let mut network = LayeredNetwork::with_layer(network, SealerLayer);
        assert_eq!(allocations_of(&mut network), 0);
    }
    let address = Ipv4Addr::new(10, 0, 0, 1);
    let network = RingNetwork::new(&Wire::default(), address.into());
    let mut network = LayeredNetwork::with_layer(network, SealerLayer);
    assert_eq!(allocations_at(&mut network, address), 0);
}
