//! Making and deleting log files, which takes long enough to be done elsewhere.
//!
//! Reserving the pages of a log of 192 MiB takes tens of milliseconds, and giving them back nearly as long: on the
//! conductor that would hold up every publisher that waits for its limit.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taran_core::memory::{CreateOptions, MemoryError, Region, Storage};

/// A file to be made.
#[derive(Debug)]
pub(crate) struct FileRequest {
    /// Where.
    pub(crate) path: PathBuf,
    /// How long, in bytes.
    pub(crate) length: u64,
    /// What of its pages is to be there at once.
    pub(crate) options: CreateOptions,
    /// Who waits for it.
    pub(crate) asked_by: AskedBy,
}

/// Who waits for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskedBy {
    /// A client, with its command: served first.
    Client,
    /// A peer, that sends a few bytes and asks for much: served when there is nothing else to do.
    Peer,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum FileResult {
    /// The file was made, or not.
    Created {
        /// Which request.
        ticket: u64,
        /// Where.
        path: PathBuf,
        /// How long it was to be, in bytes.
        length: u64,
        /// The mapped file.
        result: Result<Region, MemoryError>,
    },
    /// The file was unmapped; its name was removed, or not.
    Deleted {
        /// Where.
        path: PathBuf,
        /// Bytes that were unmapped; zero when only the name was left.
        length: u64,
        /// Why the name could not be removed.
        result: io::Result<()>,
    },
}

/// Makes and deletes files without ever making its caller wait.
pub(crate) trait FileWorker: Send + Debug {
    /// Begins to make a file. The result comes out of [`poll`](Self::poll) under the same ticket.
    fn create(&mut self, ticket: u64, request: FileRequest);

    /// Begins to unmap a file, if it is mapped, and to remove its name.
    fn delete(&mut self, path: PathBuf, region: Option<Region>);

    /// A result that has come in.
    fn poll(&mut self) -> Option<FileResult>;
}

/// Makes a file now.
pub(crate) fn create_now(storage: &dyn Storage, ticket: u64, request: FileRequest) -> FileResult {
    let FileRequest {
        path,
        length,
        options,
        ..
    } = request;
    let result = storage.create(&path, length, options);
    FileResult::Created {
        ticket,
        path,
        length,
        result,
    }
}

/// Unmaps and removes a file now.
pub(crate) fn delete_now(
    storage: &dyn Storage,
    path: PathBuf,
    region: Option<Region>,
) -> FileResult {
    let length = region.as_ref().map_or(0, |region| region.len() as u64);
    let result = remove(storage, &path);
    // The last view of the mapping: here the pages go back to the system.
    drop(region);
    FileResult::Deleted {
        path,
        length,
        result,
    }
}

fn remove(storage: &dyn Storage, path: &Path) -> io::Result<()> {
    match storage.remove(path) {
        // Somebody else's deletion serves as well.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Does everything at once, for storage that takes no time: memory, in tests and simulation.
#[derive(Debug)]
pub(crate) struct InlineFiles {
    storage: Arc<dyn Storage>,
    results: VecDeque<FileResult>,
}

impl InlineFiles {
    /// Files of `storage`.
    pub(crate) fn new(storage: Arc<dyn Storage>) -> Self {
        Self {
            storage,
            results: VecDeque::new(),
        }
    }
}

impl FileWorker for InlineFiles {
    fn create(&mut self, ticket: u64, request: FileRequest) {
        let result = create_now(self.storage.as_ref(), ticket, request);
        self.results.push_back(result);
    }

    fn delete(&mut self, path: PathBuf, region: Option<Region>) {
        let result = delete_now(self.storage.as_ref(), path, region);
        self.results.push_back(result);
    }

    fn poll(&mut self) -> Option<FileResult> {
        self.results.pop_front()
    }
}
