// SPDX-License-Identifier: Apache-2.0
//! Thread that reads the key files again when they change (docs/spec/transport-security.md §4.1).

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::DriverError;
use crate::secured::{KeyDirectory, KeyFileError, SecurityControl};

/// Interval of the checks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Watch of the key files of a driver; it ends when it is dropped.
#[derive(Debug)]
pub(super) struct KeyWatch {
    shared: Arc<Requests>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Requests {
    closes: AtomicBool,
    reloads: AtomicBool,
}

/// Version of a file: device, inode, length, and time of the last change in nanoseconds.
type Version = Option<(u64, u64, u64, i64, i64)>;

fn version(path: &Path) -> Version {
    let metadata = fs::metadata(path).ok()?;
    Some((
        metadata.dev(),
        metadata.ino(),
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
    ))
}

/// Versions of everything that is read: the directory changes when a file in it is replaced.
fn versions(directory: &KeyDirectory) -> [Version; 3] {
    let names = ["", KeyDirectory::IDENTITY, KeyDirectory::TRUSTED];
    names.map(|name| version(&directory.path(name)))
}

impl KeyWatch {
    /// Starts the thread.
    pub(super) fn start(
        directory: KeyDirectory,
        mut control: SecurityControl,
    ) -> Result<Self, DriverError> {
        let shared = Arc::<Requests>::default();
        let requests = Arc::clone(&shared);
        let watch = move || {
            let mut seen = versions(&directory);
            let mut rotation = version(&directory.path(KeyDirectory::ROTATE));
            // Pairs with the stores of `drop` and `reload`.
            while !requests.closes.load(Ordering::Acquire) {
                thread::park_timeout(INTERVAL);
                let found = versions(&directory);
                let is_asked = requests.reloads.swap(false, Ordering::AcqRel);
                if is_asked || found != seen {
                    seen = found;
                    if let Err(error) = read(&directory, &mut control) {
                        control.problem(format!("{error}; the keys in force stay"));
                    }
                }
                let asked = version(&directory.path(KeyDirectory::ROTATE));
                if asked.is_some() && asked != rotation {
                    control.rotate();
                }
                rotation = asked;
            }
        };
        let thread = thread::Builder::new().name("keys".to_owned()).spawn(watch);
        let thread = thread.map_err(|source: io::Error| DriverError::Thread {
            agent: "keys",
            source,
        })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Reads the files again, whether or not they changed.
    pub(super) fn reload(&self) {
        self.shared.reloads.store(true, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

fn read(directory: &KeyDirectory, control: &mut SecurityControl) -> Result<(), KeyFileError> {
    let identity = directory.identity(KeyDirectory::IDENTITY)?;
    let trust = directory.trust()?;
    control.set_keys(identity, trust);
    Ok(())
}

impl Drop for KeyWatch {
    fn drop(&mut self) {
        self.shared.closes.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}
