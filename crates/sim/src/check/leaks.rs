// SPDX-License-Identifier: Apache-2.0
//! Nothing stays allocated after its owner is gone.
//!
//! Applies to a driver whose clients have all been gone for longer than its timeouts: it has the counters and files of
//! its start left, and no additional sockets. The heap is not checked here but where processes live through
//! thousands of clients (`cargo xtask kills`, `churn`) and in the fuzz targets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use taran_core::counters::CountersReader;
use taran_core::memory::MemoryStorage;
use taran_protocol::counter::SystemCounter;

use super::{Violation, violation};

/// Files of the driver itself.
const OWN_FILES: [&str; 2] = ["cnc.dat", "loss-report.dat"];

/// Resources of a driver at its start.
#[derive(Debug)]
pub struct LeakCheck {
    bytes_mapped: i64,
    /// Its own counters besides the system counters: those of its name resolver.
    counters: BTreeSet<i32>,
    sockets: usize,
}

impl LeakCheck {
    /// Records the resources of a driver at its start.
    #[must_use]
    pub fn new(counters: &CountersReader, open_sockets: usize) -> Self {
        let mut own = BTreeSet::new();
        counters.for_each(|counter| {
            own.insert(counter.id);
        });
        Self {
            bytes_mapped: bytes_mapped(counters),
            counters: own,
            sockets: open_sockets,
        }
    }

    /// Checks that nothing else is left.
    ///
    /// # Errors
    /// Something is.
    pub fn check(
        &self,
        counters: &CountersReader,
        storage: &MemoryStorage,
        directory: &Path,
        open_sockets: usize,
    ) -> Result<(), Violation> {
        let mut remaining = Vec::new();
        counters.for_each(|counter| {
            if !self.counters.contains(&counter.id) {
                remaining.push(format!("counter {}: {}", counter.id, counter.label));
            }
        });
        let own: Vec<PathBuf> = OWN_FILES.iter().map(|name| directory.join(name)).collect();
        let files = storage.mapped_files().into_iter();
        remaining.extend(
            files
                .filter(|file| !own.contains(file))
                .map(|file| format!("file {}", file.display())),
        );
        if open_sockets != self.sockets {
            remaining.push(format!(
                "{open_sockets} sockets, {} at the start",
                self.sockets
            ));
        }
        let bytes = bytes_mapped(counters);
        if bytes != self.bytes_mapped {
            remaining.push(format!(
                "{bytes} bytes mapped, {} at the start",
                self.bytes_mapped
            ));
        }
        if !remaining.is_empty() {
            violation!(
                "{}: not released:\n  {}",
                directory.display(),
                remaining.join("\n  ")
            );
        }
        Ok(())
    }
}

fn bytes_mapped(counters: &CountersReader) -> i64 {
    counters
        .value(SystemCounter::BytesCurrentlyMapped.id())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use taran_core::memory::{CreateOptions, Storage};
    use taran_protocol::counter::type_id;

    use super::super::streams::tests::FakeDriver;
    use super::*;

    /// Returns what the check says of a driver with one socket after `leave`.
    fn remaining(leave: impl FnOnce(&mut FakeDriver)) -> Result<(), Violation> {
        let mut driver = FakeDriver::new();
        driver.counter(type_id::RESOLVER_NEIGHBORS, 1);
        create(&driver, "/a/cnc.dat");
        let check = LeakCheck::new(&driver.table.reader(), 1);
        leave(&mut driver);
        check.check(&driver.table.reader(), &driver.storage, "/a".as_ref(), 1)
    }

    fn create(driver: &FakeDriver, path: &str) {
        let created = driver
            .storage
            .create(path.as_ref(), 4096, CreateOptions::default());
        created.unwrap();
    }

    fn expect_violation(leave: impl FnOnce(&mut FakeDriver), text: &str) {
        let Violation(found) = remaining(leave).unwrap_err();
        assert!(found.contains(text), "{found}");
    }

    #[test]
    fn resources_of_the_start_are_not_leaks() {
        remaining(|_| {}).unwrap();
        remaining(|driver| {
            let counter = driver.counter(type_id::SENDER_POSITION, 7);
            driver.table.free(counter.id(), 0);
            create(driver, "/a/images/7.logbuffer");
            let file = "/a/images/7.logbuffer".as_ref();
            driver.storage.remove(file).unwrap();
        })
        .unwrap();
    }

    #[test]
    fn remaining_counters_files_bytes_and_sockets_are_violations() {
        let counter = |driver: &mut FakeDriver| drop(driver.counter(type_id::SENDER_POSITION, 7));
        expect_violation(counter, "counter 47");
        expect_violation(
            |driver| create(driver, "/a/images/7.logbuffer"),
            "file /a/images/7.logbuffer",
        );
        let mapped = |driver: &mut FakeDriver| {
            let id = SystemCounter::BytesCurrentlyMapped.id();
            driver.table.counter(id).unwrap().set(4096);
        };
        expect_violation(mapped, "4096 bytes mapped");
        let driver = FakeDriver::new();
        let reader = driver.table.reader();
        let check = LeakCheck::new(&reader, 1);
        let checked = check.check(&reader, &driver.storage, "/a".as_ref(), 2);
        let Violation(found) = checked.unwrap_err();
        assert!(found.contains("2 sockets, 1 at the start"), "{found}");
    }
}
