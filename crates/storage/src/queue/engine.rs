// SPDX-License-Identifier: Apache-2.0
//! The order of execution of one worker, without threads and time.
//!
//! Contract: input is [`Engine::accept`]. [`Engine::next`] returns the next step to execute, [`Engine::execute`] executes
//! it and hands out its completions; both are called in turn. A batch is what was accepted when the previous batch ended:
//! its syncs run after its other requests, one for all syncs of a file.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{AlignedBuf, Disk, DiskError, ErrorKind, Operation, SyncKind};

use super::{Completion, Outcome, QueuedFile, Request, WritePart};

/// Parts of a vectored write that one call of the file takes: their slices lie on the stack.
const PARTS_PER_CALL: usize = 64;

/// A request with its token.
#[derive(Debug)]
pub(super) struct Submission {
    pub(super) token: u64,
    pub(super) request: Request,
}

/// A unit of work.
#[derive(Debug)]
pub(super) enum Step {
    /// A request other than a sync.
    Request(Submission),
    /// A sync for all waiters of a file.
    Sync { file: QueuedFile, kind: SyncKind },
}

impl Step {
    pub(super) fn operation(&self) -> Operation {
        match self {
            Self::Request(submission) => submission.request.operation(),
            Self::Sync { .. } => Operation::Sync,
        }
    }

    pub(super) fn transfer_len(&self) -> usize {
        match self {
            Self::Request(submission) => submission.request.transfer_len(),
            Self::Sync { .. } => 0,
        }
    }
}

/// A sync that waits for the end of its batch.
#[derive(Debug)]
struct Waiter {
    token: u64,
    file: QueuedFile,
    kind: SyncKind,
}

#[derive(Debug)]
pub(super) struct Engine {
    disk: Arc<dyn Disk>,
    pending: VecDeque<Submission>,
    waiters: Vec<Waiter>,
    /// Requests of the current batch in `pending`.
    batch_left: usize,
}

impl Engine {
    /// Creates an engine for at most `depth` requests at a time.
    pub(super) fn new(disk: Arc<dyn Disk>, depth: usize) -> Self {
        Self {
            disk,
            pending: VecDeque::with_capacity(depth),
            waiters: Vec::with_capacity(depth),
            batch_left: 0,
        }
    }

    pub(super) fn accept(&mut self, submission: Submission) {
        self.pending.push_back(submission);
    }

    /// Returns true if there is no step. A batch that is being served counts as a step.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.waiters.is_empty()
    }

    /// Returns the next step, if any.
    pub(super) fn next(&mut self) -> Option<Step> {
        loop {
            if self.batch_left == 0 {
                if let Some(waiter) = self.waiters.first() {
                    return Some(self.sync_of(&waiter.file));
                }
                if self.pending.is_empty() {
                    return None;
                }
                self.batch_left = self.pending.len();
            }
            if let Some(file) = self.barrier() {
                return Some(self.sync_of(&file));
            }
            let submission = self.pending.pop_front()?;
            self.batch_left -= 1;
            match submission.request {
                Request::Sync { file, kind } => self.waiters.push(Waiter {
                    token: submission.token,
                    file,
                    kind,
                }),
                request => {
                    return Some(Step::Request(Submission {
                        token: submission.token,
                        request,
                    }));
                }
            }
        }
    }

    /// Returns the file whose waiting syncs must end before the next request: one that clears the failure, closes the file,
    /// or removes bytes that only these syncs may make superfluous.
    fn barrier(&self) -> Option<QueuedFile> {
        let (Request::ClearFailure { file }
        | Request::Close { file }
        | Request::PunchHole { file, .. }) = &self.pending.front()?.request
        else {
            return None;
        };
        let is_awaited = self.waiters.iter().any(|waiter| waiter.file.is_same(file));
        is_awaited.then(|| file.clone())
    }

    /// Returns the sync that serves all waiters of a file.
    fn sync_of(&self, file: &QueuedFile) -> Step {
        let kind = self
            .waiters
            .iter()
            .filter(|waiter| waiter.file.is_same(file))
            .map(|waiter| waiter.kind)
            .max()
            .unwrap_or(SyncKind::Data);
        Step::Sync {
            file: file.clone(),
            kind,
        }
    }

    /// Executes a step and passes its completions to `complete`, with `service_ns` zero.
    pub(super) fn execute(&mut self, step: Step, complete: &mut impl FnMut(Completion)) {
        match step {
            Step::Sync { file, kind } => self.sync(&file, kind, complete),
            Step::Request(Submission { token, request }) => {
                complete(execute(&*self.disk, token, request));
            }
        }
    }

    fn sync(&mut self, file: &QueuedFile, kind: SyncKind, complete: &mut impl FnMut(Completion)) {
        let result = guarded(file, Operation::Sync, || file.file().sync(kind));
        let mut index = 0;
        while let Some(waiter) = self.waiters.get(index) {
            if waiter.file.is_same(file) {
                complete(Completion {
                    token: waiter.token,
                    result: result.clone().map(|()| Outcome::Done),
                    buffer: None,
                    parts: Vec::new(),
                    service_ns: 0,
                });
                self.waiters.remove(index);
            } else {
                index += 1;
            }
        }
    }
}

