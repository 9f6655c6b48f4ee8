//! Streams on which nothing happens.

use std::time::Duration;

use taran::{ExclusivePublication, Subscription};
use taran_bench::client_api::BenchClient;
use taran_bench::side::{RunError, Side};
use taran_peers::bench::{End, STREAM_ID};

/// Their logs are as small as can be: ten thousand have to fit into memory.
const CHANNEL: &str = "aeron:udp?endpoint=127.0.0.1:20145|term-length=64k|sparse=true";

/// One end of them; they are there as long as this is.
#[derive(Default)]
pub(crate) struct Idle {
    publications: Vec<ExclusivePublication>,
    _subscriptions: Vec<Subscription>,
}

/// How long it may take until they are connected.
const TIMEOUT: Duration = Duration::from_secs(45);

/// Opens publications beside a publisher, and subscriptions to them beside a subscriber. The publisher's side waits until
/// all are connected.
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
        // Those that are need no second look.
        let rest = idle.publications[connected..].iter();
        connected += rest.take_while(|one| one.is_connected()).count();
        connected == idle.publications.len()
    })?;
    Ok(idle)
}
