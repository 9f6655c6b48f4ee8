// SPDX-License-Identifier: Apache-2.0
//! Commands that change nothing.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde::Serialize;
use taran_archive::files::{Entry, MarkFileInfo, NULL_VALUE, UpdateError};
use taran_archive_client::Recording;

use super::place::{self, Directory, Place, disk};
use super::{Describe, List, other};
use crate::date;
use crate::error_log::{self, DistinctError};
use crate::failure::Failure;
use crate::output;
use crate::printable;

/// A recording as it is shown. Through a control session, what only the catalog has is left out.
#[derive(Debug, Serialize)]
struct Shown {
    recording_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control_session_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<i64>,
    start_timestamp_ms: i64,
    stop_timestamp_ms: i64,
    start_position: i64,
    stop_position: i64,
    initial_term_id: i32,
    segment_file_length: i32,
    term_buffer_length: i32,
    mtu_length: i32,
    session_id: i32,
    stream_id: i32,
    stripped_channel: String,
    original_channel: String,
    source_identity: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    catalog_offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    catalog_length: Option<u64>,
}

impl Shown {
    fn of(entry: &Entry) -> Self {
        let descriptor = entry.descriptor();
        let message = descriptor.message(descriptor.control_session_id, descriptor.correlation_id);
        Self {
            state: Some(entry.state().to_string()),
            control_session_id: Some(descriptor.control_session_id),
            correlation_id: Some(descriptor.correlation_id),
            checksum: Some(entry.checksum()),
            catalog_offset: Some(entry.offset()),
            catalog_length: Some(entry.length()),
            ..Self::received((&message).into())
        }
    }

    fn received(recording: Recording) -> Self {
        Self {
            recording_id: recording.recording_id,
            state: None,
            control_session_id: None,
            correlation_id: None,
            start_timestamp_ms: recording.start_timestamp,
            stop_timestamp_ms: recording.stop_timestamp.unwrap_or(NULL_VALUE),
            start_position: recording.start_position,
            stop_position: recording.stop_position.unwrap_or(NULL_VALUE),
            initial_term_id: recording.initial_term_id,
            segment_file_length: recording.segment_file_length,
            term_buffer_length: recording.term_buffer_length,
            mtu_length: recording.mtu_length,
            session_id: recording.session_id,
            stream_id: recording.stream_id,
            stripped_channel: recording.stripped_channel,
            original_channel: recording.original_channel,
            source_identity: recording.source_identity,
            checksum: None,
            catalog_offset: None,
            catalog_length: None,
        }
    }
}

/// Lists recordings.
pub(super) fn list(list: &List) -> Result<ExitCode, Failure> {
    match list.archive.place() {
        Place::Directory(path) => {
            let catalog = place::read(path)?;
            let entries = catalog
                .recordings(0)
                .filter_map(|descriptor| catalog.entry(descriptor.recording_id));
            print_list(list, entries.map(Shown::of))
        }
        Place::Channel(_) => {
            let mut live = list.archive.connect()?;
            let recordings: Vec<Recording> = live
                .archive
                .recordings(0)
                .collect::<Result<_, _>>()
                .map_err(other)?;
            print_list(list, recordings.into_iter().map(Shown::received))
        }
    }
}

