// SPDX-License-Identifier: Apache-2.0
//! The state of a simulated disk behind its lock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fastrand::Rng;
use taran_storage::{Create, ErrorKind, OpenOptions, Operation};

use super::SimDiskOptions;
use super::contents::Contents;
use super::faults::{DiskFaults, DiskSpeed};
use super::names::{Directory, Names, Node, NodeId};

/// Number of a process on a disk.
pub(super) type ProcessId = u64;
/// Number of an open file.
pub(super) type HandleId = u64;

/// Longest file in bytes.
pub(super) const MAX_FILE: u64 = 64 << 30;

/// The system's number of EIO.
const EIO: i32 = 5;

#[derive(Debug)]
struct Lock {
    process: ProcessId,
    number: u64,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) rng: Rng,
    options: SimDiskOptions,
    pub(super) capacity: u64,
    pub(super) faults: DiskFaults,
    pub(super) speed: DiskSpeed,
    /// Operations that fail next.
    pub(super) forced: Vec<Operation>,
    pub(super) names: Names,
    processes: BTreeSet<ProcessId>,
    handles: BTreeMap<HandleId, (ProcessId, NodeId)>,
    locks: BTreeMap<NodeId, Lock>,
    next: u64,
    /// Bytes held by files with a name or an open handle.
    used: u64,
}

impl State {
    pub(super) fn new(seed: u64, options: SimDiskOptions) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            options,
            capacity: options.capacity,
            faults: DiskFaults::default(),
            speed: DiskSpeed::default(),
            forced: Vec::new(),
            names: Names::new(),
            processes: BTreeSet::new(),
            handles: BTreeMap::new(),
            locks: BTreeMap::new(),
            next: 0,
            used: 0,
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn start_process(&mut self) -> ProcessId {
        let process = self.number();
        self.processes.insert(process);
        process
    }

    pub(super) fn check_process(&self, process: ProcessId) -> Result<(), ErrorKind> {
        match self.processes.contains(&process) {
            true => Ok(()),
            false => Err(ErrorKind::Revoked),
        }
    }

    pub(super) fn end_process(&mut self, process: ProcessId) {
        self.processes.remove(&process);
        self.handles.retain(|_, (owner, _)| *owner != process);
        self.locks.retain(|_, lock| lock.process != process);
        self.count_used();
    }

    pub(super) fn power_cut(&mut self) {
        self.processes.clear();
        self.handles.clear();
        self.locks.clear();
        self.names.power_cut(&mut self.rng);
        let torn = self.options.torn_sectors;
        for contents in self.names.files_mut() {
            contents.power_cut(&mut self.rng, torn);
        }
        self.count_used();
    }

    pub(super) fn original_capacity(&self) -> u64 {
        self.options.capacity
    }

    pub(super) fn end_faults(&mut self) {
        self.capacity = self.original_capacity();
        self.faults = DiskFaults::default();
        self.speed = DiskSpeed::default();
        self.forced.clear();
    }

