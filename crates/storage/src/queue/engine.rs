//! The order of execution of one worker, without threads and time.
//!
//! Contract: input is [`Engine::accept`]. [`Engine::next`] returns the next step to execute, [`Engine::execute`] executes
//! it and hands out its completions; both are called in turn. A batch is what was accepted when the previous batch ended:
//! its syncs run after its other requests, one for all syncs of a file.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::{Disk, DiskError, ErrorKind, Operation, SyncKind};

use super::{Completion, Outcome, QueuedFile, Request};

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
                    return Some(self.sync_of(&waiter.file.clone()));
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

    /// Returns the file whose waiting syncs must end before the next request: one that clears the failure or closes it.
    fn barrier(&self) -> Option<QueuedFile> {
        let (Request::ClearFailure { file } | Request::Close { file }) =
            &self.pending.front()?.request
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
        let result = guarded(file, Operation::Sync, |file| file.sync(kind));
        let mut index = 0;
        while let Some(waiter) = self.waiters.get(index) {
            if waiter.file.is_same(file) {
                complete(Completion {
                    token: waiter.token,
                    result: result.clone().map(|()| Outcome::Done),
                    buffer: None,
                    service_ns: 0,
                });
                self.waiters.remove(index);
            } else {
                index += 1;
            }
        }
    }
}

/// Executes an operation whose failure is sticky, unless there was one.
fn guarded(
    file: &QueuedFile,
    operation: Operation,
    call: impl FnOnce(&dyn crate::DiskFile) -> Result<(), DiskError>,
) -> Result<(), DiskError> {
    if let Some(first) = file.failure() {
        let kind = ErrorKind::FailedBefore {
            first: Box::new(first),
        };
        return Err(DiskError::new(operation, file.file().path(), kind));
    }
    let result = call(file.file());
    if let Err(error) = &result {
        file.fail(error);
    }
    result
}

/// Executes a request other than a sync.
fn execute(disk: &dyn Disk, token: u64, request: Request) -> Completion {
    let mut returned = None;
    let result = match request {
        Request::Write {
            file,
            offset,
            buffer,
            range,
        } => {
            let result = guarded(&file, Operation::Write, |file| {
                let Some(bytes) = buffer.get(range.clone()) else {
                    let kind = outside(&range, buffer.len());
                    return Err(DiskError::new(Operation::Write, file.path(), kind));
                };
                file.write_at(bytes, offset)
            });
            returned = Some(buffer);
            result.map(|()| Outcome::Done)
        }
        Request::Read {
            file,
            offset,
            mut buffer,
            range,
        } => {
            let len = buffer.len();
            let result = match buffer.get_mut(range.clone()) {
                Some(bytes) => file.file().read_at(bytes, offset),
                None => Err(DiskError::new(
                    Operation::Read,
                    file.file().path(),
                    outside(&range, len),
                )),
            };
            returned = Some(buffer);
            result.map(Outcome::Read)
        }
        Request::Sync { file, kind } => {
            guarded(&file, Operation::Sync, |file| file.sync(kind)).map(|()| Outcome::Done)
        }
        Request::SetLength { file, len } => {
            guarded(&file, Operation::SetLength, |file| file.set_len(len)).map(|()| Outcome::Done)
        }
        Request::Allocate { file, offset, len } => {
            file.file().allocate(offset, len).map(|()| Outcome::Done)
        }
        Request::Advise {
            file,
            offset,
            len,
            advice,
        } => file
            .file()
            .advise(offset, len, advice)
            .map(|()| Outcome::Done),
        Request::ClearFailure { file } => {
            file.clear_failure();
            Ok(Outcome::Done)
        }
        Request::Close { file } => {
            drop(file);
            Ok(Outcome::Done)
        }
        Request::Open { path, options } => disk.open(&path, options).map(Outcome::Opened),
        Request::List { directory } => disk.list(&directory).map(Outcome::Entries),
        Request::Metadata { path } => disk.metadata(&path).map(Outcome::Metadata),
        Request::Rename { from, to } => disk.rename(&from, &to).map(|()| Outcome::Done),
        Request::RemoveFile { path } => disk.remove_file(&path).map(|()| Outcome::Done),
        Request::CreateDirectory { path } => disk.create_directory(&path).map(|()| Outcome::Done),
        Request::SyncDirectory { directory } => {
            disk.sync_directory(&directory).map(|()| Outcome::Done)
        }
        Request::Space { path } => disk.space(&path).map(Outcome::Space),
    };
    Completion {
        token,
        result,
        buffer: returned,
        service_ns: 0,
    }
}

fn outside(range: &std::ops::Range<usize>, limit: usize) -> ErrorKind {
    ErrorKind::InvalidRange {
        offset: range.start as u64,
        len: range.len() as u64,
        limit: limit as u64,
    }
}
