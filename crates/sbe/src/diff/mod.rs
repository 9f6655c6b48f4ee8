// SPDX-License-Identifier: Apache-2.0
//! Comparison of two versions of a schema: differences and compatibility.
//!
//! Compatibility is judged in both directions, between a writer with one version and a reader with the other. Elements
//! are matched by id, or by name if the id is not found.

mod blocks;
mod change;
mod composites;
mod report;
mod schemas;
mod types;

pub use change::{Change, Impact};

use crate::model::Schema;
use report::Report;

/// Returns all changes from `old` to `new`, in the order of the old schema, with additions last.
///
/// At most 10,000 changes are reported; the last one then states that there are more.
#[must_use]
pub fn diff(old: &Schema, new: &Schema) -> Vec<Change> {
    let mut report = Report::new(old.version);
    schemas::compare(old, new, &mut report);
    report.into_changes()
}

/// Returns the worst impact, or `None` without changes.
#[must_use]
pub fn worst(changes: &[Change]) -> Option<Impact> {
    changes.iter().map(|change| change.impact).max()
}
