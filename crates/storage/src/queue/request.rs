// SPDX-License-Identifier: Apache-2.0
//! Requests and completions of a queue.

use std::fmt;
use std::mem;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

use crate::{
    Advice, AlignedBuf, DirEntry, DiskError, DiskFile, DiskLock, ErrorKind, Metadata, OpenOptions,
    Operation, Space, SyncKind,
};

/// A file that is bound to a queue. Clones are the same file. It is closed when all clones are dropped and all its
/// requests are done: end with [`Request::Close`], so that no agent waits for the close.
#[derive(Clone, Debug)]
pub struct QueuedFile(Arc<Attached>);

#[derive(Debug)]
struct Attached {
    file: Box<dyn DiskFile>,
    /// Names the file in errors, also when a call of the file has panicked.
    path: PathBuf,
    /// The queue that the file is bound to.
    queue: Arc<()>,
    /// The worker that executes the requests of the file.
    worker: usize,
    /// The first failure since the last clear. Locked only by that worker.
    failure: Mutex<Option<DiskError>>,
}

impl QueuedFile {
    pub(super) fn new(file: Box<dyn DiskFile>, queue: &Arc<()>, worker: usize) -> Self {
        Self(Arc::new(Attached {
            path: file.path().to_path_buf(),
            file,
            queue: Arc::clone(queue),
            worker,
            failure: Mutex::new(None),
        }))
    }

    /// Returns the file, for calls that may wait: at start, on a thread that is no agent's. A failure of these is not
    /// recorded.
    pub fn file(&self) -> &dyn DiskFile {
        &*self.0.file
    }

