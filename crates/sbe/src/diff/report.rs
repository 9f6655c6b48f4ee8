// SPDX-License-Identifier: Apache-2.0
//! Collection of the changes found.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::Arc;

use super::{Change, Impact};
use crate::model::{Position, Type};

/// Maximum number of reported changes.
const MOST: usize = 10_000;
/// Maximum total size of reported changes in bytes. Each path repeats the names of the enclosing elements.
const MAX_BYTES: usize = 8 << 20;

pub(super) struct Report {
    /// Version of the old schema; new elements must have a later `sinceVersion`.
    pub(super) old_version: u32,
    changes: Vec<Change>,
    /// Size of the reported texts in bytes.
    bytes: usize,
    /// First change that is not reported.
    cut: Option<Change>,
    /// Pairs of types already compared, so that a changed type is reported once.
    compared: HashSet<(*const Type, *const Type)>,
    /// Upper bound of the impact of the following changes.
    ceiling: Impact,
}

impl Report {
    pub(super) fn new(old_version: u32) -> Self {
        Self {
            old_version,
            changes: Vec::new(),
            bytes: 0,
            cut: None,
            compared: HashSet::new(),
            ceiling: Impact::Breaking,
        }
    }

    /// Limits the following changes to `Code`: the types compared next are not used by any message.
    pub(super) const fn go_on_with_names(&mut self) {
        self.ceiling = Impact::Code;
    }

    pub(super) fn add(
        &mut self,
        impact: Impact,
        path: &str,
        position: &Position,
        what: impl Into<String>,
    ) {
        if self.is_full() {
            return;
        }
        let change = Change {
            impact: impact.min(self.ceiling),
            path: path.to_owned(),
            what: what.into(),
            position: position.to_string(),
        };
        let bytes = change.path.len() + change.what.len() + change.position.len();
        if self.changes.len() < MOST && self.bytes + bytes <= MAX_BYTES {
            self.bytes += bytes;
            self.changes.push(change);
        } else {
            self.cut = Some(change);
        }
    }

    /// Returns true if the report is full, so that the search can stop.
    pub(super) const fn is_full(&self) -> bool {
        self.cut.is_some()
    }

    /// Returns all changes. If some were not reported, the last one states this with impact `Breaking`, as they were
    /// not examined.
    pub(super) fn into_changes(self) -> Vec<Change> {
        let mut changes = self.changes;
        let count = changes.len();
        changes.extend(self.cut.map(|first| Change {
            impact: Impact::Breaking,
            what: format!("further changes are not reported; the limit of {count} was reached"),
            ..first
        }));
        changes
    }

    /// Returns true for the first request to compare this pair of types, unless the report is full.
    pub(super) fn first_time(&mut self, old: &Arc<Type>, new: &Arc<Type>) -> bool {
        !self.is_full() && self.compared.insert((Arc::as_ptr(old), Arc::as_ptr(new)))
    }

    /// Reports a changed name.
    pub(super) fn renamed(&mut self, path: &str, position: &Position, old: &str, new: &str) {
        if old != new {
            self.add(
                Impact::Code,
                path,
                position,
                format!("was renamed from {old} to {new}"),
            );
        }
    }

    /// Reports a new element with the name of an old element that had the id `id` and was renamed.
    pub(super) fn takes_a_name(
        &mut self,
        path: &str,
        position: &Position,
        what: &str,
        other: impl Display,
    ) {
        self.add(
            Impact::Breaking,
            path,
            position,
            format!(
                "{what}, and has the name of the old element with id {other}: readers that match by name confuse them"
            ),
        );
    }

    /// Reports a changed `sinceVersion`. The effective version of an element is at least that of the enclosing
    /// elements; if the version of an enclosing element changed, the change is reported there.
    pub(super) fn came(
        &mut self,
        path: &str,
        position: &Position,
        (old, new): (u32, u32),
        around: Around,
        is_sent: bool,
    ) {
        let (from, to) = (old.max(around.old), new.max(around.new));
        if old == new || from == to {
            return;
        }
        let (impact, why) = if is_sent {
            let why =
                ": for versions between them it is present for one side and absent for the other";
            (Impact::Breaking, why)
        } else {
            (Impact::None, "; it is not encoded")
        };
        let what = format!("was introduced in version {from}, now in {to}{why}");
        self.add(impact, path, position, what);
    }

    /// Reports a changed `deprecated` version.
    pub(super) fn deprecated(
        &mut self,
        path: &str,
        position: &Position,
        old: Option<u32>,
        new: Option<u32>,
    ) {
        let what = match (old, new) {
            (old, new) if old == new => return,
            (None, Some(version)) => format!("is deprecated since version {version}"),
            (Some(_), None) => "is not deprecated anymore".to_owned(),
            _ => "the deprecation version changed".to_owned(),
        };
        self.add(Impact::None, path, position, what);
    }

    /// Returns true if a new element has a `sinceVersion` after the old schema version; reports it otherwise.
    pub(super) fn is_marked_new(&mut self, path: &str, position: &Position, since: u32) -> bool {
        let version = self.old_version;
        if since > version {
            return true;
        }
        self.add(
            Impact::Breaking,
            path,
            position,
            format!(
                "is new, but has sinceVersion {since}: readers would also read it from messages of version {version}, which \
                 do not contain it; sinceVersion must be at least {}",
                version.saturating_add(1)
            ),
        );
        false
    }
}

/// Versions that introduced the enclosing elements, in both schemas.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Around {
    old: u32,
    new: u32,
}

impl Around {
    /// Returns the versions of an element introduced in `old` and `new` inside these elements.
    pub(super) fn and(self, old: u32, new: u32) -> Self {
        Self {
            old: self.old.max(old),
            new: self.new.max(new),
        }
    }
}

/// Returns the path extended by a name.
pub(super) fn step(path: &str, name: &str) -> String {
    if path.is_empty() {
        return name.to_owned();
    }
    format!("{path}.{name}")
}
