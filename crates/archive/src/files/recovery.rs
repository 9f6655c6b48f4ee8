//! Recovery at the start of an archive: recordings that were active when it ended (`docs/spec/archive.md` §3.6).

use std::path::{Path, PathBuf};

use taran_storage::{Disk, DiskError};
use thiserror::Error;

use super::SyncLevel;
use super::catalog::{Catalog, CatalogError, CatalogFile, EntryState, UpdateError};
use super::segments::{FrameFault, ScanTarget, SegmentDirectory, SegmentGap};

/// Recovery could not write the catalog.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecoveryError {
    /// The directory cannot be listed or synced.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The catalog file failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The catalog refused a change.
    #[error(transparent)]
    Update(#[from] UpdateError),
}

/// A recording whose stop position was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveredRecording {
    /// The recording.
    pub recording_id: i64,
    /// Its stop position.
    pub stop_position: i64,
    /// The reason why the frame behind it, if any, was cut off.
    pub fault: Option<FrameFault>,
    /// Files with the bytes that were cut off.
    pub side_files: Vec<PathBuf>,
    /// Positions before the stop position that cannot be read.
    pub gaps: Vec<SegmentGap>,
}

/// Results of a recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Recordings that were active.
    pub recovered: Vec<RecoveredRecording>,
    /// Recordings whose files cannot be read or repaired; they are INVALID now.
    pub failed: Vec<(i64, DiskError)>,
    /// Segment files whose names are no bases of their recording.
    pub misplaced: Vec<String>,
    /// Names with the suffix of segment files that no archive makes.
    pub foreign: Vec<String>,
    /// Segment files of recordings that the catalog does not list.
    pub unlisted: Vec<String>,
}

/// Finds the stop positions of all active recordings, and stops them at `now_ms` (epoch). What follows the last good frame
/// is cut off and kept in side files. A recording that cannot be repaired does not keep the archive from starting.
///
/// # Errors
///
/// The directory or the catalog cannot be written.
pub fn recover(
    disk: &dyn Disk,
    directory: &Path,
    catalog: &mut Catalog,
    file: &mut CatalogFile,
    sync: SyncLevel,
    now_ms: i64,
) -> Result<RecoveryReport, RecoveryError> {
    let names = SegmentDirectory::list(disk, directory)?;
    for name in &names.reserved {
        disk.remove_file(&directory.join(name))?;
    }
    let unlisted = names
        .segments
        .iter()
        .filter(|name| catalog.entry(name.recording_id()).is_none());
    let mut report = RecoveryReport {
        unlisted: unlisted.map(|name| name.file_name()).collect(),
        foreign: names.foreign.clone(),
        ..RecoveryReport::default()
    };
    let active: Vec<i64> = catalog
        .recordings(0)
        .filter(|descriptor| descriptor.is_active())
        .map(|descriptor| descriptor.recording_id)
        .collect();
    let checksum = catalog.options().checksum;
    for recording_id in active {
        let Some((Ok(layout), stream_id, session_id)) =
            catalog.get(recording_id).map(|descriptor| {
                (
                    descriptor.layout(),
                    descriptor.stream_id,
                    descriptor.session_id,
                )
            })
        else {
            continue;
        };
        let target = ScanTarget {
            disk,
            directory,
            layout,
            stream_id,
            checksum,
        };
        let scanned = target.scan_stream(names.of(recording_id), Some(session_id));
        let repaired = scanned.and_then(|scan| {
            target
                .repair(&scan, sync)
                .map(|side_files| (scan, side_files))
        });
        match repaired {
            Ok((scan, side_files)) => {
                let change = catalog.stop(recording_id, scan.end, now_ms)?;
                file.apply(&change)?;
                let misplaced = scan.misplaced.iter().map(|name| name.file_name());
                report.misplaced.extend(misplaced);
                report.recovered.push(RecoveredRecording {
                    recording_id,
                    stop_position: scan.end,
                    fault: scan.fault,
                    side_files,
                    gaps: scan.gaps,
                });
            }
            Err(error) => {
                let change = catalog.set_state(recording_id, EntryState::Invalid)?;
                file.apply(&change)?;
                report.failed.push((recording_id, error));
            }
        }
    }
    Ok(report)
}
