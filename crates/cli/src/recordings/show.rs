//! Commands that change nothing.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::process::ExitCode;

use serde::Serialize;
use taran_archive::files::tools::dump as dump_frames;
use taran_archive::files::{
    Catalog, CatalogFile, CatalogOptions, Entry, MarkFileInfo, UpdateError,
};

use super::{Archive, Dump, List, Target, other};
use crate::date;
use crate::failure::Failure;
use crate::output;
use crate::printable;

/// A recording as it is shown.
#[derive(Debug, Serialize)]
struct Recording<'a> {
    recording_id: i64,
    state: String,
    control_session_id: i64,
    correlation_id: i64,
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
    stripped_channel: &'a str,
    original_channel: &'a str,
    source_identity: &'a str,
    checksum: i32,
    catalog_offset: u64,
    catalog_length: u64,
}

impl<'a> Recording<'a> {
    fn of(entry: &'a Entry) -> Self {
        let descriptor = entry.descriptor();
        Self {
            recording_id: descriptor.recording_id,
            state: entry.state().to_string(),
            control_session_id: descriptor.control_session_id,
            correlation_id: descriptor.correlation_id,
            start_timestamp_ms: descriptor.start_timestamp,
            stop_timestamp_ms: descriptor.stop_timestamp,
            start_position: descriptor.start_position,
            stop_position: descriptor.stop_position,
            initial_term_id: descriptor.initial_term_id,
            segment_file_length: descriptor.segment_file_length,
            term_buffer_length: descriptor.term_buffer_length,
            mtu_length: descriptor.mtu_length,
            session_id: descriptor.session_id,
            stream_id: descriptor.stream_id,
            stripped_channel: &descriptor.texts.stripped_channel,
            original_channel: &descriptor.texts.original_channel,
            source_identity: &descriptor.texts.source_identity,
            checksum: entry.checksum(),
            catalog_offset: entry.offset(),
            catalog_length: entry.length(),
        }
    }
}

fn read(archive: &Archive) -> Result<Catalog, Failure> {
    let options = CatalogOptions::default();
    let (catalog, report) =
        CatalogFile::read(&*Archive::disk(), &archive.directory, options).map_err(other)?;
    for (id, reason) in &report.unusable {
        eprintln!("warning: recording {id} cannot be used: {reason}");
    }
    if let Some(tail) = &report.tail {
        eprintln!(
            "warning: {} bytes behind the last entry, at byte {}, are no entry",
            tail.bytes.len(),
            tail.offset
        );
    }
    Ok(catalog)
}

/// Lists recordings.
pub(super) fn list(list: &List) -> Result<ExitCode, Failure> {
    let catalog = read(&list.archive)?;
    let recordings: Vec<Recording<'_>> = catalog
        .recordings(0)
        .filter(|descriptor| {
            list.stream
                .is_none_or(|stream| stream == descriptor.stream_id)
        })
        .filter(|descriptor| descriptor.texts.original_channel.contains(&list.channel))
        .filter_map(|descriptor| catalog.entry(descriptor.recording_id))
        .map(Recording::of)
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
                printable::one_line(recording.original_channel),
            );
        }
        output::text(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows all fields of recordings.
pub(super) fn describe(target: &Target) -> Result<ExitCode, Failure> {
    let catalog = read(&target.archive)?;
    let entries: Vec<Recording<'_>> = match target.recording_id {
        None => catalog.entries().iter().map(Recording::of).collect(),
        Some(recording_id) => {
            let entry = catalog.entry(recording_id);
            let unknown = || other(UpdateError::Unknown { recording_id });
            vec![Recording::of(entry.ok_or_else(unknown)?)]
        }
    };
    if target.archive.json {
        output::json(&entries)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!(
        "catalog: capacity={} used={} alignment={} next-recording-id={} entries={}\n",
        catalog.capacity(),
        catalog.used(),
        catalog.alignment(),
        catalog.next_recording_id(),
        catalog.entries().len(),
    );
    for recording in &entries {
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
struct ShownFrame {
    position: i64,
    length: i32,
    flags: u8,
    padding: bool,
    session_id: i32,
    reserved_value: i64,
    payload_hex: String,
}

/// Shows the frames of a recording.
pub(super) fn dump(dump: &Dump) -> Result<ExitCode, Failure> {
    let catalog = read(&dump.archive)?;
    let recording_id = dump.recording_id;
    let entry = catalog.entry(recording_id);
    let entry = entry.ok_or_else(|| other(UpdateError::Unknown { recording_id }))?;
    let mut frames = Vec::new();
    let result = dump_frames(
        &*Archive::disk(),
        &dump.archive.directory,
        entry.descriptor(),
        |position, frame, payload| {
            if frames.len() as u64 >= dump.frames {
                return ControlFlow::Break(());
            }
            let shown = &payload[..payload.len().min(dump.bytes)];
            frames.push(ShownFrame {
                position,
                length: frame.length,
                flags: frame.header.header.flags,
                padding: frame.is_padding,
                session_id: frame.header.session_id.get(),
                reserved_value: frame.header.reserved_value.get(),
                payload_hex: shown.iter().map(|byte| format!("{byte:02x}")).collect(),
            });
            ControlFlow::Continue(())
        },
    );
    if dump.archive.json {
        output::json(&frames)?;
    } else {
        let mut text = format!("{:>20} {:>10} FLAGS PAYLOAD\n", "POSITION", "LENGTH");
        for frame in &frames {
            let payload = if frame.padding {
                "(padding)"
            } else {
                &frame.payload_hex
            };
            let _ = writeln!(
                text,
                "{:>20} {:>10}    {:02x} {payload}",
                frame.position, frame.length, frame.flags
            );
        }
        output::text(&text)?;
    }
    result.map_err(other)?;
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
pub(super) fn mark(archive: &Archive) -> Result<ExitCode, Failure> {
    let (path, info, _) =
        MarkFileInfo::read(&*Archive::disk(), &archive.directory).map_err(other)?;
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
    if archive.json {
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

#[derive(Debug, Serialize)]
struct ShownError<'a> {
    observations: i32,
    first_ms: i64,
    last_ms: i64,
    text: &'a str,
}

/// Shows the errors in the mark file.
pub(super) fn errors(archive: &Archive) -> Result<ExitCode, Failure> {
    let (_, _, errors) =
        MarkFileInfo::read(&*Archive::disk(), &archive.directory).map_err(other)?;
    let shown: Vec<ShownError<'_>> = errors
        .iter()
        .map(|error| ShownError {
            observations: error.count,
            first_ms: error.first_ms,
            last_ms: error.last_ms,
            text: &error.text,
        })
        .collect();
    if archive.json {
        output::json(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for error in &shown {
        let _ = writeln!(
            text,
            "{} observations from {} to {}:\n{}\n",
            error.observations,
            date::format(error.first_ms),
            date::format(error.last_ms),
            printable::lines(error.text),
        );
    }
    let _ = writeln!(text, "{} distinct errors", shown.len());
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}
