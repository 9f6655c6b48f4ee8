// SPDX-License-Identifier: Apache-2.0
//! Watches the position of a recording, also when the archive dies and comes back. Argument: recording id.

use std::time::Duration;

use taran::{Clock, SystemClock};
use taran_archive_client::{ArchiveContext, Call, ReconnectingArchive};

/// Calls `on_position` with each position that the archive tells, until it returns false.
pub(crate) fn watch(
    archive: &mut ReconnectingArchive,
    recording_id: i64,
    mut on_position: impl FnMut(i64) -> bool,
) {
    let mut clock = SystemClock::new();
    let mut asked = None;
    loop {
        archive.do_work(clock.now().nanos);
        if asked.is_none()
            && let Some(connection) = archive.connection()
        {
            asked = Some(connection.max_recorded_position(recording_id));
        }
        match asked.as_mut().and_then(Call::poll) {
            Some(Ok(position)) => {
                asked = None;
                if !on_position(position) {
                    return;
                }
            }
            // The archive is gone, or has answered with an error. It is asked again.
            Some(Err(error)) => {
                eprintln!("{error}");
                asked = None;
            }
            None => {}
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let recording_id = std::env::args()
        .nth(1)
        .ok_or("usage: archive_reconnecting ID")?;
    let client = taran::Client::builder().connect()?;
    let context = ArchiveContext::new()
        .control_channel("aeron:ipc")
        .response_channel("aeron:ipc");
    let mut archive = ReconnectingArchive::new(context, client)?;
    watch(&mut archive, recording_id.parse()?, |position| {
        println!("{position}");
        true
    });
    Ok(())
}
