// SPDX-License-Identifier: Apache-2.0
//! The driver lock: a lock file beside `cnc.dat` that a Taran driver holds for its life, so that its death is seen at
//! once (docs/differences-from-aeron.md). Official drivers have none; for them the age of the heartbeat decides.
//!
//! The file names the process and start time that are in the header of `cnc.dat`: a file of another driver says nothing
//! about this one. A driver creates it before `cnc.dat`, and deletes an old `cnc.dat` before the old lock file. An
//! observer that looks for the lock file before it opens `cnc.dat`, and again if that one is of another driver, finds
//! the lock of each `cnc.dat` that it opens.

use std::path::{Path, PathBuf};

use taran_core::memory::{LockProbe, Storage};

use super::{Cnc, CncSpec};

/// Name of the lock file in the Aeron directory.
pub const DRIVER_LOCK_FILE_NAME: &str = "driver.lock";

/// Returns the path of the lock file of a driver.
#[must_use]
pub fn driver_lock_path(directory: &Path) -> PathBuf {
    directory.join(DRIVER_LOCK_FILE_NAME)
}

/// Returns the contents of the lock file of a driver.
#[must_use]
pub fn driver_lock_contents(spec: &CncSpec) -> String {
    format!(
        "pid {}\nstart {}\n",
        spec.driver_pid, spec.start_timestamp_ms
    )
}

/// Opens the `cnc.dat` of a directory with `open`, and finds the lock of its driver; `None` if it has none.
///
/// # Errors
/// Those of `open`.
pub fn with_driver_lock<E>(
    storage: &dyn Storage,
    directory: &Path,
    open: impl FnOnce() -> Result<Cnc, E>,
) -> Result<(Cnc, Option<LockProbe>), E> {
    let path = driver_lock_path(directory);
    let before = storage.find_lock(&path);
    let cnc = open()?;
    let expected = driver_lock_contents(cnc.spec());
    let is_own = |probe: &LockProbe| probe.contents() == expected.as_bytes();
    let probe = before
        .filter(is_own)
        .or_else(|| storage.find_lock(&path).filter(is_own));
    Ok((cnc, probe))
}

#[cfg(test)]
mod tests {
    use taran_core::memory::{CreateOptions, MemoryStorage};

    use super::*;
    use crate::cnc::CNC_FILE_NAME;

    const DIRECTORY: &str = "/aeron";

    fn spec(pid: i64) -> CncSpec {
        CncSpec {
            driver_pid: pid,
            counters_metadata_length: 4 * 65_536,
            counters_values_length: 65_536,
            error_log_length: 65_536,
            ..CncSpec::default()
        }
    }

    fn create_cnc(storage: &MemoryStorage, pid: i64) -> Cnc {
        let (spec, path) = (spec(pid), Path::new(DIRECTORY).join(CNC_FILE_NAME));
        let len = spec.file_length() as u64;
        let region = storage.create(&path, len, CreateOptions::RESERVED).unwrap();
        let cnc = Cnc::create(&region, &spec).unwrap();
        cnc.publish();
        cnc
    }

    fn find(storage: &MemoryStorage, open: impl FnOnce() -> Cnc) -> Option<LockProbe> {
        let open = || Ok::<_, ()>(open());
        let found = with_driver_lock(storage, Path::new(DIRECTORY), open);
        found.unwrap().1
    }

    #[test]
    fn driver_lock_is_found_if_it_names_the_driver_of_the_cnc_file() {
        let (storage, path) = (MemoryStorage::new(), driver_lock_path(Path::new(DIRECTORY)));
        storage.create_dir_all(Path::new(DIRECTORY)).unwrap();
        let cnc = create_cnc(&storage, 7);
        assert!(find(&storage, || cnc.clone()).is_none());
        let contents = driver_lock_contents(&spec(7));
        let lock = storage.create_locked(&path, contents.as_bytes()).unwrap();
        assert!(find(&storage, || cnc.clone()).unwrap().is_held());
        drop(lock);
        assert!(!find(&storage, || cnc.clone()).unwrap().is_held());
        let contents = driver_lock_contents(&spec(8));
        storage.remove(&path).unwrap();
        let _lock = storage.create_locked(&path, contents.as_bytes()).unwrap();
        assert!(find(&storage, || cnc.clone()).is_none());
    }

    /// The files are replaced by a new driver while an observer opens them.
    #[test]
    fn driver_lock_replaced_between_two_looks_is_that_of_the_opened_cnc_file() {
        let (storage, path) = (MemoryStorage::new(), driver_lock_path(Path::new(DIRECTORY)));
        storage.create_dir_all(Path::new(DIRECTORY)).unwrap();
        let create_lock = |pid| {
            let contents = driver_lock_contents(&spec(pid));
            storage.create_locked(&path, contents.as_bytes()).unwrap()
        };
        let old = create_cnc(&storage, 7);
        drop(create_lock(7));
        let mut second = None;
        let mut replace = || {
            let cnc = Path::new(DIRECTORY).join(CNC_FILE_NAME);
            storage.remove(&cnc).unwrap();
            storage.remove(&path).unwrap();
            second = Some(create_lock(8));
            create_cnc(&storage, 8)
        };
        let of_new = find(&storage, &mut replace).unwrap();
        assert!(of_new.is_held());
        // The other way round, the old `cnc.dat` was opened just before.
        storage.remove(&path).unwrap();
        drop(create_lock(7));
        let of_old = find(&storage, || {
            storage.remove(&path).unwrap();
            old
        });
        assert!(!of_old.unwrap().is_held());
    }
}
