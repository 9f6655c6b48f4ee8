// SPDX-License-Identifier: Apache-2.0
//! Loom models of the positions shared by conductor, sender and receiver, and of the log memory that they guard.
//!
//! Run with `cargo xtask loom`. Each model names the release/acquire pair that it checks. The memory is a region of one
//! frame, so that loom detects a byte that is written while another thread reads or zeroes it.

#![allow(clippy::unwrap_used)] // all of this is tests

use std::time::Duration;

use loom::thread;
use taran_core::counters::{Counter, CounterSpec, CounterTable, METADATA_LENGTH, VALUES_LENGTH};
use taran_core::memory::Region;
use taran_core::sync::Arc;

use super::{ImageShared, ImageState, PublicationShared};

/// Length of a frame in these models, bytes.
const FRAME: i64 = 32;

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.max_branches = 10_000;
    builder.check(model);
}

/// Returns memory for one frame, touched before the threads start.
fn memory() -> Region {
    let region = Region::anonymous(FRAME as usize).unwrap();
    region.zero(0, FRAME as usize);
    region
}

/// Returns a counter, touched before the threads start.
fn counter() -> Counter {
    let metadata = Region::anonymous(METADATA_LENGTH).unwrap();
    let values = Region::anonymous(VALUES_LENGTH).unwrap();
    let mut table = CounterTable::new(metadata, values, Duration::ZERO);
    table.allocate_with(&CounterSpec::default(), 0).unwrap()
}

/// A subscriber reads and advances its position, the conductor frees the log behind it, and the receiver overwrites it.
/// Checks `conductor_free_position` → `free_position`, and the subscriber's counter before it.
#[test]
fn free_position_orders_reads_before_receiver_writes() {
    explore(|| {
        let shared = Arc::new(ImageShared::new(0, 128));
        let position = counter();
        let memory = memory();
        memory.write(0, &[7; FRAME as usize]);
        let conductor = {
            let (shared, position) = (Arc::clone(&shared), position.clone());
            thread::spawn(move || {
                if position.get() >= FRAME {
                    shared.conductor_free_position(FRAME);
                }
            })
        };
        let receiver = {
            let (shared, memory) = (Arc::clone(&shared), memory.clone());
            thread::spawn(move || {
                if shared.free_position() >= FRAME {
                    memory.write(0, &[1; FRAME as usize]);
                }
            })
        };
        assert_eq!(memory.bytes(0, FRAME as usize), [7; FRAME as usize]);
        position.set(FRAME);
        conductor.join().unwrap();
        receiver.join().unwrap();
    });
}

/// The window that the conductor reads belongs to the status position that it read. Checks `receiver_status` →
/// `status_position`.
#[test]
fn status_position_publishes_window() {
    explore(|| {
        let shared = Arc::new(ImageShared::new(0, 128));
        let conductor = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                if shared.status_position() >= FRAME {
                    assert_eq!(shared.window(), 256);
                }
            })
        };
        shared.receiver_status(FRAME, 256);
        conductor.join().unwrap();
    });
}

/// Data below the rebuild position is readable for a joining subscriber. Checks `receiver_rebuilt` →
/// `rebuild_position`.
#[test]
fn rebuild_position_publishes_data() {
    explore(|| {
        let shared = Arc::new(ImageShared::new(0, 128));
        let memory = memory();
        let conductor = {
            let (shared, memory) = (Arc::clone(&shared), memory.clone());
            thread::spawn(move || {
                if shared.rebuild_position() >= FRAME {
                    assert_eq!(memory.bytes(0, FRAME as usize), [3; FRAME as usize]);
                }
            })
        };
        memory.write(0, &[3; FRAME as usize]);
        shared.receiver_rebuilt(FRAME);
        conductor.join().unwrap();
    });
}

/// An end flag implies that all data before it is visible. Checks `receiver_complete`, `receiver_timed_out` and
/// `receiver_revoked`.
#[test]
fn end_flags_publish_all_data() {
    for end in [
        (
            ImageShared::receiver_complete as fn(&ImageShared),
            ImageShared::is_complete as fn(&ImageShared) -> bool,
        ),
        (ImageShared::receiver_timed_out, ImageShared::is_timed_out),
        (ImageShared::receiver_revoked, ImageShared::is_revoked),
    ] {
        explore(move || {
            let (raise, is_raised) = end;
            let shared = Arc::new(ImageShared::new(0, 128));
            let conductor = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    if is_raised(&shared) {
                        assert_eq!(shared.rebuild_position(), FRAME);
                        shared.conductor_state(ImageState::Draining);
                    }
                })
            };
            shared.receiver_rebuilt(FRAME);
            raise(&shared);
            if shared.state() == ImageState::Draining {
                assert!(is_raised(&shared));
            }
            conductor.join().unwrap();
        });
    }
}

/// The sender reads frames and advances its position, the conductor zeroes them and raises the limit, and the publisher
/// writes there again. Checks `sender_position` → `position`, and the limit counter after it.
#[test]
fn limit_orders_cleaning_before_publisher_writes() {
    explore(|| {
        let shared = Arc::new(PublicationShared::new(0));
        let limit = counter();
        let memory = memory();
        memory.write(0, &[5; FRAME as usize]);
        let conductor = {
            let (shared, limit, memory) = (Arc::clone(&shared), limit.clone(), memory.clone());
            thread::spawn(move || {
                if shared.position() >= FRAME {
                    memory.zero(0, FRAME as usize);
                    limit.set(FRAME);
                }
            })
        };
        let publisher = {
            let (limit, memory) = (limit.clone(), memory.clone());
            thread::spawn(move || {
                if limit.get() >= FRAME {
                    assert_eq!(memory.bytes(0, FRAME as usize), [0; FRAME as usize]);
                    memory.write(0, &[6; FRAME as usize]);
                }
            })
        };
        assert_eq!(memory.bytes(0, FRAME as usize), [5; FRAME as usize]);
        shared.sender_position(FRAME);
        conductor.join().unwrap();
        publisher.join().unwrap();
    });
}

/// A sender that reads the end of a revoked stream also reads the revocation, and a conductor that reads
/// `has_receivers` also reads `has_required_receivers`. Checks the store order in `conductor_revoke` and
/// `sender_receivers`.
#[test]
fn second_flag_publishes_first() {
    explore(|| {
        let shared = Arc::new(PublicationShared::new(0));
        let sender = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.sender_receivers(true, true);
                if shared.is_end_of_stream() {
                    assert!(shared.is_revoked());
                }
            })
        };
        shared.conductor_revoke();
        if shared.has_receivers() {
            assert!(shared.has_required_receivers());
        }
        sender.join().unwrap();
    });
}
