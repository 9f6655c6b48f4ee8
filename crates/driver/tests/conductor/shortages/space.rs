// SPDX-License-Identifier: Apache-2.0
//! Failing files: insufficient space for logs, and at the start of the driver.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use taran_core::clock::{ManualClock, Now};
use taran_core::memory::{
    CreateOptions, InsufficientSpace, MemoryError, MemoryStorage, Region, Storage,
};
use taran_driver::{DriverContext, DriverParts, Environment};
use taran_protocol::error_code::ErrorCode;

use super::{
    LISTENING, ResourceSequence, Resources, assert_nothing_left, assert_sequence_succeeds,
    creates_image,
};
use crate::fixture::{DIRECTORY, DriverFixture, Hosts};
use crate::memory_network::MemoryNetwork;

/// Cause of the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Room,
    Descriptor,
    Memory,
}

/// In-memory storage in which the creation of one file fails.
#[derive(Clone, Debug)]
struct Short {
    files: MemoryStorage,
    why: Missing,
    /// Number of files created before the failure.
    left: Arc<AtomicI64>,
}

impl Short {
    fn new(why: Missing) -> Self {
        Self {
            files: MemoryStorage::new(),
            why,
            left: Arc::new(AtomicI64::new(i64::MAX)),
        }
    }

    /// Lets the creation of a file fail after this many successes.
    fn fail_after(&self, files: i64) {
        self.left.store(files, Ordering::Relaxed);
    }

    /// Returns true if the failure has occurred.
    fn has_failed(&self) -> bool {
        self.left.load(Ordering::Relaxed) < 0
    }
}

impl Storage for Short {
    fn create(&self, path: &Path, len: u64, options: CreateOptions) -> Result<Region, MemoryError> {
        if self.left.fetch_sub(1, Ordering::Relaxed) != 0 {
            return self.files.create(path, len, options);
        }
        let path = path.to_path_buf();
        Err(match self.why {
            Missing::Room => MemoryError::StorageFull {
                path,
                shortage: InsufficientSpace {
                    requested: len,
                    available: 1_000,
                    capacity: Some(1 << 26),
                },
            },
            Missing::Descriptor => MemoryError::Io {
                path,
                operation: "open",
                source: io::Error::from_raw_os_error(24),
            },
            Missing::Memory => MemoryError::OutOfMemory { len },
        })
    }

    fn reserve(
        &self,
        path: &Path,
        region: &Region,
        offset: u64,
        len: u64,
    ) -> Result<(), MemoryError> {
        self.files.reserve(path, region, offset, len)
    }

    fn open(&self, path: &Path) -> Result<Region, MemoryError> {
        self.files.open(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)
    }

    fn available(&self, directory: &Path) -> io::Result<u64> {
        self.files.available(directory)
    }

    fn exists(&self, path: &Path) -> bool {
        self.files.exists(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.files.create_dir_all(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.files.remove_dir(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.files.remove_dir_all(path)
    }

    fn write_file(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        self.files.write_file(path, contents)
    }
}

#[test]
fn failure_of_any_file_is_reported_and_undone() {
    for why in [Missing::Room, Missing::Descriptor, Missing::Memory] {
        let storage = Short::new(why);
        let mut driver =
            DriverFixture::on(storage.files.clone(), Arc::new(storage.clone()), |it| it);
        let before = Resources::of(&driver);
        let mut failures = 0;
        loop {
            storage.fail_after(failures);
            let rejections = ResourceSequence::run(&mut driver);
            if !storage.has_failed() {
                assert!(rejections.is_empty(), "{rejections:?}");
                break;
            }
            let [rejected] = &rejections[..] else {
                panic!("file {failures}: one file was missing: {rejections:?}");
            };
            let (code, says) = match why {
                Missing::Room => (ErrorCode::StorageSpace, "available=1000"),
                Missing::Descriptor => (ErrorCode::GenericError, "open"),
                Missing::Memory => (ErrorCode::GenericError, "memory"),
            };
            assert_eq!(rejected.code, code, "{rejected:?}");
            assert!(rejected.text.contains(says), "{rejected:?}");
            storage.fail_after(i64::MAX);
            let when = format!("{why:?}, file {failures}");
            assert_nothing_left(&mut driver, &before, &when);
            assert_sequence_succeeds(&mut driver, &before, &when);
            failures += 1;
        }
        assert_eq!(failures, 11, "each publication has a log");
        assert_nothing_left(&mut driver, &before, "the last sequence");
    }
}

#[test]
fn image_is_created_once_space_is_free() {
    for why in [Missing::Room, Missing::Descriptor, Missing::Memory] {
        let storage = Short::new(why);
        let mut driver =
            DriverFixture::on(storage.files.clone(), Arc::new(storage.clone()), |it| it);
        let before = Resources::of(&driver);
        let client = driver.client();
        driver.add_subscription(client, LISTENING, 10).unwrap();
        let with_subscription = Resources::of(&driver);
        storage.fail_after(0);
        assert!(!creates_image(&mut driver), "{why:?}");
        assert!(storage.has_failed());
        assert_eq!(Resources::of(&driver), with_subscription, "{why:?}");
        assert_eq!(driver.errors().len(), 1, "{:?}", driver.errors());
        assert!(
            driver.errors()[0].0.contains("40200"),
            "{:?}",
            driver.errors()
        );
        assert!(
            creates_image(&mut driver),
            "{why:?}: the next SETUP asks again"
        );
        driver.kill(client);
        assert_nothing_left(&mut driver, &before, "the image");
    }
}

#[test]
fn start_with_failure_of_any_file_leaves_nothing() {
    let mut failures = 0;
    loop {
        let storage = Short::new(Missing::Room);
        storage.fail_after(failures);
        let now = Now {
            nanos: 1,
            epoch_millis: 1_700_000_000_000,
        };
        let environment = Environment::new(
            Arc::new(storage.clone()),
            Box::new(MemoryNetwork::default()),
            Box::new(Hosts::default()),
            Arc::new(ManualClock::new(now)),
            now,
            7,
        )
        .with_pid(42);
        let built = DriverParts::build(DriverContext::new().aeron_dir(DIRECTORY), environment);
        if !storage.has_failed() {
            built.expect("a driver with all of its files starts");
            break;
        }
        let error = built.expect_err("a file is missing").to_string();
        assert!(error.contains("available=1000"), "{error}");
        assert!(
            storage.files.mapped_files().is_empty(),
            "file {failures}: {:?}",
            storage.files.mapped_files()
        );
        failures += 1;
    }
    assert_eq!(failures, 2, "cnc.dat and the loss report");
}
