//! Streams on which nothing happens.

use taran::{ExclusivePublication, Subscription};
use taran_peers::bench::{End, PATIENCE, STREAM_ID};
use taran_rig::ends::Host;
use taran_rig::side::{RunError, Side};

/// Their logs are as small as can be: ten thousand have to fit into memory.
const CHANNEL: &str = "aeron:udp?endpoint=127.0.0.1:20145|term-length=64k|sparse=true";

/// One end of them; they are there as long as this is.
#[derive(Default)]
pub(crate) struct Idle {
    publications: Vec<ExclusivePublication>,
    _subscriptions: Vec<Subscription>,
}

/// Opens publications beside a publisher, and subscriptions to them beside a subscriber. The publisher's side waits until
/// all are connected.
pub(crate) fn open(count: u16, end: &End, side: &mut Side) -> Result<Idle, RunError> {
    let mut idle = Idle::default();
    for stream_id in (STREAM_ID..).take(usize::from(count)) {
        if let End::Publish(_) = end {
            let publication = side.add_exclusive_publication(CHANNEL, stream_id)?;
            idle.publications.push(publication);
        } else {
            let subscription = side.add_subscription(CHANNEL, stream_id)?;
            idle._subscriptions.push(subscription);
        }
    }
    side.wait(PATIENCE, "idle streams to connect", || {
        let mut publications = idle.publications.iter();
        publications.all(ExclusivePublication::is_connected)
    })?;
    Ok(idle)
}
