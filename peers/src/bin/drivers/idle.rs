// SPDX-License-Identifier: Apache-2.0
//! Idle streams.

use std::time::Duration;

use taran::{ExclusivePublication, Subscription};
use taran_bench::client_api::BenchClient;
use taran_bench::side::{RunError, Side};
use taran_peers::bench::{End, STREAM_ID};

/// Channel with the smallest term length, because the logs of ten thousand streams have to fit into memory.
const CHANNEL: &str = "aeron:udp?endpoint=127.0.0.1:20145|term-length=64k|sparse=true";

/// One end of the idle streams; dropping it closes them.
#[derive(Default)]
pub(crate) struct Idle {
    publications: Vec<ExclusivePublication>,
    _subscriptions: Vec<Subscription>,
}

/// Time limit for connecting the streams.
const TIMEOUT: Duration = Duration::from_secs(45);

/// Opens idle publications for a publisher, or their subscriptions for a subscriber. The publisher's end waits until all are
/// connected.
pub(crate) fn open(count: u16, end: &End, side: &mut Side) -> Result<Idle, RunError> {
    let stream_ids: Vec<i32> = (STREAM_ID..).take(usize::from(count)).collect();
    let mut idle = Idle::default();
    if let End::Publish(_) = end {
        idle.publications = side.add_exclusive_publications(CHANNEL, &stream_ids)?;
    } else {
        for stream_id in stream_ids {
            let subscription = side.add_subscription(CHANNEL, stream_id)?;
            idle._subscriptions.push(subscription);
        }
    }
    let mut connected = 0;
    side.wait(TIMEOUT, "idle streams to connect", || {
        // Continues after the publications that are already connected.
        let rest = idle.publications[connected..].iter();
        connected += rest.take_while(|one| one.is_connected()).count();
        connected == idle.publications.len()
    })?;
    Ok(idle)
}
