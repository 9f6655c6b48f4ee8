// SPDX-License-Identifier: Apache-2.0
//! A small program with a durable log, and its crash tests: the example of how to test storage code.
//!
//! [`LogWriter`] appends records to segment files, acknowledges them when they are durable, and recovers at start. It takes
//! its disk and its disk queue as parameters and reads no clock, so that it runs unchanged on the system's disk and in the
//! simulator.
//!
//! The rest is what its crate would add to test it:
//!
//! * [`LogWriterProcess`] is a [`Process`](crate::Process) that runs it on the disk of its host.
//! * [`Journal`] is what the users of the log know: the records that were appended and acknowledged, and what recoveries
//!   found. It knows no files.
//! * Invariants over the journal ([`AcknowledgedSurvive`], [`RecoveredWereAppended`], [`AcknowledgedWereAppended`]).
//! * Operations: [`Append`], [`KillWriter`], and disk faults ([`DiskFault`]) and power cuts that the
//!   simulator has for all.
//! * [`suite`] puts them together.
//!
//! A test that cannot fail proves nothing, so the writer has [`Defect`]s to choose from, and the tests of this module
//! require that random worlds find each of them and shrink it.
//!
//! ```
//! use taran_sim::log_writer::{Defect, suite};
//!
//! let correct = suite(None);
//! for seed in 0..20 {
//!     correct.run(&correct.random(seed)).unwrap_or_else(|failure| panic!("{}", failure.text));
//! }
//! # taran_sim::scenario::silence_panics();
//! let planted = suite(Some(Defect::AcknowledgesBeforeSync));
//! let (scenario, failure) = (0..)
//!     .map(|seed| planted.random(seed))
//!     .find_map(|scenario| planted.run(&scenario).err().map(|failure| (scenario, failure)))
//!     .unwrap();
//! let shrunk = planted.shrink(&scenario, &failure, |attempts| attempts > 2_000);
//! assert!(shrunk.scenario.ops.len() <= scenario.ops.len());
//! println!("{}", shrunk.scenario.to_text());
//! ```

mod journal;
mod operations;
mod process;
mod record;
mod recovery;
#[cfg(test)]
mod tests;
mod writer;

use std::time::Duration;

use crate::check::Violation;
use crate::scenario::{DiskFault, Suite};
use crate::{HostIndex, World};

pub use journal::{
    AcknowledgedSurvive, AcknowledgedWereAppended, Appended, Journal, RecoveredWereAppended,
};
pub use operations::{Append, KillWriter};
pub use process::LogWriterProcess;
pub use writer::LogWriter;

/// A defect of a [`LogWriter`], planted on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Acknowledges records that are written but not synced.
    AcknowledgesBeforeSync,
    /// Does not sync the directory after it has created a segment.
    ForgetsDirectorySync,
    /// Takes a record for valid without its checksum.
    BelievesTornRecord,
    /// Takes what it can read at start for durable, also if an earlier process had a failed sync.
    TrustsCacheAfterFailedSync,
}

impl Defect {
    /// All defects.
    pub const ALL: [Self; 4] = [
        Self::AcknowledgesBeforeSync,
        Self::ForgetsDirectorySync,
        Self::BelievesTornRecord,
        Self::TrustsCacheAfterFailedSync,
    ];
}

/// Longest scenario in milliseconds: a sync takes one, so that many operations meet requests in flight.
const LONGEST_MS: u64 = 100;

/// Seeds with which a shorter scenario is tried: what a power cut leaves is random.
const SHRINK_SEEDS: u64 = 60;

/// Time within which a log without faults acknowledges a record.
const PROGRESS_BOUND: Duration = Duration::from_secs(1);

/// Returns the suite of one log writer on one host, with or without a defect.
#[must_use]
pub fn suite(defect: Option<Defect>) -> Suite {
    Suite::without_drivers("log-writer", 1..=1)
        .duration_ms(2..=LONGEST_MS)
        .shrink_seeds(SHRINK_SEEDS)
        .power_cuts()
        .operation::<DiskFault>()
        .operation::<Append>()
        .operation::<KillWriter>()
        .set_up(|world| {
            world.add_invariant(AcknowledgedWereAppended);
            world.add_invariant(AcknowledgedSurvive::default());
            world.add_invariant(RecoveredWereAppended::default());
        })
        .boot(move |world, host| process::start(world, host, defect))
        .finish(finish)
}

/// Cuts the power once more, so that a recovery checks what was acknowledged since the last one. Then a record is appended
/// and has to be acknowledged.
fn finish(world: &mut World) -> Result<(), Violation> {
    let host = HostIndex::at(0);
    world.power_cut(host);
    world.boot(host);
    let recoveries = |world: &World| world.shared::<Journal>().map_or(0, Journal::recoveries);
    let before = recoveries(world);
    world.run_until("the log recovers", PROGRESS_BOUND, |world| {
        recoveries(world) > before
    });
    operations::append(world, 100);
    world.run_until("a record is acknowledged", PROGRESS_BOUND, |world| {
        world
            .shared::<Journal>()
            .is_some_and(Journal::is_all_acknowledged)
    });
    Ok(())
}
