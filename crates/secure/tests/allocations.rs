// SPDX-License-Identifier: Apache-2.0
//! Verifies that sealing and opening allocate nothing, under a counting allocator. Counts are per thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use taran_protocol::frame::Setup;
use taran_secure::Secret;
use taran_secure::derive::{Fingerprint, KeyContext, KeyMaterial, Role};
use taran_secure::provider::{Provider, Suite};
use taran_secure::seal::{Direction, OpenKey, SealKey};

thread_local! {
    /// Switch and number of counted allocations of this thread. Neither value has a destructor, so the
    /// allocator may access them at any time.
    static COUNTING: Cell<bool> = const { Cell::new(false) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system allocator with a counter.
struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

// SAFETY: every call is forwarded to the system allocator with the same arguments, so its guarantees hold. The
// additional code uses existing thread-local memory.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTING.get() {
            ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        }
        // SAFETY: the caller upholds the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; `block` came from the system allocator, as every block does.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Returns the number of allocations that `work` makes.
fn allocations(work: impl FnOnce()) -> u64 {
    ALLOCATIONS.set(0);
    COUNTING.set(true);
    work();
    COUNTING.set(false);
    ALLOCATIONS.get()
}

fn seal_and_open<P: Provider>() {
    for suite in Suite::ALL {
        let context = KeyContext {
            role: Role::Stream,
            suite,
            identity: Fingerprint([1; 16]),
            session_id: 10,
            stream_id: 20,
            epoch: 1,
        };
        let material = KeyMaterial::derive::<P>(&Secret::new([9; 32]), &context);
        let mut seal = SealKey::<P>::new(&material, Direction::Forward);
        let mut open = OpenKey::<P>::new(&material, Direction::Forward, 0);
        let setup = Setup {
            header: Setup::header(0),
            term_offset: 0.into(),
            session_id: 10.into(),
            stream_id: 20.into(),
            initial_term_id: 1.into(),
            active_term_id: 1.into(),
            term_length: 65_536.into(),
            mtu: 1_408.into(),
            ttl: 0.into(),
        };
        let plain = [7; 1_408];
        let (mut sealed, mut opened) = ([0; 1_448], [0; 1_408]);
        let mut work = || {
            for length in (0..=1_408).step_by(32) {
                let end = seal.seal(&plain[..length], &mut sealed).expect("fresh key");
                assert_eq!(open.open(&sealed[..end], &mut opened), Ok(length));
                // Refusals are part of the hot path too.
                assert!(open.open(&sealed[..end], &mut opened).is_err());
                sealed[16] ^= 0x80;
                assert!(open.open(&sealed[..end], &mut opened).is_err());
            }
            let announce = seal
                .announce(Fingerprint([1; 16]), 2, 3, &setup)
                .expect("fresh key");
            assert_eq!(open.open_announce(&announce), Ok(setup));
        };
        // Libraries may set up tables of the thread at first.
        work();
        assert_eq!(allocations(work), 0, "{suite:?}");
    }
}

#[test]
fn sealing_and_opening_allocate_nothing() {
    #[cfg(feature = "aws-lc")]
    seal_and_open::<taran_secure::provider::AwsLc>();
    // With debug assertions, Graviola reads the environment to switch off instructions in its own tests.
    #[cfg(all(feature = "graviola", not(debug_assertions)))]
    seal_and_open::<taran_secure::provider::Graviola>();
}

#[test]
fn allocator_counts_allocations() {
    let counted = allocations(|| drop(std::hint::black_box(vec![1_u8; 100])));
    assert_eq!(counted, 1);
}
