// SPDX-License-Identifier: Apache-2.0
//! Compaction, checksums and orphaned files.

use std::fmt;
use std::path::Path;

use taran_storage::{DiskFile, OpenOptions, SyncKind};

use super::super::catalog::EntryState;
use super::super::checksum::Checksum;
use super::super::segments::{Frame, SegmentDirectory, SegmentName, compute_frame_checksum};
use super::{Segments, StoppedArchive, ToolError};

/// Offset of the checksum in a frame.
const FRAME_CHECKSUM_AT: u64 = 12;

/// Result of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Recordings that were removed, with their states.
    pub removed: Vec<(i64, EntryState)>,
    /// Files that were removed.
    pub files: Vec<String>,
    /// Length of the catalog before in bytes.
    pub length_before: u64,
    /// Length of the catalog now in bytes.
    pub length: u64,
}

/// A reason why a file belongs to no recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrphanReason {
    /// The segment is before the start position: it was detached, or a purge did not finish.
    BeforeStart,
    /// The segment is behind the stop position.
    AfterStop,
    /// The recording was purged.
    Purged,
    /// The catalog does not list the recording.
    Unlisted,
    /// The file was to be deleted by an archive of an old version.
    Deleted,
}

impl fmt::Display for OrphanReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeforeStart => "before the start position",
            Self::AfterStop => "behind the stop position",
            Self::Purged => "the recording was purged",
            Self::Unlisted => "the catalog does not list the recording",
            Self::Deleted => "was to be deleted",
        })
    }
}

/// A file that belongs to no recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Orphan {
    /// Recording id in the name.
    pub recording_id: i64,
    /// Name of the file.
    pub name: String,
    /// The reason.
    pub reason: OrphanReason,
}

/// Checksums that were stored for one recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stamped {
    /// The recording.
    pub recording_id: i64,
    /// Number of data frames.
    pub frames: u64,
    /// Number of segment files.
    pub segments: usize,
}

impl StoppedArchive {
    /// Removes INVALID and DELETED entries and their segment files, and gives the space of the catalog back.
    ///
    /// # Errors
    ///
    /// The disk failed; repeat it then.
    pub fn compact(&mut self) -> Result<Compacted, ToolError> {
        let names = SegmentDirectory::list(&*self.disk, &self.directory)?;
        let mut result = Compacted {
            length_before: self.catalog.capacity(),
            ..Compacted::default()
        };
        // Files first: after a failure in between, the entries still tell which files belong to nothing.
        for entry in self.catalog.entries() {
            let id = entry.descriptor().recording_id;
            if entry.state() != EntryState::Valid {
                result.removed.push((id, entry.state()));
                result.files.extend(files_of(&names, id));
            }
        }
        self.remove(&result.files)?;
        let (_, change) = self.catalog.compact();
        self.apply(&change)?;
        result.length = self.catalog.capacity();
        Ok(result)
    }

    /// Returns the files that belong to no recording, of one or all recordings.
    ///
    /// # Errors
    ///
    /// There is no such recording, or the directory cannot be listed.
    pub fn orphans(&self, recording_id: Option<i64>) -> Result<Vec<Orphan>, ToolError> {
        let names = SegmentDirectory::list(&*self.disk, &self.directory)?;
        let ids = self.ids(recording_id)?;
        let wanted = |id: i64| recording_id.is_none() || ids.contains(&id);
        let mut orphans = Vec::new();
        for name in names
            .segments
            .iter()
            .filter(|name| wanted(name.recording_id()))
        {
            if let Some(reason) = self.orphan_reason(*name) {
                orphans.push(Orphan {
                    recording_id: name.recording_id(),
                    name: name.file_name(),
                    reason,
                });
            }
        }
        for (id, name) in names.deleted.iter().filter(|(id, _)| wanted(*id)) {
            orphans.push(Orphan {
                recording_id: *id,
                name: name.clone(),
                reason: OrphanReason::Deleted,
            });
        }
        Ok(orphans)
    }

