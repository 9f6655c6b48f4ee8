//! The end that receives.

use std::time::Duration;

use taran_core::clock::{Clock, SystemClock, saturating_nanos};

use super::{StreamConfig, StreamReport};
use crate::ends::{Host, Incoming};
use crate::payload;
use crate::side::RunError;

/// Receives for the warm-up and the measured time, and reports the latter. `ready` is called once the subscriptions stand.
///
/// # Errors
/// [`RunError`] where a driver, a connection or an option is at fault, or where no stream came, or one ended too early.
pub fn subscribe<H: Host>(
    config: &StreamConfig,
    side: &mut H,
    ready: impl FnOnce(),
) -> Result<StreamReport, RunError> {
    let mut streams = Vec::new();
    for (channel, stream_id) in config.ends() {
        streams.push(Stream {
            subscription: side.subscription(channel, stream_id)?,
            tally: Tally::new(config.channels.len() == 1),
        });
    }
    ready();
    side.wait(config.patience, "a publisher to connect", || {
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
        side.turn()?;
        for stream in &mut streams {
            let tally = &mut stream.tally;
            stream
                .subscription
                .receive(config.burst(), |message| tally.take(message, config.length))?;
        }
        let now_ns = clock.now().nanos;
        if at_start.is_none() && now_ns >= start_ns {
            at_start = Some((now_ns, messages(&streams)));
        }
        if let Some((from_ns, from)) = at_start
            && now_ns >= end_ns
        {
            return Ok(StreamReport {
                messages: messages(&streams) - from,
                length: config.length,
                elapsed: Duration::from_nanos(u64::try_from(now_ns - from_ns).unwrap_or(0)),
                troubles: streams.iter().map(|stream| stream.tally.troubles).sum(),
            });
        }
    }
    Err(RunError::Config(format!(
        "a stream ended before the measured time was over, after {} messages in all",
        messages(&streams)
    )))
}

struct Stream<S> {
    subscription: S,
    tally: Tally,
}

fn are_connected<S: Incoming>(streams: &[Stream<S>]) -> bool {
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
    /// The number of the next message, once it is known.
    next: Option<u64>,
}

impl Tally {
    /// One of several receivers may join later than at the first message; one that is alone may not.
    fn new(is_alone: bool) -> Tally {
        Tally {
            messages: 0,
            troubles: 0,
            next: is_alone.then_some(0),
        }
    }

    #[inline]
    fn take(&mut self, message: &[u8], length: usize) {
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