/// Fails if the file has a failure that is not cleared.
fn check_failure(file: &QueuedFile, operation: Operation) -> Result<(), DiskError> {
    let Some(first) = file.failure() else {
        return Ok(());
    };
    let kind = ErrorKind::FailedBefore {
        first: Box::new(first),
    };
    Err(DiskError::new(operation, file.path(), kind))
}

/// Executes an operation whose failure is sticky, unless there was one.
fn guarded(
    file: &QueuedFile,
    operation: Operation,
    call: impl FnOnce() -> Result<(), DiskError>,
) -> Result<(), DiskError> {
    check_failure(file, operation)?;
    let result = unless_panicked(operation, file.path(), call);
    if let Err(error) = &result {
        file.fail(error);
    }
    result
}

/// Calls an implementation of a disk; a panic becomes an error, so that the worker serves its other requests. The
/// implementation is called again after a panic: what that may have left half done is its own memory, and the failure
/// of a write, length or sync is sticky.
fn unless_panicked<T>(
    operation: Operation,
    path: &Path,
    call: impl FnOnce() -> Result<T, DiskError>,
) -> Result<T, DiskError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
        let message = match payload.downcast::<String>() {
            Ok(message) => *message,
            Err(payload) => payload
                .downcast::<&str>()
                .map_or_else(|_| "without a message".to_owned(), |text| text.to_string()),
        };
        Err(DiskError::new(
            operation,
            path,
            ErrorKind::Panicked { message },
        ))
    })
}

/// Executes a request other than a sync.
fn execute(disk: &dyn Disk, token: u64, mut request: Request) -> Completion {
    let operation = request.operation();
    let result = match &mut request {
        Request::Write {
            file,
            offset,
            buffer,
            range,
        } => guarded(file, operation, || {
            let bytes = bytes_of(buffer, range)
                .map_err(|kind| DiskError::new(operation, file.path(), kind))?;
            file.file().write_at(bytes, *offset)
        })
        .map(|()| Outcome::Done),
        Request::WriteVectored {
            file,
            offset,
            parts,
        } => guarded(file, operation, || write_parts(file, *offset, parts)).map(|()| Outcome::Done),
        Request::Read {
            file,
            offset,
            buffer,
            range,
        } => {
            let len = buffer.len();
            let path = file.path();
            match buffer.get_mut(range.clone()) {
                Some(bytes) => {
                    unless_panicked(operation, path, || file.file().read_at(bytes, *offset))
                        .map(Outcome::Read)
                }
                None => Err(DiskError::new(operation, path, outside(range, len))),
            }
        }
        Request::SetLength { file, len } => {
            guarded(file, operation, || file.file().set_len(*len)).map(|()| Outcome::Done)
        }
        Request::Sync { file, kind } => {
            guarded(file, operation, || file.file().sync(*kind)).map(|()| Outcome::Done)
        }
        Request::ClearFailure { file } => {
            file.clear_failure();
            Ok(Outcome::Done)
        }
        Request::Close { .. } | Request::Unlock { .. } => Ok(Outcome::Done),
        Request::PunchHole { file, offset, len } => check_failure(file, operation)
            .and_then(|()| {
                unless_panicked(operation, file.path(), || {
                    file.file().punch_hole(*offset, *len)
                })
            })
            .map(|()| Outcome::Done),
        request => {
            let request = &*request;
            unless_panicked(operation, request.path(), || perform(disk, request))
        }
    };
    let (buffer, parts) = request.take_buffers();
    // Closes the file if this was its last clone, or releases the lock.
    let path = match &request {
        Request::Close { .. } | Request::Unlock { .. } => request.path().to_path_buf(),
        _ => PathBuf::new(),
    };
    let dropped = unless_panicked(operation, &path, move || {
        drop(request);
        Ok(())
    });
    let result = match dropped {
        Err(error) if matches!(operation, Operation::Close | Operation::Unlock) => Err(error),
        _ => result,
    };
    Completion {
        token,
        result,
        buffer,
        parts,
        service_ns: 0,
    }
}

