// SPDX-License-Identifier: Apache-2.0
//! Measures round trips to another process, the example `pong`, and prints their percentiles.
//!
//! Needs a running driver; start `pong` first:
//!
//! ```text
//! cargo run --release -- driver
//! cargo run --release --package taran --example pong
//! cargo run --release --package taran --example ping
//! ```

mod limit;

use std::time::{Duration, Instant};

// `idle::Spin` is quicker for a thread with a core of its own.
use taran::idle::Yield;
use taran::{Client, ClientBuilder};

use self::limit::Limit;

/// Channel and stream from `ping` to `pong`, and those of the replies.
const PING: (&str, i32) = ("aeron:udp?endpoint=localhost:40126", 1001);
const PONG: (&str, i32) = ("aeron:udp?endpoint=localhost:40127", 1002);

/// Round trips before the measured ones.
const WARMUP: usize = 1_000;

fn main() -> anyhow::Result<()> {
    let mut times = run(Client::builder(), PING, PONG, 100_000)?;
    times.sort_unstable();
    for percentile in [50.0, 90.0, 99.0, 99.9, 100.0] {
        let rank = (percentile / 100.0 * times.len() as f64).ceil() as usize;
        let microseconds = times[rank.max(1) - 1].as_secs_f64() * 1e6;
        println!("{percentile:>5} % of round trips within {microseconds:.1} us");
    }
    Ok(())
}

/// Returns the times of `count` round trips.
pub(crate) fn run(
    builder: ClientBuilder,
    ping: (&str, i32),
    pong: (&str, i32),
    count: usize,
) -> anyhow::Result<Vec<Duration>> {
    let client = builder.connect()?;
    let mut publication = client.add_exclusive_publication(ping.0, ping.1)?;
    let mut subscription = client.add_subscription(pong.0, pong.1)?;
    let limit = Limit::new();
    // A reply that comes before the subscription is connected would be lost.
    while !(publication.is_connected() && subscription.is_connected()) {
        limit.wait_for("pong")?;
    }

    let mut times = Vec::with_capacity(count);
    for round in 0..WARMUP.min(count) + count {
        let number = round as u64;
        let sent = Instant::now();
        let deadline = sent + Duration::from_secs(5);
        publication.offer_until(&number.to_le_bytes(), deadline, &mut Yield)?;
        let mut replied = false;
        while !replied {
            subscription.poll(|reply, _| replied = reply == number.to_le_bytes(), 1)?;
            anyhow::ensure!(
                Instant::now() < deadline,
                "no reply to message {number} within 5 s"
            );
        }
        if round >= WARMUP.min(count) {
            times.push(sent.elapsed());
        }
    }
    Ok(times)
}
