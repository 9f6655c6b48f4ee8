//! A small program with a durable log, and its crash tests: the example of how to test storage code.
//!
//! [`LogWriter`] appends records to segment files, acknowledges them when they are durable, and recovers at start. It takes
//! its disk and its disk queue as parameters and reads no clock, so that it runs unchanged on the system's disk and in the
//! simulator. [`Scenario`] is a run of it on a [`SimDisk`](crate::disk::SimDisk): appends, power cuts, kills and failing
//! operations as data, generated from a seed and [shrunk](Scenario::shrink) after a failure. The model that checks it
//! knows no files: each acknowledged record is there after each recovery, and each recovered record is one that was
//! appended.
//!
//! A test that cannot fail proves nothing, so the writer has [`Defect`]s to choose from, and the tests of this module
//! require that random scenarios find each of them.
//!
//! ```
//! use taran_sim::log_writer::{Defect, Scenario};
//!
//! for seed in 0..50 {
//!     Scenario::random(seed, None).run().unwrap();
//! }
//! let failing = (0..).map(|seed| Scenario::random(seed, Some(Defect::AcknowledgesBeforeSync)));
//! let failing = failing.into_iter().find(|scenario| scenario.run().is_err()).unwrap();
//! let shortest = failing.shrink();
//! assert!(shortest.run().is_err());
//! println!("{shortest}");
//! ```

mod record;
mod recovery;
mod scenario;
#[cfg(test)]
mod tests;
mod writer;

pub use scenario::{Failure, Outcome, Scenario, Step};
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
