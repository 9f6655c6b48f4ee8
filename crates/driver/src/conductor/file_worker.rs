// SPDX-License-Identifier: Apache-2.0
//! Asynchronous creation, reservation and deletion of log files.
//!
//! Reserving the pages of a 192 MiB log takes tens of milliseconds, and releasing them nearly as long. Done by the
//! conductor, this would stall every publisher that waits for its limit.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taran_core::memory::{CreateOptions, MemoryError, Region, Storage};

use super::log_files::LogKey;

/// Request to create a file.
#[derive(Debug)]
pub(crate) struct FileRequest {
    /// Path of the file.
    pub(crate) path: PathBuf,
    /// Length in bytes.
    pub(crate) length: u64,
    /// True if all pages are reserved and populated at creation.
    pub(crate) options: CreateOptions,
    /// Ranges whose pages are reserved at creation, in bytes, if not all of them are.
    pub(crate) ranges: Vec<Range<u64>>,
    /// Origin of the request.
    pub(crate) origin: RequestOrigin,
}

/// Request to reserve pages of an existing log file.
#[derive(Debug)]
pub(crate) struct ReserveRequest {
    /// The log.
    pub(crate) log: LogKey,
    /// Path of the file.
    pub(crate) path: PathBuf,
    /// The mapped file.
    pub(crate) region: Region,
    /// Ranges to reserve, in bytes.
    pub(crate) ranges: Vec<Range<u64>>,
    /// Reserved position afterwards.
    pub(crate) to: i64,
    /// Origin of the log.
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
        /// Bytes requested to be reserved.
        reserved: u64,
        /// The mapped file.
        result: Result<Region, MemoryError>,
    },
    /// The pages of a [`ReserveRequest`] were reserved, or could not be.
    Reserved {
        /// The log.
        log: LogKey,
        /// Reserved position of a success.
        to: i64,
        /// Bytes requested.
        length: u64,
        /// The error if not all pages were reserved.
        result: Result<(), MemoryError>,
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

    /// Starts to reserve pages of a file.
    fn reserve(&mut self, request: ReserveRequest);

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
        ranges,
        ..
    } = request;
    let reserved = if options.reserve {
        length
    } else {
        total_length(&ranges)
    };
    let created = storage.create(&path, length, options);
    let result = created.and_then(|region| {
        let reserved = reserve_ranges(storage, &path, &region, &ranges);
        if reserved.is_err() {
            // The first error is reported.
            let _ = storage.remove(&path);
        }
        reserved.map(|()| region)
    });
    FileResult::Created {
        ticket,
        path,
        reserved,
        result,
    }
}

/// Reserves pages of a file synchronously.
pub(crate) fn reserve_now(storage: &dyn Storage, request: &ReserveRequest) -> FileResult {
    let ranges = &request.ranges;
    FileResult::Reserved {
        log: request.log,
        to: request.to,
        length: total_length(ranges),
        result: reserve_ranges(storage, &request.path, &request.region, ranges),
    }
}

fn total_length(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

fn reserve_ranges(
    storage: &dyn Storage,
    path: &Path,
    region: &Region,
    ranges: &[Range<u64>],
) -> Result<(), MemoryError> {
    ranges
        .iter()
        .try_for_each(|range| storage.reserve(path, region, range.start, range.end - range.start))
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

    fn reserve(&mut self, request: ReserveRequest) {
        let result = reserve_now(self.storage.as_ref(), &request);
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
