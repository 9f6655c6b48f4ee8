// SPDX-License-Identifier: Apache-2.0
//! Checks of the files of an archive against what its users know.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use taran_protocol::frame::{DataHeader, FrameType};
use taran_protocol::position::align32;
use taran_sim::Violation;
use taran_sim::disk::ProcessDisk;
use taran_storage::{Disk, OpenOptions};
use zerocopy::FromBytes;

use super::journal::{Journal, Known};
use crate::files::{
    Catalog, Descriptor, EntryState, GapReason, NULL_VALUE, RecoveryReport, SegmentFileName,
    SegmentGap, SyncLevel,
};
use crate::recorder::segment_path;

/// Length of the header of a frame in bytes.
const HEADER: usize = 32;
/// Attempts to read a file on a disk that fails at times.
const ATTEMPTS: usize = 50;

/// The files of an archive after its recovery.
pub(super) struct RecoveredFiles<'a> {
    pub(super) disk: &'a ProcessDisk,
    pub(super) directory: &'a Path,
    pub(super) catalog: &'a Catalog,
    pub(super) report: &'a RecoveryReport,
    pub(super) sync: SyncLevel,
    pub(super) has_checksum: bool,
}

/// Returns true if a power cut without syncs took what is missing: all files, or the first frame of one.
fn is_lost(gap: &SegmentGap, known: &Known) -> bool {
    let (first, last) = (gap.positions.start, gap.positions.end - 1);
    known.is_suspect(first) && (gap.reason != GapReason::Missing || known.is_suspect(last))
}

/// Returns the name of the segment of which this file may have been made ahead.
fn segment_of(name: &OsStr) -> &OsStr {
    let name_of_next = name.to_str().and_then(|name| name.strip_suffix(".next"));
    name_of_next.map_or(name, OsStr::new)
}

/// Returns the recordings with a segment file of which a write failed.
fn torn_recordings(failed: &BTreeSet<PathBuf>) -> BTreeSet<i64> {
    let names = failed.iter().filter_map(|path| path.file_name());
    names
        .filter_map(|name| match SegmentFileName::parse(segment_of(name)) {
            Some(SegmentFileName::Segment(name)) => Some(name.recording_id()),
            _ => None,
        })
        .collect()
}

fn violation<T>(text: String) -> Result<T, Violation> {
    Err(Violation(text))
}

