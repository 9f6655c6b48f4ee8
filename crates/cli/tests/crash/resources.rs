// SPDX-License-Identifier: Apache-2.0
//! Resources held by a driver: counters, files, descriptors, memory.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use taran_core::counters::CountersReader;

/// Resources that must be back at their initial level when all clients have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resources {
    /// Number of counters of each type.
    pub(crate) counters: BTreeMap<i32, usize>,
    /// Number of log files.
    pub(crate) logs: usize,
    /// Storage bytes used by the directory.
    pub(crate) storage_bytes: u64,
    /// Number of descriptors of the driver.
    pub(crate) descriptors: usize,
    /// Number of mapped files of the driver.
    pub(crate) mappings: usize,
}

impl Resources {
    pub(crate) fn of(directory: &Path, pid: u32, counters: &CountersReader) -> Resources {
        let mut types = BTreeMap::new();
        counters.for_each(|counter| *types.entry(counter.type_id).or_insert(0) += 1);
        let (logs, storage_bytes) = storage(directory);
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let within = directory.to_str().unwrap();
        Resources {
            counters: types,
            logs,
            storage_bytes,
            descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
            mappings: maps.lines().filter(|line| line.contains(within)).count(),
        }
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters: usize = self.counters.values().sum();
        write!(
            f,
            "{counters} counters, {} logs, {} KiB of storage, {} descriptors, {} mappings",
            self.logs,
            self.storage_bytes / 1_024,
            self.descriptors,
            self.mappings
        )
    }
}

/// Returns the number of log files below a directory, and the storage bytes of all its files. Files may disappear
/// meanwhile.
fn storage(directory: &Path) -> (usize, u64) {
    let Ok(entries) = fs::read_dir(directory) else {
        return (0, 0);
    };
    let (mut logs, mut bytes) = (0, 0);
    for entry in entries.flatten() {
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_dir() {
            let below = storage(&entry.path());
            logs += below.0;
            bytes += below.1;
        } else {
            // A block is 512 bytes, whatever the block size of the file system.
            bytes += metadata.blocks() * 512;
            logs += usize::from(
                entry
                    .path()
                    .extension()
                    .is_some_and(|ext| ext == "logbuffer"),
            );
        }
    }
    (logs, bytes)
}

/// Returns the anonymous memory of a process in KiB.
pub(crate) fn private_memory_kib(pid: u32) -> u64 {
    memory_kib(pid, "RssAnon:")
}

/// Returns the resident memory of a process in KiB, including mapped files.
pub(crate) fn total_memory_kib(pid: u32) -> u64 {
    memory_kib(pid, "VmRSS:")
}

fn memory_kib(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name));
    let value = line.unwrap().split_whitespace().nth(1).unwrap();
    value.parse().unwrap()
}
