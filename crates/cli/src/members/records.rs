// SPDX-License-Identifier: Apache-2.0
//! Verbs that read the files of a member.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use taran::Client;
use taran_archive_client::session::SessionError;
use taran_archive_client::{ArchiveContext, ConnectError};
use taran_cluster::files::{EntryKind, Mark, RecordingLogEntry};

use super::node::{mark, recording_log as read_log};
use super::{Recovery, Stored};
use crate::error_log::{self, DistinctError};
use crate::failure::Failure;
use crate::output;
use crate::printable;

/// Prints the process id.
pub(super) fn pid(stored: &Stored) -> Result<ExitCode, Failure> {
    #[derive(Serialize)]
    struct Pid {
        pid: i64,
    }
    let (_, mark, _) = mark(&stored.dir)?;
    if stored.json {
        output::json(&Pid { pid: mark.pid })?;
    } else {
        output::text(&format!("{}\n", mark.pid))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// An entry of the recording log as it is shown.
#[derive(Serialize)]
struct Shown<'a> {
    kind: &'static str,
    is_valid: bool,
    recording_id: i64,
    leadership_term_id: i64,
    term_base_log_position: i64,
    log_position: i64,
    timestamp: i64,
    service_id: i32,
    #[serde(skip_serializing_if = "str::is_empty")]
    archive_endpoint: &'a str,
}

impl<'a> Shown<'a> {
    fn of(entry: &'a RecordingLogEntry) -> Self {
        Self {
            kind: match entry.kind {
                EntryKind::Term => "TERM",
                EntryKind::Snapshot => "SNAPSHOT",
                EntryKind::StandbySnapshot => "STANDBY_SNAPSHOT",
            },
            is_valid: entry.is_valid,
            recording_id: entry.recording_id,
            leadership_term_id: entry.leadership_term_id,
            term_base_log_position: entry.term_base_log_position,
            log_position: entry.log_position,
            timestamp: entry.timestamp,
            service_id: entry.service_id,
            archive_endpoint: &entry.archive_endpoint,
        }
    }

    fn line(&self) -> String {
        let mut line = format!(
            "{} term={} base={} position={} recording={} service={} time={}",
            self.kind,
            self.leadership_term_id,
            self.term_base_log_position,
            self.log_position,
            self.recording_id,
            self.service_id,
            self.timestamp,
        );
        if !self.archive_endpoint.is_empty() {
            let endpoint = printable::lines(self.archive_endpoint);
            let _ = write!(line, " archive={endpoint}");
        }
        if !self.is_valid {
            line.push_str(" INVALID");
        }
        line
    }
}

/// Shows all entries of the recording log.
pub(super) fn recording_log(stored: &Stored) -> Result<ExitCode, Failure> {
    let (_, log) = read_log(&stored.dir)?;
    let entries: Vec<_> = log.entries().map(Shown::of).collect();
    if stored.json {
        output::json(&entries)?;
    } else {
        let lines = entries.iter().map(|entry| entry.line() + "\n");
        output::text(&lines.collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct RecoveryPlan<'a> {
    /// Last term; -1 if there is none.
    last_leadership_term_id: i64,
    last_term_base_log_position: i64,
    /// End of the log's recording; none if the archive cannot be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    appended_log_position: Option<i64>,
    /// Reason why that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    appended_log_position_unknown: Option<&'a str>,
    /// Position from which the log is replayed.
    replay_from: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_recording_id: Option<i64>,
    snapshots: Vec<Shown<'a>>,
}

/// Shows what the member would start from.
pub(super) fn recovery_plan(recovery: &Recovery) -> Result<ExitCode, Failure> {
    let plan = &recovery.plan;
    let dir = &plan.stored.dir;
    let (_, log) = read_log(dir)?;
    let term = log
        .entries()
        .filter(|entry| entry.kind == EntryKind::Term && entry.is_valid)
        .max_by_key(|entry| entry.leadership_term_id);
    let snapshot = log.latest_snapshot(usize::from(plan.services));
    let replay_from = snapshot
        .as_ref()
        .map_or(0, |(module, _)| module.log_position);
    let recording = log.recording_id();
    let end = recording.map(|id| {
        let end = mark(dir).and_then(|(_, mark, _)| end_of_recording(&mark, id, recovery.timeout));
        end.map_err(|failure| failure.to_string())
    });
    let snapshots = snapshot
        .into_iter()
        .flat_map(|(module, services)| std::iter::once(module).chain(services).map(Shown::of));
    let shown = RecoveryPlan {
        last_leadership_term_id: term.map_or(-1, |it| it.leadership_term_id),
        last_term_base_log_position: term.map_or(0, |it| it.term_base_log_position),
        appended_log_position: end.as_ref().and_then(|end| end.as_ref().ok()).copied(),
        appended_log_position_unknown: end
            .as_ref()
            .and_then(|end| end.as_ref().err())
            .map(String::as_str),
        replay_from,
        log_recording_id: recording,
        snapshots: snapshots.collect(),
    };
    if plan.stored.json {
        output::json(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = match shown.last_leadership_term_id {
        -1 => "no term: the member starts empty\n".to_owned(),
        term => format!(
            "last term {term}, which starts at {}\n",
            shown.last_term_base_log_position
        ),
    };
    for snapshot in &shown.snapshots {
        let _ = writeln!(text, "loads {}", snapshot.line());
    }
    if let (Some(recording), Some(end)) = (recording, &end) {
        let end = match end {
            Ok(position) => position.to_string(),
            Err(reason) => {
                let reason = printable::one_line(reason);
                format!("an end that is unknown, as {reason}")
            }
        };
        let _ = writeln!(
            text,
            "replays recording {recording} from {replay_from}, as far as it is committed, at most to {end}"
        );
    }
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Asks the archive of the member, if it runs, for the end of the log.
fn end_of_recording(mark: &Mark, recording_id: i64, timeout: Duration) -> Result<i64, Failure> {
    let refused = |error: &dyn std::fmt::Display| {
        Failure::Other(format!(
            "the archive did not answer within {timeout:?} (--timeout): {error}"
        ))
    };
    let client = Client::builder()
        .client_name("taran-members")
        .aeron_dir(&mark.aeron_directory)
        .driver_timeout(timeout)
        .connect()
        .map_err(|error| {
            Failure::Other(format!(
                "the driver of the archive cannot be reached within {timeout:?} (--timeout): {error}"
            ))
        })?;
    let mut archive = ArchiveContext::new()
        .control_channel("aeron:ipc?term-length=64k")
        .control_stream_id(mark.archive_stream_id)
        .response_channel("aeron:ipc?term-length=64k")
        .message_timeout(timeout)
        .connect(&client)
        .map_err(|error| match error {
            ConnectError::Session(SessionError::Timeout { .. }) => refused(&error),
            _ => Failure::Other(error.to_string()),
        })?;
    archive
        .max_recorded_position(recording_id)
        .map_err(|error| Failure::Other(error.to_string()))
}

/// Shows the errors in the mark file.
pub(super) fn errors(stored: &Stored) -> Result<ExitCode, Failure> {
    let (path, _, bytes) = mark(&stored.dir)?;
    let errors = Mark::errors(&bytes)
        .map_err(|reason| Failure::Other(format!("{}: {reason}", path.display())))?;
    let errors: Vec<DistinctError> = errors.iter().map(DistinctError::from).collect();
    error_log::show(&errors, stored.json)?;
    Ok(ExitCode::SUCCESS)
}
