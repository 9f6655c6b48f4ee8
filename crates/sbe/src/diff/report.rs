//! The changes that were found so far.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::Arc;

use super::{Change, Impact};
use crate::model::{Position, Type};

/// The most changes that are told.
const MOST: usize = 10_000;
/// The most bytes that they take: each has the names of all around it in its path.
const MOST_BYTES: usize = 8 << 20;

pub(super) struct Report {
    /// The version of the old schema: whatever is new has to come after it.
    pub(super) old_version: u32,
    changes: Vec<Change>,
    /// How many bytes the texts of these have.
    bytes: usize,
    /// The first change that is not told.
    cut: Option<Change>,
    /// Pairs of types that were compared, so that what changed in a type is told once.
    compared: HashSet<(*const Type, *const Type)>,
    /// The worst that a change can be now.
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

    /// From here on things are looked at that nobody sends.
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
        if self.changes.len() < MOST && self.bytes + bytes <= MOST_BYTES {
            self.bytes += bytes;
            self.changes.push(change);
        } else {
            self.cut = Some(change);
        }
    }

    /// Whether nothing more is told, so that there is no use in looking for it.
    pub(super) const fn is_full(&self) -> bool {
        self.cut.is_some()
    }

    /// All changes, and that there are more: as nobody has looked at those, they count as the worst.
    pub(super) fn into_changes(self) -> Vec<Change> {
        let mut changes = self.changes;
        let told = changes.len();
        changes.extend(self.cut.map(|first| Change {
            impact: Impact::Breaking,
            what: format!("from here on there are more changes than the {told} that are told"),
            ..first
        }));
        changes
    }

    /// Whether these two were not compared before, and should be.
    pub(super) fn first_time(&mut self, old: &Arc<Type>, new: &Arc<Type>) -> bool {
        !self.is_full() && self.compared.insert((Arc::as_ptr(old), Arc::as_ptr(new)))
    }

    /// Tells what a name became.
    pub(super) fn renamed(&mut self, path: &str, position: &Position, old: &str, new: &str) {
        if old != new {
            self.add(
                Impact::Code,
                path,
                position,
                format!("was called {old}, is called {new}"),
            );
        }
    }

    /// Tells that something has the name now that was that of something else, which had that id.
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
                "{what}, and has the name of what had the id {other}: who goes by names takes the one for the other"
            ),
        );
    }

    /// Tells when something is said to have come at another time than before, in the old and in the new schema, by things
    /// around it that came then: it is no older than they are, whatever it says. Where they came at another time, it is told
    /// of them.
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
                ": for versions between them it is there for the one and missing for the other";
            (Impact::Breaking, why)
        } else {
            (Impact::None, "; nothing of it is sent")
        };
        let what = format!("came in version {from}, and now in {to}{why}");
        self.add(impact, path, position, what);
    }

    /// Tells when something is given up, or taken back into favour.
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
            (Some(_), None) => "is deprecated no more".to_owned(),
            _ => "is deprecated since another version".to_owned(),
        };
        self.add(Impact::None, path, position, what);
    }

    /// Whether something new says that it came after the old version; told if not.
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
                "is new, but says that it came in version {since}: where a message of version {version} has something \
                 else or nothing, it is read; sinceVersion has to be at least {}",
                version.saturating_add(1)
            ),
        );
        false
    }
}

/// The versions in which came what things are written in, in both schemas.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Around {
    old: u32,
    new: u32,
}

impl Around {
    /// Those of what came in these versions in the same, or with it.
    pub(super) fn and(self, old: u32, new: u32) -> Self {
        Self {
            old: self.old.max(old),
            new: self.new.max(new),
        }
    }
}

/// A path with one step more.
pub(super) fn step(path: &str, name: &str) -> String {
    if path.is_empty() {
        return name.to_owned();
    }
    format!("{path}.{name}")
}