    fn orphan_reason(&self, name: SegmentName) -> Option<OrphanReason> {
        let Some(entry) = self.catalog.entry(name.recording_id()) else {
            return Some(OrphanReason::Unlisted);
        };
        if entry.state() == EntryState::Deleted {
            return Some(OrphanReason::Purged);
        }
        // Files of an entry that contradicts itself cannot be told apart; they stay.
        let layout = entry.descriptor().validate().ok()?;
        let descriptor = entry.descriptor();
        if name.base() < layout.first_base() {
            return Some(OrphanReason::BeforeStart);
        }
        let is_after =
            !descriptor.is_active() && name.base() > layout.base_of(descriptor.stop_position);
        is_after.then_some(OrphanReason::AfterStop)
    }

    /// Deletes files that [`orphans`](Self::orphans) has found.
    ///
    /// # Errors
    ///
    /// The disk failed.
    pub fn delete_orphans(&mut self, orphans: &[Orphan]) -> Result<(), ToolError> {
        let names: Vec<String> = orphans.iter().map(|orphan| orphan.name.clone()).collect();
        self.remove(&names)
    }

    /// Stores checksums in the data frames of one or all VALID recordings, and in their entries. Active recordings and
    /// damaged frames are left out: run [`verify`](Self::verify) first.
    ///
    /// # Errors
    ///
    /// There is no such recording, or the disk failed.
    pub fn stamp(
        &mut self,
        recording_id: Option<i64>,
        segments: Segments,
        checksum: Checksum,
    ) -> Result<Vec<Stamped>, ToolError> {
        let names = SegmentDirectory::list(&*self.disk, &self.directory)?;
        let mut results = Vec::new();
        for id in self.ids(recording_id)? {
            let Some(entry) = self.catalog.entry(id) else {
                continue;
            };
            let descriptor = entry.descriptor();
            let Ok(layout) = descriptor.validate() else {
                continue;
            };
            if entry.state() != EntryState::Valid || descriptor.is_active() {
                continue;
            }
            let (stop, start) = (descriptor.stop_position, descriptor.start_position);
            let target = self.target(layout, entry, None);
            let (_, _, chain) = target.sort(names.of(id));
            let last_base = layout.base_of((stop - 1).max(start));
            let first_base = match segments {
                Segments::Last => last_base,
                Segments::All => layout.first_base(),
            };
            let mut stamped = Stamped {
                recording_id: id,
                frames: 0,
                segments: 0,
            };
            for name in chain
                .iter()
                .filter(|name| (first_base..=last_base).contains(&name.base()))
            {
                let path = name.path(&self.directory);
                let file = self.disk.open(&path, OpenOptions::write())?;
                let from = start.max(name.base());
                let mut walker = target.walker(&*file, *name, from)?;
                while name.base() + walker.offset().cast_signed() < stop
                    && let Some(frame) = walker.next_frame()?
                {
                    stamped.frames += u64::from(stamp_frame(&*file, &frame, checksum)?);
                }
                file.sync(SyncKind::Data)?;
                stamped.segments += 1;
            }
            let change = self.catalog.stamp_checksum(id, checksum)?;
            self.apply(&change)?;
            results.push(stamped);
        }
        Ok(results)
    }

    pub(super) fn remove(&self, names: &[String]) -> Result<(), ToolError> {
        for name in names {
            match self
                .disk
                .remove_file(&Path::new(&self.directory).join(name))
            {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => (),
            }
        }
        Ok(self.disk.sync_directory(&self.directory)?)
    }
}

/// Returns the names of all files of a recording.
pub(super) fn files_of(names: &SegmentDirectory, recording_id: i64) -> Vec<String> {
    let deleted = names.deleted.iter().filter(|(id, _)| *id == recording_id);
    let segments = names.of(recording_id).iter().map(|name| name.file_name());
    segments
        .chain(deleted.map(|(_, name)| name.clone()))
        .collect()
}

fn stamp_frame(file: &dyn DiskFile, frame: &Frame, checksum: Checksum) -> Result<bool, ToolError> {
    if frame.is_padding {
        return Ok(false);
    }
    let value = compute_frame_checksum(file, frame, checksum)?;
    file.write_at(&value.to_le_bytes(), frame.offset + FRAME_CHECKSUM_AT)?;
    Ok(true)
}
