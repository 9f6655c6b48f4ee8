// SPDX-License-Identifier: Apache-2.0
//! Sends each message back to another process, the example `ping`, until that one has gone.
//!
//! Needs a running driver: `cargo run --release -- driver`.

mod limit;

use std::time::{Duration, Instant};

use taran::idle::{IdleStrategy, Yield};
use taran::{Client, ClientBuilder};

use self::limit::Limit;

/// Channel and stream from `ping` to `pong`, and those of the replies.
const PING: (&str, i32) = ("aeron:udp?endpoint=localhost:40126", 1001);
const PONG: (&str, i32) = ("aeron:udp?endpoint=localhost:40127", 1002);

fn main() -> anyhow::Result<()> {
    let count = run(Client::builder(), PING, PONG)?;
    println!("{count} messages sent back");
    Ok(())
}

/// Returns the number of messages that were sent back.
pub(crate) fn run(
    builder: ClientBuilder,
    ping: (&str, i32),
    pong: (&str, i32),
) -> anyhow::Result<u64> {
    let client = builder.connect()?;
    let mut subscription = client.add_subscription(ping.0, ping.1)?;
    let mut publication = client.add_exclusive_publication(pong.0, pong.1)?;
    let limit = Limit::new();
    while !subscription.is_connected() {
        limit.wait_for("ping")?;
    }

    let mut count = 0;
    let mut idle = Yield;
    while subscription.is_connected() {
        // An error of the handler ends the poll and is returned by it.
        let polled = subscription.try_poll(
            |message, _| {
                let deadline = Instant::now() + Duration::from_secs(5);
                publication.offer_until(message, deadline, &mut Yield)?;
                count += 1;
                anyhow::Ok(())
            },
            10,
        )?;
        idle.idle(polled, &mut std::thread::sleep);
    }
    Ok(count)
}
