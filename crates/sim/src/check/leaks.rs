//! Nothing stays allocated after its owner is gone.
//!
//! For a driver all of whose clients are gone for longer than its timeouts: it has its own counters and files left, as at
//! its start, and no more sockets. The heap is not looked at: that is done where processes live through thousands of
//! clients (`cargo xtask kills`, `churn`) and in the fuzz targets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use taran_core::counters::CountersReader;
use taran_core::memory::MemoryStorage;
use taran_protocol::counter::SystemCounter;

use super::{Violation, violation};

/// Files that a driver has for itself.
const OWN_FILES: [&str; 2] = ["cnc.dat", "loss-report.dat"];

/// What is held against what a driver had at its start.
#[derive(Debug)]
pub struct LeaksCheck {
    bytes_mapped: i64,
    /// Its own counters besides the system counters: those of its name resolver.
    counters: BTreeSet<i32>,
    sockets: usize,
}

impl LeaksCheck {
    /// Notes what a driver has at its start.
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

    /// Looks for what is left.
    ///
    /// # Errors
    /// Something is.
    pub fn look(
        &self,
        counters: &CountersReader,
        storage: &MemoryStorage,
        directory: &Path,
        open_sockets: usize,
    ) -> Result<(), Violation> {
        let mut left = Vec::new();
        counters.for_each(|counter| {
            if !self.counters.contains(&counter.id) {
                left.push(format!("counter {}: {}", counter.id, counter.label));
            }
        });
        let own: Vec<PathBuf> = OWN_FILES.iter().map(|name| directory.join(name)).collect();
        let files = storage.mapped_files().into_iter();
        left.extend(
            files
                .filter(|file| !own.contains(file))
                .map(|file| format!("file {}", file.display())),
        );
        if open_sockets != self.sockets {
            left.push(format!(
                "{open_sockets} sockets, {} at the start",
                self.sockets
            ));
        }
        let bytes = bytes_mapped(counters);
        if bytes != self.bytes_mapped {
            left.push(format!(
                "{bytes} bytes mapped, {} at the start",
                self.bytes_mapped
            ));
        }
        if !left.is_empty() {
            violation!(
                "{}: still there:\n  {}",
                directory.display(),
                left.join("\n  ")
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

    use super::super::streams::tests::Scene;
    use super::*;

    /// Looks at what a driver with one socket has left after `leave`.
    fn left(leave: impl FnOnce(&mut Scene)) -> Result<(), Violation> {
        let mut scene = Scene::new();
        scene.counter(type_id::RESOLVER_NEIGHBORS, 1);
        create(&scene, "/a/cnc.dat");
        let check = LeaksCheck::new(&scene.table.reader(), 1);
        leave(&mut scene);
        check.look(&scene.table.reader(), &scene.storage, "/a".as_ref(), 1)
    }

    fn create(scene: &Scene, path: &str) {
        let created = scene
            .storage
            .create(path.as_ref(), 4096, CreateOptions::default());
        created.unwrap();
    }

    fn fails(leave: impl FnOnce(&mut Scene), text: &str) {
        let Violation(found) = left(leave).unwrap_err();
        assert!(found.contains(text), "{found}");
    }

    #[test]
    fn what_was_there_at_the_start_is_not_left() {
        left(|_| {}).unwrap();
        left(|scene| {
            let counter = scene.counter(type_id::SENDER_POSITION, 7);
            scene.table.free(counter.id(), 0);
            create(scene, "/a/images/7.logbuffer");
            let file = "/a/images/7.logbuffer".as_ref();
            scene.storage.remove(file).unwrap();
        })
        .unwrap();
    }

    #[test]
    fn counters_files_mapped_bytes_and_sockets_that_are_left_are_found() {
        let counter = |scene: &mut Scene| drop(scene.counter(type_id::SENDER_POSITION, 7));
        fails(counter, "counter 47");
        fails(
            |scene| create(scene, "/a/images/7.logbuffer"),
            "file /a/images/7.logbuffer",
        );
        let mapped = |scene: &mut Scene| {
            let id = SystemCounter::BytesCurrentlyMapped.id();
            scene.table.counter(id).unwrap().set(4096);
        };
        fails(mapped, "4096 bytes mapped");
        let scene = Scene::new();
        let reader = scene.table.reader();
        let check = LeaksCheck::new(&reader, 1);
        let looked = check.look(&reader, &scene.storage, "/a".as_ref(), 2);
        let Violation(found) = looked.unwrap_err();
        assert!(found.contains("2 sockets, 1 at the start"), "{found}");
    }
}
