// SPDX-License-Identifier: Apache-2.0
//! Records a stream and replays it. Needs a driver and an archive in the default directory, for example the official
//! `ArchivingMediaDriver`.

use std::time::Duration;

use taran_archive_client::protocol::RecordingSignal;
use taran_archive_client::{ArchiveContext, ReplayParams};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = taran::Client::builder().connect()?;
    let mut archive = ArchiveContext::new()
        .control_channel("aeron:ipc")
        .response_channel("aeron:ipc")
        .message_timeout(Duration::from_secs(5))
        .connect(&client)?;

    let mut publication = archive.add_recorded_exclusive_publication("aeron:ipc", 1001)?;
    let started = archive.wait_for_signal(|signal| signal.signal == RecordingSignal::START)?;
    let recording_id = started.recording_id;
    for number in 0..10 {
        publication.offer(format!("message {number}").as_bytes())?;
    }
    while archive.recording_position(recording_id)? != Some(publication.position()) {
        std::thread::yield_now();
    }

    let params = ReplayParams::new().until_now();
    let (_, mut replay) = archive.replay(recording_id, "aeron:ipc", 1002, &params)?;
    let mut messages = 0;
    while messages < 10 {
        archive.poll();
        replay.poll(
            |message, header| {
                println!(
                    "{} up to {}",
                    String::from_utf8_lossy(message),
                    header.position()
                );
                messages += 1;
            },
            10,
        )?;
    }
    Ok(())
}
