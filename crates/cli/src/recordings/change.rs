// SPDX-License-Identifier: Apache-2.0
//! Commands that change the files of a stopped archive.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde::Serialize;
use taran_archive::files::tools::{Verification, VerifyOptions};
use taran_archive::files::{CATALOG_FILE, CatalogFile, CatalogOptions, FILES_VERSION};
use taran_storage::OpenOptions;

use super::place::{Directory, disk};
use super::progress::Progress;
use super::{One, Orphans, Stamp, Verify, now_ms, other, segments};
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Serialize)]
struct Verified {
    recording_id: i64,
    before: String,
    after: String,
    problems: Vec<String>,
    stop_position: Option<i64>,
    cut: Option<String>,
    side_files: Vec<String>,
    frames: u64,
}

/// Verifies recordings. The exit status is 1 if one has problems.
pub(super) fn verify(verify: &Verify) -> Result<ExitCode, Failure> {
    let archive = &verify.target.directory;
    let options = VerifyOptions {
        segments: segments(verify.all),
        checksum: verify.checksum,
        repair: !verify.dry_run,
    };
    let mut stopped = archive.open(verify.checksum)?;
    let mut progress = Progress::new(verify.progress);
    let mut shown = Vec::new();
    let mut frames = 0;
    let outcome = stopped.verify_each(
        verify.target.recording_id,
        options,
        now_ms(),
        |result, left| {
            frames += result.frames;
            shown.push(shown_result(&result));
            let done = shown.len();
            progress.show(|| {
                format!(
                    "verified {done} of {} recordings, {frames} frames",
                    done + left
                )
            });
        },
    );
    let done = shown.len();
    progress.end(|| format!("verified {done} recordings, {frames} frames"));
    print_results(archive, &shown)?;
    outcome.map_err(other)?;
    Ok(status(
        shown.iter().all(|result| result.problems.is_empty()),
    ))
}

fn shown_result(result: &Verification) -> Verified {
    Verified {
        recording_id: result.recording_id,
        before: result.before.to_string(),
        after: result.after.to_string(),
        problems: result.problems.iter().map(ToString::to_string).collect(),
        stop_position: result.stop_position.map(|(_, found)| found),
        cut: result.tail.map(|fault| fault.to_string()),
        side_files: result
            .side_files
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
        frames: result.frames,
    }
}

fn print_results(archive: &Directory, shown: &[Verified]) -> Result<(), Failure> {
    if archive.json {
        output::json(&shown)?;
    } else {
        let mut text = String::new();
        for result in shown {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(
                text,
                "recording {}: {} ({} frames read)",
                result.recording_id, result.after, result.frames
            );
            if let Some(position) = result.stop_position {
                let _ = writeln!(text, "  stop position: {position}");
            }
            for line in result.cut.iter().chain(&result.problems) {
                let _ = writeln!(text, "  {line}");
            }
            for file in &result.side_files {
                let _ = writeln!(text, "  kept what was cut off in {file}");
            }
        }
        output::text(&text)?;
    }
    Ok(())
}

#[derive(Debug, Serialize)]
struct ShownStamp {
    recording_id: i64,
    frames: u64,
    segments: usize,
}

