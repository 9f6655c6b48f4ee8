// SPDX-License-Identifier: Apache-2.0
//! Writing the segment files of one recording.

mod segments;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use taran_storage::{
    AlignedBuf, Completion, Create, DiskError, ErrorKind, Operation, Outcome, QueuedFile, Request,
};

use super::ahead::Ahead;
use super::block::Block;
use crate::config::DiskFullPolicy;
use crate::disk_io::DiskIo;
use crate::files::{RecordingLayout, SegmentName, SyncLevel};

/// Highest number of blocks between image and disk. While all are on their way, the next one grows.
const MAX_BLOCKS: usize = 3;
/// Time between attempts to write to a full disk.
const RETRY_INTERVAL_NS: i64 = 100_000_000;

/// Operations of a writer, as a part of the tokens of their requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Examine,
    Open,
    Cut,
    Extend,
    SyncDirectory,
    Rename,
    Write,
    Sync,
    /// Makes the next segment.
    Ahead,
    /// Clears a failure, or closes a file: nothing depends on it.
    Other,
}

const OPS: [Op; 10] = [
    Op::Examine,
    Op::Open,
    Op::Cut,
    Op::Extend,
    Op::SyncDirectory,
    Op::Rename,
    Op::Write,
    Op::Sync,
    Op::Ahead,
    Op::Other,
];

/// Number of low bits of a token that a writer uses.
pub(crate) const TOKEN_BITS: u32 = 32;
/// Number of bits of the sequence number.
const SEQUENCE_BITS: u32 = 24;

/// Options of all writers of an archive.
#[derive(Clone, Debug)]
pub(crate) struct WriterOptions {
    pub(crate) directory: PathBuf,
    pub(crate) sync: SyncLevel,
    pub(crate) disk_full: DiskFullPolicy,
}

/// Position from which a recording goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriterStart {
    pub(crate) recording_id: i64,
    pub(crate) layout: RecordingLayout,
    /// Position of the first frame to write.
    pub(crate) position: i64,
    /// True if the recording is extended: the bytes before the position are in its files.
    pub(crate) is_extension: bool,
}

/// State of a writer for its owner.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WriterStatus<'a> {
    /// Blocks are written as they come.
    Working,
    /// The disk is full: blocks wait for space.
    Held(&'a DiskError),
    /// Nothing more is written.
    Failed(&'a DiskError),
}

#[derive(Debug)]
enum State {
    Working,
    Held { error: DiskError, retry_at_ns: i64 },
    Failed(DiskError),
}

/// Progress of a segment file to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    /// The file has another name until the segment before it is complete: a recovery does not look for frames behind a hole.
    Waiting,
    Renaming,
    /// The name is not durable.
    Renamed,
    Syncing,
    Done,
}

/// A segment file.
#[derive(Debug)]
struct Segment {
    base: i64,
    /// Identifies the segment in tokens.
    sequence: u32,
    file: Option<QueuedFile>,
    /// The file can be written.
    is_ready: bool,
    naming: Naming,
    /// End of the last block that was submitted.
    submitted: i64,
    /// Position up to which it is durable.
    synced: i64,
    /// End that a sync in flight covers.
    syncing: Option<i64>,
}

#[derive(Debug)]
enum InFlightState {
    Submitted,
    Done,
    /// It came back from a write that failed.
    Returned(AlignedBuf),
    /// Its block was taken from a failed writer. It stays, because nothing from its start on may be acknowledged.
    GivenUp,
}

#[derive(Debug)]
struct InFlight {
    sequence: u32,
    segment: u32,
    start: i64,
    length: usize,
    state: InFlightState,
}

/// Effect of a completion, for the owner of the writer.
#[derive(Debug, Default)]
pub(crate) struct Completed {
    /// A buffer to use again.
    pub(crate) buffer: Option<AlignedBuf>,
    /// Bytes written.
    pub(crate) written: usize,
}

