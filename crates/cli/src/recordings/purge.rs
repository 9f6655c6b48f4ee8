// SPDX-License-Identifier: Apache-2.0
//! `purge`: deletes recordings or segments.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use taran_archive::files::tools::PurgePlan;
use taran_archive_client::protocol::RecordingSignal;

use super::other;
use super::place::{self, Archive, Live, Place};
use crate::failure::Failure;
use crate::output;

#[derive(Args, Debug)]
#[command(after_help = "\
Without --yes, shows what would be deleted, and fails with exit status 2. A running archive deletes nothing that is replayed or
recorded.")]
pub(super) struct Purge {
    #[command(flatten)]
    archive: Archive,

    /// The recording
    recording_id: i64,

    /// Delete the segments before this position only; the position is the beginning of a segment
    #[arg(long, value_name = "POSITION")]
    before: Option<i64>,

    /// Delete
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Serialize)]
struct ShownPurge {
    recording_id: i64,
    segment_files: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_position: Option<i64>,
}

/// Deletes a recording, or its segments before a position.
pub(super) fn purge(purge: &Purge) -> Result<ExitCode, Failure> {
    let id = purge.recording_id;
    let shown = match purge.archive.place() {
        Place::Directory(path) if !place::is_running(path) => {
            let mut archive = place::open(path, None)?;
            let plan = archive.plan_purge(id, purge.before).map_err(other)?;
            if !purge.yes {
                return Err(refusal(id, purge.before, Some(&plan)));
            }
            let plan = match purge.before {
                Some(position) => archive.purge_segments(id, position),
                None => archive.purge(id),
            }
            .map_err(other)?;
            ShownPurge {
                recording_id: id,
                // Files in a directory.
                segment_files: plan.files.len() as i64,
                bytes: Some(plan.bytes),
                start_position: purge.before,
            }
        }
        _ => {
            let mut live = purge.archive.connect()?;
            live.recording(id)?;
            if !purge.yes {
                return Err(refusal(id, purge.before, None));
            }
            let segment_files = purge_live(&mut live, id, purge.before)?;
            ShownPurge {
                recording_id: id,
                segment_files,
                bytes: None,
                start_position: purge.before,
            }
        }
    };
    if purge.archive.json {
        output::json(&shown)?;
    } else {
        let what = match shown.start_position {
            Some(position) => format!("recording {id} now starts at position {position}"),
            None => format!("purged recording {id}"),
        };
        output::text(&format!(
            "{what}; {} segment files deleted\n",
            shown.segment_files
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn purge_live(live: &mut Live, id: i64, before: Option<i64>) -> Result<i64, Failure> {
    let files = match before {
        Some(position) => live.archive.purge_segments(id, position),
        None => live.archive.purge_recording(id),
    }
    .map_err(other)?;
    live.archive
        .wait_for_signal_of(id, RecordingSignal::DELETE)
        .map_err(other)?;
    Ok(files)
}

fn refusal(id: i64, before: Option<i64>, plan: Option<&PurgePlan>) -> Failure {
    let what = match before {
        Some(position) => format!("the segments of recording {id} before position {position}"),
        None => format!("recording {id}"),
    };
    let files = plan.map_or_else(String::new, |plan| {
        format!(" ({} files, {} bytes)", plan.files.len(), plan.bytes)
    });
    Failure::Usage(format!(
        "this deletes {what}{files} for good; nothing was deleted: repeat it with --yes"
    ))
}
