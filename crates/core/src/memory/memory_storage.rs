//! Storage in the memory of this process.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{CreateOptions, InsufficientSpace, MemoryError, Region, Storage, error::directory};

/// Files in the memory of this process, for tests and simulation. Clones share the files. Behaves as a file system: a
/// directory must exist before a file in it, and the mappings of a removed file remain valid.
#[derive(Clone, Debug, Default)]
pub struct MemoryStorage {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    mapped: BTreeMap<PathBuf, File>,
    plain: BTreeMap<PathBuf, Vec<u8>>,
    directories: BTreeSet<PathBuf>,
    capacity: Option<u64>,
}

#[derive(Debug)]
struct File {
    region: Region,
    reserved: u64,
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

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent between statements, so a panic elsewhere does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn available(&self) -> u64 {
        let used: u64 = self.mapped.values().map(|file| file.reserved).sum();
        self.capacity
            .map_or(u64::MAX, |capacity| capacity.saturating_sub(used))
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
        let available = state.available();
        if options.reserve && len > available {
            return Err(MemoryError::StorageFull {
                path: path.to_path_buf(),
                shortage: InsufficientSpace {
                    requested: len,
                    available,
                    capacity: state.capacity,
                },
            });
        }
        let region = Region::anonymous(map_len)?;
        let reserved = if options.reserve { len } else { 0 };
        state.mapped.insert(
            path.to_path_buf(),
            File {
                region: region.clone(),
                reserved,
            },
        );
        Ok(region)
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
        state.plain.insert(path.to_path_buf(), contents.to_vec());
        Ok(())
    }
}
