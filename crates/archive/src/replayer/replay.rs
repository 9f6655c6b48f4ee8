// SPDX-License-Identifier: Apache-2.0
//! One replay: from segment files to its publication.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use taran::{ExclusivePublication, OfferError};
use taran_archive_client::protocol::ErrorCode;
use taran_storage::{AlignedBuf, Completion, DiskError, OpenOptions, Outcome, QueuedFile, Request};

use super::batch::{Batch, Conversion};
use super::limit::ReplayLimit;
use super::{ReplayFailure, ReplayReport, ReplayerCounters};
use crate::buffers::BufferPool;
use crate::disk_io::DiskIo;
use crate::files::RecordingLayout;
use crate::recorder::segment_path;

/// Time between attempts to open a segment file that does not exist yet.
const OPEN_INTERVAL_NS: i64 = 1_000_000;
/// Length of the header of a frame in bytes.
const HEADER: usize = 32;
/// Marks the tokens of requests whose result does not matter.
pub(super) const UNUSED_RESULT: u64 = 1 << 63;

/// A replay to run.
#[derive(Debug)]
pub(crate) struct ReplaySpec {
    /// Identifies the replay in the archive.
    pub(crate) id: i64,
    pub(crate) recording_id: i64,
    pub(crate) directory: PathBuf,
    pub(crate) layout: RecordingLayout,
    pub(crate) conversion: Conversion,
    pub(crate) position: i64,
    pub(crate) limit: ReplayLimit,
    /// True if the header of a frame must be at the position.
    pub(crate) checks_header: bool,
    /// Highest number of bytes of one read.
    pub(crate) io_max_length: usize,
    pub(crate) mtu: usize,
    /// Time limit to find the file and for the publication to be connected.
    pub(crate) deadline_ns: i64,
    pub(crate) publication: ExclusivePublication,
    /// The position of the replay, for those that remove files.
    pub(crate) shared_position: Arc<AtomicI64>,
}

#[derive(Debug)]
enum State {
    /// The segment file is to be opened.
    Closed {
        retry_at_ns: i64,
    },
    Opening,
    /// The file is open; the first header was not checked yet.
    Unchecked,
    Checking,
    AwaitingConnection,
    Replaying,
    Reading {
        position: i64,
    },
    /// The bytes in the buffer were read at the position of the replay.
    Read {
        length: usize,
    },
    Ended,
}

/// A replay.
///
/// Contract: [`poll`](Self::poll) in each duty cycle, and [`on_completion`](Self::on_completion) for each completion of its
/// requests. Reports say when it is ready, and when and why it ended; [`is_closed`](Self::is_closed) follows when no request
/// is in flight.
#[derive(Debug)]
pub(super) struct Replay {
    spec: ReplaySpec,
    token: u64,
    state: State,
    is_ready: bool,
    segment: Option<(i64, QueuedFile)>,
    position: i64,
    buffer: Option<AlignedBuf>,
    requests: usize,
    revokes: bool,
    reports: Vec<ReplayReport>,
}

impl Replay {
    pub(super) fn new(spec: ReplaySpec, token: u64) -> Self {
        Self {
            position: spec.position,
            token,
            state: State::Closed {
                retry_at_ns: i64::MIN,
            },
            is_ready: false,
            segment: None,
            buffer: None,
            requests: 0,
            revokes: false,
            reports: Vec::new(),
            spec,
        }
    }

    pub(super) fn id(&self) -> i64 {
        self.spec.id
    }

    /// Returns recording, position, and the segment file that is read next; `None` when the replay has ended.
    #[cfg(test)]
    pub(super) fn file(&self) -> Option<(i64, i64, PathBuf)> {
        let (id, position) = (self.spec.recording_id, self.position);
        let path = segment_path(&self.spec.directory, id, self.spec.layout.base_of(position));
        (!matches!(self.state, State::Ended)).then_some((id, position, path))
    }

    /// Ends the replay by request.
    pub(super) fn abort(&mut self) {
        if !matches!(self.state, State::Ended) {
            self.revokes = true;
            self.end(None);
        }
    }

