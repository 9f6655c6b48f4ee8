// SPDX-License-Identifier: Apache-2.0
//! Reading recordings: `dump` and `tail`.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::process::ExitCode;

use taran_archive::files::tools::dump_range;
use taran_archive::files::{Descriptor, Frame, UpdateError};
use taran_archive_client::ReplayParams;
use taran_protocol::frame::FrameType;
use taran_protocol::position::align32;

use super::messages::{Printer, Shown};
use super::place::{self, Live, Place, disk};
use super::{Dump, Tail, other};
use crate::failure::Failure;

/// Stream id of replays to this process; they are told apart by their session ids or ports.
const REPLAY_STREAM_ID: i32 = 1002;
/// Fragments that one duty cycle takes.
const FRAGMENTS: usize = 100;

/// Shows the frames of a recording.
pub(super) fn dump(dump: &Dump) -> Result<ExitCode, Failure> {
    let schema = dump.format.schema()?;
    let mut printer = Printer::new(
        &dump.format,
        schema.as_ref(),
        dump.archive.json,
        dump.frames,
    );
    let from = dump.position.unwrap_or(0);
    let outcome = match dump.archive.place() {
        Place::Directory(path) => {
            let descriptor = descriptor(path, dump.recording_id)?;
            check_position(dump.position, descriptor.start_position)?;
            let mut live = None;
            if descriptor.is_active() && place::is_running(path) {
                live = Some(dump.archive.connect()?);
            }
            let until = recorded(live.as_mut(), dump.recording_id)?;
            printer.heading()?;
            show(path, &descriptor, from..until, &mut printer)
        }
        Place::Channel(_) => {
            let mut live = dump.archive.connect()?;
            let recording = live.recording(dump.recording_id)?;
            check_position(dump.position, recording.start_position)?;
            let until = live.archive.max_recorded_position(dump.recording_id);
            let until = until.map_err(other)?;
            let from = from.max(recording.start_position);
            printer.heading()?;
            if from < until {
                replay(&mut live, dump.recording_id, from..until, &mut printer)
            } else {
                Ok(())
            }
        }
    };
    // What was read before a failure is shown before its error.
    let all_valid = printer.end()?;
    outcome?;
    Ok(if all_valid {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Shows the end of a recording, and follows it.
pub(super) fn tail(tail: &Tail) -> Result<ExitCode, Failure> {
    let id = tail.recording_id;
    let schema = tail.format.schema()?;
    let limit = tail.frames.unwrap_or(u64::MAX);
    let mut printer = Printer::new(&tail.format, schema.as_ref(), tail.archive.json, limit);
    let outcome = match tail.archive.place() {
        Place::Directory(path) => {
            let descriptor = descriptor(path, id)?;
            let mut live = None;
            if descriptor.is_active() && place::is_running(path) {
                live = Some(tail.archive.connect()?);
            }
            let until = recorded(live.as_mut(), id)?;
            let start = descriptor.start_position;
            let from = match (tail.start, tail.position) {
                (true, _) => start,
                (_, Some(position)) => position,
                _ => last_frames(path, &descriptor, until, tail.last)?,
            };
            check_position(tail.position, start)?;
            printer.heading()?;
            match live {
                Some(mut live) => {
                    let end = if tail.no_follow { until } else { i64::MAX };
                    replay(&mut live, id, from..end, &mut printer)
                }
                None => show(path, &descriptor, from..until, &mut printer),
            }
        }
        Place::Channel(_) => {
            let mut live = tail.archive.connect()?;
            let recording = live.recording(id)?;
            check_position(tail.position, recording.start_position)?;
            let until = live.archive.max_recorded_position(id).map_err(other)?;
            let from = match (tail.start, tail.position) {
                (true, _) => recording.start_position,
                (_, Some(position)) => position,
                _ => until,
            };
            let is_over = recording.stop_position.is_some() || tail.no_follow;
            printer.heading()?;
            if is_over && from >= until {
                Ok(())
            } else {
                let end = if is_over { until } else { i64::MAX };
                replay(&mut live, id, from..end, &mut printer)
            }
        }
    };
    let all_valid = printer.end()?;
    outcome?;
    Ok(if all_valid {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns a recording of the catalog in a directory.
pub(super) fn descriptor(path: &Path, recording_id: i64) -> Result<Descriptor, Failure> {
    let catalog = place::read(path)?;
    let entry = catalog.entry(recording_id);
    let entry = entry.ok_or_else(|| other(UpdateError::Unknown { recording_id }))?;
    Ok(entry.descriptor().clone())
}

/// Returns the recorded position of a recording that is active in a running archive; else all is recorded.
pub(super) fn recorded(live: Option<&mut Live>, recording_id: i64) -> Result<i64, Failure> {
    live.map_or(Ok(i64::MAX), |live| {
        live.archive
            .max_recorded_position(recording_id)
            .map_err(other)
    })
}

fn check_position(position: Option<i64>, start: i64) -> Result<(), Failure> {
    match position {
        Some(position) if position < start => Err(Failure::Usage(format!(
            "--position {position} is before the start of the recording at {start}"
        ))),
        _ => Ok(()),
    }
}

fn shown<'a>(position: i64, frame: &Frame, payload: &'a [u8]) -> Shown<'a> {
    Shown {
        position,
        length: frame.length,
        flags: frame.header.header.flags,
        is_padding: frame.is_padding,
        session_id: frame.header.session_id.get(),
        reserved_value: frame.header.reserved_value.get(),
        payload,
    }
}

/// Shows frames from files.
fn show(
    path: &Path,
    descriptor: &Descriptor,
    positions: Range<i64>,
    printer: &mut Printer<'_>,
) -> Result<(), Failure> {
    let mut failure = None;
    let visit = |position, frame: &Frame, payload: &[u8]| {
        printer
            .frame(&shown(position, frame, payload))
            .unwrap_or_else(|error| {
                failure = Some(error);
                ControlFlow::Break(())
            })
    };
    dump_range(&*disk(), path, descriptor, positions, visit).map_err(other)?;
    failure.map_or(Ok(()), Err)
}

/// Returns the position of the frame with which the last `count` frames of a recording begin.
fn last_frames(
    path: &Path,
    descriptor: &Descriptor,
    until: i64,
    count: usize,
) -> Result<i64, Failure> {
    let layout = descriptor.layout().map_err(other)?;
    let start = descriptor.start_position;
    let mut end = until;
    if !descriptor.is_active() {
        end = end.min(descriptor.stop_position);
    }
    let segment = i64::from(layout.segment_length());
    // Of an active recording without an archive, the end is where its frames end: all segments are read.
    let mut from = if end == i64::MAX {
        start
    } else {
        layout.base_of((end - 1).max(start)).max(start)
    };
    loop {
        let mut last = VecDeque::new();
        let mut reached = from;
        let visit = |position: i64, frame: &Frame, _: &[u8]| {
            reached = position + (frame.end() - frame.offset).cast_signed();
            last.push_back(position);
            if last.len() > count {
                last.pop_front();
            }
            ControlFlow::Continue(())
        };
        dump_range(&*disk(), path, descriptor, from..end, visit).map_err(other)?;
        if last.len() >= count || from <= start {
            return Ok(last.front().copied().unwrap_or(reached));
        }
        from = (from - segment).max(start);
    }
}

/// Shows frames of a replay, until it ends, a signal comes, or the printer is full.
fn replay(
    live: &mut Live,
    recording_id: i64,
    positions: Range<i64>,
    printer: &mut Printer<'_>,
) -> Result<(), Failure> {
    let mut params = ReplayParams::new().position(positions.start);
    if positions.end != i64::MAX {
        params = params.length(positions.end - positions.start);
    }
    let channel = live.replay_channel()?;
    let (session, mut subscription) = live
        .archive
        .replay(recording_id, &channel, REPLAY_STREAM_ID, &params)
        .map_err(other)?;
    let mut has_begun = false;
    let mut is_done = false;
    let mut outcome = Ok(());
    while !is_done && outcome.is_ok() {
        let mut work = live.archive.poll();
        let handler = |payload: &[u8], header: &taran::Header<'_>| {
            let position = header.position() - i64::from(align32(header.frame_length()));
            let frame = Shown {
                position,
                length: header.frame_length(),
                flags: header.flags(),
                is_padding: header.frame_type() == FrameType::PAD,
                session_id: header.session_id(),
                reserved_value: header.reserved_value(),
                payload,
            };
            if outcome.is_err() || is_done {
                return;
            }
            match printer.frame(&frame) {
                Ok(flow) => is_done = flow.is_break() || header.position() >= positions.end,
                Err(error) => outcome = Err(error),
            }
        };
        work += subscription.poll(handler, FRAGMENTS).map_err(other)?;
        let is_connected = subscription.is_connected();
        has_begun |= is_connected;
        if live.is_interrupted() {
            outcome = outcome.and(Err(Failure::Interrupted));
        } else if work == 0 {
            // What has come is shown before the wait for more.
            printer.flush()?;
            live.check()?;
            is_done |= has_begun && !is_connected;
            while let Some(event) = live.archive.poll_event() {
                if let taran_archive_client::ArchiveEvent::Error(error) = event {
                    return Err(other(error));
                }
            }
        }
        is_done |= subscription.images().iter().any(|image| {
            image.view().is_end_of_stream()
                && image.view().position() >= image.view().end_of_stream_position()
        });
        live.idle(work);
    }
    // The replay may have ended by itself.
    let _ = live.archive.stop_replay(session);
    printer.flush()?;
    outcome
}

/// Passes blocks of whole frames of a replay to `visit`, with the position of the first one, up to the end.
pub(super) fn blocks(
    live: &mut Live,
    recording_id: i64,
    positions: Range<i64>,
    mut visit: impl FnMut(i64, &[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let params = ReplayParams::new()
        .position(positions.start)
        .length(positions.end - positions.start);
    let channel = live.replay_channel()?;
    let (session, mut subscription) = live
        .archive
        .replay(recording_id, &channel, REPLAY_STREAM_ID, &params)
        .map_err(other)?;
    let mut reached = positions.start;
    let mut has_begun = false;
    let mut outcome = Ok(());
    while outcome.is_ok() && reached < positions.end {
        let mut work = live.archive.poll();
        let handler = |block: &taran::Block<'_>| {
            if outcome.is_ok() {
                outcome = visit(reached, block.bytes());
                reached = block.position();
            }
        };
        work += subscription.block_poll(handler, 1 << 20).map_err(other)?;
        let is_connected = subscription.is_connected();
        has_begun |= is_connected;
        if live.is_interrupted() {
            outcome = outcome.and(Err(Failure::Interrupted));
        } else if work == 0 {
            live.check()?;
            if has_begun && !is_connected {
                outcome = outcome.and(Err(other(format!(
                    "the replay ended at position {reached}, before {}",
                    positions.end
                ))));
            }
        }
        live.idle(work);
    }
    // The replay may have ended by itself.
    let _ = live.archive.stop_replay(session);
    outcome
}
