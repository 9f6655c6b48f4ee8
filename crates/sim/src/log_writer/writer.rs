// SPDX-License-Identifier: Apache-2.0
//! The writer.
//!
//! Contract: input is [`LogWriter::append`], output is [`LogWriter::acknowledged`]; [`LogWriter::do_work`] does what is
//! possible without waiting. After an error of `do_work` the writer must be dropped: a new one recovers.

use std::collections::VecDeque;

use taran_storage::{
    AlignedBuf, Completion, Disk, DiskError, DiskLock, DiskQueue, OpenOptions, Outcome, QueuedFile,
    Request, SyncKind,
};

use super::Defect;
use super::record::{SEGMENT, encode, record_len};
use super::recovery::{DIRECTORY, recover, segment_path};

/// Blocks written and not yet durable, at most.
const BLOCKS: usize = 2;

/// Pause in nanoseconds before another attempt to create a segment on a full disk.
const RETRY_NS: i64 = 1_000_000;

const OPEN: u64 = 1;
const SYNC_DIRECTORY: u64 = 2;
const WRITE: u64 = 3;
const SYNC: u64 = 4;

#[derive(Debug)]
enum State {
    /// Appends to the current segment.
    Writing,
    /// Waits for the syncs of the current segment, then creates the next one.
    Full,
    /// Waits for the next segment and the sync of its directory.
    Creating {
        file: Option<QueuedFile>,
        is_named: bool,
    },
    /// The disk is full; tries again at this time.
    WaitingForSpace { until_ns: i64 },
}

/// Appends records to a log and acknowledges those that are durable.
#[derive(Debug)]
pub struct LogWriter<Q> {
    queue: Q,
    defect: Option<Defect>,
    state: State,
    file: QueuedFile,
    /// End of the records in the current segment.
    end: usize,
    waiting: VecDeque<Vec<u8>>,
    /// Records of the blocks whose sync is not complete, oldest first.
    blocks: VecDeque<u64>,
    /// The same for blocks whose write is not complete.
    writes: VecDeque<u64>,
    buffers: Vec<AlignedBuf>,
    /// Sequence number of the next record to write.
    next: u64,
    acknowledged: u64,
    _lock: DiskLock,
}

impl<Q: DiskQueue> LogWriter<Q> {
    /// Recovers the log, and returns the payloads of its records with the writer. All of them are durable.
    ///
    /// # Errors
    ///
    /// An error of the disk.
    pub fn start(
        disk: &dyn Disk,
        mut queue: Q,
        defect: Option<Defect>,
    ) -> Result<(Self, Vec<Vec<u8>>), DiskError> {
        let recovered = recover(disk, defect)?;
        let next = recovered.records.len() as u64;
        let writer = Self {
            file: queue.attach(recovered.file),
            queue,
            defect,
            state: State::Writing,
            end: recovered.end,
            waiting: VecDeque::new(),
            blocks: VecDeque::new(),
            writes: VecDeque::new(),
            buffers: (0..BLOCKS).map(|_| AlignedBuf::new(SEGMENT)).collect(),
            next,
            acknowledged: next,
            _lock: recovered.lock,
        };
        Ok((writer, recovered.records))
    }

    /// Accepts a record of 1 to 1024 bytes. Returns false for other lengths.
    pub fn append(&mut self, payload: Vec<u8>) -> bool {
        let is_valid = (1..=1024).contains(&payload.len());
        if is_valid {
            self.waiting.push_back(payload);
        }
        is_valid
    }

    /// Returns the number of records that are durable, from the first one of the log.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Returns the time of the next work without new records.
    pub fn next_deadline_ns(&self) -> i64 {
        match &self.state {
            // The last duty cycle has filled the segment, or has waited for what is complete now.
            State::Full if self.blocks.is_empty() => i64::MIN,
            State::Creating {
                file: Some(_),
                is_named: true,
            } => i64::MIN,
            State::WaitingForSpace { until_ns } if self.queue.in_flight() == 0 => *until_ns,
            _ => self.queue.next_deadline_ns(),
        }
    }