    /// Returns the bytes that files occupy.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    pub(super) fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.used)
    }

    /// Drops files that nothing refers to, and counts the bytes of those that have a name or are open.
    fn count_used(&mut self) {
        let open: BTreeSet<NodeId> = self.handles.values().map(|(_, node)| *node).collect();
        self.names.drop_unreachable(&open);
        let counted = self.names.named().into_iter().chain(open);
        let counted: BTreeSet<NodeId> = counted.collect();
        self.used = counted
            .into_iter()
            .filter_map(|id| self.names.file(id).ok())
            .map(Contents::held_bytes)
            .sum();
    }

    /// Changes a file, and counts its bytes.
    fn change<T>(
        &mut self,
        node: NodeId,
        change: impl FnOnce(&mut Contents, &mut Rng) -> T,
    ) -> Result<T, ErrorKind> {
        let contents = self.names.file_mut(node)?;
        let before = contents.held_bytes();
        let result = change(contents, &mut self.rng);
        self.used = (self.used + contents.held_bytes()).saturating_sub(before);
        Ok(result)
    }

    /// Returns true if an operation is to fail.
    fn fails(&mut self, operation: Operation) -> bool {
        if let Some(index) = self.forced.iter().position(|forced| *forced == operation) {
            self.forced.remove(index);
            return true;
        }
        let probability = match operation {
            Operation::Read => self.faults.read_error,
            Operation::Write => self.faults.write_error,
            Operation::Sync => self.faults.sync_error,
            Operation::SyncDirectory => self.faults.directory_sync_error,
            _ => 0.0,
        };
        probability > 0.0 && self.rng.f64() < probability
    }

    pub(super) fn open(
        &mut self,
        process: ProcessId,
        path: &Path,
        options: OpenOptions,
    ) -> Result<HandleId, ErrorKind> {
        let place = self.names.place(path)?;
        let node = match (self.names.at(&place), options.create) {
            (Some(_), Create::New) => return Err(ErrorKind::AlreadyExists),
            (Some(node), _) => {
                self.names.file(node)?;
                self.check_allocation(node, options.allocate)?;
                node
            }
            (None, Create::Never) => return Err(ErrorKind::NotFound),
            (None, _) => {
                let contents = Contents::new(self.options.sector_bytes);
                check_end(options.allocate)?;
                let missing = contents.missing_bytes(0, options.allocate);
                self.check_free(missing, options.allocate)?;
                self.names.create(place, Node::File(Box::new(contents)))
            }
        };
        if options.allocate > 0 {
            self.change(node, |contents, _| contents.allocate(0, options.allocate))?;
        }
        let handle = self.number();
        self.handles.insert(handle, (process, node));
        Ok(handle)
    }

    fn check_allocation(&self, node: NodeId, len: u64) -> Result<(), ErrorKind> {
        check_end(len)?;
        self.check_free(self.names.file(node)?.missing_bytes(0, len), len)
    }

    fn check_free(&self, missing: u64, needed: u64) -> Result<(), ErrorKind> {
        let free = self.free();
        if missing > free {
            return Err(ErrorKind::Full {
                needed,
                free: Some(free),
            });
        }
        Ok(())
    }

    /// Returns the file of a handle.
    fn node(&self, handle: HandleId) -> Result<NodeId, ErrorKind> {
        match self.handles.get(&handle) {
            Some((_, node)) => Ok(*node),
            None => Err(ErrorKind::Revoked),
        }
    }

    pub(super) fn close(&mut self, handle: HandleId) {
        if self.handles.remove(&handle).is_some() {
            self.count_used();
        }
    }

    pub(super) fn read(
        &mut self,
        handle: HandleId,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<usize, ErrorKind> {
        let node = self.node(handle)?;
        if self.fails(Operation::Read) {
            return Err(ErrorKind::Io { code: EIO });
        }
        Ok(self.names.file(node)?.read(buffer, offset))
    }

    pub(super) fn write(
        &mut self,
        handle: HandleId,
        bytes: &[u8],
        offset: u64,
    ) -> Result<(), ErrorKind> {
        let node = self.node(handle)?;
        let len = bytes.len() as u64;
        check_end(offset + len)?;
        if self.fails(Operation::Write) {
            let part = self.rng.usize(0..=bytes.len());
            let fits = self.fitting(node, &bytes[..part], offset)?;
            self.change(node, |contents, rng| {
                contents.write(&bytes[..fits], offset, rng);
            })?;
            return Err(ErrorKind::Io { code: EIO });
        }
        let fits = self.fitting(node, bytes, offset)?;
        self.change(node, |contents, rng| {
            contents.write(&bytes[..fits], offset, rng);
        })?;
        if fits < bytes.len() {
            return Err(ErrorKind::Full {
                needed: len,
                free: Some(self.free()),
            });
        }
        Ok(())
    }

    /// Returns the number of bytes for which there is space.
    fn fitting(&self, node: NodeId, bytes: &[u8], offset: u64) -> Result<usize, ErrorKind> {
        let contents = self.names.file(node)?;
        let free = self.free();
        let mut fits = bytes.len();
        while fits > 0 && contents.missing_bytes(offset, fits as u64) > free {
            // To the previous page boundary of the file.
            let end = offset + fits as u64;
            let boundary = (end - 1) / super::contents::PAGE * super::contents::PAGE;
            fits = usize::try_from(boundary.saturating_sub(offset)).unwrap_or(0);
        }
        Ok(fits)
    }

    pub(super) fn len(&self, handle: HandleId) -> Result<u64, ErrorKind> {
        Ok(self.names.file(self.node(handle)?)?.len())
    }

    pub(super) fn set_len(&mut self, handle: HandleId, len: u64) -> Result<(), ErrorKind> {
        let node = self.node(handle)?;
        check_end(len)?;
        self.change(node, |contents, rng| contents.set_len(len, rng))
    }

    pub(super) fn allocate(
        &mut self,
        handle: HandleId,
        offset: u64,
        len: u64,
    ) -> Result<(), ErrorKind> {
        let node = self.node(handle)?;
        check_end(offset + len)?;
        self.check_free(self.names.file(node)?.missing_bytes(offset, len), len)?;
        self.change(node, |contents, _| {
            if len > 0 {
                contents.allocate(offset, len);
            }
        })
    }

    pub(super) fn punch_hole(
        &mut self,
        handle: HandleId,
        offset: u64,
        len: u64,
    ) -> Result<(), ErrorKind> {
        let node = self.node(handle)?;
        self.change(node, |contents, rng| contents.punch_hole(offset, len, rng))
    }

    pub(super) fn sync(&mut self, handle: HandleId) -> Result<(), ErrorKind> {
        let node = self.node(handle)?;
        // A sync of a clean file writes nothing, so the device cannot fail.
        let fails = self.names.file(node)?.is_dirty() && self.fails(Operation::Sync);
        self.change(node, |contents, rng| {
            if fails {
                contents.fail_sync(rng);
                Err(ErrorKind::Io { code: EIO })
            } else {
                contents.sync();
                Ok(())
            }
        })?
    }

    pub(super) fn check_handle(&self, handle: HandleId) -> Result<(), ErrorKind> {
        self.node(handle).map(|_| ())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Result<(), ErrorKind> {
        let source = self.names.place(from)?;
        let node = self.names.at(&source).ok_or(ErrorKind::NotFound)?;
        let target = self.names.place(to)?;
        if let Some(replaced) = self.names.at(&target) {
            match (
                self.names.is_directory(node),
                self.names.is_directory(replaced),
            ) {
                (false, false) => {}
                (false, true) => return Err(ErrorKind::NotAFile),
                (true, false) => return Err(ErrorKind::NotADirectory),
                (true, true) if replaced == node => {}
                (true, true) if self.names.directory(replaced)?.entries.is_empty() => {}
                (true, true) => return Err(ErrorKind::DirectoryNotEmpty),
            }
        }
        self.names.rename(source, target);
        self.count_used();
        Ok(())
    }

    pub(super) fn remove_file(&mut self, path: &Path) -> Result<(), ErrorKind> {
        let place = self.names.place(path)?;
        let node = self.names.at(&place).ok_or(ErrorKind::NotFound)?;
        self.names.file(node)?;
        self.names.remove(place);
        self.count_used();
        Ok(())
    }

    pub(super) fn create_directory(&mut self, path: &Path) -> Result<(), ErrorKind> {
        let place = self.names.place(path)?;
        if self.names.at(&place).is_some() {
            return Err(ErrorKind::AlreadyExists);
        }
        self.names
            .create(place, Node::Directory(Directory::default()));
        Ok(())
    }

    pub(super) fn remove_directory(&mut self, path: &Path) -> Result<(), ErrorKind> {
        let place = self.names.place(path)?;
        let node = self.names.at(&place).ok_or(ErrorKind::NotFound)?;
        if !self.names.directory(node)?.entries.is_empty() {
            return Err(ErrorKind::DirectoryNotEmpty);
        }
        self.names.remove(place);
        Ok(())
    }

    pub(super) fn sync_directory(&mut self, path: &Path) -> Result<(), ErrorKind> {
        let node = self.names.find(path)?;
        self.names.directory(node)?;
        if self.fails(Operation::SyncDirectory) {
            return Err(ErrorKind::Io { code: EIO });
        }
        self.names.sync_directory(node);
        Ok(())
    }

    pub(super) fn try_lock(
        &mut self,
        process: ProcessId,
        path: &Path,
    ) -> Result<(NodeId, u64), ErrorKind> {
        let node = self.names.find(path)?;
        if self.locks.contains_key(&node) {
            return Err(ErrorKind::Locked);
        }
        let number = self.number();
        self.locks.insert(node, Lock { process, number });
        Ok((node, number))
    }

    pub(super) fn unlock(&mut self, node: NodeId, number: u64) {
        if self
            .locks
            .get(&node)
            .is_some_and(|lock| lock.number == number)
        {
            self.locks.remove(&node);
        }
    }

    pub(super) fn rot(&mut self) -> bool {
        let count = self.names.files_mut().count();
        if count == 0 {
            return false;
        }
        let chosen = self.rng.usize(0..count);
        let rng = &mut self.rng;
        let file = self.names.files_mut().nth(chosen);
        file.is_some_and(|contents| contents.rot(rng).is_some())
    }
}

fn check_end(end: u64) -> Result<(), ErrorKind> {
    if end > MAX_FILE {
        return Err(ErrorKind::TooLarge { end });
    }
    Ok(())
}
