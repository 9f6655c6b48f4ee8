// SPDX-License-Identifier: Apache-2.0
//! Names of a simulated disk: directories as they are, as they are durable, and the changes between.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path};

use fastrand::Rng;
use taran_storage::ErrorKind;

use super::contents::Contents;

/// Number of a file or directory.
pub(super) type NodeId = u64;

/// The directory `/`.
pub(super) const ROOT: NodeId = 0;

#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) entries: BTreeMap<OsString, NodeId>,
    durable: BTreeMap<OsString, NodeId>,
}

#[derive(Debug)]
pub(super) enum Node {
    File(Box<Contents>),
    Directory(Directory),
}

/// An entry of a directory after a change; `None` if it is gone.
#[derive(Debug)]
struct Entry {
    directory: NodeId,
    name: OsString,
    node: Option<NodeId>,
}

/// A change of names that a power cut keeps or loses as a whole: one entry, or the two of a rename.
type Change = Vec<Entry>;

/// The tree.
#[derive(Debug)]
pub(super) struct Names {
    nodes: BTreeMap<NodeId, Node>,
    next: NodeId,
    /// Changes since the directories concerned were synced, in order.
    pending: Vec<Change>,
}

/// A name within an existing directory.
pub(super) struct Place {
    directory: NodeId,
    name: OsString,
}

impl Names {
    pub(super) fn new() -> Self {
        Self {
            nodes: BTreeMap::from([(ROOT, Node::Directory(Directory::default()))]),
            next: ROOT + 1,
            pending: Vec::new(),
        }
    }

    /// Returns the file or directory of a path.
    pub(super) fn find(&self, path: &Path) -> Result<NodeId, ErrorKind> {
        let mut node = ROOT;
        for component in path.components() {
            match component {
                Component::RootDir | Component::CurDir => {}
                Component::Normal(name) => node = self.entry(node, name)?,
                Component::ParentDir | Component::Prefix(_) => return Err(ErrorKind::Unsupported),
            }
        }
        Ok(node)
    }

    fn entry(&self, directory: NodeId, name: &OsStr) -> Result<NodeId, ErrorKind> {
        let entry = self.directory(directory)?.entries.get(name);
        entry.copied().ok_or(ErrorKind::NotFound)
    }

    /// Returns the place of a path, whose last component may be missing.
    pub(super) fn place(&self, path: &Path) -> Result<Place, ErrorKind> {
        let name = path.file_name().ok_or(ErrorKind::NotAFile)?;
        let directory = self.find(path.parent().unwrap_or(Path::new("/")))?;
        self.directory(directory)?;
        Ok(Place {
            directory,
            name: name.to_owned(),
        })
    }

    /// Returns the file or directory at a place.
    pub(super) fn at(&self, place: &Place) -> Option<NodeId> {
        self.entry(place.directory, &place.name).ok()
    }

    pub(super) fn directory(&self, id: NodeId) -> Result<&Directory, ErrorKind> {
        match self.nodes.get(&id) {
            Some(Node::Directory(directory)) => Ok(directory),
            Some(Node::File(_)) => Err(ErrorKind::NotADirectory),
            None => Err(ErrorKind::NotFound),
        }
    }

    pub(super) fn is_directory(&self, id: NodeId) -> bool {
        self.directory(id).is_ok()
    }

    pub(super) fn file(&self, id: NodeId) -> Result<&Contents, ErrorKind> {
        match self.nodes.get(&id) {
            Some(Node::File(contents)) => Ok(contents),
            Some(Node::Directory(_)) => Err(ErrorKind::NotAFile),
            None => Err(ErrorKind::NotFound),
        }
    }

    pub(super) fn file_mut(&mut self, id: NodeId) -> Result<&mut Contents, ErrorKind> {
        match self.nodes.get_mut(&id) {
            Some(Node::File(contents)) => Ok(contents),
            Some(Node::Directory(_)) => Err(ErrorKind::NotAFile),
            None => Err(ErrorKind::NotFound),
        }
    }