    /// Returns true if the replay has ended and no request is in flight.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state, State::Ended) && self.requests == 0
    }

    /// Returns reports since the last call.
    pub(super) fn take_reports(&mut self) -> std::vec::Drain<'_, ReplayReport> {
        self.reports.drain(..)
    }

    /// Closes the publication; its end of stream follows its data, unless the replay was aborted.
    pub(super) fn close(self) {
        if self.revokes {
            self.spec.publication.revoke();
        }
    }

    pub(super) fn give_back_buffer(&mut self, buffers: &mut BufferPool) {
        if matches!(self.state, State::Ended | State::Replaying)
            && let Some(buffer) = self.buffer.take()
        {
            buffers.give_back(buffer);
        }
    }

    pub(super) fn poll(
        &mut self,
        now_ns: i64,
        io: &mut DiskIo,
        buffers: &mut BufferPool,
        counters: &ReplayerCounters,
    ) -> usize {
        match self.state {
            State::Closed { retry_at_ns } if now_ns >= retry_at_ns => self.open(io),
            State::Unchecked => self.check_first_header(io),
            State::AwaitingConnection => self.await_connection(now_ns),
            State::Replaying => self.replay(io, buffers, counters),
            State::Read { length } => self.send(length),
            _ => 0,
        }
    }

    // --- the first frame ---

    fn open(&mut self, io: &mut DiskIo) -> usize {
        let base = self.spec.layout.base_of(self.position);
        let path = segment_path(&self.spec.directory, self.spec.recording_id, base);
        self.state = State::Opening;
        let options = OpenOptions::read();
        self.submit(Request::Open { path, options }, io);
        1
    }

    fn check_first_header(&mut self, io: &mut DiskIo) -> usize {
        if !self.spec.checks_header {
            self.become_ready();
            return 1;
        }
        let Some((_, file)) = &self.segment else {
            return 0;
        };
        let (file, offset) = (file.clone(), self.spec.layout.offset_of(self.position));
        let buffer = AlignedBuf::new(HEADER);
        self.state = State::Checking;
        let request = Request::Read {
            file,
            offset,
            buffer,
            range: 0..HEADER,
        };
        self.submit(request, io);
        1
    }

    fn become_ready(&mut self) {
        self.is_ready = true;
        self.state = State::AwaitingConnection;
        self.reports.push(ReplayReport::Ready { id: self.spec.id });
    }

    fn await_connection(&mut self, now_ns: i64) -> usize {
        if self.spec.publication.is_connected() {
            self.state = State::Replaying;
            return 1;
        }
        if now_ns >= self.spec.deadline_ns {
            self.fail(
                ErrorCode::Generic,
                "no subscriber connected to the replay in time".to_owned(),
            );
        }
        0
    }

    // --- replaying ---

    fn replay(
        &mut self,
        io: &mut DiskIo,
        buffers: &mut BufferPool,
        counters: &ReplayerCounters,
    ) -> usize {
        if !self.spec.publication.is_connected() {
            self.revokes = true;
            self.end(None);
            return 1;
        }
        if self.position >= self.spec.limit.available() {
            self.spec.limit.refresh();
        }
        if self.spec.limit.is_reached(self.position) {
            self.end(None);
            return 1;
        }
        if self.position >= self.spec.limit.available() {
            return 0;
        }
        let base = self.spec.layout.base_of(self.position);
        match &self.segment {
            Some((open, _)) if *open == base => self.read(io, buffers, counters),
            _ => {
                self.close_segment(io);
                self.open(io)
            }
        }
    }

    fn read(
        &mut self,
        io: &mut DiskIo,
        buffers: &mut BufferPool,
        counters: &ReplayerCounters,
    ) -> usize {
        let window = self.spec.publication.available_window();
        if window <= 0 {
            return 0;
        }
        let Some((_, file)) = &self.segment else {
            return 0;
        };
        let terms = self.spec.layout.terms();
        let left_in_term = (terms.term_length() - terms.term_offset(self.position)) as usize;
        let available = usize::try_from(self.spec.limit.available() - self.position).unwrap_or(0);
        // At least one frame, so that a small window makes progress.
        let window = usize::try_from(window)
            .unwrap_or(usize::MAX)
            .max(self.spec.mtu);
        let length = [available, left_in_term, window, self.spec.io_max_length];
        let Some(mut buffer) = self.buffer.take().or_else(|| buffers.take()) else {
            return 0;
        };
        let length = length.into_iter().fold(buffer.len(), usize::min);
        let offset = self.spec.layout.offset_of(self.position);
        match file.file().read_cached_at(&mut buffer[..length], offset) {
            Ok(Some(read)) if read >= HEADER => {
                counters.total_read_bytes.add(read as i64);
                self.buffer = Some(buffer);
                self.send(read)
            }
            _ => {
                let file = file.clone();
                self.state = State::Reading {
                    position: self.position,
                };
                let request = Request::Read {
                    file,
                    offset,
                    buffer,
                    range: 0..length,
                };
                self.submit(request, io);
                1
            }
        }
    }

    /// Sends frames from the first `length` bytes of the buffer.
    fn send(&mut self, length: usize) -> usize {
        let Some(buffer) = &mut self.buffer else {
            return 0;
        };
        // The stored ids are replaced in place; an attempt that is repeated replaces them again.
        let conversion = &self.spec.conversion;
        let prepared =
            conversion.prepare(&mut buffer[..length], self.position, self.spec.limit.end());
        let batch = match prepared {
            Ok(batch) => batch,
            Err(error) => {
                self.fail(ErrorCode::Generic, error.to_string());
                return 1;
            }
        };
        let publication = &mut self.spec.publication;
        let offered = match batch {
            Batch::Frames(length) => publication.offer_block(&buffer[..length]),
            Batch::Padding(length) => publication.offer_padding_frame(length),
        };
        match offered {
            Ok(position) => {
                self.position += batch.length() as i64;
                debug_assert_eq!(position, self.position);
                self.spec
                    .shared_position
                    .store(self.position, Ordering::Relaxed);
                self.state = State::Replaying;
                batch.length()
            }
            Err(OfferError::BackPressured | OfferError::AdminAction) => {
                // The same bytes are read again.
                self.state = State::Replaying;
                0
            }
            Err(OfferError::NotConnected | OfferError::Closed) => {
                self.revokes = true;
                self.end(None);
                1
            }
            Err(error) => {
                self.fail(ErrorCode::Generic, error.to_string());
                1
            }
        }
    }

    // --- completions ---

    pub(super) fn on_completion(
        &mut self,
        completion: Completion,
        now_ns: i64,
        io: &mut DiskIo,
        counters: &ReplayerCounters,
    ) {
        self.requests -= 1;
        if completion.token & UNUSED_RESULT != 0 {
            return;
        }
        let service_ns = completion.service_ns;
        let buffer = completion.buffer;
        match (
            std::mem::replace(&mut self.state, State::Ended),
            completion.result,
        ) {
            (State::Opening, Ok(Outcome::Opened(file))) => {
                let base = self.spec.layout.base_of(self.position);
                self.segment = Some((base, io.attach(file)));
                self.state = if self.is_ready {
                    State::Replaying
                } else {
                    State::Unchecked
                };
            }
            (State::Opening, Err(error)) => self.on_open_failed(&error, now_ns),
            (State::Checking, Ok(Outcome::Read(length))) => {
                let header = buffer.as_deref().and_then(|buffer| buffer.get(..length));
                let checked = self
                    .spec
                    .conversion
                    .check_header(header.unwrap_or_default(), self.position);
                match checked {
                    Ok(_) => self.become_ready(),
                    Err(error) => self.fail(ErrorCode::InvalidPosition, error.to_string()),
                }
            }
            (State::Reading { position }, Ok(Outcome::Read(length))) => {
                counters.max_read_ns.propose_max(service_ns);
                counters.total_read_ns.add(service_ns);
                counters.total_read_bytes.add(length as i64);
                debug_assert_eq!(position, self.position);
                self.buffer = buffer;
                self.state = State::Read { length };
            }
            (State::Checking, Err(error)) => self.fail(ErrorCode::Generic, error.to_string()),
            (State::Reading { .. }, Err(error)) => {
                self.buffer = buffer;
                self.fail(ErrorCode::Generic, error.to_string());
            }
            (State::Ended, _) => {
                // The buffer of the first header is not from the pool.
                self.buffer = buffer
                    .filter(|buffer| buffer.len() > HEADER)
                    .or(self.buffer.take());
                self.state = State::Ended;
                self.close_segment(io);
            }
            (state, _) => self.state = state,
        }
        if matches!(self.state, State::Ended) {
            self.close_segment(io);
        }
    }

    fn on_open_failed(&mut self, error: &DiskError, now_ns: i64) {
        // The recorder may just be creating the file.
        let can_wait = error.is_not_found() && (!self.is_ready || self.spec.limit.refresh());
        if can_wait && now_ns < self.spec.deadline_ns {
            let retry_at_ns = now_ns.saturating_add(OPEN_INTERVAL_NS);
            self.state = State::Closed { retry_at_ns };
        } else {
            self.fail(ErrorCode::Generic, error.to_string());
        }
    }

    fn fail(&mut self, code: ErrorCode, text: String) {
        self.revokes = true;
        self.end(Some(ReplayFailure { code, text }));
    }

    fn end(&mut self, failure: Option<ReplayFailure>) {
        self.state = State::Ended;
        self.reports.push(ReplayReport::Ended {
            id: self.spec.id,
            failure,
        });
    }

    pub(super) fn close_segment(&mut self, io: &mut DiskIo) {
        if let Some((_, file)) = self.segment.take() {
            self.requests += 1;
            io.submit(self.token | UNUSED_RESULT, Request::Close { file });
        }
    }

    fn submit(&mut self, request: Request, io: &mut DiskIo) {
        self.requests += 1;
        io.submit(self.token, request);
    }
}
