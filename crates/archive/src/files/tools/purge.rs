// SPDX-License-Identifier: Apache-2.0
//! Purging recordings and segments.

use thiserror::Error;

use super::super::catalog::{EntryState, UpdateError};
use super::super::segments::SegmentDirectory;
use super::maintenance::files_of;
use super::{StoppedArchive, ToolError};

/// Files to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PurgePlan {
    /// Names of the files.
    pub files: Vec<String>,
    /// Their length in bytes.
    pub bytes: u64,
}

/// A position is no new start of a recording.
#[derive(Clone, PartialEq, Eq, Error)]
#[error(
    "recording {recording_id} cannot start at position {position}: a new start is the beginning of a segment behind the first \
     one, up to the one in which the recording ends: {}",
    some_of(candidates)
)]
pub struct InvalidStart {
    recording_id: i64,
    position: i64,
    candidates: Vec<i64>,
}

taran_core::debug_is_display!(InvalidStart);

/// Positions that are listed in an error.
const LISTED: usize = 8;

fn some_of(candidates: &[i64]) -> String {
    let listed: Vec<String> = candidates.iter().take(LISTED).map(i64::to_string).collect();
    match candidates.len() {
        0 => "it has one segment only".to_owned(),
        count if count > LISTED => format!("{} and {} more", listed.join(", "), count - LISTED),
        _ => listed.join(", "),
    }
}

impl StoppedArchive {
    /// Returns the files that [`purge`](Self::purge) deletes, or with a position [`purge_segments`](Self::purge_segments).
    ///
    /// # Errors
    ///
    /// There is no such recording, or it cannot start at the position.
    pub fn plan_purge(
        &self,
        recording_id: i64,
        new_start: Option<i64>,
    ) -> Result<PurgePlan, ToolError> {
        let names = SegmentDirectory::list(&*self.disk, &self.directory)?;
        let files = match new_start {
            None => {
                if self.catalog.entry(recording_id).is_none() {
                    return Err(UpdateError::Unknown { recording_id }.into());
                }
                files_of(&names, recording_id)
            }
            Some(position) => {
                self.check_start(recording_id, position, &names)?;
                let below = names.of(recording_id).iter();
                below
                    .filter(|name| name.base() < position)
                    .map(|name| name.file_name())
                    .collect()
            }
        };
        let mut bytes = 0;
        for file in &files {
            match self.disk.metadata(&self.directory.join(file)) {
                Ok(metadata) => bytes += metadata.len,
                Err(error) if error.is_not_found() => (),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(PurgePlan { files, bytes })
    }

    /// Deletes a recording. Its id is not used again.
    ///
    /// # Errors
    ///
    /// There is no such recording, or the disk failed; repeat it then, or delete the rest as orphaned files.
    pub fn purge(&mut self, recording_id: i64) -> Result<PurgePlan, ToolError> {
        let plan = self.plan_purge(recording_id, None)?;
        // The catalog first: an entry without its files would be taken for a damaged recording.
        let change = self.catalog.set_state(recording_id, EntryState::Deleted)?;
        self.apply(&change)?;
        self.remove(&plan.files)?;
        Ok(plan)
    }

    /// Moves the start of a recording to the beginning of a segment, and deletes the segment files before it.
    ///
    /// # Errors
    ///
    /// There is no such recording, it cannot start there, or the disk failed.
    pub fn purge_segments(
        &mut self,
        recording_id: i64,
        new_start: i64,
    ) -> Result<PurgePlan, ToolError> {
        let plan = self.plan_purge(recording_id, Some(new_start))?;
        let change = self.catalog.set_start_position(recording_id, new_start)?;
        self.apply(&change)?;
        self.remove(&plan.files)?;
        Ok(plan)
    }

    fn check_start(
        &self,
        recording_id: i64,
        position: i64,
        names: &SegmentDirectory,
    ) -> Result<(), ToolError> {
        let descriptor = self.catalog.get(recording_id);
        let descriptor = descriptor.ok_or(UpdateError::Unknown { recording_id })?;
        let layout = descriptor
            .validate()
            .map_err(|reason| ToolError::Unusable {
                recording_id,
                reason: reason.to_string(),
            })?;
        let last = if descriptor.is_active() {
            // Of a recording whose archive has died: the end is in the last file.
            let last = names.of(recording_id).last();
            last.map_or(layout.first_base(), |name| name.base())
        } else {
            layout.base_of(descriptor.stop_position)
        };
        let second = layout.next_base(layout.first_base());
        if layout.is_base(position) && (second..=last).contains(&position) {
            return Ok(());
        }
        let candidates = names.of(recording_id).iter().map(|name| name.base());
        Err(InvalidStart {
            recording_id,
            position,
            candidates: candidates
                .filter(|base| (second..=last).contains(base))
                .collect(),
        }
        .into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SEGMENT, archive, open};

    #[test]
    fn purge_deletes_entry_and_files_and_keeps_others() {
        let disk = archive(&[(0, Some(SEGMENT + 4096)), (0, Some(64))], None);
        let mut tool = open(&disk);
        let plan = tool.plan_purge(0, None).unwrap();
        assert_eq!(["0-0.rec", "0-131072.rec"], *plan.files);
        assert_eq!(2 * SEGMENT as u64, plan.bytes);
        assert_eq!(plan, tool.purge(0).unwrap());
        assert!(tool.catalog().get(0).is_none());
        assert!(tool.orphans(None).unwrap().is_empty());
        drop(tool);
        let mut tool = open(&disk);
        assert_eq!(1, tool.catalog().len());
        assert_eq!(1, tool.plan_purge(1, None).unwrap().files.len());
        assert!(tool.purge(7).is_err());
    }

    #[test]
    fn purge_segments_moves_the_start_to_segments_only() {
        let disk = archive(&[(96, Some(2 * SEGMENT + 4096)), (0, Some(64))], None);
        let mut tool = open(&disk);
        for position in [-1, 0, 96, SEGMENT - 32, SEGMENT + 32, 3 * SEGMENT] {
            let error = tool.purge_segments(0, position).unwrap_err().to_string();
            assert!(
                error.contains(&format!("{SEGMENT}, {}", 2 * SEGMENT)),
                "{error}"
            );
        }
        let error = tool.purge_segments(1, SEGMENT).unwrap_err().to_string();
        assert!(error.contains("one segment only"), "{error}");
        let plan = tool.purge_segments(0, 2 * SEGMENT).unwrap();
        assert_eq!(["0-0.rec", "0-131072.rec"], *plan.files);
        assert_eq!(2 * SEGMENT, tool.catalog().get(0).unwrap().start_position);
        let results = tool.verify(Some(0), Default::default(), 1).unwrap();
        assert!(results[0].problems.is_empty(), "{results:?}");
    }
}
