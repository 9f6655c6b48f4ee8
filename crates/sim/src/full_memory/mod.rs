// SPDX-License-Identifier: Apache-2.0
//! Random worlds in which the file systems for shared memory are full at times, while streams ask for more terms than fit.
//!
//! Hosts have a driver and a client each. Streams over IPC and UDP proceed through terms of which most are reserved one by
//! one, limits of the file systems shrink and grow ([`MemoryLimit`]), and datagrams are lost. The guarantees:
//!
//! * No process writes to a page that is not reserved ([`WritesAreReserved`]).
//! * A stream stops only while a file system that it needs is limited, and then an error names that file system; it continues
//!   when there is room again ([`StreamsWaitOnlyForSpace`]). A publication that is refused gets an error that names the file
//!   system, and is added again later.
//! * At the end of each scenario, without limits, everything that was offered arrives, and nothing is left after that.
//!   Content and order are checked as in all worlds.
//!
//! A test that cannot fail proves nothing, so [`suite`] can plant a [`Defect`], and the tests of this module require that
//! random worlds find and shrink it.

mod invariants;
mod planted;
mod streams;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::check::Violation;
use crate::network::LinkFaults;
use crate::scenario::{MemoryLimit, Suite};
use crate::{HostIndex, World};

pub use invariants::{StreamsWaitOnlyForSpace, WritesAreReserved};
pub use streams::{LongStream, Totals, totals};

use streams::LongStreams;

/// A defect planted on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// The limit of publishers of IPC streams is what flow control allows, also beyond what is reserved.
    LimitPassesReservation,
}

/// Times over which the operations of a scenario are distributed, in milliseconds.
const DURATION_MS: std::ops::RangeInclusive<u64> = 2_000..=90_000;

/// Time within which refused publications are added and all is delivered when no file system is full.
const RECOVERY_BOUND: Duration = Duration::from_secs(60);

/// Interval of checks at the end.
const INTERVAL: Duration = Duration::from_millis(200);

/// Texts of errors that a driver may record: about space, and that there is little of it.
const EXPECTED_ERRORS: &[&str] = &[
    "insufficient usable storage",
    "insufficient storage space",
    "space is running low",
];

/// Returns the suite, with or without a defect.
#[must_use]
pub fn suite(defect: Option<Defect>) -> Suite {
    Suite::without_drivers("full-memory", 1..=2)
        .duration_ms(DURATION_MS)
        .operation::<MemoryLimit>()
        .operation::<LongStream>()
        .set_up(move |world| {
            world.shared_mut::<invariants::Waited>();
            world.add_invariant(WritesAreReserved::default());
            world.add_invariant(StreamsWaitOnlyForSpace::default());
            match defect {
                Some(Defect::LimitPassesReservation) => {
                    world.add_invariant(planted::LimitPassesReservation);
                }
                None => {}
            }
        })
        .boot(|world, host| {
            world.start_driver(host);
            let client = world.connect(host);
            world.shared_mut::<LongStreams>().add_client(host, client);
        })
        .finish(finish)
}

/// Lifts all limits; then all streams must be complete, and nothing may be left when they are closed.
fn finish(world: &mut World) -> Result<(), Violation> {
    invariants::check_writes(world)?;
    let hosts: Vec<_> = (0..world.host_count()).map(HostIndex::at).collect();
    for host in &hosts {
        world.lift_memory_limit(*host);
    }
    world.set_faults(LinkFaults::default());
    let until = world.elapsed() + RECOVERY_BOUND;
    streams::publish_more_on_all(world);
    loop {
        streams::retry_refused(world)?;
        let incomplete = streams::incomplete(world);
        if incomplete.is_empty() {
            break;
        }
        if world.elapsed() > until {
            let incomplete = incomplete.join("\n  ");
            return Err(Violation(format!(
                "streams are not complete after all limits were lifted:\n  {incomplete}"
            )));
        }
        world.run_for(INTERVAL);
    }
    invariants::check_writes(world)?;
    for host in hosts {
        world.expect_errors_counted(host);
    }
    world.expect_no_errors_but(EXPECTED_ERRORS);
    world.close_all();
    world.expect_nothing_left();
    Ok(())
}
