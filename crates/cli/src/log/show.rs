// SPDX-License-Identifier: Apache-2.0
//! Text and JSON output of a log buffer.

use std::io::{self, Write};
use std::path::Path;

use serde::{Serialize, Serializer};
use taran_core::sync::Ordering::Relaxed;
use taran_protocol::frame::FrameType;
use taran_protocol::log::{LogBuffers, LogKind};
use taran_protocol::position::PARTITION_COUNT;

use super::frames::{Frames, LoggedFrame};
use super::{Arguments, Format};
use crate::date;
use crate::failure::Failure;
use crate::output;

/// Metadata of a log buffer.
#[derive(Debug, Serialize)]
struct Metadata<'a> {
    file: &'a Path,
    kind: &'static str,
    correlation_id: i64,
    session_id: i32,
    stream_id: i32,
    is_connected: bool,
    is_revoked: bool,
    initial_term_id: i32,
    term_count: i32,
    active_index: usize,
    term_length: i32,
    mtu: i32,
    page_size: i32,
    /// `None` while the stream is active.
    end_of_stream_position: Option<i64>,
    terms: Vec<Term>,
}

#[derive(Debug, Serialize)]
struct Term {
    index: usize,
    term_id: i32,
    term_offset: i32,
    raw_tail: i64,
    position: i64,
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    metadata: Metadata<'a>,
    #[serde(serialize_with = "frames")]
    frames: (Frames<'a>, &'a Arguments),
}

#[derive(Debug, Serialize)]
struct Frame {
    index: usize,
    offset: usize,
    frame_type: &'static str,
    flags: u8,
    frame_length: i32,
    term_id: i32,
    term_offset: i32,
    session_id: i32,
    stream_id: i32,
    reserved_value: i64,
    payload_length: usize,
    payload: String,
}

pub(super) fn json(log: &LogBuffers, arguments: &Arguments) -> Result<(), Failure> {
    output::json(&Document {
        metadata: Metadata::of(log, &arguments.file),
        frames: (Frames::new(log, arguments.scan_over_zeroes), arguments),
    })
}

pub(super) fn text(log: &LogBuffers, arguments: &Arguments) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write_metadata(&mut out, &Metadata::of(log, &arguments.file), arguments)?;
    let mut partition = usize::MAX;
    for frame in Frames::new(log, arguments.scan_over_zeroes) {
        if frame.partition != partition {
            partition = frame.partition;
            writeln!(
                out,
                "\n======================================================================"
            )?;
            writeln!(out, "Index {partition} Term Data")?;
        }
        write_frame(&mut out, &frame, arguments)?;
    }
    out.flush()?;
    Ok(())
}

fn write_metadata(
    out: &mut impl Write,
    metadata: &Metadata<'_>,
    arguments: &Arguments,
) -> io::Result<()> {
    writeln!(
        out,
        "======================================================================"
    )?;
    writeln!(
        out,
        "{} Inspection dump for {}",
        date::format(chrono::Utc::now().timestamp_millis()),
        metadata.file.display()
    )?;
    writeln!(
        out,
        "======================================================================"
    )?;
    let end = metadata
        .end_of_stream_position
        .map_or_else(|| "none yet".to_owned(), |position| position.to_string());
    for (name, value) in [
        ("Kind", metadata.kind.to_owned()),
        ("Correlation id", metadata.correlation_id.to_string()),
        ("Is connected", metadata.is_connected.to_string()),
        ("Is revoked", metadata.is_revoked.to_string()),
        ("Initial term id", metadata.initial_term_id.to_string()),
        ("Term count", metadata.term_count.to_string()),
        ("Active index", metadata.active_index.to_string()),
        ("Term length", metadata.term_length.to_string()),
        ("MTU length", metadata.mtu.to_string()),
        ("Page size", metadata.page_size.to_string()),
        ("EOS position", end),
    ] {
        writeln!(out, "{name:>16}: {value}")?;
    }
    if !arguments.skip_default_header {
        writeln!(
            out,
            "{:>16}: session_id={} stream_id={}",
            "Default header", metadata.session_id, metadata.stream_id
        )?;
    }
    writeln!(out)?;
    for term in &metadata.terms {
        writeln!(
            out,
            "Index {} Term Meta Data termOffset={} termId={} rawTail={} position={}",
            term.index, term.term_offset, term.term_id, term.raw_tail, term.position
        )?;
    }
    Ok(())
}