fn print_list(list: &List, recordings: impl Iterator<Item = Shown>) -> Result<ExitCode, Failure> {
    let recordings: Vec<Shown> = recordings
        .filter(|shown| list.stream.is_none_or(|stream| stream == shown.stream_id))
        .filter(|shown| shown.original_channel.contains(&list.channel))
        .collect();
    if list.count {
        output::text(&format!("{}\n", recordings.len()))?;
    } else if list.archive.json {
        output::json(&recordings)?;
    } else {
        let mut text = format!(
            "{:>8} {:>11} {:>11} {:>20} {:>20} {:28} CHANNEL\n",
            "ID", "STREAM", "SESSION", "START POSITION", "STOP POSITION", "START TIME"
        );
        for recording in &recordings {
            let stop = match recording.stop_position {
                -1 => "active".to_owned(),
                stop => stop.to_string(),
            };
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(
                text,
                "{:>8} {:>11} {:>11} {:>20} {stop:>20} {:28} {}",
                recording.recording_id,
                recording.stream_id,
                recording.session_id,
                recording.start_position,
                date::format(recording.start_timestamp_ms),
                printable::one_line(&recording.original_channel),
            );
        }
        output::text(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows all fields of recordings.
pub(super) fn describe(describe: &Describe) -> Result<ExitCode, Failure> {
    match describe.archive.place() {
        Place::Directory(path) => {
            let catalog = place::read(path)?;
            let entries: Vec<Shown> = match describe.recording_id {
                None => catalog.entries().iter().map(Shown::of).collect(),
                Some(recording_id) => {
                    let entry = catalog.entry(recording_id);
                    let unknown = || other(UpdateError::Unknown { recording_id });
                    vec![Shown::of(entry.ok_or_else(unknown)?)]
                }
            };
            let heading = format!(
                "catalog: capacity={} used={} alignment={} next-recording-id={} entries={}\n",
                catalog.capacity(),
                catalog.used(),
                catalog.alignment(),
                catalog.next_recording_id(),
                catalog.entries().len(),
            );
            print_described(describe, &heading, &entries)
        }
        Place::Channel(_) => {
            let mut live = describe.archive.connect()?;
            let recordings = match describe.recording_id {
                None => live.archive.recordings(0).collect::<Result<_, _>>(),
                Some(id) => Ok(vec![live.recording(id)?]),
            };
            let recordings: Vec<Recording> = recordings.map_err(other)?;
            let shown: Vec<Shown> = recordings.into_iter().map(Shown::received).collect();
            let heading = format!("archive: recordings={}\n", shown.len());
            print_described(describe, &heading, &shown)
        }
    }
}

fn print_described(
    describe: &Describe,
    heading: &str,
    recordings: &[Shown],
) -> Result<ExitCode, Failure> {
    if describe.archive.json {
        output::json(&recordings)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = heading.to_owned();
    for recording in recordings {
        // A serialised struct of numbers and texts is an object.
        let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(recording) else {
            continue;
        };
        text.push('\n');
        for (name, value) in fields {
            let value = match value {
                serde_json::Value::String(text) => text,
                value => value.to_string(),
            };
            let _ = writeln!(text, "{name:20} {}", printable::one_line(&value));
        }
    }
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug, Serialize)]
struct Mark {
    file: String,
    version: i32,
    archive_id: Option<i64>,
    pid: i64,
    activity_timestamp_ms: i64,
    start_timestamp_ms: i64,
    control_stream_id: i32,
    local_control_stream_id: i32,
    events_stream_id: i32,
    control_channel: String,
    local_control_channel: String,
    events_channel: String,
    aeron_directory: String,
}

/// Shows the mark file.
pub(super) fn mark(directory: &Directory) -> Result<ExitCode, Failure> {
    let (path, info, _) = MarkFileInfo::read(&*disk(), directory.path()?).map_err(other)?;
    let shown = Mark {
        file: path.display().to_string(),
        version: info.version,
        archive_id: info.archive_id,
        pid: info.pid,
        activity_timestamp_ms: info.activity_timestamp,
        start_timestamp_ms: info.start_timestamp,
        control_stream_id: info.control_stream_id,
        local_control_stream_id: info.local_control_stream_id,
        events_stream_id: info.events_stream_id,
        control_channel: info.control_channel,
        local_control_channel: info.local_control_channel,
        events_channel: info.events_channel,
        aeron_directory: info.aeron_directory,
    };
    if directory.json {
        output::json(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    if let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(&shown) {
        for (name, value) in fields {
            let value = match value {
                serde_json::Value::String(text) => text,
                value => value.to_string(),
            };
            let _ = writeln!(text, "{name:24} {}", printable::one_line(&value));
        }
    }
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Shows the errors in the mark file.
pub(super) fn errors(directory: &Directory) -> Result<ExitCode, Failure> {
    let (_, _, errors) = MarkFileInfo::read(&*disk(), directory.path()?).map_err(other)?;
    let errors: Vec<DistinctError> = errors.iter().map(DistinctError::from).collect();
    error_log::show(&errors, directory.json)?;
    Ok(ExitCode::SUCCESS)
}