/// The writer of the segment files of one recording.
///
/// Contract: blocks are input of [`push`](Self::push), in order and each within one segment, while there is
/// [`room`](Self::has_room). Completions of requests go to [`on_completion`](Self::on_completion), and [`tick`](Self::tick)
/// is called in each duty cycle. Output is the [`position`](Self::position) up to which all is written and, if the sync level
/// asks for it, durable; and the [`status`](Self::status). A full disk is waited for, with the blocks in memory. After
/// [`close`](Self::close) it takes no blocks; when it [is closed](Self::is_closed), no request is in flight.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    options: WriterOptions,
    start: WriterStart,
    token: u64,
    state: State,
    /// Error of a full disk, while the attempt to write again is under way.
    retried: Option<DiskError>,
    segments: VecDeque<Segment>,
    queued: VecDeque<Block>,
    in_flight: VecDeque<InFlight>,
    ahead: Ahead,
    next_sequence: u32,
    requests: usize,
    position: i64,
    is_closing: bool,
    has_closed_files: bool,
}

impl SegmentWriter {
    /// A writer whose requests have tokens from `token` on, of which the low [`TOKEN_BITS`] bits are zero.
    pub(crate) fn new(options: WriterOptions, start: WriterStart, token: u64) -> Self {
        // Segment lengths are positive.
        let length = u64::from(start.layout.segment_length().unsigned_abs());
        Self {
            ahead: Ahead::new(options.directory.clone(), length),
            options,
            token,
            state: State::Working,
            retried: None,
            segments: VecDeque::new(),
            queued: VecDeque::new(),
            in_flight: VecDeque::new(),
            next_sequence: 0,
            requests: 0,
            position: start.position,
            is_closing: false,
            has_closed_files: false,
            start,
        }
    }

    /// Returns the position up to which the recording is acknowledged.
    pub(crate) fn position(&self) -> i64 {
        self.position
    }

