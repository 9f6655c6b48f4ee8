// SPDX-License-Identifier: Apache-2.0
//! Tests of the log and their shared fixtures: a small log, and helpers that write frames to it.

mod append;
mod append_model;
mod buffers;
mod clear_ahead;
mod hostile;
mod insert;
mod maintenance;
mod poll;
mod scan;
mod tail_snapshot;

use taran_core::memory::Region;
use taran_core::sync::Ordering;

use super::frame::{StreamIds, commit, write_header, write_padding};
use super::*;
use crate::frame::{DataHeader, FrameType};
use crate::position::align32;

const TERM_LENGTH: i32 = 65_536;
const SESSION: i32 = -77;
const STREAM: i32 = 1001;
const IDS: StreamIds = StreamIds {
    session_id: SESSION,
    stream_id: STREAM,
};

fn spec(kind: LogKind) -> LogSpec {
    LogSpec::new(kind, SESSION, STREAM, 100, TERM_LENGTH)
}

fn new_log(kind: LogKind, start_position: i64) -> LogBuffers {
    let spec = spec(kind);
    let region = Region::anonymous(spec.file_length()).unwrap();
    LogBuffers::create(&region, &spec, start_position).unwrap()
}

fn log() -> LogBuffers {
    new_log(LogKind::Concurrent, 0)
}

/// Fills a log as after a full rotation: a stale frame in each slot except the one at `position`.
fn fill_with_old_frames(log: &LogBuffers, position: i64) {
    for partition in 0..3 {
        for offset in (0..TERM_LENGTH).step_by(32) {
            put_length(log.term(partition), offset, 32);
        }
    }
    log.clear_slot(position);
}

/// Writes a committed frame with this payload. Returns the offset after it.
fn put(term: &Region, offset: i32, payload: &[u8]) -> i32 {
    put_with_flags(term, offset, DataHeader::UNFRAGMENTED, payload)
}

fn put_with_flags(term: &Region, offset: i32, flags: u8, payload: &[u8]) -> i32 {
    let length = 32 + payload.len() as i32;
    write_header(term, IDS, 100, offset, length, flags, FrameType::DATA);
    term.write(offset as usize + 32, payload);
    commit(term, offset, length);
    offset + align32(length)
}

fn put_padding(term: &Region, offset: i32, length: i32) -> i32 {
    write_padding(term, IDS, 100, offset, length);
    offset + length
}

/// Stores a frame length as a hostile process could.
fn put_length(term: &Region, offset: i32, length: i32) {
    term.atomic_i32(offset as usize)
        .store(length, Ordering::Release);
}

fn length_at(term: &Region, offset: i32) -> i32 {
    term.atomic_i32(offset as usize).load(Ordering::Acquire)
}

/// Returns invalid lengths for a frame at this offset.
fn hostile_lengths(offset: i32) -> [i32; 5] {
    [1, 31, TERM_LENGTH - offset + 1, i32::MAX - 31, i32::MAX]
}
