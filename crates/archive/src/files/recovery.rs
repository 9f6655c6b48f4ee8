// SPDX-License-Identifier: Apache-2.0
//! Recovery at the start of an archive: recordings that were active when it ended (`docs/spec/archive.md` §3.6).

use std::path::{Path, PathBuf};

use taran_storage::{Disk, DiskError};
use thiserror::Error;

use super::SyncLevel;
use super::catalog::{Catalog, CatalogError, CatalogFile, UpdateError};
use super::segments::{FrameFault, RecordingScan, ScanTarget, SegmentDirectory, SegmentGap};

/// Attempts to read and repair the files of one recording. An error of a device can pass.
const ATTEMPTS: u32 = 4;

/// Recovery could not write the catalog.
#[derive(Clone, PartialEq, Eq, Error)]
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

taran_core::debug_is_display!(RecoveryError);

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
    /// Recordings whose files cannot be read or repaired now. Their entries are as before, and the catalog does not show them
    /// until it is opened again.
    pub unavailable: Vec<(i64, DiskError)>,
    /// Segment files whose names are no bases of their recording.
    pub misplaced: Vec<String>,
    /// Names with the suffix of segment files that no archive makes.
    pub foreign: Vec<String>,
    /// Segment files of recordings that the catalog does not list.
    pub unlisted: Vec<String>,
}

impl RecoveryReport {
    /// Returns a sentence for each finding that is more than a recording that was active.
    #[must_use]
    pub fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for (id, error) in &self.unavailable {
            findings.push(format!(
                "recording {id} is unavailable until the archive starts again, because its end could not be found: {error}"
            ));
        }
        for recovered in &self.recovered {
            findings.extend(recovered.findings());
        }
        for (names, what) in [
            (
                &self.misplaced,
                "segment files begin at no segment of their recording",
            ),
            (
                &self.foreign,
                "files have the suffix of segment files and a name that no archive makes",
            ),
            (
                &self.unlisted,
                "segment files belong to recordings that the catalog does not list (see taran recordings orphans)",
            ),
        ] {
            if let Some(first) = names.first() {
                findings.push(format!("{} {what}: the first one is {first}", names.len()));
            }
        }
        findings
    }
}

impl RecoveredRecording {
    fn findings(&self) -> Vec<String> {
        let id = self.recording_id;
        let mut findings = Vec::new();
        if !self.side_files.is_empty() {
            let names: Vec<_> = self
                .side_files
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            let reason = self
                .fault
                .map_or_else(String::new, |fault| format!(" ({fault})"));
            findings.push(format!(
                "recording {id} ends at position {}; what followed it{reason} is in {}",
                self.stop_position,
                names.join(", ")
            ));
        }
        for gap in &self.gaps {
            findings.push(format!("recording {id} cannot be read at {gap}"));
        }
        findings
    }
}

/// Finds the stop positions of all active recordings, and stops them at `now_ms` (epoch). What follows the last good frame
/// is cut off and kept in side files. A recording that cannot be read or repaired, after some attempts, does not keep the
/// archive from starting: it is [unavailable](Catalog::set_unavailable), and the next recovery tries again.
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
        let repaired = scan_and_repair(&target, &names, recording_id, session_id, sync);
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
                catalog.set_unavailable(recording_id, error.to_string());
                report.unavailable.push((recording_id, error));
            }
        }
    }
    Ok(report)
}

/// Finds the end of a recording and cuts off what follows it; returns the side files, too. Each attempt begins anew.
fn scan_and_repair(
    target: &ScanTarget<'_>,
    names: &SegmentDirectory,
    recording_id: i64,
    session_id: i32,
    sync: SyncLevel,
) -> Result<(RecordingScan, Vec<PathBuf>), DiskError> {
    let repair = |names: &SegmentDirectory| {
        let scan = target.scan_stream(names.of(recording_id), Some(session_id))?;
        let side_files = target.repair(&scan, sync)?;
        Ok((scan, side_files))
    };
    let mut result = repair(names);
    for _ in 1..ATTEMPTS {
        if result.is_ok() {
            break;
        }
        // The attempt before may have moved files aside.
        result =
            SegmentDirectory::list(target.disk, target.directory).and_then(|names| repair(&names));
    }
    result
}
