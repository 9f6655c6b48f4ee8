//! What the driver keeps of what is gone: nothing, not a byte for each.
//!
//! A whole driver in memory on the one thread of the test, under an allocator that counts what this thread holds. In a
//! process one sees the pages that its allocator keeps, which grow with the most that was ever held, and with chance; a
//! leak of some bytes a publication would go under in them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use taran_protocol::command::Command;

use crate::bench::Bench;
use crate::shortages::{AFTERMATH, LISTENING, Tourist, image_is_made};

thread_local! {
    /// Bytes that this thread holds. Never dropped, so that the allocator may use it at any time.
    static HELD: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, and a count.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn note(bytes: i64) {
    HELD.set(HELD.get() + bytes);
}

// SAFETY: every call goes to the system's allocator with the same arguments, so its guarantees are kept; counting uses
// memory of the thread that is there already.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size as i64 - layout.size() as i64);
        // SAFETY: as above; `block` came from the system's allocator, as every block does.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(-(layout.size() as i64));
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

const CHANNELS: [&str; 2] = [
    "aeron:ipc?term-length=64k",
    "aeron:udp?endpoint=localhost:40123|term-length=64k",
];

/// Opens some publications and subscriptions for them, closes them one by one, and waits until they are gone.
fn round(bench: &mut Bench, client_id: i64, count: i32) {
    let mut added = Vec::new();
    for number in 0..count {
        let channel = CHANNELS[number as usize % CHANNELS.len()];
        added.push((
            bench.add_publication(client_id, channel, number).unwrap(),
            bench.add_subscription(client_id, channel, number).unwrap(),
        ));
    }
    assert_eq!(bench.log_files().len(), count as usize);
    for (publication, (subscription_id, _)) in added {
        bench.send(&Command::RemovePublication {
            client_id,
            correlation_id: bench.id(),
            registration_id: publication.registration_id,
            revoke: false,
        });
        bench.send(&Command::RemoveSubscription {
            client_id,
            correlation_id: bench.id(),
            registration_id: subscription_id,
        });
        bench.settle();
        bench.drain();
    }
    bench.run_for(Duration::from_secs(3));
    bench.drain();
    assert!(bench.log_files().is_empty());
    assert!(bench.wires.open_ports().is_empty());
    bench.wires.forget_opened();
}

/// Everything a client may ask for, and an image for which a peer asks; then the client is killed, and all of it is given up.
fn tour(bench: &mut Bench) {
    let before = bench.counters().len();
    let listener = bench.client();
    bench.add_subscription(listener, LISTENING, 10).unwrap();
    assert!(image_is_made(bench));
    let refusals = Tourist::tour(bench);
    assert!(refusals.is_empty(), "{refusals:?}");
    bench.kill(listener);
    bench.run_for(AFTERMATH);
    bench.drain();
    assert_eq!(bench.counters().len(), before, "{:?}", bench.labels());
    assert!(bench.log_files().is_empty());
    assert!(bench.wires.open_ports().is_empty());
    bench.wires.forget_opened();
}

/// Opened in one round.
const COUNT: i32 = 50;
/// Nodes of trees are filled differently from time to time, with the same in them.
const SLACK: i64 = 1_024;

#[test]
fn publications_and_subscriptions_that_are_gone_cost_no_byte() {
    let mut bench = Bench::with(&[
        ("aeron.publication.linger.timeout", "1ms"),
        ("aeron.counters.free.to.reuse.timeout", "0"),
    ]);
    let client_id = bench.client();
    // Of more than a thousand publications, as many subscriptions, and some five thousand counters.
    expect_no_growth(|| round(&mut bench, client_id, COUNT));
}

#[test]
fn whatever_a_client_had_that_was_killed_costs_no_byte() {
    let mut bench = Bench::with(&[("aeron.counters.free.to.reuse.timeout", "0")]);
    expect_no_growth(|| tour(&mut bench));
}

/// Does it twice, until tables have the size that they need and keep, then twenty-one times more.
fn expect_no_growth(mut deed: impl FnMut()) {
    deed();
    deed();
    let settled = HELD.get();
    let grown: Vec<i64> = (0..21)
        .map(|_| {
            deed();
            HELD.get() - settled
        })
        .collect();
    println!("bytes more than after the second time: {grown:?}");
    assert!(grown.iter().all(|&grown| grown <= SLACK), "{grown:?}");
}