    pub(super) fn path(&self) -> &Path {
        &self.0.path
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn failure(&self) -> Option<DiskError> {
        self.lock().clone()
    }

    /// Records a failure, unless there is one.
    pub(super) fn fail(&self, error: &DiskError) {
        self.lock().get_or_insert_with(|| error.clone());
    }

    pub(super) fn clear_failure(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<DiskError>> {
        self.0
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A range of a buffer, as a part of [`Request::WriteVectored`].
#[derive(Debug)]
#[non_exhaustive]
pub struct WritePart {
    /// The buffer.
    pub buffer: AlignedBuf,
    /// The range of the buffer.
    pub range: Range<usize>,
}

impl WritePart {
    /// Creates a part.
    #[must_use]
    pub fn new(buffer: AlignedBuf, range: Range<usize>) -> Self {
        Self { buffer, range }
    }
}

/// A disk operation. Buffers move in and come back with the [`Completion`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Request {
    /// Writes a range of a buffer.
    Write {
        /// The file.
        file: QueuedFile,
        /// Offset in the file in bytes.
        offset: u64,
        /// The buffer.
        buffer: AlignedBuf,
        /// The range of the buffer.
        range: Range<usize>,
    },
    /// Writes ranges of several buffers, one after the other. Writes nothing if a range does not lie in its buffer.
    WriteVectored {
        /// The file.
        file: QueuedFile,
        /// Offset in the file in bytes.
        offset: u64,
        /// The ranges. The vector comes back with the completion.
        parts: Vec<WritePart>,
    },
    /// Reads into a range of a buffer; [`Outcome::Read`] says how many bytes.
    Read {
        /// The file.
        file: QueuedFile,
        /// Offset in the file in bytes.
        offset: u64,
        /// The buffer.
        buffer: AlignedBuf,
        /// The range of the buffer.
        range: Range<usize>,
    },
    /// Makes the file durable.
    Sync {
        /// The file.
        file: QueuedFile,
        /// Data only, or data and metadata.
        kind: SyncKind,
    },
    /// Sets the length.
    SetLength {
        /// The file.
        file: QueuedFile,
        /// Length in bytes.
        len: u64,
    },
    /// Reserves the blocks of a range. A failure is not sticky.
    Allocate {
        /// The file.
        file: QueuedFile,
        /// Start of the range in bytes.
        offset: u64,
        /// Length of the range in bytes.
        len: u64,
    },
    /// Gives the blocks of a range back, whose bytes are zero then. Executed after all syncs of the file that were submitted
    /// before, and not after a failure that is not cleared: the bytes may be all that is left. A failure of this request is
    /// not sticky. If the sync of another file makes the bytes superfluous, wait for the completion of that sync.
    PunchHole {
        /// The file.
        file: QueuedFile,
        /// Start of the range in bytes.
        offset: u64,
        /// Length of the range in bytes.
        len: u64,
    },
    /// Advises on a range. A failure is not sticky.
    Advise {
        /// The file.
        file: QueuedFile,
        /// Start of the range in bytes.
        offset: u64,
        /// Length of the range in bytes; zero: the rest of the file.
        len: u64,
        /// The advice.
        advice: Advice,
    },
    /// Ends the state after a failure; the caller has seen the failed completions. Syncs submitted before still fail.
    ClearFailure {
        /// The file.
        file: QueuedFile,
    },
    /// Closes the file on the queue's thread, if this is the last clone.
    Close {
        /// The file.
        file: QueuedFile,
    },
    /// Opens a file: [`Outcome::Opened`]. Bind it with [`DiskQueue::attach`](super::DiskQueue::attach).
    Open {
        /// The path.
        path: PathBuf,
        /// The options.
        options: OpenOptions,
    },
    /// Lists a directory: [`Outcome::Entries`].
    List {
        /// The directory.
        directory: PathBuf,
    },
    /// Examines a file or directory: [`Outcome::Metadata`].
    Metadata {
        /// The path.
        path: PathBuf,
    },
    /// Renames a file.
    Rename {
        /// The old name.
        from: PathBuf,
        /// The new name.
        to: PathBuf,
    },
    /// Removes a file.
    RemoveFile {
        /// The path.
        path: PathBuf,
    },
    /// Creates a directory.
    CreateDirectory {
        /// The path.
        path: PathBuf,
    },
    /// Removes an empty directory.
    RemoveDirectory {
        /// The path.
        path: PathBuf,
    },
    /// Makes the names in a directory durable.
    SyncDirectory {
        /// The directory.
        directory: PathBuf,
    },
    /// Reads the space of a file system: [`Outcome::Space`].
    Space {
        /// An existing file or directory on it.
        path: PathBuf,
    },
    /// Takes the exclusive lock of an existing file or directory, without waiting for its holder: [`Outcome::Locked`].
    Lock {
        /// The path.
        path: PathBuf,
    },
    /// Releases a lock on the queue's thread.
    Unlock {
        /// The path, for errors.
        path: PathBuf,
        /// The lock.
        lock: DiskLock,
    },
}

impl Request {
    /// Returns the operation that an error of this request names.
    #[must_use]
    pub fn operation(&self) -> Operation {
        match self {
            Self::Write { .. } | Self::WriteVectored { .. } => Operation::Write,
            Self::Read { .. } => Operation::Read,
            Self::Sync { .. } => Operation::Sync,
            Self::SetLength { .. } => Operation::SetLength,
            Self::Allocate { .. } => Operation::Allocate,
            Self::PunchHole { .. } => Operation::PunchHole,
            Self::Advise { .. } => Operation::Advise,
            Self::ClearFailure { .. } => Operation::ClearFailure,
            Self::Close { .. } => Operation::Close,
            Self::Open { .. } => Operation::Open,
            Self::List { .. } => Operation::List,
            Self::Metadata { .. } => Operation::Metadata,
            Self::Rename { .. } => Operation::Rename,
            Self::RemoveFile { .. } | Self::RemoveDirectory { .. } => Operation::Remove,
            Self::CreateDirectory { .. } => Operation::CreateDirectory,
            Self::SyncDirectory { .. } => Operation::SyncDirectory,
            Self::Space { .. } => Operation::Space,
            Self::Lock { .. } => Operation::Lock,
            Self::Unlock { .. } => Operation::Unlock,
        }
    }

    /// Returns the bytes that are transferred.
    #[must_use]
    pub fn transfer_len(&self) -> usize {
        match self {
            Self::Write { range, .. } | Self::Read { range, .. } => range.len(),
            Self::WriteVectored { parts, .. } => parts.iter().map(|part| part.range.len()).sum(),
            _ => 0,
        }
    }

    pub(super) fn file(&self) -> Option<&QueuedFile> {
        match self {
            Self::Write { file, .. }
            | Self::WriteVectored { file, .. }
            | Self::Read { file, .. }
            | Self::Sync { file, .. }
            | Self::SetLength { file, .. }
            | Self::Allocate { file, .. }
            | Self::PunchHole { file, .. }
            | Self::Advise { file, .. }
            | Self::ClearFailure { file }
            | Self::Close { file } => Some(file),
            Self::Open { .. }
            | Self::List { .. }
            | Self::Metadata { .. }
            | Self::Rename { .. }
            | Self::RemoveFile { .. }
            | Self::CreateDirectory { .. }
            | Self::RemoveDirectory { .. }
            | Self::SyncDirectory { .. }
            | Self::Space { .. }
            | Self::Lock { .. }
            | Self::Unlock { .. } => None,
        }
    }

    /// Returns the file or directory that an error of this request names.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Open { path, .. }
            | Self::Metadata { path }
            | Self::RemoveFile { path }
            | Self::CreateDirectory { path }
            | Self::RemoveDirectory { path }
            | Self::Space { path }
            | Self::Lock { path }
            | Self::Unlock { path, .. }
            | Self::List { directory: path }
            | Self::SyncDirectory { directory: path }
            | Self::Rename { from: path, .. } => path,
            _ => self.file().map_or(Path::new(""), QueuedFile::path),
        }
    }

    /// Takes the buffers out, for the completion.
    pub(super) fn take_buffers(&mut self) -> (Option<AlignedBuf>, Vec<WritePart>) {
        match self {
            Self::Write { buffer, .. } | Self::Read { buffer, .. } => {
                (Some(mem::take(buffer)), Vec::new())
            }
            Self::WriteVectored { parts, .. } => (None, mem::take(parts)),
            _ => (None, Vec::new()),
        }
    }

    /// Returns the number of the worker that executes this request, in the queue that its file is bound to: that of the
    /// file, or 0 for names.
    #[must_use]
    pub fn worker(&self) -> usize {
        self.file().map_or(0, |file| file.0.worker)
    }

    /// Returns the worker of `queue` for this request; `None` if the file is bound to another queue.
    pub(super) fn worker_in(&self, queue: &Arc<()>) -> Option<usize> {
        match self.file() {
            Some(file) if !Arc::ptr_eq(&file.0.queue, queue) => None,
            _ => Some(self.worker()),
        }
    }
}

/// Result of a successful request.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Done, without a value.
    Done,
    /// Bytes read; fewer than asked for at the end of the file.
    Read(usize),
    /// The opened file.
    Opened(Box<dyn DiskFile>),
    /// Entries of a directory, sorted by name.
    Entries(Vec<DirEntry>),
    /// Kind and length.
    Metadata(Metadata),
    /// Space of a file system.
    Space(Space),
    /// The lock. Release it with [`Request::Unlock`].
    Locked(DiskLock),
}

