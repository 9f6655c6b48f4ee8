// SPDX-License-Identifier: Apache-2.0
//! Directories of archives that do not run.

use std::path::Path;
use std::sync::Arc;

use taran_archive::files::{
    CatalogFile, CatalogOptions, NewRecording, RecordingLayout, SegmentCreator, SegmentName,
    SyncLevel,
};
use taran_protocol::frame::{DataHeader, FrameHeader, FrameType};
use taran_protocol::position::align32;
use taran_storage::{Disk, OsDisk};
use zerocopy::IntoBytes;

use crate::process::Directory;

pub(super) const TERM: i32 = 64 * 1024;
/// Length of a segment file in bytes.
pub(super) const SEGMENT: i64 = TERM as i64;
pub(super) const SESSION: i32 = 42;

/// A message of a test, which tells its index.
pub(super) fn message(index: u64, length: usize) -> Vec<u8> {
    let mut payload = vec![index as u8; length];
    payload[..8].copy_from_slice(&index.to_le_bytes());
    payload
}

/// Returns the position behind messages of this length.
pub(super) fn end_of(count: u64, length: usize) -> i64 {
    let frame = i64::from(align32(length as i32 + 32));
    let per_term = SEGMENT / frame;
    // Each full term ends with padding.
    count as i64 / per_term * SEGMENT + count as i64 % per_term * frame
}

/// An archive's directory in which recordings are made.
pub(super) struct Files {
    pub(super) directory: Directory,
    recordings: i64,
}

impl Files {
    /// Creates a directory with an empty archive.
    pub(super) fn new(name: &str) -> Self {
        let directory = Directory::new(name);
        std::fs::create_dir_all(directory.path()).unwrap();
        let files = Self {
            directory,
            recordings: 0,
        };
        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        let opened = CatalogFile::open(&disk, files.directory.path(), CatalogOptions::default());
        opened.unwrap().0.close().unwrap();
        files
    }

    pub(super) fn path(&self) -> &str {
        self.directory.path().to_str().unwrap()
    }

    /// Adds a recording of messages from position 0; it is stopped behind them if `is_stopped`. Returns id and end.
    pub(super) fn record(
        &mut self,
        stream_id: i32,
        messages: &[Vec<u8>],
        is_stopped: bool,
    ) -> (i64, i64) {
        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        let directory = self.directory.path();
        let (mut file, mut catalog, _) =
            CatalogFile::open(&disk, directory, CatalogOptions::default()).unwrap();
        let new = NewRecording {
            start_timestamp: 1_700_000_000_000,
            start_position: 0,
            initial_term_id: 7,
            segment_file_length: TERM,
            term_buffer_length: TERM,
            mtu_length: 1408,
            session_id: SESSION,
            stream_id,
            stripped_channel: "aeron:ipc",
            original_channel: &format!("aeron:ipc?alias=stream-{stream_id}"),
            source_identity: "aeron:ipc",
        };
        let (id, change) = catalog.add(&new).unwrap();
        file.apply(&change).unwrap();
        let end = write(directory, id, stream_id, messages);
        if is_stopped {
            file.apply(&catalog.stop(id, end, 1_700_000_000_001).unwrap())
                .unwrap();
        }
        file.close().unwrap();
        self.recordings += 1;
        (id, end)
    }

    /// Changes a byte of a segment file.
    pub(super) fn damage(&self, name: &str, offset: u64) {
        use std::os::unix::fs::FileExt;
        let path = self.directory.path().join(name);
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).unwrap();
        file.write_all_at(&[byte[0] ^ 0xFF], offset).unwrap();
    }
}

/// Writes the segment files of a recording, and returns its end.
fn write(directory: &Path, id: i64, stream_id: i32, messages: &[Vec<u8>]) -> i64 {
    let layout = RecordingLayout::new(0, 7, TERM, TERM).unwrap();
    let creator = SegmentCreator {
        disk: &OsDisk,
        directory,
        sync: SyncLevel::None,
    };
    let terms = layout.terms();
    let mut position = 0;
    let mut frame = |length: i32, frame_type: FrameType, payload: &[u8]| {
        let header = DataHeader {
            header: FrameHeader::new(length, DataHeader::UNFRAGMENTED, frame_type),
            term_offset: terms.term_offset(position).into(),
            session_id: SESSION.into(),
            stream_id: stream_id.into(),
            term_id: terms.term_id(position).into(),
            reserved_value: 0.into(),
        };
        let name = SegmentName::new(id, layout.base_of(position)).unwrap();
        let path = name.path(directory);
        if !path.exists() {
            creator.create(name, TERM).unwrap();
        }
        let file = OsDisk
            .open(&path, taran_storage::OpenOptions::write())
            .unwrap();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(payload);
        file.write_at(&bytes, layout.offset_of(position)).unwrap();
        position += i64::from(align32(length));
        position
    };
    let mut end = 0;
    for payload in messages {
        let length = payload.len() as i32 + 32;
        let left = TERM - (end % SEGMENT) as i32;
        if align32(length) > left {
            frame(left, FrameType::PAD, &[]);
        }
        end = frame(length, FrameType::DATA, payload);
    }
    end
}
