// SPDX-License-Identifier: Apache-2.0
//! Finding the end of a recording in its segment files (`docs/spec/archive.md` §3.6).

use std::ops::Range;
use std::path::{Path, PathBuf};

use taran_storage::{Disk, DiskError, DiskFile, ErrorKind, OpenOptions};
use thiserror::Error;

use super::super::SyncLevel;
use super::super::checksum::Checksum;
use super::super::layout::RecordingLayout;
use super::super::rewrite::rewrite;
use super::super::side_file;
use super::frames::{FrameFault, FrameWalker, SegmentEnd, lost_page, torn_frame, verify};
use super::name::SegmentName;

/// Bytes behind the end that are always looked at: what a crash leaves of the last writes is there.
const WINDOW: u64 = 1 << 20;
/// Bytes before the end that may not have been synced: blocks in flight and the one being filled, of 1 MiB each by default.
const TAIL: u64 = 8 << 20;

/// Segment files that are missing or incomplete before the end of a recording.
#[derive(Clone, PartialEq, Eq, Error)]
#[error("positions {} to {}: {reason}", positions.start, positions.end)]
#[non_exhaustive]
pub struct SegmentGap {
    /// Positions that cannot be read.
    pub positions: Range<i64>,
    /// The reason.
    pub reason: GapReason,
}

taran_core::debug_is_display!(SegmentGap);

/// A reason why positions before the end of a recording cannot be read.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GapReason {
    /// There are no files.
    #[error("the segment files are missing")]
    Missing,
    /// The file is shorter than a segment.
    #[error("the segment file has only {len} bytes")]
    Short {
        /// Length of the file in bytes.
        len: u64,
    },
    /// There is no frame at the start of the file.
    #[error("the segment file has no frame at its start")]
    Empty,
    /// Frames end before the end of the file.
    #[error("the frames end before the end of the segment file")]
    Incomplete,
    /// A frame is damaged.
    #[error("{0}")]
    Fault(FrameFault),
}

taran_core::debug_is_display!(GapReason);

/// Contents of the segment files of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingScan {
    /// Position behind the last good frame; the start position if there is none.
    pub end: i64,
    /// The reason why no frame follows it, unless the files simply end there.
    pub fault: Option<FrameFault>,
    /// Missing and incomplete segments before the end.
    pub gaps: Vec<SegmentGap>,
    /// Files whose names are no bases of this recording.
    pub misplaced: Vec<SegmentName>,
    /// Files before the start position: of detached segments.
    pub detached: Vec<SegmentName>,
    /// Bytes behind the end in its segment file.
    behind: Option<(SegmentName, Range<u64>)>,
    /// Files behind the one with the end, without a frame at their start.
    later: Vec<SegmentName>,
    end_segment: Option<SegmentName>,
}

/// The recording whose files are examined.
#[derive(Clone, Copy, Debug)]
pub struct ScanTarget<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// Directory of the archive.
    pub directory: &'a Path,
    /// Layout of the recording.
    pub layout: RecordingLayout,
    /// Stream id of the recording.
    pub stream_id: i32,
    /// Checksum that the archive records with.
    pub checksum: Option<Checksum>,
}

