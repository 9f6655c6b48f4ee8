//! Asynchronous creation and deletion of log files.
//!
//! Reserving the pages of a 192 MiB log takes tens of milliseconds, and releasing them nearly as long. Done by the
//! conductor, this would stall every publisher that waits for its limit.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taran_core::memory::{CreateOptions, MemoryError, Region, Storage};

/// Request to create a file.
#[derive(Debug)]
pub(crate) struct FileRequest {
    /// Path of the file.
    pub(crate) path: PathBuf,
    /// Length in bytes.
    pub(crate) length: u64,
    /// Whether pages are reserved and populated at creation.
    pub(crate) options: CreateOptions,
    /// Origin of the request.
    pub(crate) origin: RequestOrigin,
}

/// Origin of a file request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestOrigin {
    /// A client command: served first.
    Client,
    /// A remote peer, which needs only a small frame to request a large file: served when no client request is queued.
    Peer,
}

/// Completion of a request.
#[derive(Debug)]
pub(crate) enum FileResult {
    /// The file was created, or creation failed.
    Created {
        /// Ticket of the request.
        ticket: u64,
        /// Path of the file.
        path: PathBuf,
        /// Requested length in bytes.
        length: u64,
        /// The mapped file.
        result: Result<Region, MemoryError>,
    },
    /// The file was unmapped, and its name was removed or could not be.
    Deleted {
        /// Path of the file.
        path: PathBuf,
        /// Unmapped bytes; zero if only the name was to be removed.
        length: u64,
        /// The error if the name could not be removed.
        result: io::Result<()>,
    },
}

/// Creates and deletes files without blocking the caller.
pub(crate) trait FileWorker: Send + Debug {
    /// Starts to create a file. [`poll`](Self::poll) returns the result under the same ticket.
    fn create(&mut self, ticket: u64, request: FileRequest);

    /// Starts to unmap a file, if it is mapped, and to remove its name.
    fn delete(&mut self, path: PathBuf, region: Option<Region>);

    /// Returns the next completion, if there is one.
    fn poll(&mut self) -> Option<FileResult>;
}

/// Creates a file synchronously.
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

/// Unmaps and removes a file synchronously.
pub(crate) fn delete_now(
    storage: &dyn Storage,
    path: PathBuf,
    region: Option<Region>,
) -> FileResult {
    let length = region.as_ref().map_or(0, |region| region.len() as u64);
    let result = remove(storage, &path);
    // Dropping the last view unmaps the file and releases its pages.
    drop(region);
    FileResult::Deleted {
        path,
        length,
        result,
    }
}

fn remove(storage: &dyn Storage, path: &Path) -> io::Result<()> {
    match storage.remove(path) {
        // Already removed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// File worker that completes each request at once. For storage without latency: memory, in tests and simulation.
#[derive(Debug)]
pub(crate) struct InlineFileWorker {
    storage: Arc<dyn Storage>,
    results: VecDeque<FileResult>,
}

impl InlineFileWorker {
    /// Creates a worker for the files of `storage`.
    pub(crate) fn new(storage: Arc<dyn Storage>) -> Self {
        Self {
            storage,
            results: VecDeque::new(),
        }
    }
}

impl FileWorker for InlineFileWorker {
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
