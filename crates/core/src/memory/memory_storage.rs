// SPDX-License-Identifier: Apache-2.0
//! Storage in the memory of this process.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    io,
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::AtomicBool},
};

use super::{
    CreateOptions, InsufficientSpace, LockFile, LockProbe, MemoryError, Region, Storage,
    error::directory, lock_file::LockToken,
};

/// Files in the memory of this process, for tests and simulation. Clones share the files. Behaves as a file system: a
/// directory must exist before a file in it, and the mappings of a removed file remain valid.
///
/// Pages that are not reserved are as on a full file system, in files of more than 1 MiB: a process that reads or writes
/// them is killed, here by SIGSEGV instead of SIGBUS. Tests need not check for that.
#[derive(Clone, Debug, Default)]
pub struct MemoryStorage {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    mapped: BTreeMap<PathBuf, File>,
    plain: BTreeMap<PathBuf, Vec<u8>>,
    /// The last locks of plain files.
    locks: BTreeMap<PathBuf, Weak<LockToken>>,
    directories: BTreeSet<PathBuf>,
    capacity: Option<u64>,
    has_accessible_holes: bool,
}

#[derive(Debug)]
struct File {
    region: Region,
    reserved: Reserved,
}

/// Reserved bytes of a file: ranges in order, apart from each other.
#[derive(Clone, Debug, Default)]
struct Reserved(Vec<Range<u64>>);

impl Reserved {
    fn bytes(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// Returns these ranges with another one.
    fn with(&self, added: Range<u64>) -> Self {
        let mut ranges = self.0.clone();
        ranges.push(added);
        ranges.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        Self(merged)
    }

    /// Returns the ranges of a file of `len` bytes that are not reserved.
    fn holes(&self, len: u64) -> impl Iterator<Item = Range<u64>> {
        let ends = self.0.iter().map(|range| range.end);
        let starts = self.0.iter().map(|range| range.start);
        std::iter::once(0)
            .chain(ends)
            .zip(starts.chain(std::iter::once(len)))
            .map(|(from, to)| from..to)
    }
}

impl MemoryStorage {
    /// Storage without a limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Storage in which `capacity` bytes can be reserved.
    pub fn with_capacity(capacity: u64) -> Self {
        let storage = Self::default();
        storage.state().capacity = Some(capacity);
        storage
    }

    /// Storage in which pages can be accessed that are not reserved: for simulations, which have to continue after such an
    /// access. [`unreserved_writes`](Self::unreserved_writes) finds those that leave something behind.
    pub fn with_accessible_holes() -> Self {
        let storage = Self::default();
        storage.state().has_accessible_holes = true;
        storage
    }

    /// Changes the limit; `None` removes it. Existing files are kept.
    pub fn set_capacity(&self, capacity: Option<u64>) {
        self.state().capacity = capacity;
    }

    /// Returns the contents of an ordinary file, written with [`Storage::write_file`].
    pub fn plain_file(&self, path: &Path) -> Option<Vec<u8>> {
        self.state().plain.get(path).cloned()
    }

    /// Returns the names of all mapped files, sorted.
    pub fn mapped_files(&self) -> Vec<PathBuf> {
        self.state().mapped.keys().cloned().collect()
    }

    /// Returns the bytes that are reserved.
    pub fn reserved(&self) -> u64 {
        self.state().reserved()
    }

    /// Returns the mapped files in which bytes were written that are not reserved, with the offset of the first one. On
    /// a real file system such a write kills the process when the file system is full. A file that was created without
    /// any reserved pages counts as well. For storage [`with_accessible_holes`](Self::with_accessible_holes).
    pub fn unreserved_writes(&self) -> Vec<(PathBuf, u64)> {
        let state = self.state();
        let written = |file: &File| {
            let len = file.region.len() as u64;
            file.reserved.holes(len).find_map(|hole| {
                // Both are at most the length of a region.
                let (from, to) = (hole.start as usize, hole.end as usize);
                let bytes = file.region.bytes(from, to - from);
                let first = bytes.iter().position(|&byte| byte != 0)?;
                Some(hole.start + first as u64)
            })
        };
        let files = state.mapped.iter();
        files
            .filter_map(|(path, file)| Some((path.clone(), written(file)?)))
            .collect()
    }