    /// Polls completions and submits what can be submitted. Returns the number of both.
    ///
    /// # Errors
    ///
    /// The error of a write or sync: the state of the file is unknown, and a restart recovers it. A full disk is no error.
    pub fn do_work(&mut self, now_ns: i64) -> Result<usize, DiskError> {
        let before = self.queue.in_flight();
        let mut completed = 0;
        while let Some(completion) = self.queue.poll(now_ns) {
            completed += 1;
            self.on_completion(completion, now_ns)?;
        }
        match &mut self.state {
            State::Writing => self.write(),
            State::Full if self.blocks.is_empty() => self.create_segment(),
            // Not while the directory sync of the last attempt is in flight: its completion says nothing about this one.
            State::WaitingForSpace { until_ns }
                if *until_ns <= now_ns && self.queue.in_flight() == 0 =>
            {
                self.create_segment();
            }
            State::Creating { file, is_named } if *is_named => {
                if let Some(file) = file.take() {
                    self.file = file;
                    self.end = 0;
                    self.state = State::Writing;
                    self.write();
                }
            }
            _ => {}
        }
        // Starts what was submitted.
        while let Some(completion) = self.queue.poll(now_ns) {
            completed += 1;
            self.on_completion(completion, now_ns)?;
        }
        let submitted = (self.queue.in_flight() + completed).saturating_sub(before);
        Ok(completed + submitted)
    }

    fn on_completion(&mut self, completion: Completion, now_ns: i64) -> Result<(), DiskError> {
        self.buffers.extend(completion.buffer);
        match (completion.token, completion.result) {
            (OPEN, Err(error)) if error.is_full() => {
                self.state = State::WaitingForSpace {
                    until_ns: now_ns + RETRY_NS,
                };
            }
            (_, Err(error)) => return Err(error),
            (OPEN, Ok(Outcome::Opened(opened))) => {
                let opened = self.queue.attach(opened);
                if let State::Creating { file, .. } = &mut self.state {
                    *file = Some(opened);
                }
            }
            (SYNC_DIRECTORY, Ok(_)) => {
                if let State::Creating { is_named, .. } = &mut self.state {
                    *is_named = true;
                }
            }
            (WRITE, Ok(_)) => {
                let end = self.writes.pop_front();
                if self.defect == Some(Defect::AcknowledgesBeforeSync) {
                    self.acknowledged = end.unwrap_or(self.acknowledged);
                }
            }
            (SYNC, Ok(_)) => {
                let end = self.blocks.pop_front();
                self.acknowledged = end.unwrap_or(self.acknowledged).max(self.acknowledged);
            }
            (_, Ok(_)) => {}
        }
        Ok(())
    }

    /// Submits a block with as many records as fit into the segment.
    fn write(&mut self) {
        let Some(first) = self.waiting.front() else {
            return;
        };
        if self.end + record_len(first.len()) > SEGMENT {
            self.state = State::Full;
            return;
        }
        let Some(mut buffer) = self.buffers.pop() else {
            return;
        };
        if self.blocks.len() == BLOCKS {
            self.buffers.push(buffer);
            return;
        }
        let mut len = 0;
        while let Some(payload) = self.waiting.front() {
            if self.end + len + record_len(payload.len()) > SEGMENT {
                break;
            }
            len += encode(&mut buffer[len..], self.next, payload);
            self.next += 1;
            self.waiting.pop_front();
        }
        let write = Request::Write {
            file: self.file.clone(),
            offset: self.end as u64,
            buffer,
            range: 0..len,
        };
        self.end += len;
        self.writes.push_back(self.next);
        self.blocks.push_back(self.next);
        self.submit(WRITE, write);
        let sync = Request::Sync {
            file: self.file.clone(),
            kind: SyncKind::Data,
        };
        self.submit(SYNC, sync);
    }

    /// Creates the next segment. All records before it are durable.
    fn create_segment(&mut self) {
        let forgets = self.defect == Some(Defect::ForgetsDirectorySync);
        self.state = State::Creating {
            file: None,
            is_named: forgets,
        };
        let open = Request::Open {
            path: segment_path(self.next),
            options: OpenOptions::create_new().with_allocate(SEGMENT as u64),
        };
        self.submit(OPEN, open);
        if !forgets {
            let directory = DIRECTORY.into();
            self.submit(SYNC_DIRECTORY, Request::SyncDirectory { directory });
        }
    }

    fn submit(&mut self, token: u64, request: Request) {
        // At most two blocks and two requests on names are in flight.
        let result = self.queue.submit(token, request);
        debug_assert!(result.is_ok(), "{result:?}");
    }
}
