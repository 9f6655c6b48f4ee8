// SPDX-License-Identifier: Apache-2.0
//! Verification of recordings.

use std::path::PathBuf;

use taran_storage::OpenOptions;
use thiserror::Error;

use super::super::SyncLevel;
use super::super::catalog::{Entry, EntryState};
use super::super::checksum::Checksum;
use super::super::descriptor::{InvalidDescriptor, NULL_VALUE};
use super::super::segments::{
    FrameFault, GapReason, ScanTarget, SegmentDirectory, SegmentGap, SegmentName, verify_frame,
};
use super::{StoppedArchive, ToolError};

/// Segment files that a tool reads or writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Segments {
    /// The last one of each recording.
    #[default]
    Last,
    /// All of them.
    All,
}

/// Options of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyOptions {
    /// Segments that are read.
    pub segments: Segments,
    /// Verifies the checksums of frames and entries.
    pub checksum: Option<Checksum>,
    /// Changes the catalog and cuts torn ends; otherwise nothing is written.
    pub repair: bool,
}

/// Something wrong with a recording.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The fields of the entry contradict each other.
    #[error(transparent)]
    Descriptor(#[from] InvalidDescriptor),
    /// The checksum of the entry is wrong.
    #[error(
        "the checksum of the catalog entry is {stored:#010x}, and that of its bytes {computed:#010x}"
    )]
    EntryChecksum {
        /// Stored checksum.
        stored: i32,
        /// Computed checksum.
        computed: i32,
    },
    /// There is no segment file.
    #[error("there are no segment files for positions {start} to {stop}")]
    NoFiles {
        /// Start position.
        start: i64,
        /// Stop position.
        stop: i64,
    },
    /// Positions that cannot be read.
    #[error(transparent)]
    Gap(#[from] SegmentGap),
    /// The frames end before the stop position.
    #[error("the frames end at position {found}, before the stop position {stop}{}", because(*fault))]
    MissingEnd {
        /// Position behind the last good frame.
        found: i64,
        /// The stop position.
        stop: i64,
        /// The reason why no frame follows.
        fault: Option<FrameFault>,
    },
    /// The stop position is inside a frame.
    #[error("the stop position {stop} is inside a frame")]
    StopInFrame {
        /// The stop position.
        stop: i64,
    },
    /// The name of a file is no base of the recording.
    #[error("the file {} begins at no segment of the recording", _0.file_name())]
    Misplaced(SegmentName),
}

taran_core::debug_is_display!(Problem);

fn because(fault: Option<FrameFault>) -> String {
    fault.map_or_else(String::new, |fault| format!(": {fault}"))
}

/// Result of the verification of one recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// The recording.
    pub recording_id: i64,
    /// State before.
    pub before: EntryState,
    /// State that follows from the result; it is in the catalog if repairs are on.
    pub after: EntryState,
    /// Problems. Empty if the recording is good or purged.
    pub problems: Vec<Problem>,
    /// Stored and found stop position, if they differ.
    pub stop_position: Option<(i64, i64)>,
    /// The reason why the frame behind the found stop position was cut off.
    pub tail: Option<FrameFault>,
    /// Files with bytes that were cut off.
    pub side_files: Vec<PathBuf>,
    /// Frames that were read.
    pub frames: u64,
}

/// End of the frames that were verified.
#[derive(Default)]
struct Walked {
    end: i64,
    fault: Option<FrameFault>,
    problems: Vec<Problem>,
    frames: u64,
    stop_is_boundary: bool,
}

impl StoppedArchive {
    /// Verifies one or all recordings.
    ///
    /// With repairs: a recording with problems becomes INVALID, an INVALID one without problems and with files VALID; a
    /// missing stop position is found, and what follows the last good frame is cut off and kept in a side file.
    ///
    /// # Errors
    ///
    /// There is no such recording, or the disk failed.
    pub fn verify(
        &mut self,
        recording_id: Option<i64>,
        options: VerifyOptions,
        now_ms: i64,
    ) -> Result<Vec<Verification>, ToolError> {
        let mut results = Vec::new();
        self.verify_each(recording_id, options, now_ms, |result, _| {
            results.push(result);
        })?;
        Ok(results)
    }