    /// As [`Storage::create_locked`], for a simulated process: its locks are released when `is_holder_dead` becomes
    /// true.
    pub fn create_locked_by(
        &self,
        path: &Path,
        contents: &[u8],
        is_holder_dead: Arc<AtomicBool>,
    ) -> io::Result<LockFile> {
        if self.exists(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.write_file(path, contents)?;
        let token = Arc::new(LockToken::new(is_holder_dead));
        self.state()
            .locks
            .insert(path.to_path_buf(), Arc::downgrade(&token));
        Ok(LockFile::of_token(token))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent between statements, so a panic elsewhere does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn reserved(&self) -> u64 {
        self.mapped.values().map(|file| file.reserved.bytes()).sum()
    }

    fn available(&self) -> u64 {
        let used = self.reserved();
        self.capacity
            .map_or(u64::MAX, |capacity| capacity.saturating_sub(used))
    }

    fn storage_full(&self, path: &Path, requested: u64) -> MemoryError {
        MemoryError::StorageFull {
            path: path.to_path_buf(),
            shortage: InsufficientSpace {
                requested,
                available: self.available(),
                capacity: self.capacity,
            },
        }
    }

    fn is_file(&self, path: &Path) -> bool {
        self.mapped.contains_key(path) || self.plain.contains_key(path)
    }

    fn is_directory(&self, path: &Path) -> bool {
        path.parent().is_none() || path == Path::new(".") || self.directories.contains(path)
    }
}

impl Storage for MemoryStorage {
    fn create(&self, path: &Path, len: u64, options: CreateOptions) -> Result<Region, MemoryError> {
        let mut state = self.state();
        let map_len = usize::try_from(len).map_err(|_| MemoryError::InvalidLength { len })?;
        if !state.is_directory(directory(path)) {
            return Err(MemoryError::NotFound {
                path: path.to_path_buf(),
            });
        }
        if state.is_file(path) || state.is_directory(path) {
            return Err(MemoryError::AlreadyExists {
                path: path.to_path_buf(),
            });
        }
        if options.reserve && len > state.available() {
            return Err(state.storage_full(path, len));
        }
        let region = Region::anonymous(map_len)?;
        if !options.reserve && !state.has_accessible_holes {
            region
                .set_accessible(0..map_len, false)
                .map_err(|error| MemoryError::from_io("protect", path, error))?;
        }
        let nothing = Reserved::default();
        let reserved = if options.reserve {
            nothing.with(0..len)
        } else {
            nothing
        };
        state.mapped.insert(
            path.to_path_buf(),
            File {
                region: region.clone(),
                reserved,
            },
        );
        Ok(region)
    }

    fn reserve(
        &self,
        path: &Path,
        region: &Region,
        offset: u64,
        len: u64,
    ) -> Result<(), MemoryError> {
        let mut state = self.state();
        let Some(file) = state.mapped.get(path) else {
            return Err(MemoryError::NotFound {
                path: path.to_path_buf(),
            });
        };
        if !file.region.shares_mapping_with(region) {
            return Err(MemoryError::Replaced {
                path: path.to_path_buf(),
            });
        }
        let (file_len, end) = (file.region.len() as u64, offset.saturating_add(len));
        if end > file_len {
            return Err(MemoryError::Truncated {
                path: path.to_path_buf(),
                len: file_len,
                expected: end,
            });
        }
        let reserved = file.reserved.with(offset..end);
        let missing = reserved.bytes() - file.reserved.bytes();
        if missing > state.available() {
            return Err(state.storage_full(path, missing));
        }
        if let Some(file) = state.mapped.get_mut(path) {
            file.reserved = reserved;
            // Both are at most the length of a region.
            let range = offset as usize..end as usize;
            file.region
                .set_accessible(range, true)
                .map_err(|error| MemoryError::from_io("unprotect", path, error))?;
        }
        Ok(())
    }

    fn open(&self, path: &Path) -> Result<Region, MemoryError> {
        let state = self.state();
        if let Some(file) = state.mapped.get(path) {
            return Ok(file.region.clone());
        }
        if state.is_directory(path) {
            return Err(MemoryError::NotAFile {
                path: path.to_path_buf(),
            });
        }
        match state.plain.get(path) {
            None => Err(MemoryError::NotFound {
                path: path.to_path_buf(),
            }),
            Some(contents) if contents.is_empty() => Err(MemoryError::Empty {
                path: path.to_path_buf(),
            }),
            Some(contents) => {
                let region = Region::anonymous(contents.len())?;
                region.write(0, contents);
                Ok(region)
            }
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let removed = state.mapped.remove(path).is_some() || state.plain.remove(path).is_some();
        state.locks.remove(path);
        if removed {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn available(&self, directory: &Path) -> io::Result<u64> {
        let state = self.state();
        if state.is_directory(directory) {
            Ok(state.available())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn capacity(&self, _: &Path) -> Option<u64> {
        self.state().capacity
    }

    fn exists(&self, path: &Path) -> bool {
        let state = self.state();
        state.is_file(path) || state.is_directory(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let missing = path
            .ancestors()
            .filter(|ancestor| !state.is_directory(ancestor))
            .map(Path::to_path_buf);
        let missing: Vec<_> = missing
            .filter(|ancestor| !ancestor.as_os_str().is_empty())
            .collect();
        if missing.iter().any(|directory| state.is_file(directory)) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.directories.extend(missing);
        Ok(())
    }

    fn create_locked(&self, path: &Path, contents: &[u8]) -> io::Result<LockFile> {
        self.create_locked_by(path, contents, Arc::default())
    }

    fn find_lock(&self, path: &Path) -> Option<LockProbe> {
        let state = self.state();
        let contents = state.plain.get(path)?.clone();
        let token = state.locks.get(path).cloned().unwrap_or_default();
        Some(LockProbe::of_token(token, contents))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        if !state.directories.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let names = state.mapped.keys().chain(state.plain.keys());
        let mut below = names
            .chain(&state.directories)
            .filter(|name| name.starts_with(path) && name.as_path() != path);
        if below.next().is_some() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        state.directories.remove(path);
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        if !state.directories.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.mapped.retain(|file, _| !file.starts_with(path));
        state.plain.retain(|file, _| !file.starts_with(path));
        state.locks.retain(|file, _| !file.starts_with(path));
        state
            .directories
            .retain(|directory| !directory.starts_with(path));
        Ok(())
    }

    fn write_file(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        if !state.is_directory(directory(path)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if state.is_directory(path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        state.mapped.remove(path);
        state.locks.remove(path);
        state.plain.insert(path.to_path_buf(), contents.to_vec());
        Ok(())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let state = self.state();
        let files = state.plain.keys().chain(state.mapped.keys());
        Ok(files
            .filter(|path| path.parent() == Some(directory))
            .filter_map(|path| path.file_name().map(OsString::from))
            .collect())
    }
}
