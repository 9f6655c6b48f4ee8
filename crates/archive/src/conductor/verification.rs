// SPDX-License-Identifier: Apache-2.0
//! Verification of recordings in the background: reads all frames again, with a budget of bytes per second.
//!
//! It has a thread of its own for the disk, reads past the page cache where the file system can do that, and pauses while
//! recordings wait for space.

use std::collections::BTreeSet;

use taran_archive_client::protocol::ErrorCode;
use taran_storage::{
    ALIGNMENT, AlignedBuf, Completion, DiskError, ErrorKind, OpenOptions, Outcome, QueuedFile,
    Request as DiskRequest,
};

use super::ConductorCore;
use crate::disk_io::DiskIo;
use crate::files::{EntryState, FrameChecker, SegmentName};

/// Bytes read at once: more than the longest frame with its alignment.
const CHUNK: usize = 256 * 1024;
/// Pause before a finding is checked again: the recording may have been changed while it was read.
const RECHECK_DELAY_NS: i64 = 1_000_000_000;
/// The system's error number of a range or option that is not supported.
const EINVAL: i32 = 22;

/// A recording that is verified.
#[derive(Debug)]
struct Walk {
    recording_id: i64,
    frames: FrameChecker,
    file: Option<(SegmentName, QueuedFile)>,
    /// Position of a finding that is being checked again.
    suspect: Option<i64>,
}

/// Progress of the verification over the recordings.
#[derive(Debug)]
pub(super) struct Verification {
    /// `None` without verification.
    io: Option<DiskIo>,
    is_waiting: bool,
    /// Time of the next request.
    next_ns: i64,
    /// Id from which a pass goes on; `None` between passes.
    cursor: Option<i64>,
    walk: Option<Walk>,
    buffer: Option<AlignedBuf>,
    /// Read past the page cache.
    is_direct: bool,
    damaged: BTreeSet<i64>,
}

impl Verification {
    pub(super) fn new(io: Option<DiskIo>) -> Self {
        Self {
            io,
            is_waiting: false,
            next_ns: i64::MIN,
            cursor: None,
            walk: None,
            buffer: None,
            is_direct: true,
            damaged: BTreeSet::new(),
        }
    }

    fn submit(&mut self, request: DiskRequest) {
        if let Some(io) = &mut self.io {
            self.is_waiting = true;
            io.submit(1, request);
        }
    }

    fn close(&mut self, file: QueuedFile) {
        if let Some(io) = &mut self.io {
            io.submit(0, DiskRequest::Close { file });
        }
    }
}

impl ConductorCore {
    /// Verifies recordings; returns the amount of work.
    pub(super) fn poll_verification(&mut self) -> usize {
        let now_ns = self.now.nanos;
        let mut work = 0;
        while let Some(io) = &mut self.verification.io
            && let Some(completion) = io.poll(now_ns)
        {
            work += 1;
            if completion.token != 0 {
                self.verification.is_waiting = false;
                self.on_verification(completion);
            }
        }
        let verification = &self.verification;
        let is_paused = verification.io.is_none()
            || verification.is_waiting
            || now_ns < verification.next_ns
            || !self.held.is_empty();
        if is_paused {
            return work;
        }
        if self.verification.walk.is_none() {
            self.begin_walk();
        } else {
            self.read_on();
        }
        work + 1
    }

    /// Begins with the next recording, or ends the pass.
    fn begin_walk(&mut self) {
        let from = self.verification.cursor.unwrap_or(0);
        let Some(found) = self.catalog.recordings(from).next() else {
            self.verification.cursor = None;
            self.verification.next_ns = self
                .now
                .nanos
                .saturating_add(self.config.verify_interval_ns);
            return;
        };
        let recording_id = found.recording_id;
        self.verification.cursor = Some(recording_id + 1);
        let end = self
            .recorded_position(recording_id)
            .unwrap_or(found.stop_position);
        let Ok(layout) = found.layout() else { return };
        let frames = FrameChecker::new(
            layout,
            found.stream_id,
            self.config.record_checksum,
            (found.start_position, end),
        );
        self.verification.walk = Some(Walk {
            recording_id,
            frames,
            file: None,
            suspect: None,
        });
    }

    /// Reads the next frames.
    fn read_on(&mut self) {
        let Some(walk) = &self.verification.walk else {
            return;
        };
        let position = walk.frames.position();
        if position >= walk.frames.end() || !self.is_as_before(walk) {
            self.end_walk();
            return;
        }
        let layout = walk.frames.layout();
        let Some(name) = SegmentName::new(walk.recording_id, layout.base_of(position)) else {
            self.end_walk();
            return;
        };
        match &walk.file {
            Some((open, file)) if *open == name => {
                let file = file.clone();
                // A multiple of the alignment, as the length of a segment is.
                let offset = layout.offset_of(position) / ALIGNMENT as u64 * ALIGNMENT as u64;
                let buffer = self.verification.buffer.take();
                let buffer = buffer.unwrap_or_else(|| AlignedBuf::new(CHUNK));
                self.verification.submit(DiskRequest::Read {
                    file,
                    offset,
                    buffer,
                    range: 0..CHUNK,
                });
            }
            _ => {
                self.close_verified_file();
                let path = name.path(&self.config.dir);
                let options = if self.verification.is_direct {
                    OpenOptions::read().with_direct()
                } else {
                    OpenOptions::read()
                };
                self.verification
                    .submit(DiskRequest::Open { path, options });
            }
        }
    }

