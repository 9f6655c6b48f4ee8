// SPDX-License-Identifier: Apache-2.0
//! The conformance suites on the system's disk and on both queues over it.

#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a failure ends the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taran_storage::conformance::{self, FailingDisk, queue::Subject};
use taran_storage::{
    Disk, DiskQueue, InlineQueue, Operation, OsDisk, ServiceTime, ServiceTimes, ThreadedQueue,
    ThreadedQueueOptions,
};

/// A directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(root: &Path, name: &str) -> Self {
        let path = root.join(format!("taran-storage-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn os_disk_conforms_on_the_temporary_file_system() {
    let scratch = Scratch::new(&std::env::temp_dir(), "disk");
    conformance::disk::run(&OsDisk, &scratch.0);
}

#[test]
fn os_disk_conforms_on_tmpfs() {
    let scratch = Scratch::new(Path::new("/dev/shm"), "disk");
    conformance::disk::run(&OsDisk, &scratch.0);
}

/// Runs the suite of queues with queues that `start` makes.
fn run<Q: DiskQueue>(
    name: &str,
    workers: usize,
    start: impl Fn(&Arc<dyn Disk>) -> Q,
    passes_panics: bool,
    now_ns: &mut dyn FnMut() -> i64,
) {
    let scratch = Scratch::new(&std::env::temp_dir(), name);
    let failing = FailingDisk::new(Arc::new(OsDisk));
    let failures = failing.failures();
    let disk: Arc<dyn Disk> = Arc::new(failing);
    conformance::queue::run(&mut Subject {
        queue: &mut start(&disk),
        workers,
        depth: 16,
        other: &mut start(&disk),
        disk,
        failures,
        directory: scratch.0.clone(),
        passes_panics,
        now_ns,
    });
}

#[test]
fn threaded_queue_conforms_with_any_number_of_workers() {
    for workers in [1, 2, 4] {
        let mut options = ThreadedQueueOptions::default();
        options.workers = workers;
        // Rounded up to a power of two, as those below.
        options.depth = 13;
        run(
            &format!("threads-{workers}"),
            workers,
            |disk| ThreadedQueue::start(disk, &options).unwrap(),
            false,
            &mut || {
                std::thread::yield_now();
                0
            },
        );
    }
}

#[derive(Debug)]
struct Slow;

impl ServiceTimes for Slow {
    fn service_time(&mut self, _: Operation, len: usize, _: i64) -> ServiceTime {
        ServiceTime::new(700, 1_000 + i64::try_from(len).unwrap())
    }
}

#[test]
fn inline_queue_conforms_with_and_without_service_times() {
    let mut now_ns = 0;
    let mut tick = || {
        now_ns += 100;
        now_ns
    };
    for workers in [1, 3] {
        run(
            &format!("inline-{workers}"),
            workers,
            |disk| InlineQueue::new(disk, workers, 13, ()),
            true,
            &mut tick,
        );
        run(
            &format!("slow-{workers}"),
            workers,
            |disk| InlineQueue::new(disk, workers, 13, Slow),
            true,
            &mut tick,
        );
    }
}