impl RecoveredFiles<'_> {
    /// Checks that the files have what was acknowledged, and nothing that was not published.
    pub(super) fn check(&self, journal: &mut Journal) -> Result<(), Violation> {
        let was_cut = journal.take_power_cut();
        let torn = torn_recordings(&journal.hooks().take_failed_writes());
        journal.counts.recoveries += 1;
        let forgets = was_cut && self.sync == SyncLevel::None;
        let ids: Vec<i64> = journal.recordings().map(|(id, _)| id).collect();
        for id in ids {
            let known = journal.recording(id);
            let unavailable = &self.report.unavailable;
            known.is_unavailable = unavailable.iter().any(|(found, _)| *found == id);
            known.unchecked.0 |= was_cut;
            known.unchecked.1 |= torn.contains(&id);
            self.check_entry(id, forgets, journal)?;
        }
        journal.forget_unknown();
        for descriptor in self.catalog.recordings(0) {
            let id = descriptor.recording_id;
            let (cut_before, torn_before) = std::mem::take(&mut journal.recording(id).unchecked);
            let is_torn = torn_before || torn.contains(&id);
            self.check_recording(descriptor, was_cut || cut_before, is_torn, journal)?;
        }
        Ok(())
    }

    fn check_entry(&self, id: i64, forgets: bool, journal: &mut Journal) -> Result<(), Violation> {
        let state = self.catalog.entry(id).map(crate::files::Entry::state);
        let is_there = self.catalog.get(id).is_some() || self.catalog.unavailable(id).is_some();
        let known = journal.recording(id);
        match state {
            Some(EntryState::Valid) if known.is_gone && !forgets => {
                violation(format!("recording {id} was deleted and is there again"))
            }
            // Without syncs, a power cut takes a part of an entry.
            Some(EntryState::Valid) if !is_there && forgets => {
                *known = Default::default();
                Ok(())
            }
            Some(EntryState::Valid) if !is_there && known.was_damaged => Ok(()),
            Some(EntryState::Valid) if !is_there => {
                violation(format!("the catalog entry of recording {id} is damaged"))
            }
            Some(EntryState::Valid) => {
                if known.is_gone {
                    // Without syncs, a power cut takes a deletion back.
                    (known.is_gone, known.may_be_gone) = (false, false);
                }
                Ok(())
            }
            // Another recording may get the id.
            None if forgets => {
                *known = Default::default();
                Ok(())
            }
            _ if known.may_be_gone || known.is_gone => {
                known.is_gone = true;
                Ok(())
            }
            _ if forgets || known.first_start.is_none() && known.floor == 0 => {
                // Nothing was acknowledged, or another recording may get the id.
                *known = Default::default();
                Ok(())
            }
            state => violation(format!(
                "recording {id} was acknowledged to {}, and the catalog has {state:?} for it",
                known.floor
            )),
        }
    }

    fn check_recording(
        &self,
        descriptor: &Descriptor,
        was_cut: bool,
        is_torn: bool,
        journal: &mut Journal,
    ) -> Result<(), Violation> {
        let id = descriptor.recording_id;
        let (start, stop) = (descriptor.start_position, descriptor.stop_position);
        let recovered = self
            .report
            .recovered
            .iter()
            .find(|found| found.recording_id == id);
        if stop == NULL_VALUE {
            return violation(format!(
                "recording {id} has no stop position after the recovery"
            ));
        }
        journal.on_recovered(id, stop, recovered.is_some());
        let known = journal.recording(id);
        known.stream_id = descriptor.stream_id;
        if was_cut && self.sync == SyncLevel::None {
            known.floor = stop;
            known.start_max = start;
            known.truncated_to = None;
            journal.suspect(id, (start, stop));
            return Ok(());
        }
        // Without syncs, what a power cut has taken is seen when a recording that was extended is recovered, too.
        let is_cut_off = self.sync == SyncLevel::None && known.is_suspect(stop);
        if stop < known.floor && !is_cut_off {
            return violation(format!(
                "recording {id} was acknowledged to {} and ends at {stop}: {recovered:?}",
                known.floor
            ));
        }
        if let Some(truncated) = known.truncated_to
            && stop > truncated
        {
            return violation(format!(
                "recording {id} was truncated to {truncated} and ends at {stop}"
            ));
        }
        if let Some(first) = known.first_start
            && start > first.max(known.start_max).max(known.retained)
        {
            return violation(format!(
                "recording {id} starts at {start}, and nothing before that was purged beyond {}",
                first.max(known.start_max).max(known.retained)
            ));
        }
        known.first_start = Some(start);
        // Behind what was acknowledged, only a checksum tells a frame of which a part was not written.
        let floor = std::mem::replace(&mut known.floor, stop);
        if (was_cut || is_torn) && !self.has_checksum && stop > floor {
            journal.suspect(id, (floor, stop));
        }
        let known = journal.recording(id);
        let gaps = recovered.into_iter().flat_map(|found| &found.gaps);
        let unexplained: Vec<_> = gaps
            .filter(|gap| self.sync != SyncLevel::None || !is_lost(gap, known))
            .collect();
        if !unexplained.is_empty() {
            return violation(format!("recording {id} has gaps: {unexplained:?}"));
        }
        if self.sync == SyncLevel::None && !known.suspects.is_empty() {
            // Without syncs, a power cut takes any part of a file, and its name.
            return Ok(());
        }
        self.check_frames(descriptor, journal).map_err(|Violation(text)| {
            let known = journal.recording(id);
            let (start, stop) = (descriptor.start_position, descriptor.stop_position);
            Violation(format!(
                "{text}; {start} to {stop}, power cut: {was_cut}, failed write: {is_torn}, known: {known:?}, recovered: {recovered:?}"
            ))
        })
    }

    fn check_frames(
        &self,
        descriptor: &Descriptor,
        journal: &mut Journal,
    ) -> Result<(), Violation> {
        let id = descriptor.recording_id;
        let Ok(layout) = descriptor.layout() else {
            return violation(format!(
                "recording {id} has an impossible layout: {descriptor:?}"
            ));
        };
        let terms = layout.terms();
        let stop = descriptor.stop_position;
        let mut position = descriptor.start_position;
        let mut file: Option<(i64, Vec<u8>)> = None;
        while position < stop {
            let base = layout.base_of(position);
            if file.as_ref().is_none_or(|(open, _)| *open != base) {
                let path = segment_path(self.directory, id, base);
                match self.read(&path) {
                    Ok(Some(bytes)) => file = Some((base, bytes)),
                    // The disk fails too often to tell.
                    Ok(None) => return Ok(()),
                    Err(text) => return violation(format!("recording {id} at {position}: {text}")),
                }
            }
            let bytes = file.as_ref().map_or(&[][..], |(_, bytes)| bytes);
            let at = layout.offset_of(position) as usize;
            let header = bytes.get(at..).map(DataHeader::read_from_prefix);
            let Some(Ok((header, _))) = header else {
                return violation(format!(
                    "recording {id} has no frame at {position}, before its end {stop}"
                ));
            };
            let length = header.header.frame_length.get();
            if length < HEADER as i32
                || header.term_offset.get() != terms.term_offset(position)
                || header.term_id.get() != terms.term_id(position)
                || header.stream_id.get() != descriptor.stream_id
            {
                return violation(format!(
                    "recording {id} has no frame of its stream at {position}, before its end {stop}: {header:?}"
                ));
            }
            if header.header.frame_type() == FrameType::DATA {
                let payload = bytes
                    .get(at + HEADER..at + length as usize)
                    .unwrap_or_default();
                journal
                    .check_frame(id, descriptor.stream_id, position, payload)
                    .map_err(Violation)?;
                journal.counts.verified_frames += 1;
            }
            position += i64::from(align32(length));
        }
        if position != stop {
            return violation(format!(
                "a frame of recording {id} reaches over its end {stop} to {position}"
            ));
        }
        Ok(())
    }

    /// Reads a file; `None` if the disk fails at each attempt.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, String> {
        for _ in 0..ATTEMPTS {
            let read = self.disk.open(path, OpenOptions::read()).and_then(|file| {
                let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(0)];
                file.read_exact_at(&mut bytes, 0)?;
                Ok(bytes)
            });
            match read {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(error) if error.is_not_found() => return Err(error.to_string()),
                Err(_) => {}
            }
        }
        Ok(None)
    }
}