    /// Like [`verify`](Self::verify), but passes each result to `visit`, with the number of recordings that are left.
    ///
    /// # Errors
    ///
    /// As for [`verify`](Self::verify); results before it were passed.
    pub fn verify_each(
        &mut self,
        recording_id: Option<i64>,
        options: VerifyOptions,
        now_ms: i64,
        mut visit: impl FnMut(Verification, usize),
    ) -> Result<(), ToolError> {
        let names = SegmentDirectory::list(&*self.disk, &self.directory)?;
        let ids = self.ids(recording_id)?;
        for (index, id) in ids.iter().enumerate() {
            let result = self.verify_one(*id, &names, options, now_ms)?;
            visit(result, ids.len() - index - 1);
        }
        Ok(())
    }

    fn verify_one(
        &mut self,
        recording_id: i64,
        names: &SegmentDirectory,
        options: VerifyOptions,
        now_ms: i64,
    ) -> Result<Verification, ToolError> {
        let Some(entry) = self.catalog.entry(recording_id).cloned() else {
            return Err(super::super::UpdateError::Unknown { recording_id }.into());
        };
        let before = entry.state();
        let mut result = Verification {
            recording_id,
            before,
            after: before,
            problems: Vec::new(),
            stop_position: None,
            tail: None,
            side_files: Vec::new(),
            frames: 0,
        };
        if before == EntryState::Deleted {
            return Ok(result);
        }
        let descriptor = entry.descriptor();
        let layout = match descriptor.validate() {
            Ok(layout) => layout,
            Err(reason) => {
                result.problems.push(reason.into());
                return self.finish(result, None, options, now_ms);
            }
        };
        if let Some(checksum) = options.checksum
            && !entry.has_plausible_checksum(checksum)
        {
            result.problems.push(Problem::EntryChecksum {
                stored: entry.checksum(),
                computed: entry.compute_checksum(checksum),
            });
        }
        let files = names.of(recording_id);
        let target = self.target(layout, &entry, options.checksum);
        let (_, misplaced, chain) = target.sort(files);
        result
            .problems
            .extend(misplaced.into_iter().map(Problem::Misplaced));
        let (start, stop) = (descriptor.start_position, descriptor.stop_position);
        let mut new_stop = None;
        if stop == NULL_VALUE {
            let scan = target.scan(files)?;
            result.tail = scan.fault;
            result.stop_position = Some((stop, scan.end));
            new_stop = Some(scan.end);
            if options.repair {
                result.side_files = target.repair(&scan, SyncLevel::Data)?;
            }
        }
        let stop = new_stop.unwrap_or(stop);
        if chain.is_empty() && stop > start {
            result.problems.push(Problem::NoFiles { start, stop });
            return self.finish(result, new_stop, options, now_ms);
        }
        let target = self.target(layout, &entry, options.checksum);
        let walked = walk(&target, &chain, stop, options)?;
        result.frames = walked.frames;
        result.problems.extend(walked.problems);
        if walked.end < stop {
            result.problems.push(Problem::MissingEnd {
                found: walked.end,
                stop,
                fault: walked.fault,
            });
        } else if !walked.stop_is_boundary && stop > start {
            result.problems.push(Problem::StopInFrame { stop });
        }
        if before == EntryState::Invalid && result.problems.is_empty() && chain.is_empty() {
            // Without files, nothing shows that the recording is good again.
            return Ok(result);
        }
        self.finish(result, new_stop, options, now_ms)
    }

