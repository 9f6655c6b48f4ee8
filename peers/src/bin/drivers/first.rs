// SPDX-License-Identifier: Apache-2.0
//! Time from the driver's answer to a publication on a new channel to the first message of it.

use std::time::{Duration, Instant};

use taran_bench::report::histogram_of_times;
use taran_bench::side::{RunError, Side, SideSpec};
use taran_peers::bench::Found;
use taran_peers::measured::Measured;

/// First port; each channel has a new one.
const FIRST_PORT: u16 = 21_000;
const LAST_PORT: u16 = 29_000;
const STREAM_ID: i32 = 1_001;
/// Time limit of one channel.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Opens one channel after the other, for the given time. The subscription is there before the publication.
pub(crate) fn run(spec: &SideSpec, duration: Duration) -> Found {
    let mut side = Side::start(spec)?;
    let mut times = histogram_of_times();
    let began = Instant::now();
    for port in FIRST_PORT..LAST_PORT {
        let channel = format!("aeron:udp?endpoint=127.0.0.1:{port}|term-length=64k");
        times.saturating_record(once(&mut side, &channel)?);
        if began.elapsed() > duration {
            break;
        }
    }
    let rate = times.len() as f64 / began.elapsed().as_secs_f64();
    Ok(Some(Measured::of(rate).with_round_trips(&times)))
}

/// Returns the nanoseconds from the driver's answer to the publication to the first message.
fn once(side: &mut Side, channel: &str) -> Result<u64, RunError> {
    let mut subscription = side.add_subscription(channel, STREAM_ID)?;
    let mut publication = side.add_exclusive_publication(channel, STREAM_ID)?;
    let since = Instant::now();
    let mut is_sent = false;
    loop {
        if !is_sent {
            match publication.offer(b"first") {
                Ok(_) => is_sent = true,
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut received = 0;
        subscription.poll(|_, _| received += 1, 10)?;
        if received > 0 {
            return Ok(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        if since.elapsed() > TIMEOUT {
            return Err(RunError::TimedOut(TIMEOUT, "the first message"));
        }
        side.duty_cycle()?;
    }
}
