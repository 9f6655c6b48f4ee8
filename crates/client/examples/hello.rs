// SPDX-License-Identifier: Apache-2.0
//! The first program of the README: sends and receives a message over UDP.
//!
//! Needs a running driver: `cargo run --release -- driver`.

use std::time::{Duration, Instant};

use taran::Client;
use taran::idle::{IdleStrategy, Yield};

fn main() -> anyhow::Result<()> {
    let channel = "aeron:udp?endpoint=localhost:40123";
    let client = Client::builder()
        .on_waiting(|notice| eprintln!("{notice}"))
        .connect()?;
    let mut subscription = client.add_subscription(channel, 1001)?;
    let publication = client.add_publication(channel, 1001)?;

    // Offers again while the receiver connects or has to catch up, for at most five seconds.
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut idle = Yield;
    publication.offer_until(b"hello, world", deadline, &mut idle)?;

    let mut received = 0;
    while received == 0 && Instant::now() < deadline {
        received = subscription.poll(
            |message, header| {
                println!(
                    "{} (stream {}, session {})",
                    String::from_utf8_lossy(message),
                    header.stream_id(),
                    header.session_id()
                );
            },
            10,
        )?;
        idle.idle(received, &mut std::thread::sleep);
    }
    anyhow::ensure!(received > 0, "no message was received within five seconds");
    Ok(())
}
