// SPDX-License-Identifier: Apache-2.0
//! The next segment file, made before it is needed.

use std::path::PathBuf;

use taran_storage::{Create, DiskError, OpenOptions, Outcome, QueuedFile, Request};

use crate::disk_io::DiskIo;
use crate::files::SegmentName;

/// A step towards the file; its request is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The name of the segment must not be taken.
    Examine,
    Open,
    /// Bytes of an earlier attempt become zeros.
    Cut,
    Extend,
}

#[derive(Debug)]
enum State {
    None,
    Working(Step, Option<QueuedFile>),
    Ready(QueuedFile),
    /// The segment is made when it is needed, and its owner learns then why that fails.
    Failed,
}

/// The file of the next segment, under a name that Aeron ignores: an empty segment file behind an incomplete one would be taken
/// for the end of the recording after a crash. Recovery removes such files. No blocks are reserved, which would take space from
/// other recordings.
///
/// Contract: [`begin`](Self::begin) and [`on_completion`](Self::on_completion) return the next request, of which one at a time is
/// in flight. When the file is ready, [`take`](Self::take) hands it out, once; its owner gives it the name of the segment.
/// [`abandon`](Self::abandon) returns the requests that remove a file that is not needed, when none is in flight.
#[derive(Debug)]
pub(super) struct Ahead {
    directory: PathBuf,
    length: u64,
    name: Option<SegmentName>,
    state: State,
}

impl Ahead {
    /// Makes files of `length` bytes.
    pub(super) fn new(directory: PathBuf, length: u64) -> Self {
        Self {
            directory,
            length,
            name: None,
            state: State::None,
        }
    }

    /// Returns true if a request is in flight.
    pub(super) fn is_working(&self) -> bool {
        matches!(self.state, State::Working(..))
    }

    /// Returns true if the file could not be made.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.state, State::Failed)
    }

    /// Returns true if this file was begun.
    pub(super) fn is_for(&self, name: Option<SegmentName>) -> bool {
        self.name == name
    }

    /// Returns the path of the file until it has the name of its segment.
    pub(super) fn path(&self) -> PathBuf {
        let name = self.name.map(|name| name.reserved_path(&self.directory));
        name.unwrap_or_default()
    }

    /// Begins to make the file of a segment.
    pub(super) fn begin(&mut self, name: Option<SegmentName>) -> Option<Request> {
        let path = name?.path(&self.directory);
        self.name = name;
        self.state = State::Working(Step::Examine, None);
        Some(Request::Metadata { path })
    }

    /// Takes the result of the request in flight.
    pub(super) fn on_completion(
        &mut self,
        result: Result<Outcome, DiskError>,
        io: &mut DiskIo,
    ) -> Option<Request> {
        let State::Working(step, file) = std::mem::replace(&mut self.state, State::Failed) else {
            return None;
        };
        let (step, file, request) = match (step, file, result) {
            (Step::Examine, _, Err(error)) if error.is_not_found() => {
                let options = OpenOptions::write().with_create(Create::IfMissing);
                let path = self.path();
                (Step::Open, None, Request::Open { path, options })
            }
            (Step::Open, _, Ok(Outcome::Opened(file))) => {
                let file = io.attach(file);
                let cut = Request::SetLength {
                    file: file.clone(),
                    len: 0,
                };
                (Step::Cut, Some(file), cut)
            }
            (Step::Cut, Some(file), Ok(_)) => {
                let extend = Request::SetLength {
                    file: file.clone(),
                    len: self.length,
                };
                (Step::Extend, Some(file), extend)
            }
            (Step::Extend, Some(file), Ok(_)) => {
                self.state = State::Ready(file);
                return None;
            }
            _ => return None,
        };
        self.state = State::Working(step, file);
        Some(request)
    }

    /// Takes the file of a segment if it is ready.
    pub(super) fn take(&mut self, name: Option<SegmentName>) -> Option<QueuedFile> {
        if !self.is_for(name) {
            return None;
        }
        match std::mem::replace(&mut self.state, State::None) {
            State::Ready(file) => Some(file),
            state => {
                self.state = state;
                None
            }
        }
    }

    /// Returns the requests that close and remove a file that is not needed.
    pub(super) fn abandon(&mut self) -> Vec<Request> {
        match std::mem::replace(&mut self.state, State::None) {
            State::Ready(file) => vec![
                Request::Close { file },
                Request::RemoveFile { path: self.path() },
            ],
            State::Failed => vec![Request::RemoveFile { path: self.path() }],
            State::None | State::Working(..) => Vec::new(),
        }
    }
}
