// SPDX-License-Identifier: Apache-2.0
//! Deletes the oldest segments of a recording, and lists what is left. Arguments: recording id, bytes to keep.

use taran_archive_client::protocol::RecordingSignal;
use taran_archive_client::{ArchiveClient, ArchiveContext};

/// Deletes whole segments as long as at least `keep` bytes are left. Returns the position at which the recording begins then.
pub(crate) fn shorten(
    archive: &mut ArchiveClient,
    recording_id: i64,
    keep: i64,
) -> Result<i64, Box<dyn std::error::Error>> {
    let recording = archive
        .list_recording(recording_id)?
        .ok_or("there is no such recording")?;
    let segment = i64::from(recording.segment_file_length);
    let end = archive.max_recorded_position(recording_id)?;
    // Segments begin at multiples of their length from the term in which the recording began.
    let origin = recording.start_position
        - recording.start_position % i64::from(recording.term_buffer_length);
    let segments = (end - keep - origin).max(0) / segment;
    if segments > 0 {
        let deleted = archive.purge_segments(recording_id, origin + segments * segment)?;
        archive.wait_for_signal_of(recording_id, RecordingSignal::DELETE)?;
        println!("{deleted} files were deleted");
    }
    Ok(archive.start_position(recording_id)?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [recording_id, keep] = arguments.as_slice() else {
        return Err("usage: segments RECORDING-ID BYTES".into());
    };
    let client = taran::Client::builder().connect()?;
    let mut archive = ArchiveContext::new()
        .control_channel("aeron:ipc")
        .response_channel("aeron:ipc")
        .connect(&client)?;
    shorten(&mut archive, recording_id.parse()?, keep.parse()?)?;
    for recording in archive.recordings(0) {
        let recording = recording?;
        println!(
            "{}: {} from {} to {:?}",
            recording.recording_id,
            recording.original_channel,
            recording.start_position,
            recording.stop_position
        );
    }
    Ok(())
}
