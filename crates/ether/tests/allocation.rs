// SPDX-License-Identifier: Apache-2.0
//! Building and parsing datagrams, and resolving a known neighbour, do not allocate.

#![allow(clippy::unwrap_used)] // a test fails by panicking, also in its helpers

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use taran_ether::{
    ChecksumOffload, Frame, MacAddress, NeighbourTable, Payload, UdpPath, UdpTemplate, Verification,
};

thread_local! {
    // Per thread, because the test harness allocates on other threads.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is forwarded unchanged to the system allocator; counting does not allocate, because the thread
// local has a constant initial value and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller upholds the contract, which is that of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn datagrams_and_known_neighbours_do_not_allocate() {
    let mac = MacAddress([2, 0, 0, 0, 0, 1]);
    let path = UdpPath {
        source_mac: mac,
        destination_mac: mac,
        vlan: None,
        source: "[fd00::1]:1".parse().unwrap(),
        destination: "[fd00::2]:2".parse().unwrap(),
        hop_limit: 64,
        traffic_class: 0,
        mtu: 1500,
    };
    let neighbour = path.destination.ip();
    let mut table: NeighbourTable<u32> = NeighbourTable::new(16);
    table.resolve(neighbour, 0);
    table.learn(neighbour, mac, true, 0);
    while table.poll(0).is_some() {}
    let payload = vec![7; 4000];
    let mut frame = vec![0; 2000];
    let mut received = 0;

    let before = ALLOCATIONS.get();
    for now in 0..100 {
        table.resolve(neighbour, now);
        assert_eq!(table.poll(now), None);
        let template = UdpTemplate::new(&path).unwrap();
        let mut train = template.train(&payload, 1400).unwrap();
        while !train.is_done() {
            let length = train
                .build_next(&mut frame, ChecksumOffload::Software)
                .unwrap();
            let parsed = Frame::parse(&frame[..length], Verification::STRICT).unwrap();
            if let Payload::Udp(_, datagram) = parsed.payload {
                received += datagram.payload.len();
            }
            frame[length - 1] ^= 1;
            assert!(Frame::parse(&frame[..length], Verification::STRICT).is_err());
        }
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert_eq!(received, 100 * payload.len());
}
