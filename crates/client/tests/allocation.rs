// SPDX-License-Identifier: Apache-2.0
//! Offering, claiming and polling do not allocate.

#![allow(clippy::unwrap_used)] // a test fails by panicking, also in its helpers

#[allow(dead_code)] // shared with the other tests
#[path = "client/fake_driver.rs"]
mod fake_driver;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use fake_driver::Fixture;
use futures_util::{FutureExt, StreamExt};
use taran::{Action, ControlledFragmentAssembler, FragmentAssembler, OfferError, Reactor};

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

/// Runs `operations` and returns the number of allocations.
fn count_allocations(operations: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    operations();
    ALLOCATIONS.get() - before
}

fn check(outcome: Result<i64, OfferError>) {
    assert!(outcome.is_ok() || outcome.is_err_and(|error| error.is_retryable()));
}

#[test]
fn offer_claim_and_poll_do_not_allocate() {
    let mut fixture = Fixture::new();
    let publication = fixture.publication(10);
    let mut exclusive = fixture.exclusive_publication(10);
    let mut subscription = fixture.subscription(10);
    let mut controlled = fixture.subscription(10);
    fixture.run_cycles();
    let (short, long) = ([1; 100], [2; 5000]);
    let (mut assembler, mut controlled_assembler) =
        (FragmentAssembler::new(), ControlledFragmentAssembler::new());
    let mut received = 0usize;
    let mut cycle = |fixture: &mut Fixture| {
        let allocations = count_allocations(|| {
            check(publication.offer(&short));
            check(publication.offer(&long));
            check(publication.offer_parts(&[&short, &long]));
            check(publication.offer_with(&[&long], |payload| payload.len() as i64));
            check(publication.try_claim(100).map(taran::BufferClaim::commit));
            check(publication.try_claim(100).map(|_aborted| 0));
            check(exclusive.offer(&short));
            check(exclusive.offer_parts(&[&long]));
            check(exclusive.try_claim(7).map(taran::BufferClaim::commit));
            check(exclusive.append_padding(70));
            for _ in 0..4 {
                let take = assembler.wrap(|message, _| received += message.len());
                assert!(subscription.poll(take, 20).is_ok());
                let take = controlled_assembler.wrap(|message, _| {
                    received += message.len();
                    Action::Commit
                });
                assert!(controlled.controlled_poll(take, 20).is_ok());
            }
        });
        // The fake driver may allocate.
        fixture.driver.do_work();
        allocations
    };
    for _ in 0..100 {
        cycle(&mut fixture);
    }
    let allocations: usize = (0..1000).map(|_| cycle(&mut fixture)).sum();
    assert_eq!(allocations, 0);
    assert!(received > 10_000_000, "{received}");
}

#[test]
fn asynchronous_offer_and_poll_do_not_allocate() {
    let mut fixture = Fixture::new();
    let reactor = Reactor::invoked();
    let mut publication = fixture.publication(10).into_async(&reactor);
    let mut exclusive = fixture.exclusive_publication(10).into_async(&reactor);
    let mut subscription = fixture.subscription(10).into_async(&reactor);
    fixture.run_cycles();
    let mut received = 0;
    let mut cycle = |fixture: &mut Fixture| {
        let allocations = count_allocations(|| {
            // The task waits, and is woken.
            assert!(subscription.next().now_or_never().is_none());
            assert_eq!(reactor.invoke(), 0);
            for _ in 0..2 {
                assert!(publication.offer(&[1; 100]).now_or_never().is_some());
                assert!(exclusive.offer(&[2; 100]).now_or_never().is_some());
            }
            assert_eq!(reactor.invoke(), 1);
            while let Some(polled) = subscription
                .poll(|message, _| received += message.len(), 10)
                .now_or_never()
            {
                assert!(polled.is_ok());
            }
        });
        // The fake driver may allocate.
        fixture.driver.do_work();
        allocations
    };
    for _ in 0..100 {
        cycle(&mut fixture);
    }
    let allocations: usize = (0..1000).map(|_| cycle(&mut fixture)).sum();
    assert_eq!((allocations, received), (0, 1100 * 400));
}