    /// Decides on the state, and writes it and the stop position if repairs are on.
    fn finish(
        &mut self,
        mut result: Verification,
        new_stop: Option<i64>,
        options: VerifyOptions,
        now_ms: i64,
    ) -> Result<Verification, ToolError> {
        let id = result.recording_id;
        result.after = if result.problems.is_empty() {
            EntryState::Valid
        } else {
            EntryState::Invalid
        };
        if !options.repair {
            return Ok(result);
        }
        if let Some(stop) = new_stop {
            // The stop position of an INVALID entry is set while it is VALID.
            if result.before != EntryState::Valid {
                let change = self.catalog.set_state(id, EntryState::Valid)?;
                self.apply(&change)?;
            }
            let change = self.catalog.stop(id, stop, now_ms)?;
            self.apply(&change)?;
        }
        let state = self.catalog.entry(id).map(Entry::state);
        if state != Some(result.after) {
            let change = self.catalog.set_state(id, result.after)?;
            self.apply(&change)?;
        }
        if let Some(checksum) = options.checksum
            && result.after == EntryState::Valid
        {
            let change = self.catalog.stamp_checksum(id, checksum)?;
            self.apply(&change)?;
        }
        Ok(result)
    }
}

/// Walks the segments up to the one with the stop position.
fn walk(
    target: &ScanTarget<'_>,
    chain: &[SegmentName],
    stop: i64,
    options: VerifyOptions,
) -> Result<Walked, ToolError> {
    let layout = target.layout;
    let mut walked = Walked {
        end: layout.start_position(),
        stop_is_boundary: stop == layout.start_position(),
        ..Walked::default()
    };
    if stop == layout.start_position() {
        return Ok(walked);
    }
    // The last byte decides: a recording that stops on a base may have an empty file behind it.
    let last_base = layout.base_of(stop - 1);
    let mut expected = layout.first_base();
    for name in chain.iter().filter(|name| name.base() <= last_base) {
        if name.base() > expected {
            walked.problems.push(
                SegmentGap {
                    positions: expected..name.base(),
                    reason: GapReason::Missing,
                }
                .into(),
            );
        }
        expected = layout.next_base(name.base());
        if name.base() < last_base && options.segments == Segments::Last {
            continue;
        }
        let file = target
            .disk
            .open(&name.path(target.directory), OpenOptions::read())?;
        let found = walk_segment(target, &*file, *name, stop, options.checksum)?;
        walked.frames += found.frames;
        if name.base() == last_base {
            walked.end = name.base() + found.offset.cast_signed();
            walked.fault = found.fault;
            walked.stop_is_boundary = found.passes_stop;
        } else if name.base() + found.offset.cast_signed() < expected {
            let reason = found.fault.map_or(GapReason::Incomplete, GapReason::Fault);
            let positions = name.base() + found.offset.cast_signed()..expected;
            walked
                .problems
                .push(SegmentGap { positions, reason }.into());
        }
    }
    Ok(walked)
}

/// End of the frames of a segment.
struct WalkedSegment {
    offset: u64,
    fault: Option<FrameFault>,
    frames: u64,
    /// A frame ends at the stop position.
    passes_stop: bool,
}

/// Walks the frames of a segment up to the stop position.
fn walk_segment(
    target: &ScanTarget<'_>,
    file: &dyn taran_storage::DiskFile,
    name: SegmentName,
    stop: i64,
    checksum: Option<Checksum>,
) -> Result<WalkedSegment, ToolError> {
    let from = target.layout.start_position().max(name.base());
    let mut walker = target.walker(file, name, from)?;
    let mut walked = WalkedSegment {
        offset: (from - name.base()).unsigned_abs(),
        fault: None,
        frames: 0,
        passes_stop: false,
    };
    while name.base() + walked.offset.cast_signed() < stop {
        let Some(frame) = walker.next_frame()? else {
            walked.fault = walker.fault();
            break;
        };
        if let Some(checksum) = checksum
            && let Some(fault) = verify_frame(file, &frame, checksum)?
        {
            walked.fault = Some(fault);
            break;
        }
        walked.offset = frame.end();
        walked.frames += 1;
        let end = name.base() + frame.end().cast_signed();
        walked.passes_stop |= end == stop;
    }
    Ok(walked)
}
