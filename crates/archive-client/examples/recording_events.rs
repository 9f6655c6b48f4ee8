// SPDX-License-Identifier: Apache-2.0
//! Prints what an archive tells everyone about its recordings. Argument: channel of its events, with an own endpoint. The
//! archive needs `aeron.archive.recording.events.enabled=true` and `aeron.archive.recording.events.channel`.

use taran_archive_client::protocol::RecordingEvent;
use taran_archive_client::{ArchiveContext, RecordingEvents};

/// Waits for the next events; calls `handler` with each of them.
pub(crate) fn next_events(
    events: &mut RecordingEvents,
    mut handler: impl FnMut(&RecordingEvent<'_>),
) -> Result<(), Box<dyn std::error::Error>> {
    while events.poll(&mut handler, 10)? == 0 {
        std::thread::yield_now();
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let channel = std::env::args()
        .nth(1)
        .ok_or("usage: recording_events CHANNEL")?;
    let client = taran::Client::builder().connect()?;
    let context = ArchiveContext::new().recording_events_channel(channel);
    let mut events = RecordingEvents::subscribe(&client, &context)?;
    loop {
        next_events(&mut events, |event| println!("{event:?}"))?;
    }
}