    /// Returns the files, those without a name included.
    pub(super) fn files_mut(&mut self) -> impl Iterator<Item = &mut Contents> {
        self.nodes.values_mut().filter_map(|node| match node {
            Node::File(contents) => Some(&mut **contents),
            Node::Directory(_) => None,
        })
    }

    /// Creates a file or directory at a free place.
    pub(super) fn create(&mut self, place: Place, node: Node) -> NodeId {
        let id = self.next;
        self.next += 1;
        self.nodes.insert(id, node);
        self.change(vec![Entry {
            directory: place.directory,
            name: place.name,
            node: Some(id),
        }]);
        id
    }

    pub(super) fn remove(&mut self, place: Place) {
        self.change(vec![Entry {
            directory: place.directory,
            name: place.name,
            node: None,
        }]);
    }

    pub(super) fn rename(&mut self, from: Place, to: Place) {
        let node = self.at(&from);
        if (from.directory, &from.name) == (to.directory, &to.name) {
            return;
        }
        let entry = |place: Place, node| Entry {
            directory: place.directory,
            name: place.name,
            node,
        };
        self.change(vec![entry(from, None), entry(to, node)]);
    }

    fn change(&mut self, change: Change) {
        for entry in &change {
            self.apply(entry, false);
        }
        self.pending.push(change);
    }

    fn apply(&mut self, entry: &Entry, durable: bool) {
        // The directory is gone if its own creation was lost.
        let Some(Node::Directory(directory)) = self.nodes.get_mut(&entry.directory) else {
            return;
        };
        let entries = if durable {
            &mut directory.durable
        } else {
            &mut directory.entries
        };
        match entry.node {
            Some(node) => entries.insert(entry.name.clone(), node),
            None => entries.remove(&entry.name),
        };
    }

    /// Makes the names in a directory durable, and with them those in directories that a rename connects to it.
    pub(super) fn sync_directory(&mut self, id: NodeId) {
        let mut synced = BTreeSet::from([id]);
        loop {
            let before = synced.len();
            for change in &self.pending {
                if change.iter().any(|entry| synced.contains(&entry.directory)) {
                    synced.extend(change.iter().map(|entry| entry.directory));
                }
            }
            if synced.len() == before {
                break;
            }
        }
        let (durable, pending) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|change| change.iter().any(|entry| synced.contains(&entry.directory)));
        self.pending = pending;
        let durable: Vec<Change> = durable;
        for entry in durable.iter().flatten() {
            self.apply(entry, true);
        }
    }

    /// Loses any of the changes that are not durable.
    pub(super) fn power_cut(&mut self, rng: &mut Rng) {
        let pending = std::mem::take(&mut self.pending);
        let mode = rng.u32(0..4);
        let kept = rng.usize(0..=pending.len());
        for (index, change) in pending.iter().enumerate() {
            let keeps = match mode {
                0 => false,
                // A journal keeps the first ones.
                1 => index < kept,
                _ => rng.bool(),
            };
            if keeps {
                for entry in change {
                    self.apply(entry, true);
                }
            }
        }
        for node in self.nodes.values_mut() {
            if let Node::Directory(directory) = node {
                directory.entries.clone_from(&directory.durable);
            }
        }
        self.drop_unreachable(&BTreeSet::new());
    }

    /// Returns the files and directories that have a name now.
    pub(super) fn named(&self) -> BTreeSet<NodeId> {
        let mut found = BTreeSet::from([ROOT]);
        let mut left = vec![ROOT];
        while let Some(id) = left.pop() {
            if let Some(Node::Directory(directory)) = self.nodes.get(&id) {
                for child in directory.entries.values() {
                    if found.insert(*child) {
                        left.push(*child);
                    }
                }
            }
        }
        found
    }

    /// Drops what has no name now, would have none after a power cut, and is not open.
    pub(super) fn drop_unreachable(&mut self, open: &BTreeSet<NodeId>) {
        let mut used = open.clone();
        used.insert(ROOT);
        for node in self.nodes.values() {
            if let Node::Directory(directory) = node {
                used.extend(directory.entries.values());
                used.extend(directory.durable.values());
            }
        }
        used.extend(self.pending.iter().flatten().filter_map(|entry| entry.node));
        self.nodes.retain(|id, _| used.contains(id));
    }
}
