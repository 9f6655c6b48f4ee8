// SPDX-License-Identifier: Apache-2.0
//! Frames for tests of segment files.

use std::path::Path;

use taran_protocol::frame::{DataHeader, FrameHeader, FrameType};
use taran_protocol::position::{TermGeometry, align32};
use taran_storage::{Disk, OpenOptions};
use zerocopy::IntoBytes;

use super::checksum::Checksum;
use super::crashing_disk::DIRECTORY;
use super::layout::RecordingLayout;
use super::segments::{SegmentCreator, SegmentName};
use super::sync_level::SyncLevel;

pub(super) const TERM: i32 = 64 * 1024;
pub(super) const STREAM: i32 = 1001;
pub(super) const SESSION: i32 = 42;

/// Writes frames of a recording as an archive does, one after the other.
pub(super) struct Writer<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) layout: RecordingLayout,
    pub(super) recording_id: i64,
    pub(super) position: i64,
    pub(super) checksum: Option<Checksum>,
    /// Positions behind each frame.
    pub(super) ends: Vec<i64>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(disk: &'a dyn Disk, layout: RecordingLayout, recording_id: i64) -> Self {
        let writer = Self {
            disk,
            layout,
            recording_id,
            position: layout.start_position(),
            checksum: None,
            ends: Vec::new(),
        };
        writer.create_segment();
        writer
    }

    pub(super) fn name(&self) -> SegmentName {
        SegmentName::new(self.recording_id, self.layout.base_of(self.position)).unwrap()
    }

    fn create_segment(&self) {
        let creator = SegmentCreator {
            disk: self.disk,
            directory: Path::new(DIRECTORY),
            sync: SyncLevel::None,
        };
        creator
            .create(self.name(), self.layout.segment_length())
            .unwrap();
    }

    fn write(&mut self, bytes: &[u8], length: i32) {
        let path = self.name().path(Path::new(DIRECTORY));
        let file = self.disk.open(&path, OpenOptions::write()).unwrap();
        file.write_at(bytes, self.layout.offset_of(self.position))
            .unwrap();
        self.position += i64::from(align32(length));
        self.ends.push(self.position);
        if self.layout.offset_of(self.position) == 0 {
            self.create_segment();
        }
    }

    fn header(&self, length: i32, frame_type: FrameType) -> DataHeader {
        let terms: TermGeometry = self.layout.terms();
        DataHeader {
            header: FrameHeader::new(length, DataHeader::UNFRAGMENTED, frame_type),
            term_offset: terms.term_offset(self.position).into(),
            session_id: SESSION.into(),
            stream_id: STREAM.into(),
            term_id: terms.term_id(self.position).into(),
            reserved_value: 0.into(),
        }
    }

    /// Writes a message; pads the term if it does not fit.
    pub(super) fn message(&mut self, payload: &[u8]) {
        let length = 32 + payload.len() as i32;
        let left =
            self.layout.terms().term_length() - self.layout.terms().term_offset(self.position);
        if align32(length) > left {
            self.padding(left);
        }
        let mut bytes = self.header(length, FrameType::DATA).as_bytes().to_vec();
        bytes.extend(payload);
        bytes.resize(align32(length) as usize, 0);
        if let Some(checksum) = self.checksum {
            checksum.stamp_frame(&mut bytes);
        }
        self.write(&bytes, length);
    }

    /// Writes the header of a padding frame.
    pub(super) fn padding(&mut self, length: i32) {
        let header = self.header(length, FrameType::PAD);
        self.write(header.as_bytes(), length);
    }

    /// Fills up to a position with messages of 992 bytes, and a shorter one.
    pub(super) fn fill_to(&mut self, position: i64) {
        while self.position < position {
            let left = (position - self.position).min(1024);
            self.message(&vec![0x5a; left as usize - 32]);
        }
    }
}

/// A layout with terms of 64 KiB and segments of two of them.
pub(super) fn layout(start: i64) -> RecordingLayout {
    RecordingLayout::new(start, 7, TERM, 2 * TERM).unwrap()
}
