// SPDX-License-Identifier: Apache-2.0
//! Directories of archives with many recordings, in the format of both implementations.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use taran_archive::files::{CatalogFile, CatalogOptions, NewRecording, SegmentName};
use taran_bench::side::RunError;
use taran_peers::bench::print_ready;
use taran_storage::{Disk, OsDisk};

use crate::archived::peer;

/// Term and segment length of the recordings in bytes.
const TERM: i32 = 64 * 1024;
const SEGMENT: i32 = 1 << 20;
/// Frames of a recording that is still active.
const FRAMES: i32 = 8;
/// Length of these frames in bytes.
const FRAME: i32 = 1_024;
/// Number of stream ids.
const STREAMS: i64 = 1_000;
/// Room in the catalog for a recording, in bytes.
const ENTRY: u64 = 512;

/// Recordings to write.
#[derive(Args, Debug, Clone)]
pub(crate) struct Recordings {
    /// Directory of the archive
    #[arg(long)]
    dir: PathBuf,
    /// Number of recordings
    #[arg(long)]
    count: u32,
    /// The archive was killed while it recorded them
    #[arg(long)]
    active: bool,
}

/// Returns the part of a recording's channel that no other recording has.
pub(crate) fn fragment(recording_id: i64) -> String {
    format!("host-{recording_id}.")
}

/// Returns the stream id of a recording.
pub(crate) fn stream_id(recording_id: i64) -> i32 {
    // Less than the number of stream ids.
    (recording_id % STREAMS) as i32
}

/// Writes a directory.
pub(crate) fn write(recordings: &Recordings) -> Result<(), RunError> {
    fs::create_dir_all(&recordings.dir).map_err(peer)?;
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let options = CatalogOptions {
        capacity: u64::from(recordings.count).max(1) * ENTRY,
        ..CatalogOptions::default()
    };
    let (mut file, mut catalog, _) =
        CatalogFile::open(&disk, &recordings.dir, options).map_err(peer)?;
    for n in 0..i64::from(recordings.count) {
        let channel = format!(
            "aeron:udp?endpoint={}example:40{:03}|alias=stream",
            fragment(n),
            n % 1_000
        );
        let new = NewRecording {
            start_timestamp: 1_700_000_000_000,
            start_position: 0,
            initial_term_id: 0,
            segment_file_length: SEGMENT,
            term_buffer_length: TERM,
            mtu_length: 1_408,
            session_id: SESSION_ID,
            stream_id: stream_id(n),
            stripped_channel: &channel,
            original_channel: &channel,
            source_identity: "10.0.0.1:40123",
        };
        let (id, change) = catalog.add(&new).map_err(peer)?;
        file.apply(&change).map_err(peer)?;
        if recordings.active {
            let name = SegmentName::new(id, 0)
                .ok_or_else(|| peer(format!("recording {id} has no segment file")))?;
            let path = name.path(&recordings.dir);
            let segment = fs::File::create(path).map_err(peer)?;
            let content = frames(stream_id(n));
            segment.write_all_at(&content, 0).map_err(peer)?;
            segment
                .set_len(u64::from(SEGMENT.unsigned_abs()))
                .map_err(peer)?;
        } else {
            let change = catalog.stop(id, 0, 1_700_000_000_001).map_err(peer)?;
            file.apply(&change).map_err(peer)?;
        }
    }
    file.close().map_err(peer)?;
    print_ready();
    Ok(())
}

const SESSION_ID: i32 = 42;

/// Returns the frames of an active recording (`docs/spec/shared-memory.md` §7.5).
fn frames(stream_id: i32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for n in 0..FRAMES {
        bytes.extend(FRAME.to_le_bytes());
        // Version, both fragment flags, type DATA.
        bytes.extend([0, 0xC0, 1, 0]);
        for field in [n * FRAME, SESSION_ID, stream_id, 0, 0, 0] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.resize(bytes.len() + FRAME as usize - 32, 7);
    }
    bytes
}