impl ScanTarget<'_> {
    fn open(&self, name: SegmentName) -> Result<Box<dyn DiskFile>, DiskError> {
        self.disk
            .open(&name.path(self.directory), OpenOptions::read())
    }

    fn first_position(&self, name: SegmentName) -> i64 {
        self.layout.start_position().max(name.base())
    }

    pub(in super::super) fn walker<'f>(
        &self,
        file: &'f dyn DiskFile,
        name: SegmentName,
        from: i64,
    ) -> Result<FrameWalker<'f>, DiskError> {
        FrameWalker::new(file, self.layout, name.base(), self.stream_id, from)
    }

    /// Sorts file names by their relation to the recording: detached, misplaced, chain.
    pub(in super::super) fn sort(
        &self,
        names: &[SegmentName],
    ) -> (Vec<SegmentName>, Vec<SegmentName>, Vec<SegmentName>) {
        let (bases, misplaced): (Vec<_>, Vec<_>) = names
            .iter()
            .partition(|name| self.layout.is_base(name.base()));
        let (detached, chain) = bases
            .into_iter()
            .partition(|name: &SegmentName| name.base() < self.layout.first_base());
        (detached, misplaced, chain)
    }

    /// Finds the end of the recording, without changing anything. `names` are all of its segment files, ascending.
    ///
    /// Reads the last segment with a frame; of those before it only the first frames. With a checksum, it verifies the last
    /// frames: those that may not have been synced.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn scan(&self, names: &[SegmentName]) -> Result<RecordingScan, DiskError> {
        self.scan_stream(names, None)
    }

    /// The same for a recording whose last stream had this session id, which tells frames without a checksum.
    pub(in super::super) fn scan_stream(
        &self,
        names: &[SegmentName],
        session_id: Option<i32>,
    ) -> Result<RecordingScan, DiskError> {
        let (detached, misplaced, chain) = self.sort(names);
        let mut scan = RecordingScan {
            end: self.layout.start_position(),
            fault: None,
            gaps: Vec::new(),
            misplaced,
            detached,
            behind: None,
            later: Vec::new(),
            end_segment: None,
        };
        let mut before: &[SegmentName] = &[];
        for (index, name) in chain.iter().enumerate().rev() {
            let file = self.open(*name)?;
            let from = self.first_position(*name);
            let walker = self.walker(&*file, *name, from)?;
            let (mut found, tail) = walker.finish_with_tail(TAIL)?;
            if found.frames == 0 && index > 0 {
                scan.later.push(*name);
                continue;
            }
            if let Some(checksum) = self.checksum {
                // Only a recording that begins here has no frames of another stream.
                let is_whole = index == 0 && tail.len() as u64 == found.frames;
                let session_id = session_id.filter(|_| is_whole);
                let has_checksums = match index.checked_sub(1) {
                    Some(before) => self.has_checksum(chain[before], checksum)?,
                    None => false,
                };
                let torn = torn_frame(&*file, &tail, checksum, has_checksums, session_id)?;
                if let Some((at, fault)) = torn {
                    found.offset = tail[at].offset;
                    found.fault = Some(fault);
                    found.last = at.checked_sub(1).map(|before| tail[before]);
                }
            }
            if let Some(last) = found.last
                && let Some(fault) = lost_page(&*file, &last, self.checksum)?
            {
                found.offset = last.offset;
                found.fault = Some(fault);
            }
            scan.fault = found.fault;
            scan.end = (name.base() + found.offset.cast_signed()).max(scan.end);
            scan.end_segment = Some(*name);
            scan.behind = behind(&*file, *name, found)?;
            before = &chain[..index];
            break;
        }
        scan.later.reverse();
        scan.gaps = self.gaps(before, scan.end_segment)?;
        Ok(scan)
    }

    /// Returns true if the first data frame of a segment has its checksum.
    fn has_checksum(&self, name: SegmentName, checksum: Checksum) -> Result<bool, DiskError> {
        let file = self.open(name)?;
        let mut walker = self.walker(&*file, name, self.first_position(name))?;
        while let Some(frame) = walker.next_frame()? {
            if !frame.is_padding {
                return Ok(verify(&*file, &frame, checksum)?.is_none());
            }
        }
        Ok(false)
    }

    /// Returns what is missing before the segment with the end.
    fn gaps(
        &self,
        before: &[SegmentName],
        end: Option<SegmentName>,
    ) -> Result<Vec<SegmentGap>, DiskError> {
        let mut gaps = Vec::new();
        let mut expected = self.layout.first_base();
        for name in before.iter().copied().chain(end) {
            if name.base() > expected {
                gaps.push(SegmentGap {
                    positions: expected.max(self.layout.start_position())..name.base(),
                    reason: GapReason::Missing,
                });
            }
            expected = self.layout.next_base(name.base());
            if Some(name) != end
                && let Some(reason) = self.first_frame_gap(name)?
            {
                gaps.push(SegmentGap {
                    positions: self.first_position(name)..expected,
                    reason,
                });
            }
        }
        Ok(gaps)
    }

    fn first_frame_gap(&self, name: SegmentName) -> Result<Option<GapReason>, DiskError> {
        let file = self.open(name)?;
        let len = file.len()?;
        if len < u64::from(self.layout.segment_length().unsigned_abs()) {
            return Ok(Some(GapReason::Short { len }));
        }
        let from = self.first_position(name);
        let mut walker = self.walker(&*file, name, from)?;
        Ok(match (walker.next_frame()?, walker.fault()) {
            (Some(_), _) => None,
            (None, Some(fault)) => Some(GapReason::Fault(fault)),
            (None, None) => Some(GapReason::Empty),
        })
    }

    /// Cuts off what follows the end that [`scan`](Self::scan) has found; the bytes are kept in side files. Makes the end of
    /// the recording durable if the level asks for it. Returns the side files.
    ///
    /// # Errors
    ///
    /// The disk failed. What was cut off up to then is in side files.
    pub fn repair(&self, scan: &RecordingScan, sync: SyncLevel) -> Result<Vec<PathBuf>, DiskError> {
        let mut side_files = Vec::new();
        if let (Some(name), Some(kind)) = (scan.end_segment, sync.kind()) {
            // The process that wrote it may have ended before its sync, or because of it.
            let file = self
                .disk
                .open(&name.path(self.directory), OpenOptions::write())?;
            let end = scan.end.saturating_sub(name.base()).max(0).unsigned_abs();
            rewrite(&*file, end.saturating_sub(TAIL)..end)?;
            file.sync(kind)?;
        }
        if let Some((name, range)) = &scan.behind {
            side_files.push(self.cut(*name, range.clone(), sync)?);
        }
        let mut is_removed = false;
        for name in &scan.later {
            let path = name.path(self.directory);
            let file = self.open(*name)?;
            let is_zero = side_file::last_nonzero(&*file, 0..file.len()?)?.is_none();
            drop(file);
            if !is_zero {
                side_files.push(side_file::keep_whole(self.disk, &path)?);
            } else if name.base() != scan.end {
                self.disk.remove_file(&path)?;
                is_removed = true;
            }
        }
        if is_removed && sync != SyncLevel::None {
            self.disk.sync_directory(self.directory)?;
        }
        Ok(side_files)
    }

    /// Cuts a range off a segment file; the file keeps its full length, with zeros.
    fn cut(
        &self,
        name: SegmentName,
        range: Range<u64>,
        sync: SyncLevel,
    ) -> Result<PathBuf, DiskError> {
        let path = name.path(self.directory);
        let file = self.disk.open(&path, OpenOptions::write())?;
        let side = side_file::keep(self.disk, &path, &*file, range.clone())?;
        file.set_len(range.start)?;
        reserve(
            &*file,
            u64::from(self.layout.segment_length().unsigned_abs()),
        )?;
        if let Some(kind) = sync.kind() {
            file.sync(kind)?;
        }
        Ok(side)
    }

    /// Prepares a stopped recording to be extended from `stop`: bytes behind it move to a side file, because a later recovery
    /// would take them for frames; segments behind it are removed or kept aside. Returns the side files.
    ///
    /// # Errors
    ///
    /// The disk failed.
    pub fn prepare_extension(
        &self,
        names: &[SegmentName],
        stop: i64,
    ) -> Result<Vec<PathBuf>, DiskError> {
        let (_, _, chain) = self.sort(names);
        let base = self.layout.base_of(stop);
        let mut scan = RecordingScan {
            end: stop,
            fault: None,
            gaps: Vec::new(),
            misplaced: Vec::new(),
            detached: Vec::new(),
            behind: None,
            later: chain
                .iter()
                .copied()
                .filter(|name| name.base() > base)
                .collect(),
            end_segment: None,
        };
        if let Some(name) = chain.iter().find(|name| name.base() == base) {
            let file = self.open(*name)?;
            let offset = self.layout.offset_of(stop);
            scan.behind = side_file::last_nonzero(&*file, offset..file.len()?)?
                .map(|last| (*name, offset..last));
        }
        self.repair(&scan, SyncLevel::Data)
    }
}

impl RecordingScan {
    /// Returns true if the files hold more than the frames up to the end.
    #[must_use]
    pub fn needs_repair(&self) -> bool {
        self.behind.is_some() || !self.later.is_empty()
    }
}

/// Returns the bytes behind the end that are not zero. Without a fault and with a clean window behind the end, the rest is
/// not read: it has the length of a segment for each recording.
fn behind(
    file: &dyn DiskFile,
    name: SegmentName,
    end: SegmentEnd,
) -> Result<Option<(SegmentName, Range<u64>)>, DiskError> {
    let len = file.len()?;
    let window = end.offset..len.min(end.offset + WINDOW);
    if end.fault.is_none() && side_file::last_nonzero(file, window)?.is_none() {
        return Ok(None);
    }
    let last = side_file::last_nonzero(file, end.offset..len)?;
    Ok(last.map(|last| (name, end.offset..last)))
}

/// Makes a file at least this long, with reserved blocks where the file system can do that.
pub(in super::super) fn reserve(file: &dyn DiskFile, len: u64) -> Result<(), DiskError> {
    match file.allocate(0, len) {
        Err(error) if error.kind == ErrorKind::Unsupported => file.set_len(len.max(file.len()?)),
        result => result,
    }
}
