//! Two versions of a schema: what changed, and whether programs with one can talk to programs with the other.
//!
//! The measure is what happens between a writer with the one and a reader with the other, in both directions. Things are
//! taken for the same by their ids, and where these are not to be found, by their names.

mod blocks;
mod change;
mod composites;
mod report;
mod schemas;
mod types;

pub use change::{Change, Impact};

use crate::model::Schema;
use report::Report;

/// Everything that changed from `old` to `new`, in the order of the old schema, and at its end what is new.
///
/// Of more than 10,000 changes, the last one says that there are more.
#[must_use]
pub fn diff(old: &Schema, new: &Schema) -> Vec<Change> {
    let mut report = Report::new(old.version);
    schemas::compare(old, new, &mut report);
    report.into_changes()
}

/// The worst of some changes; `None` where there are none.
#[must_use]
pub fn worst(changes: &[Change]) -> Option<Impact> {
    changes.iter().map(|change| change.impact).max()
}
