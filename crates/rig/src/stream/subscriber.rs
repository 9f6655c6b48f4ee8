//! The end that receives.

use std::time::Duration;

use taran_core::clock::{Clock, SystemClock, saturating_nanos};

use super::{StreamConfig, StreamReport};
use crate::payload;
use crate::side::{RunError, Side};

const FRAGMENT_LIMIT: usize = 256;

/// Receives one stream until it ends, and reports the measured time after the warm-up. `ready` is called once the
/// subscription stands.
///
/// # Errors
/// [`RunError`] where a driver, a connection or an option is at fault, or where no stream came.
pub fn subscribe(
    config: &StreamConfig,
    side: &mut Side,
    ready: impl FnOnce(),
) -> Result<StreamReport, RunError> {
    let mut subscription = side.add_subscription(&config.channel, config.stream_id)?;
    ready();
    side.wait(config.patience, "a publisher to connect", || {
        subscription.is_connected()
    })?;
    let mut clock = SystemClock::new();
    let start_ns = clock
        .now()
        .nanos
        .saturating_add(saturating_nanos(config.warmup));
    let end_ns = start_ns.saturating_add(saturating_nanos(config.duration));
    let mut tally = Tally::default();
    let mut at_start = None;
    let mut at_end = None;
    while subscription.is_connected() {
        side.turn()?;
        subscription.poll(
            |message, _| tally.take(message, config.length),
            FRAGMENT_LIMIT,
        )?;
        let now_ns = clock.now().nanos;
        if at_start.is_none() && now_ns >= start_ns {
            at_start = Some((now_ns, tally.messages));
        }
        if at_end.is_none() && now_ns >= end_ns {
            at_end = Some((now_ns, tally.messages));
        }
    }
    let (Some((from_ns, from)), Some((to_ns, to))) = (at_start, at_end) else {
        return Err(RunError::Config(format!(
            "the stream ended after {} messages, before the measured time was over",
            tally.messages
        )));
    };
    Ok(StreamReport {
        messages: to - from,
        length: config.length,
        elapsed: Duration::from_nanos(u64::try_from(to_ns - from_ns).unwrap_or(0)),
        troubles: tally.troubles,
    })
}

#[derive(Default)]
struct Tally {
    messages: u64,
    troubles: u64,
    next: u64,
}

impl Tally {
    #[inline]
    fn take(&mut self, message: &[u8], length: usize) {
        self.messages += 1;
        match payload::read(message, length) {
            Ok((_, sequence)) => {
                self.troubles += u64::from(sequence != self.next);
                self.next = sequence + 1;
            }
            Err(_) => self.troubles += 1,
        }
    }
}