    /// Returns true if a recording still has what is to be verified.
    fn is_as_before(&self, walk: &Walk) -> bool {
        let id = walk.recording_id;
        self.check_no_deletion(id).is_ok()
            && self.catalog.get(id).is_some_and(|found| {
                let end = self.recorded_position(id).unwrap_or(found.stop_position);
                found.start_position <= walk.frames.position() && end >= walk.frames.end()
            })
    }

    fn on_verification(&mut self, completion: Completion) {
        let Completion { result, buffer, .. } = completion;
        let Some(walk) = &mut self.verification.walk else {
            return;
        };
        match result {
            Ok(Outcome::Opened(file)) => {
                let position = walk.frames.position();
                let base = walk.frames.layout().base_of(position);
                if let (Some(io), Some(name)) = (
                    &mut self.verification.io,
                    SegmentName::new(walk.recording_id, base),
                ) {
                    walk.file = Some((name, io.attach(file)));
                }
            }
            Ok(Outcome::Read(count)) => {
                let position = walk.frames.position();
                let skipped =
                    (walk.frames.layout().offset_of(position) % ALIGNMENT as u64) as usize;
                let bytes = buffer
                    .as_deref()
                    .and_then(|buffer| buffer.get(skipped..count));
                let checked = walk.frames.check(bytes.unwrap_or_default());
                // The buffer has room for the longest frame.
                let is_cut = checked.is_ok() && walk.frames.position() == position;
                self.counters.verified.add(count as i64);
                let pause_ns =
                    count as i128 * 1_000_000_000 / i128::from(self.config.verify_rate.max(1));
                let pause_ns = i64::try_from(pause_ns).unwrap_or(i64::MAX);
                self.verification.next_ns = self.now.nanos.saturating_add(pause_ns);
                self.verification.buffer = buffer;
                match checked {
                    Err(fault) => self.on_finding(&fault.to_string()),
                    Ok(()) if is_cut => self.on_finding("the segment file ends inside the frame"),
                    Ok(()) => {
                        if let Some(walk) = &mut self.verification.walk {
                            walk.suspect = None;
                        }
                    }
                }
            }
            Ok(_) => self.end_walk(),
            Err(error) => {
                self.verification.buffer = buffer.or(self.verification.buffer.take());
                self.on_unreadable(&error);
            }
        }
    }

    fn on_unreadable(&mut self, error: &DiskError) {
        let is_unsupported = matches!(
            error.kind,
            ErrorKind::Unsupported | ErrorKind::Misaligned { .. } | ErrorKind::Io { code: EINVAL }
        );
        if is_unsupported && self.verification.is_direct {
            self.verification.is_direct = false;
            self.close_verified_file();
        } else {
            self.on_finding(&error.to_string());
        }
    }

    /// Takes note that frames are damaged or cannot be read: once more, then it is so.
    fn on_finding(&mut self, reason: &str) {
        let Some(walk) = &mut self.verification.walk else {
            return;
        };
        let (id, position) = (walk.recording_id, walk.frames.position());
        if walk.suspect != Some(position) {
            walk.suspect = Some(position);
            let next_ns = self.now.nanos.saturating_add(RECHECK_DELAY_NS);
            self.verification.next_ns = self.verification.next_ns.max(next_ns);
            self.close_verified_file();
            return;
        }
        let is_current = self
            .verification
            .walk
            .as_ref()
            .is_some_and(|walk| self.is_as_before(walk));
        if is_current {
            self.report_damage(id, position, reason);
        }
        self.end_walk();
    }

    fn report_damage(&mut self, id: i64, position: i64, reason: &str) {
        let mut text = format!("recording {id} is damaged at position {position}: {reason}");
        if self.config.verify_invalidates && self.check_unused(id).is_ok() {
            match self.catalog.set_state(id, EntryState::Invalid) {
                Ok(change) => {
                    self.store.submit(change);
                    text += "; it is INVALID now (taran.archive.verify.damage=invalidate)";
                }
                Err(error) => text += &format!("; {error}"),
            }
        }
        self.log(ErrorCode::Generic, &text);
        self.verification.damaged.insert(id);
        let count = self.verification.damaged.len();
        self.counters.damaged.set(count as i64);
    }

    fn close_verified_file(&mut self) {
        let file = self
            .verification
            .walk
            .as_mut()
            .and_then(|walk| walk.file.take());
        if let Some((_, file)) = file {
            self.verification.close(file);
        }
    }

    fn end_walk(&mut self) {
        self.close_verified_file();
        self.verification.walk = None;
    }
}
