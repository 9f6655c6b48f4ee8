// SPDX-License-Identifier: Apache-2.0
//! Recordings in one file: `export` and `import`.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use taran_archive::files::tools::{ExportWriter, Exported, export as export_files};
use taran_archive::files::{Descriptor, NULL_VALUE, RecordingTexts};
use taran_archive_client::Recording;
use taran_protocol::frame::{DataHeader, FrameType};
use taran_protocol::position::align32;
use zerocopy::FromBytes;

use super::place::{self, Archive, Directory, Place, disk};
use super::progress::{self, Progress};
use super::{now_ms, other, read};
use crate::failure::Failure;
use crate::output;

/// Stands for standard output and input.
const STANDARD: &str = "-";

#[derive(Args, Debug)]
#[command(after_help = "\
The file has the description and the frames of the recording, with checksums. An active recording is exported up to what is recorded
when the command starts. Existing files are not overwritten; an incomplete file is removed.")]
pub(super) struct Export {
    #[command(flatten)]
    archive: Archive,

    /// The recording
    recording_id: i64,

    /// The file; - is standard output
    file: PathBuf,

    /// Start with the frame at this position [default: the start of the recording]
    #[arg(long, value_name = "POSITION")]
    from: Option<i64>,

    /// End with the frame at this position [default: the end of the recording]
    #[arg(long, value_name = "POSITION")]
    until: Option<i64>,

    #[command(flatten)]
    progress: progress::ProgressOption,
}

#[derive(Args, Debug)]
#[command(after_help = "\
The recording gets a new id in this archive. If the file is damaged or the disk is full, nothing of it is left.")]
pub(super) struct Import {
    #[command(flatten)]
    directory: Directory,

    /// The file; - is standard input
    file: PathBuf,

    #[command(flatten)]
    progress: progress::ProgressOption,
}

#[derive(Debug, Serialize)]
struct ShownTransfer {
    recording_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_recording_id: Option<i64>,
    start_position: i64,
    stop_position: i64,
    frames: u64,
}

