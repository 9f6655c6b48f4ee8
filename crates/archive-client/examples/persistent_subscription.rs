// SPDX-License-Identifier: Apache-2.0
//! Reads a recording from its start, and live from then on. Arguments: recording id, live channel, stream id.

use taran::{Clock, SystemClock};
use taran_archive_client::{
    ArchiveContext, PersistentOptions, PersistentSubscription, StartPosition,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [recording_id, live_channel, stream_id] = arguments.as_slice() else {
        return Err("usage: persistent_subscription RECORDING-ID LIVE-CHANNEL STREAM-ID".into());
    };
    let client = taran::Client::builder().connect()?;
    let context = ArchiveContext::new()
        .control_channel("aeron:ipc")
        .response_channel("aeron:ipc");
    let options = PersistentOptions {
        recording_id: recording_id.parse()?,
        start: StartPosition::Start,
        live_channel: live_channel.clone(),
        live_stream_id: stream_id.parse()?,
        replay_channel: "aeron:ipc".to_owned(),
        replay_stream_id: 1002,
    };
    let mut subscription = PersistentSubscription::new(&client, context, options)?;
    let mut clock = SystemClock::new();
    while !subscription.has_failed() {
        let fragments = subscription.poll(
            clock.now().nanos,
            |message, header| println!("{} bytes up to {}", message.len(), header.position()),
            10,
        );
        while let Some(event) = subscription.next_event() {
            println!("{event:?}");
        }
        if fragments == 0 {
            std::thread::yield_now();
        }
    }
    Ok(())
}