/// The end of a request.
#[derive(Debug)]
#[non_exhaustive]
pub struct Completion {
    /// The token of the request.
    pub token: u64,
    /// The result.
    pub result: Result<Outcome, DiskError>,
    /// The buffer of a write or read, also after a failure.
    pub buffer: Option<AlignedBuf>,
    /// The parts of a vectored write, also after a failure; empty for other requests.
    pub parts: Vec<WritePart>,
    /// Duration of the operation in nanoseconds, without the time in the queue. Requests served by one sync have the same
    /// one.
    pub service_ns: i64,
}

/// Reason of a [`Rejected`] request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RejectReason {
    /// The worker of the request has no room: poll completions first.
    Full,
    /// The file is bound to another queue.
    OtherQueue,
    /// The thread of the worker has ended. The queue accepts no request for that worker any more. Requests that it had accepted
    /// may have no completion: they count as [in flight](super::DiskQueue::in_flight) for ever, and their buffers are lost.
    Stopped,
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the disk queue is full: poll its completions, then submit again",
            Self::OtherQueue => "the file is bound to another disk queue: attach it to this one",
            Self::Stopped => {
                "the thread of the disk queue has ended, which is a defect: start a new queue"
            }
        })
    }
}

/// A request that the queue did not accept, with its buffer.
#[derive(Error)]
#[error("{reason}")]
#[non_exhaustive]
pub struct Rejected {
    /// The reason.
    pub reason: RejectReason,
    /// The request.
    pub request: Request,
}

taran_core::debug_is_display!(Rejected);

impl Rejected {
    /// Creates a rejection, for an implementation of a queue.
    #[must_use]
    pub fn new(reason: RejectReason, request: Request) -> Self {
        Self { reason, request }
    }

    /// Turns the rejected request into a failed one, with its buffers, for an owner that does not submit it again: its
    /// error has the kind [`ErrorKind::Rejected`].
    #[must_use]
    pub fn into_completion(self, token: u64) -> Completion {
        let Self {
            reason,
            mut request,
        } = self;
        let kind = ErrorKind::Rejected { reason };
        let error = DiskError::new(request.operation(), request.path(), kind);
        let (buffer, parts) = request.take_buffers();
        Completion {
            token,
            result: Err(error),
            buffer,
            parts,
            service_ns: 0,
        }
    }
}
