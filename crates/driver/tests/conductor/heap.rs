// SPDX-License-Identifier: Apache-2.0
//! Heap use after resources are freed: not a byte remains for any of them.
//!
//! A whole driver runs on the thread of the test, with an allocator that counts the allocated bytes of this thread. The
//! resident pages of a process depend on its peak use and on chance, and would hide a leak of some bytes per publication.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use taran_protocol::command::Command;

use crate::fixture::DriverFixture;
use crate::shortages::{ALL_TIMEOUTS, LISTENING, ResourceSequence, creates_image};

thread_local! {
    /// Allocated bytes of this thread. Never dropped, so that the allocator may use it at any time.
    static HELD: Cell<i64> = const { Cell::new(0) };
}

/// System allocator with a count of the allocated bytes.
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

/// Opens publications with subscriptions, closes them one by one, and waits until they are freed.
fn round(driver: &mut DriverFixture, client_id: i64, count: i32) {
    let mut added = Vec::new();
    for number in 0..count {
        let channel = CHANNELS[number as usize % CHANNELS.len()];
        added.push((
            driver.add_publication(client_id, channel, number).unwrap(),
            driver.add_subscription(client_id, channel, number).unwrap(),
        ));
    }
    assert_eq!(driver.log_files().len(), count as usize);
    for (publication, (subscription_id, _)) in added {
        driver.send(&Command::RemovePublication {
            client_id,
            correlation_id: driver.id(),
            registration_id: publication.registration_id,
            revoke: false,
        });
        driver.send(&Command::RemoveSubscription {
            client_id,
            correlation_id: driver.id(),
            registration_id: subscription_id,
        });
        driver.settle();
        driver.drain();
    }
    driver.run_for(Duration::from_secs(3));
    driver.drain();
    assert!(driver.log_files().is_empty());
    assert!(driver.network.open_ports().is_empty());
    driver.network.clear_opened();
}

/// Adds every kind of resource and an image, then kills the client and waits until all are freed.
fn tour(driver: &mut DriverFixture) {
    let before = driver.counters().len();
    let listener = driver.client();
    driver.add_subscription(listener, LISTENING, 10).unwrap();
    assert!(creates_image(driver));
    let refusals = ResourceSequence::run(driver);
    assert!(refusals.is_empty(), "{refusals:?}");
    driver.kill(listener);
    driver.run_for(ALL_TIMEOUTS);
    driver.drain();
    assert_eq!(driver.counters().len(), before, "{:?}", driver.labels());
    assert!(driver.log_files().is_empty());
    assert!(driver.network.open_ports().is_empty());
    driver.network.clear_opened();
}

/// Publications opened in one round.
const COUNT: i32 = 50;
/// Tolerance: tree nodes with the same contents can be filled differently.
const SLACK: i64 = 1_024;

#[test]
fn closed_publications_and_subscriptions_free_all_memory() {
    let mut driver = DriverFixture::with(&[
        ("aeron.publication.linger.timeout", "1ms"),
        ("aeron.counters.free.to.reuse.timeout", "0"),
    ]);
    let client_id = driver.client();
    // Of more than a thousand publications, as many subscriptions, and some five thousand counters.
    expect_no_growth(|| round(&mut driver, client_id, COUNT));
}

#[test]
fn dead_client_frees_all_memory() {
    let mut driver = DriverFixture::with(&[("aeron.counters.free.to.reuse.timeout", "0")]);
    expect_no_growth(|| tour(&mut driver));
}

/// Runs an operation twice, so that tables reach their final size, then twenty-one more times without growth.
fn expect_no_growth(mut operation: impl FnMut()) {
    operation();
    operation();
    let settled = HELD.get();
    let grown: Vec<i64> = (0..21)
        .map(|_| {
            operation();
            HELD.get() - settled
        })
        .collect();
    println!("bytes more than after the second time: {grown:?}");
    assert!(grown.iter().all(|&grown| grown <= SLACK), "{grown:?}");
}