fn write_frame(
    out: &mut impl Write,
    frame: &LoggedFrame<'_>,
    arguments: &Arguments,
) -> io::Result<()> {
    let header = &frame.header;
    writeln!(
        out,
        "{}: type={} flags={:08b} frameLength={} termId={} termOffset={} sessionId={} streamId={} reservedValue={}",
        frame.offset,
        kind(frame),
        header.header.flags,
        header.header.frame_length,
        header.term_id,
        header.term_offset,
        header.session_id,
        header.stream_id,
        header.reserved_value
    )?;
    let payload = payload(frame, arguments);
    if !payload.is_empty() {
        writeln!(out, "{payload}")?;
    }
    Ok(())
}

impl<'a> Metadata<'a> {
    fn of(log: &LogBuffers, file: &'a Path) -> Self {
        let metadata = log.metadata();
        let term_count = log.active_term_count();
        let end = log.end_of_stream_position();
        Self {
            file,
            kind: match log.kind() {
                LogKind::Concurrent => "concurrent publication",
                LogKind::Exclusive => "exclusive publication",
                LogKind::Image => "image",
            },
            correlation_id: log.correlation_id(),
            session_id: log.session_id(),
            stream_id: log.stream_id(),
            is_connected: log.is_connected(),
            is_revoked: log.is_revoked(),
            initial_term_id: log.geometry().initial_term_id(),
            term_count,
            active_index: term_count.rem_euclid(PARTITION_COUNT as i32) as usize,
            term_length: log.term_length(),
            mtu: log.mtu(),
            page_size: metadata.page_size.load(Relaxed),
            end_of_stream_position: (end != i64::MAX).then_some(end),
            terms: (0..PARTITION_COUNT)
                .map(|index| {
                    let tail = log.raw_tail(index);
                    let term_offset = tail.effective_offset(log.term_length());
                    Term {
                        index,
                        term_id: tail.term_id(),
                        term_offset,
                        raw_tail: tail.0,
                        position: log.geometry().position(tail.term_id(), term_offset),
                    }
                })
                .collect(),
        }
    }
}

fn frames<S: Serializer>(
    (frames, arguments): &(Frames<'_>, &Arguments),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(frames.clone().map(|frame| Frame {
        index: frame.partition,
        offset: frame.offset,
        frame_type: kind(&frame),
        flags: frame.header.header.flags,
        frame_length: frame.header.header.frame_length.get(),
        term_id: frame.header.term_id.get(),
        term_offset: frame.header.term_offset.get(),
        session_id: frame.header.session_id.get(),
        stream_id: frame.header.stream_id.get(),
        reserved_value: frame.header.reserved_value.get(),
        payload_length: frame.payload.len(),
        payload: payload(&frame, arguments),
    }))
}

fn kind(frame: &LoggedFrame<'_>) -> &'static str {
    match frame.header.header.frame_type() {
        FrameType::PAD => "PAD",
        FrameType::DATA => "DATA",
        _ => "UNKNOWN",
    }
}

/// Returns the payload in the chosen format; padding has none.
fn payload(frame: &LoggedFrame<'_>, arguments: &Arguments) -> String {
    if frame.header.header.frame_type() == FrameType::PAD {
        return String::new();
    }
    let limit = arguments.bytes.unwrap_or(usize::MAX);
    let bytes = &frame.payload[..frame.payload.len().min(limit)];
    match arguments.format {
        Format::Hex => {
            use std::fmt::Write;
            bytes.iter().fold(String::new(), |mut text, byte| {
                // Writing to a string cannot fail.
                let _ = write!(text, "{byte:02x}");
                text
            })
        }
        Format::Ascii => bytes.escape_ascii().to_string(),
    }
}
