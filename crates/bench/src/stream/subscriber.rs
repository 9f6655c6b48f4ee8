// SPDX-License-Identifier: Apache-2.0
//! The subscribing side.

use std::time::Duration;

use taran_core::clock::{Clock, SystemClock, saturating_nanos};

use super::{StreamConfig, StreamReport};
use crate::client_api::{BenchClient, BenchSubscription};
use crate::payload;
use crate::side::RunError;

/// Receives during the warm-up and the measured time; reports the latter. `ready` is called once the subscriptions are
/// registered. If it is interrupted in the measured time, the report is that of the time before.
///
/// # Errors
/// [`RunError`] if a driver, a connection or an option fails, if no stream connects, or if a stream ends too early.
pub fn subscribe<H: BenchClient>(
    config: &StreamConfig,
    side: &mut H,
    ready: impl FnOnce(),
) -> Result<StreamReport, RunError> {
    let mut streams = Vec::new();
    for (channel, stream_id) in config.channel_streams() {
        streams.push(Stream {
            subscription: side.subscription(channel, stream_id)?,
            tally: Tally::new(config.channels.len() == 1),
        });
    }
    ready();
    side.wait(config.timeout, "a publisher to connect", || {
        are_connected(&streams)
    })?;
    let mut clock = SystemClock::new();
    let start_ns = clock
        .now()
        .nanos
        .saturating_add(saturating_nanos(config.warmup));
    let end_ns = start_ns.saturating_add(saturating_nanos(config.duration));
    let mut at_start = None;
    while are_connected(&streams) {
        if let Err(error) = side.duty_cycle() {
            let RunError::Interrupted = error else {
                return Err(error);
            };
            let (from_ns, from) = at_start.ok_or(error)?;
            return Ok(report(config, &streams, from, clock.now().nanos - from_ns));
        }
        for stream in &mut streams {
            let tally = &mut stream.tally;
            stream.subscription.receive(config.burst(), |message| {
                tally.record(message, config.length);
            })?;
        }
        let now_ns = clock.now().nanos;
        if at_start.is_none() && now_ns >= start_ns {
            at_start = Some((now_ns, messages(&streams)));
        }
        if let Some((from_ns, from)) = at_start
            && now_ns >= end_ns
        {
            return Ok(report(config, &streams, from, now_ns - from_ns));
        }
    }
    Err(RunError::Config(format!(
        "a stream ended before the end of the measurement, after {} messages in total",
        messages(&streams)
    )))
}

/// Returns the report of the messages after the first `from`, in `elapsed_ns`.
fn report<S>(
    config: &StreamConfig,
    streams: &[Stream<S>],
    from: u64,
    elapsed_ns: i64,
) -> StreamReport {
    StreamReport {
        messages: messages(streams) - from,
        length: config.length,
        elapsed: Duration::from_nanos(u64::try_from(elapsed_ns).unwrap_or(0)),
        troubles: streams.iter().map(|stream| stream.tally.troubles).sum(),
    }
}

struct Stream<S> {
    subscription: S,
    tally: Tally,
}

fn are_connected<S: BenchSubscription>(streams: &[Stream<S>]) -> bool {
    streams
        .iter()
        .all(|stream| stream.subscription.is_connected())
}

fn messages<S>(streams: &[Stream<S>]) -> u64 {
    streams.iter().map(|stream| stream.tally.messages).sum()
}

struct Tally {
    messages: u64,
    troubles: u64,
    /// Expected sequence number of the next message, once known.
    next: Option<u64>,
}

impl Tally {
    /// A single receiver must see the first message; one of several receivers may join later.
    fn new(is_only_receiver: bool) -> Tally {
        Tally {
            messages: 0,
            troubles: 0,
            next: is_only_receiver.then_some(0),
        }
    }

    #[inline]
    fn record(&mut self, message: &[u8], length: usize) {
        self.messages += 1;
        match payload::read(message, length) {
            Ok((_, sequence)) => {
                self.troubles += u64::from(self.next.is_some_and(|next| next != sequence));
                self.next = Some(sequence + 1);
            }
            Err(_) => self.troubles += 1,
        }
    }
}