/// Writes a recording to a file.
pub(super) fn export(export: &Export) -> Result<ExitCode, Failure> {
    let is_standard = export.file == Path::new(STANDARD);
    if let (Some(from), Some(until)) = (export.from, export.until)
        && from >= until
    {
        return Err(Failure::Usage(format!(
            "--from {from} is not before --until {until}"
        )));
    }
    let exported = if is_standard {
        let mut out = BufWriter::new(io::stdout().lock());
        write(export, &mut out)?
    } else {
        let file = File::options()
            .write(true)
            .create_new(true)
            .open(&export.file)
            .map_err(|error| other(format!("cannot create {}: {error}", export.file.display())))?;
        let mut out = BufWriter::with_capacity(1 << 20, &file);
        let written = write(export, &mut out).and_then(|exported| {
            out.flush().map_err(Failure::Output)?;
            file.sync_all().map_err(|error| {
                other(format!("cannot write {}: {error}", export.file.display()))
            })?;
            Ok(exported)
        });
        drop(out);
        if written.is_err() {
            // The first error says more than one of the removal.
            let _ = fs::remove_file(&export.file);
        }
        written?
    };
    let shown = ShownTransfer {
        recording_id: export.recording_id,
        source_recording_id: None,
        start_position: exported.start,
        stop_position: exported.end,
        frames: exported.frames,
    };
    let text = format!(
        "exported recording {} from position {} to {}, {} frames",
        shown.recording_id, shown.start_position, shown.stop_position, shown.frames
    );
    // Standard output has the recording.
    if is_standard {
        eprintln!("{text}");
    } else if export.archive.json {
        output::json(&shown)?;
    } else {
        output::text(&format!("{text}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(export: &Export, out: &mut dyn Write) -> Result<Exported, Failure> {
    let id = export.recording_id;
    let mut progress = Progress::new(export.progress);
    let until = export.until.unwrap_or(i64::MAX);
    let exported = match export.archive.place() {
        Place::Directory(path) => {
            let descriptor = read::descriptor(path, id)?;
            let mut live = None;
            if descriptor.is_active() && place::is_running(path) {
                live = Some(export.archive.connect()?);
            }
            let recorded = read::recorded(live.as_mut(), id)?;
            let from = export.from.unwrap_or(descriptor.start_position);
            let stop = if descriptor.is_active() {
                recorded
            } else {
                descriptor.stop_position
            };
            check_range(from, descriptor.start_position, stop)?;
            let end = stop.min(until);
            let total = (end != i64::MAX).then_some(end - from);
            // Of an active recording of an archive that died, the end is where the frames end.
            let range = if stop == i64::MAX && until == i64::MAX {
                from..i64::MAX
            } else {
                from..end
            };
            export_files(&*disk(), path, &descriptor, range, out, |reached| {
                progress.show(|| progress::part(reached - from, total));
            })
            .map_err(other)?
        }
        Place::Channel(_) => {
            let mut live = export.archive.connect()?;
            let recording = live.recording(id)?;
            let stop = live.archive.max_recorded_position(id).map_err(other)?;
            let from = export.from.unwrap_or(recording.start_position);
            check_range(from, recording.start_position, stop)?;
            let end = stop.min(until);
            let descriptor = described(&recording);
            let mut writer = ExportWriter::new(out, &descriptor);
            if from < end {
                read::blocks(&mut live, id, from..end, |position, block| {
                    add(&mut writer, &recording, position, block)?;
                    progress.show(|| progress::part(writer.end() - from, Some(end - from)));
                    Ok(())
                })?;
            }
            writer.finish().map_err(Failure::Output)?
        }
    };
    progress.end(|| progress::part(exported.end - exported.start, None));
    Ok(exported)
}

fn check_range(from: i64, start: i64, stop: i64) -> Result<(), Failure> {
    if (start..=stop).contains(&from) {
        Ok(())
    } else {
        Err(Failure::Usage(format!(
            "--from {from} is not in the recording, which has positions {start} to {stop}"
        )))
    }
}

/// Returns the fields of a catalog entry.
fn described(recording: &Recording) -> Descriptor {
    Descriptor {
        control_session_id: 0,
        correlation_id: 0,
        recording_id: recording.recording_id,
        start_timestamp: recording.start_timestamp,
        stop_timestamp: recording.stop_timestamp.unwrap_or(NULL_VALUE),
        start_position: recording.start_position,
        stop_position: recording.stop_position.unwrap_or(NULL_VALUE),
        initial_term_id: recording.initial_term_id,
        segment_file_length: recording.segment_file_length,
        term_buffer_length: recording.term_buffer_length,
        mtu_length: recording.mtu_length,
        session_id: recording.session_id,
        stream_id: recording.stream_id,
        texts: RecordingTexts {
            stripped_channel: Arc::from(&*recording.stripped_channel),
            original_channel: Arc::from(&*recording.original_channel),
            source_identity: Arc::from(&*recording.source_identity),
        },
    }
}

/// Adds the frames of a block of a replay, with the ids of the recorded stream.
fn add(
    writer: &mut ExportWriter<'_>,
    recording: &Recording,
    mut position: i64,
    block: &[u8],
) -> Result<(), Failure> {
    let damaged = |position| other(format!("the replay has a damaged frame at {position}"));
    let mut rest = block;
    while !rest.is_empty() {
        let (header, body) = DataHeader::read_from_prefix(rest).map_err(|_| damaged(position))?;
        let mut header: DataHeader = header;
        let length = header.header.frame_length.get();
        if length < 32 {
            return Err(damaged(position));
        }
        let aligned = align32(length);
        header.session_id = recording.session_id.into();
        header.stream_id = recording.stream_id.into();
        // The bytes of padding may be left out of the block.
        let count = (aligned.unsigned_abs() as usize - 32).min(body.len());
        let is_padding = header.header.frame_type() == FrameType::PAD;
        if !is_padding && count < aligned.unsigned_abs() as usize - 32 {
            return Err(damaged(position));
        }
        writer
            .add(position, &header, &body[..count])
            .map_err(Failure::Output)?;
        position += i64::from(aligned);
        rest = &body[count..];
    }
    Ok(())
}

/// Adds a recording from a file.
pub(super) fn import(import: &Import) -> Result<ExitCode, Failure> {
    let mut archive = import.directory.open(None)?;
    let mut progress = Progress::new(import.progress);
    let reached = |reached: i64| progress.show(|| format!("position {reached}"));
    let imported = if import.file == Path::new(STANDARD) {
        archive.import(&mut io::stdin().lock(), now_ms(), reached)
    } else {
        let failure = |source| Failure::File {
            path: import.file.clone(),
            source,
        };
        let file = File::open(&import.file).map_err(failure)?;
        if file.metadata().map_err(failure)?.is_dir() {
            return Err(failure(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        archive.import(
            &mut BufReader::with_capacity(1 << 20, file),
            now_ms(),
            reached,
        )
    }
    .map_err(other)?;
    progress.end(|| format!("position {}", imported.end));
    if import.directory.json {
        output::json(&ShownTransfer {
            recording_id: imported.recording_id,
            source_recording_id: Some(imported.source_id),
            start_position: imported.start,
            stop_position: imported.end,
            frames: imported.frames,
        })?;
    } else {
        output::text(&format!(
            "imported recording {} as recording {}, from position {} to {}, {} frames\n",
            imported.source_id,
            imported.recording_id,
            imported.start,
            imported.end,
            imported.frames
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