/// Performs a request whose failure is not sticky and which has no buffers.
fn perform(disk: &dyn Disk, request: &Request) -> Result<Outcome, DiskError> {
    let done = |()| Outcome::Done;
    match request {
        Request::Allocate { file, offset, len } => file.file().allocate(*offset, *len).map(done),
        Request::Advise {
            file,
            offset,
            len,
            advice,
        } => file.file().advise(*offset, *len, *advice).map(done),
        Request::Open { path, options } => disk.open(path, *options).map(Outcome::Opened),
        Request::List { directory } => disk.list(directory).map(Outcome::Entries),
        Request::Metadata { path } => disk.metadata(path).map(Outcome::Metadata),
        Request::Rename { from, to } => disk.rename(from, to).map(done),
        Request::RemoveFile { path } => disk.remove_file(path).map(done),
        Request::CreateDirectory { path } => disk.create_directory(path).map(done),
        Request::RemoveDirectory { path } => disk.remove_directory(path).map(done),
        Request::SyncDirectory { directory } => disk.sync_directory(directory).map(done),
        Request::Space { path } => disk.space(path).map(Outcome::Space),
        Request::Lock { path } => disk.try_lock(path).map(Outcome::Locked),
        Request::Write { .. }
        | Request::WriteVectored { .. }
        | Request::Read { .. }
        | Request::Sync { .. }
        | Request::SetLength { .. }
        | Request::PunchHole { .. }
        | Request::ClearFailure { .. }
        | Request::Close { .. }
        | Request::Unlock { .. } => Ok(Outcome::Done),
    }
}

/// Writes all parts, one after the other: nothing if a range is invalid.
fn write_parts(file: &QueuedFile, mut offset: u64, parts: &[WritePart]) -> Result<(), DiskError> {
    let failed = |kind| DiskError::new(Operation::Write, file.path(), kind);
    for part in parts {
        bytes_of(&part.buffer, &part.range).map_err(failed)?;
    }
    for parts in parts.chunks(PARTS_PER_CALL) {
        let mut slices = [IoSlice::new(&[]); PARTS_PER_CALL];
        let mut len = 0;
        for (slice, part) in slices.iter_mut().zip(parts) {
            let bytes = bytes_of(&part.buffer, &part.range).map_err(failed)?;
            *slice = IoSlice::new(bytes);
            len += bytes.len() as u64;
        }
        file.file()
            .write_vectored_at(&mut slices[..parts.len()], offset)?;
        offset = offset.saturating_add(len);
    }
    Ok(())
}

fn bytes_of<'a>(buffer: &'a AlignedBuf, range: &Range<usize>) -> Result<&'a [u8], ErrorKind> {
    buffer
        .get(range.clone())
        .ok_or_else(|| outside(range, buffer.len()))
}

fn outside(range: &Range<usize>, limit: usize) -> ErrorKind {
    ErrorKind::InvalidRange {
        offset: range.start as u64,
        len: range.len() as u64,
        limit: limit as u64,
    }
}
