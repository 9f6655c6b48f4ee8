// SPDX-License-Identifier: Apache-2.0
//! Copies a recording of another archive to the own one. Arguments: control channel of the other archive, recording id.

use taran_archive_client::protocol::RecordingSignal;
use taran_archive_client::{ArchiveClient, ArchiveContext, ReplicationParams};

/// Copies the recording up to its end, if it is stopped. Returns the id of the copy.
pub(crate) fn replicate(
    archive: &mut ArchiveClient,
    source: &str,
    recording_id: i64,
) -> Result<i64, Box<dyn std::error::Error>> {
    let replication = archive.replicate(recording_id, source, 10, &ReplicationParams::new())?;
    // An error of the replication ends the wait, too.
    let synced = archive.wait_for_signal(|signal| {
        (signal.correlation_id, signal.signal) == (replication, RecordingSignal::SYNC)
    })?;
    println!(
        "recording {} has all up to {}",
        synced.recording_id, synced.position
    );
    archive.wait_for_signal_of(synced.recording_id, RecordingSignal::STOP)?;
    Ok(synced.recording_id)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, recording_id] = arguments.as_slice() else {
        return Err("usage: replicate CONTROL-CHANNEL RECORDING-ID".into());
    };
    let client = taran::Client::builder().connect()?;
    let mut archive = ArchiveContext::new()
        .control_channel("aeron:ipc")
        .response_channel("aeron:ipc")
        .connect(&client)?;
    replicate(&mut archive, source, recording_id.parse()?)?;
    Ok(())
}