    pub(crate) fn status(&self) -> WriterStatus<'_> {
        match &self.state {
            State::Working => match &self.retried {
                Some(error) => WriterStatus::Held(error),
                None => WriterStatus::Working,
            },
            State::Held { error, .. } => WriterStatus::Held(error),
            State::Failed(error) => WriterStatus::Failed(error),
        }
    }

    /// Returns true if a block can be pushed.
    pub(crate) fn has_room(&self) -> bool {
        matches!(self.state, State::Working)
            && !self.is_closing
            && self.queued.len() + self.in_flight.len() < MAX_BLOCKS
    }

    /// Returns the length that the segment with this position still has, in bytes.
    pub(crate) fn left_in_segment(&self, position: i64) -> usize {
        let layout = &self.start.layout;
        let end = layout.next_base(layout.base_of(position));
        (end - position).unsigned_abs() as usize
    }

    /// Opens the first segment, so that a recording without data has its file, too.
    pub(crate) fn open(&mut self, io: &mut DiskIo) {
        self.open_segment(self.start.layout.base_of(self.start.position), io);
    }

    /// Takes a block.
    pub(crate) fn push(&mut self, block: Block, io: &mut DiskIo) {
        debug_assert!(self.has_room() && !block.is_empty());
        self.queued.push_back(block);
        self.advance(io);
    }

    /// Tries again to write to a full disk.
    pub(crate) fn tick(&mut self, now_ns: i64, io: &mut DiskIo) {
        let State::Held { retry_at_ns, error } = &self.state else {
            return;
        };
        if self.requests > 0 {
            return;
        }
        if self.is_closing {
            // What was not acknowledged is given up, because a stop must not wait for space.
            self.state = State::Failed(error.clone());
            self.advance(io);
        } else if now_ns >= *retry_at_ns {
            self.retried = Some(error.clone());
            self.state = State::Working;
            self.repeat(io);
        }
    }

    /// Ends the recording: writes what was pushed, makes it durable, closes the files.
    pub(crate) fn close(&mut self, io: &mut DiskIo) {
        self.is_closing = true;
        self.advance(io);
    }

    /// Returns true if nothing is in flight and the files are closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.has_closed_files && self.requests == 0
    }

    /// Takes the buffers of blocks that were given up.
    pub(crate) fn take_buffer(&mut self) -> Option<AlignedBuf> {
        if !matches!(self.state, State::Failed(_)) {
            return None;
        }
        if let Some(block) = self.queued.pop_front() {
            return Some(block.into_buffer());
        }
        let given_up = self
            .in_flight
            .iter_mut()
            .find(|write| matches!(write.state, InFlightState::Returned(_)))?;
        match std::mem::replace(&mut given_up.state, InFlightState::GivenUp) {
            InFlightState::Returned(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// Takes note of a completion; `token` is that of the request.
    pub(crate) fn on_completion(
        &mut self,
        completion: Completion,
        now_ns: i64,
        io: &mut DiskIo,
    ) -> Completed {
        self.requests -= 1;
        let (op, sequence) = parse_token(completion.token);
        let mut completed = Completed::default();
        match completion.result {
            result if op == Op::Ahead => match self.ahead.on_completion(result, io) {
                Some(request) => self.submit(Op::Ahead, 0, request, io),
                None if self.ahead.has_failed() => self.abandon_ahead(io),
                None => {}
            },
            Ok(outcome) => {
                self.on_success(op, sequence, outcome, io, &mut completed, completion.buffer);
            }
            Err(error) => self.on_failure(
                op,
                sequence,
                error,
                now_ns,
                &mut completed,
                completion.buffer,
            ),
        }
        self.acknowledge(io);
        self.advance(io);
        if self.requests == 0 && self.in_flight.is_empty() && self.queued.is_empty() {
            self.retried = None;
        }
        completed
    }

    fn on_success(
        &mut self,
        op: Op,
        sequence: u32,
        outcome: Outcome,
        io: &mut DiskIo,
        completed: &mut Completed,
        buffer: Option<AlignedBuf>,
    ) {
        match (op, outcome) {
            (Op::Examine, Outcome::Metadata(metadata)) => {
                let offset = self.start.layout.offset_of(self.start.position);
                if metadata.len < offset {
                    let kind = ErrorKind::UnexpectedEnd {
                        offset,
                        needed: 0,
                        len: metadata.len as usize,
                    };
                    let path = self.path(self.start.layout.base_of(self.start.position));
                    self.state = State::Failed(DiskError::new(Operation::Open, &path, kind));
                    return;
                }
                self.submit_open(Create::Never, io);
            }
            (Op::Open, Outcome::Opened(file)) => self.on_opened(file, io),
            (Op::Cut, _) => self.submit_extend(io),
            (Op::Extend, _) => self.on_extended(io),
            (Op::Rename, _) => {
                let is_synced = self.options.sync == SyncLevel::None;
                if let Some(segment) = self.segment_mut(sequence) {
                    segment.naming = if is_synced {
                        Naming::Done
                    } else {
                        Naming::Renamed
                    };
                }
            }
            (Op::SyncDirectory, _) => {
                if let Some(segment) = self.segment_mut(sequence) {
                    segment.naming = Naming::Done;
                    segment.is_ready = true;
                }
            }
            (Op::Write, _) => {
                let write = self
                    .in_flight
                    .iter_mut()
                    .find(|write| write.sequence == sequence);
                if let Some(write) = write {
                    write.state = InFlightState::Done;
                    completed.written = write.length;
                }
                self.retried = None;
                completed.buffer = buffer;
            }
            (Op::Sync, _) => {
                if let Some(segment) = self.segment_mut(sequence)
                    && let Some(end) = segment.syncing.take()
                {
                    segment.synced = end;
                }
            }
            _ => {}
        }
    }

    fn on_failure(
        &mut self,
        op: Op,
        sequence: u32,
        error: DiskError,
        now_ns: i64,
        completed: &mut Completed,
        buffer: Option<AlignedBuf>,
    ) {
        if op == Op::Write {
            let write = self
                .in_flight
                .iter_mut()
                .find(|write| write.sequence == sequence);
            match (write, buffer) {
                (Some(write), Some(buffer)) => write.state = InFlightState::Returned(buffer),
                (_, buffer) => completed.buffer = buffer,
            }
        }
        if let Some(segment) = self.segment_mut(sequence) {
            match (op, segment.naming) {
                (Op::Sync, _) => segment.syncing = None,
                (Op::Rename, _) => segment.naming = Naming::Waiting,
                (Op::SyncDirectory, Naming::Syncing) => segment.naming = Naming::Renamed,
                _ => {}
            }
        }
        let can_wait = match &error.kind {
            // Nothing was synced, because an earlier write found no space: the sync is repeated with it.
            ErrorKind::FailedBefore { first } => {
                first.is_full() && first.operation != Operation::Sync
            }
            // After a failed sync, bytes may be lost that are not in memory any more.
            _ => error.is_full() && op != Op::Sync,
        };
        match (&self.state, op) {
            (_, Op::Other) | (State::Failed(_), _) => {}
            (State::Held { .. }, _) if can_wait => {}
            (State::Working, _) if can_wait && self.options.disk_full == DiskFullPolicy::Hold => {
                let retry_at_ns = now_ns.saturating_add(RETRY_INTERVAL_NS);
                self.state = State::Held { error, retry_at_ns };
            }
            _ => self.state = State::Failed(error),
        }
    }

    /// Submits what failed for want of space.
    fn repeat(&mut self, io: &mut DiskIo) {
        for at in 0..self.segments.len() {
            if let Some(file) = self.segments[at].file.clone() {
                self.submit(Op::Other, 0, Request::ClearFailure { file }, io);
            }
        }
        for at in 0..self.in_flight.len() {
            let write = &mut self.in_flight[at];
            let state = std::mem::replace(&mut write.state, InFlightState::Submitted);
            match state {
                InFlightState::Returned(buffer) => {
                    let (sequence, segment) = (write.sequence, write.segment);
                    let (start, length) = (write.start, write.length);
                    self.submit_write(sequence, segment, start, length, buffer, io);
                }
                state => write.state = state,
            }
        }
        if let Some(segment) = self.segments.back()
            && !segment.is_ready
        {
            if segment.file.is_some() {
                self.submit_extend(io);
            } else {
                self.begin_open(io);
            }
        }
        self.advance(io);
    }

    /// Submits all that can be submitted.
    fn advance(&mut self, io: &mut DiskIo) {
        if matches!(self.state, State::Working) {
            self.submit_blocks(io);
            self.acknowledge(io);
            self.submit_syncs(io);
            self.submit_name(io);
            self.prepare_next(io);
        }
        let is_complete = match self.state {
            State::Working => {
                self.queued.is_empty()
                    && self.in_flight.is_empty()
                    && !self.ahead.is_working()
                    && self
                        .segments
                        .iter()
                        .all(|segment| segment.is_ready && segment.naming == Naming::Done)
                    && self.is_synced()
            }
            State::Held { .. } => false,
            State::Failed(_) => self.requests == 0,
        };
        if self.is_closing && is_complete && !self.has_closed_files {
            self.has_closed_files = true;
            while let Some(segment) = self.segments.pop_front() {
                let has_name = matches!(segment.naming, Naming::Renamed | Naming::Done);
                let path = self.name_of(segment.base).map(|name| {
                    // Nothing of it is acknowledged.
                    name.reserved_path(&self.options.directory)
                });
                self.close_file(segment, io);
                if !has_name && let Some(path) = path {
                    self.submit(Op::Other, 0, Request::RemoveFile { path }, io);
                }
            }
            self.abandon_ahead(io);
        }
    }

    fn submit_blocks(&mut self, io: &mut DiskIo) {
        while let Some(block) = self.queued.front() {
            let (start, end) = (block.start(), block.end());
            let base = self.start.layout.base_of(start);
            let is_there = self.segments.back().is_some_and(|last| last.base == base);
            if !is_there && !self.take_ahead(base) {
                self.open_next(base, io);
                return;
            }
            let Some(segment) = self.segments.back_mut().filter(|last| last.is_ready) else {
                return;
            };
            segment.submitted = end;
            let segment = segment.sequence;
            let Some(block) = self.queued.pop_front() else {
                return;
            };
            let (sequence, length) = (self.next_sequence(), block.length());
            self.in_flight.push_back(InFlight {
                sequence,
                segment,
                start,
                length,
                state: InFlightState::Submitted,
            });
            self.submit_write(sequence, segment, start, length, block.into_buffer(), io);
        }
    }

    fn submit_write(
        &mut self,
        sequence: u32,
        segment: u32,
        start: i64,
        length: usize,
        buffer: AlignedBuf,
        io: &mut DiskIo,
    ) {
        let file = self
            .segment_mut(segment)
            .and_then(|segment| segment.file.clone());
        // A segment stays until its writes are done.
        let Some(file) = file else { return };
        let request = Request::Write {
            file,
            offset: self.start.layout.offset_of(start),
            buffer,
            range: 0..length,
        };
        self.submit(Op::Write, sequence, request, io);
    }

    fn submit_syncs(&mut self, io: &mut DiskIo) {
        let Some(kind) = self.options.sync.kind() else {
            return;
        };
        for at in 0..self.segments.len() {
            let segment = &mut self.segments[at];
            if segment.syncing.is_none()
                && segment.submitted > segment.synced
                && let Some(file) = segment.file.clone()
            {
                segment.syncing = Some(segment.submitted);
                let sequence = segment.sequence;
                self.submit(Op::Sync, sequence, Request::Sync { file, kind }, io);
            }
        }
    }

    fn is_synced(&self) -> bool {
        self.options.sync == SyncLevel::None
            || self
                .segments
                .iter()
                .all(|segment| segment.synced >= segment.submitted)
    }

    /// Moves the acknowledged position over all that is complete.
    fn acknowledge(&mut self, io: &mut DiskIo) {
        while let Some(write) = self.in_flight.front()
            && matches!(write.state, InFlightState::Done)
        {
            self.in_flight.pop_front();
        }
        loop {
            let first_in_flight = self.in_flight.front().map(|write| write.start);
            let Some(segment) = self.segments.front() else {
                return;
            };
            let reached = if segment.naming != Naming::Done {
                self.position
            } else if self.options.sync == SyncLevel::None {
                // All that was submitted to this segment is written, unless it is in flight.
                match first_in_flight {
                    Some(start) => start.min(segment.submitted),
                    None => segment.submitted,
                }
            } else {
                segment.synced
            };
            self.position = self.position.max(reached);
            let end = self.start.layout.next_base(segment.base);
            if reached < end || self.segments.len() == 1 {
                return;
            }
            if let Some(segment) = self.segments.pop_front() {
                self.close_file(segment, io);
            }
        }
    }

    // --- requests ---

    fn path(&self, base: i64) -> PathBuf {
        segment_path(&self.options.directory, self.start.recording_id, base)
    }

    fn segment_mut(&mut self, sequence: u32) -> Option<&mut Segment> {
        self.segments
            .iter_mut()
            .find(|segment| segment.sequence == sequence)
    }

    fn next_sequence(&mut self) -> u32 {
        self.next_sequence = (self.next_sequence + 1) % (1 << SEQUENCE_BITS);
        self.next_sequence
    }

    fn submit(&mut self, op: Op, sequence: u32, request: Request, io: &mut DiskIo) {
        let kind = OPS.iter().position(|known| *known == op).unwrap_or(0) as u64;
        let token = self.token | kind << SEQUENCE_BITS | u64::from(sequence);
        self.requests += 1;
        io.submit(token, request);
    }
}

fn parse_token(token: u64) -> (Op, u32) {
    let kind = token >> SEQUENCE_BITS & 0xFF;
    let op = OPS.get(kind as usize).copied().unwrap_or(Op::Other);
    (op, token as u32 & ((1 << SEQUENCE_BITS) - 1))
}

/// Returns the path of a segment file.
pub(crate) fn segment_path(directory: &Path, recording_id: i64, base: i64) -> PathBuf {
    // Recordings have no negative id or position.
    SegmentName::new(recording_id, base).map_or_else(PathBuf::new, |name| name.path(directory))
}
