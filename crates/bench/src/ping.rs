//! The ping-pong benchmark: one message is under way at any time, there and back. What it measures is the road alone.

use std::time::Duration;

use hdrhistogram::Histogram;
use taran_core::clock::{Clock, SystemClock, saturating_nanos};

use crate::ends::{Host, Incoming, Outgoing};
use crate::payload;
use crate::side::RunError;

const FRAGMENT_LIMIT: usize = 10;
/// Round trips longer than this are recorded as this.
const LONGEST_NS: u64 = 100_000_000_000;

/// A ping-pong run.
#[derive(Debug, Clone)]
pub struct PingConfig {
    /// There.
    pub channel: String,
    /// And back; may be the same, as the streams differ.
    pub reply_channel: String,
    /// Stream there; the one back has the next number.
    pub stream_id: i32,
    /// Payload bytes of a message, at least [`payload::MIN_LENGTH`] and at most what a frame carries.
    pub length: usize,
    /// Time that is measured.
    pub duration: Duration,
    /// Time before it that is not.
    pub warmup: Duration,
    /// How long to wait for the other side, and for a message.
    pub patience: Duration,
}

/// Sends, waits, and sends again: the round trips in nanoseconds.
///
/// # Errors
/// [`RunError`] where a driver, a connection or an option is at fault, or a message did not come back as it was.
pub fn ping<H: Host>(config: &PingConfig, side: &mut H) -> Result<Histogram<u64>, RunError> {
    let mut back = side.subscription(&config.reply_channel, config.stream_id + 1)?;
    let mut there = side.publication(&config.channel, config.stream_id)?;
    side.wait(config.patience, "the other side to connect", || {
        there.is_connected() && back.is_connected()
    })?;
    let mut clock = SystemClock::new();
    let mut histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3)
        .map_err(|error| RunError::Config(error.to_string()))?;
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
        send(&mut there, side, config, |message| {
            payload::write(message, sent_ns, sequence);
        })?;
        let came = wait_for(&mut back, side, config, &mut clock)?;
        if came != Some(sequence) {
            return Err(RunError::Config(format!(
                "message {sequence} came back as {came:?}"
            )));
        }
        if sent_ns >= start_ns {
            let round_trip = u64::try_from(clock.now().nanos - sent_ns).unwrap_or(0);
            histogram.saturating_record(round_trip);
        }
        sequence += 1;
    }
}

/// Sends back what comes, until the other side is gone. `ready` is called once the subscription stands.
///
/// # Errors
/// [`RunError`] where a driver, a connection or an option is at fault.
pub fn pong<H: Host>(
    config: &PingConfig,
    side: &mut H,
    ready: impl FnOnce(),
) -> Result<(), RunError> {
    let mut there = side.subscription(&config.channel, config.stream_id)?;
    let mut back = side.publication(&config.reply_channel, config.stream_id + 1)?;
    ready();
    side.wait(config.patience, "the other side to connect", || {
        there.is_connected() && back.is_connected()
    })?;
    let mut message = Vec::with_capacity(config.length);
    while there.is_connected() {
        message.clear();
        there.receive(1, |came| message.extend_from_slice(came))?;
        if !message.is_empty() {
            send(&mut back, side, config, |room| {
                room.copy_from_slice(&message);
            })?;
        }
        side.turn()?;
    }
    Ok(())
}

#[inline]
fn send<H: Host>(
    publication: &mut H::Publication,
    side: &mut H,
    config: &PingConfig,
    mut fill: impl FnMut(&mut [u8]),
) -> Result<(), RunError> {
    // A term that is full, mostly: the next try has the next term.
    while !publication.send(config.length, &mut fill)? {
        side.turn()?;
    }
    side.turn()
}

/// The number of the message that comes next; `None` for one that was not sent like this.
#[inline]
fn wait_for<H: Host>(
    subscription: &mut H::Subscription,
    side: &mut H,
    config: &PingConfig,
    clock: &mut SystemClock,
) -> Result<Option<u64>, RunError> {
    /// Turns between two looks at the clock.
    const TURNS: u32 = 1 << 16;
    let mut deadline_ns = None;
    let mut turns = 0_u32;
    loop {
        let mut came = None;
        let fragments = subscription.receive(FRAGMENT_LIMIT, |message| {
            came = payload::read(message, config.length)
                .ok()
                .map(|(_, sequence)| sequence);
        })?;
        if fragments > 0 {
            return Ok(came);
        }
        side.turn()?;
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(TURNS) {
            let now_ns = clock.now().nanos;
            let deadline_ns = *deadline_ns
                .get_or_insert(now_ns.saturating_add(saturating_nanos(config.patience)));
            if now_ns > deadline_ns {
                return Err(RunError::TimedOut(
                    config.patience,
                    "a message to come back",
                ));
            }
        }
    }
}