/// Stores checksums.
pub(super) fn checksum(stamp: &Stamp) -> Result<ExitCode, Failure> {
    let archive = &stamp.target.directory;
    let mut stopped = archive.open(None)?;
    let stamped = stopped
        .stamp(
            stamp.target.recording_id,
            segments(stamp.all),
            stamp.checksum,
        )
        .map_err(other)?;
    let shown: Vec<ShownStamp> = stamped
        .iter()
        .map(|stamped| ShownStamp {
            recording_id: stamped.recording_id,
            frames: stamped.frames,
            segments: stamped.segments,
        })
        .collect();
    if archive.json {
        output::json(&shown)?;
    } else {
        let mut text = String::new();
        for stamped in &shown {
            let _ = writeln!(
                text,
                "recording {}: checksums of {} frames in {} segment files",
                stamped.recording_id, stamped.frames, stamped.segments
            );
        }
        output::text(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug, Serialize)]
struct ShownCompaction {
    removed: Vec<i64>,
    files: Vec<String>,
    catalog_length_before: u64,
    catalog_length: u64,
}

/// Removes invalid and purged recordings.
pub(super) fn compact(archive: &Directory) -> Result<ExitCode, Failure> {
    let mut stopped = archive.open(None)?;
    let compacted = stopped.compact().map_err(other)?;
    let shown = ShownCompaction {
        removed: compacted.removed.iter().map(|(id, _)| *id).collect(),
        files: compacted.files,
        catalog_length_before: compacted.length_before,
        catalog_length: compacted.length,
    };
    if archive.json {
        output::json(&shown)?;
    } else {
        output::text(&format!(
            "removed {} recordings and {} segment files; catalog: {} bytes, before: {}\n",
            shown.removed.len(),
            shown.files.len(),
            shown.catalog_length,
            shown.catalog_length_before
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug, Serialize)]
struct ShownOrphan {
    recording_id: i64,
    file: String,
    reason: String,
    deleted: bool,
}

/// Shows or deletes files that belong to no recording.
pub(super) fn orphans(orphans: &Orphans) -> Result<ExitCode, Failure> {
    let archive = &orphans.target.directory;
    let mut stopped = archive.open(None)?;
    let found = stopped
        .orphans(orphans.target.recording_id)
        .map_err(other)?;
    if orphans.delete {
        stopped.delete_orphans(&found).map_err(other)?;
    }
    let shown: Vec<ShownOrphan> = found
        .iter()
        .map(|orphan| ShownOrphan {
            recording_id: orphan.recording_id,
            file: orphan.name.clone(),
            reason: orphan.reason.to_string(),
            deleted: orphans.delete,
        })
        .collect();
    if archive.json {
        output::json(&shown)?;
    } else {
        let mut text = String::new();
        for orphan in &shown {
            let deleted = if orphan.deleted { " (deleted)" } else { "" };
            let _ = writeln!(text, "{}: {}{deleted}", orphan.file, orphan.reason);
        }
        let _ = writeln!(text, "{} files", shown.len());
        output::text(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Marks a recording.
pub(super) fn mark(one: &One, is_valid: bool) -> Result<ExitCode, Failure> {
    let mut stopped = one.directory.open(None)?;
    let result = if is_valid {
        stopped.mark_valid(one.recording_id)
    } else {
        stopped.mark_invalid(one.recording_id)
    };
    result.map_err(other)?;
    Ok(ExitCode::SUCCESS)
}

fn status(is_good: bool) -> ExitCode {
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[derive(Debug, Serialize)]
struct ShownVersion {
    version: String,
    current: String,
    needs_migration: bool,
}

/// Shows whether the files have the current format. Older ones are those of Aeron before 1.30.
pub(super) fn migrate(directory: &Directory) -> Result<ExitCode, Failure> {
    let path = directory.path()?;
    // A missing directory, a missing catalog and one of a newer version are told as such.
    let read = CatalogFile::read(&*disk(), path, CatalogOptions::default());
    let mut version = [0; 4];
    let catalog = disk().open(&path.join(CATALOG_FILE), OpenOptions::read());
    let is_short = catalog
        .and_then(|file| file.read_at(&mut version, 0))
        .map_err(other)?
        < version.len();
    let version = i32::from_le_bytes(version);
    let text = |version: i32| {
        format!(
            "{}.{}.{}",
            version >> 16,
            version >> 8 & 0xFF,
            version & 0xFF
        )
    };
    let needs_migration = !is_short && (0..FILES_VERSION >> 16).contains(&(version >> 16));
    if needs_migration && read.is_err() {
        return Err(Failure::Other(format!(
            "{} has files of version {}; this program reads version 3 and migrates no older ones: run 'ArchiveTool migrate' of \
             Aeron 1.51 on a copy of the directory first",
            path.display(),
            text(version)
        )));
    }
    read.map_err(other)?;
    let shown = ShownVersion {
        version: text(version),
        current: text(FILES_VERSION),
        needs_migration,
    };
    if directory.json {
        output::json(&shown)?;
    } else {
        output::text(&format!(
            "nothing to migrate: the files have version {}\n",
            shown.version
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
