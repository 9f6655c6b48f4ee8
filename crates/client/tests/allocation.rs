//! Offering, claiming and polling allocate nothing after set-up.

#![allow(clippy::unwrap_used)] // a test fails by panicking, also in its helpers

#[allow(dead_code)] // shared with the other tests
#[path = "client/fake.rs"]
mod fake;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use fake::Pair;
use taran::{Action, ControlledFragmentAssembler, FragmentAssembler, OfferError};

thread_local! {
    // Per thread, because the test harness allocates in others.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes on unchanged to the system's allocator; counting allocates nothing (the thread local has a
// constant start value and no destructor).
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs the road; how often it allocated.
fn count(road: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    road();
    ALLOCATIONS.get() - before
}

fn check(outcome: Result<i64, OfferError>) {
    assert!(outcome.is_ok() || outcome.is_err_and(|error| error.is_retryable()));
}

#[test]
fn the_road_of_a_message_allocates_nothing() {
    let mut pair = Pair::new();
    let publication = pair.publication(10);
    let mut exclusive = pair.exclusive_publication(10);
    let mut subscription = pair.subscription(10);
    let mut controlled = pair.subscription(10);
    pair.turns();
    let (short, long) = ([1; 100], [2; 5000]);
    let (mut assembler, mut controlled_assembler) =
        (FragmentAssembler::new(), ControlledFragmentAssembler::new());
    let mut received = 0usize;
    let mut turn = |pair: &mut Pair| {
        let allocations = count(|| {
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
        pair.driver.turn();
        allocations
    };
    for _ in 0..100 {
        turn(&mut pair);
    }
    let allocations: usize = (0..1000).map(|_| turn(&mut pair)).sum();
    assert_eq!(allocations, 0);
    assert!(received > 10_000_000, "{received}");
}
