// SPDX-License-Identifier: Apache-2.0
//! The ping-pong benchmark: at most one message is in flight. It measures the latency of the data path without
//! queueing.

use std::time::Duration;

use hdrhistogram::Histogram;
use taran_core::clock::{Clock, SystemClock, saturating_nanos};

use crate::client_api::{BenchClient, BenchPublication, BenchSubscription};
use crate::payload;
use crate::report::histogram_of_times;
use crate::side::RunError;

const FRAGMENT_LIMIT: usize = 10;
/// Configuration of a ping-pong run.
#[derive(Debug, Clone)]
pub struct PingConfig {
    /// Channel of the requests.
    pub channel: String,
    /// Channel of the replies; may equal `channel`, because the stream ids differ.
    pub reply_channel: String,
    /// Stream id of the requests; the replies use the next one.
    pub stream_id: i32,
    /// Payload length of a message in bytes, at least [`payload::MIN_LENGTH`] and at most what one frame carries.
    pub length: usize,
    /// Duration of the measurement.
    pub duration: Duration,
    /// Duration of the unmeasured run before it.
    pub warmup: Duration,
    /// Timeout for the connection and for each reply.
    pub timeout: Duration,
}

/// Sends a message, waits for its reply, and repeats. Returns the round trips in nanoseconds.
///
/// # Errors
/// [`RunError`] if a driver, a connection or an option fails, or if a reply differs from its request.
pub fn ping<H: BenchClient>(config: &PingConfig, side: &mut H) -> Result<Histogram<u64>, RunError> {
    let mut replies = side.subscription(&config.reply_channel, config.stream_id + 1)?;
    let mut requests = side.publication(&config.channel, config.stream_id)?;
    side.wait(config.timeout, "the other side to connect", || {
        requests.is_connected() && replies.is_connected()
    })?;
    let mut clock = SystemClock::new();
    let mut histogram = histogram_of_times();
    let start_ns = clock
        .now()
        .nanos
        .saturating_add(saturating_nanos(config.warmup));
    let end_ns = start_ns.saturating_add(saturating_nanos(config.duration));
    let mut sequence = 0;
    loop {
        let sent_ns = clock.now().nanos;
        if sent_ns >= end_ns {
            return Ok(histogram);
        }
        send(&mut requests, side, config, |message| {
            payload::write(message, sent_ns, sequence);
        })?;
        let received = wait_for_reply(&mut replies, side, config, &mut clock)?;
        if received != Some(sequence) {
            return Err(RunError::Config(format!(
                "message {sequence} came back as {received:?}"
            )));
        }
        if sent_ns >= start_ns {
            let round_trip = u64::try_from(clock.now().nanos - sent_ns).unwrap_or(0);
            histogram.saturating_record(round_trip);
        }
        sequence += 1;
    }
}

/// Sends every message back until the other side disconnects. `ready` is called once the subscription is registered.
///
/// # Errors
/// [`RunError`] if a driver, a connection or an option fails.
pub fn pong<H: BenchClient>(
    config: &PingConfig,
    side: &mut H,
    ready: impl FnOnce(),
) -> Result<(), RunError> {
    let mut requests = side.subscription(&config.channel, config.stream_id)?;
    let mut replies = side.publication(&config.reply_channel, config.stream_id + 1)?;
    ready();
    side.wait(config.timeout, "the other side to connect", || {
        requests.is_connected() && replies.is_connected()
    })?;
    let mut message = Vec::with_capacity(config.length);
    while requests.is_connected() {
        message.clear();
        requests.receive(1, |payload| message.extend_from_slice(payload))?;
        if !message.is_empty() {
            send(&mut replies, side, config, |buffer| {
                buffer.copy_from_slice(&message);
            })?;
        }
        side.duty_cycle()?;
    }
    Ok(())
}

#[inline]
fn send<H: BenchClient>(
    publication: &mut H::Publication,
    side: &mut H,
    config: &PingConfig,
    mut fill: impl FnMut(&mut [u8]),
) -> Result<(), RunError> {
    // Mostly the end of a term: the next attempt uses the next term.
    while !publication.send(config.length, &mut fill)? {
        side.duty_cycle()?;
    }
    side.duty_cycle()
}

/// Waits for the next message and returns its sequence number, or `None` if the message is damaged.
#[inline]
fn wait_for_reply<H: BenchClient>(
    subscription: &mut H::Subscription,
    side: &mut H,
    config: &PingConfig,
    clock: &mut SystemClock,
) -> Result<Option<u64>, RunError> {
    /// Duty cycles between two readings of the clock.
    const CLOCK_INTERVAL: u32 = 1 << 16;
    let mut deadline_ns = None;
    let mut cycles = 0_u32;
    loop {
        let mut sequence = None;
        let fragments = subscription.receive(FRAGMENT_LIMIT, |message| {
            sequence = payload::read(message, config.length)
                .ok()
                .map(|(_, sequence)| sequence);
        })?;
        if fragments > 0 {
            return Ok(sequence);
        }
        side.duty_cycle()?;
        cycles = cycles.wrapping_add(1);
        if cycles.is_multiple_of(CLOCK_INTERVAL) {
            let now_ns = clock.now().nanos;
            let deadline_ns =
                *deadline_ns.get_or_insert(now_ns.saturating_add(saturating_nanos(config.timeout)));
            if now_ns > deadline_ns {
                return Err(RunError::TimedOut(config.timeout, "the reply to a message"));
            }
        }
    }
}
