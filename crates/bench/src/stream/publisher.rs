//! The end that publishes.

use std::time::Duration;

use taran_core::clock::{Clock, SystemClock, saturating_nanos};

use super::{StreamConfig, StreamReport};
use crate::ends::{Host, Outgoing};
use crate::payload;
use crate::side::RunError;

/// Publishes for the warm-up, the measured time and a little longer, so that the other end measures full streams.
///
/// # Errors
/// [`RunError`] where a driver, a connection or an option is at fault.
pub fn publish<H: Host>(config: &StreamConfig, side: &mut H) -> Result<StreamReport, RunError> {
    let mut publisher = Publisher::connect(config, side)?;
    let begin_ns = publisher.clock.now().nanos;
    let start_ns = begin_ns.saturating_add(saturating_nanos(config.warmup));
    let start_ns = publisher.publish_until(start_ns, side)?;
    let before = publisher.messages();
    let end_ns = start_ns.saturating_add(saturating_nanos(config.duration));
    let end_ns = publisher.publish_until(end_ns, side)?;
    let report = StreamReport {
        messages: publisher.messages() - before,
        length: config.length,
        elapsed: Duration::from_nanos(u64::try_from(end_ns - start_ns).unwrap_or(0)),
        troubles: publisher.retries,
    };
    // The subscriber began its warm-up a little later than this end.
    let margin = saturating_nanos(config.duration / 10 + Duration::from_millis(500));
    publisher.publish_until(end_ns.saturating_add(margin), side)?;
    Ok(report)
}

struct Publisher<P> {
    streams: Vec<Stream<P>>,
    /// The stream that has the next burst.
    turn: usize,
    clock: SystemClock,
    length: usize,
    /// Messages between two turns of the driver, and between two looks at the clock.
    burst: usize,
    trickle: bool,
    retries: u64,
}

struct Stream<P> {
    publication: P,
    sequence: u64,
}

impl<P: Outgoing> Publisher<P> {
    fn connect<H: Host<Publication = P>>(
        config: &StreamConfig,
        side: &mut H,
    ) -> Result<Publisher<P>, RunError> {
        let mut streams = Vec::new();
        for (channel, stream_id) in config.ends() {
            let publication = side.publication(channel, stream_id)?;
            let max = publication.max_payload_length();
            if config.length > max {
                return Err(RunError::Config(format!(
                    "length is {} bytes, but a frame on {channel} carries at most {max}; raise its mtu",
                    config.length
                )));
            }
            streams.push(Stream {
                publication,
                sequence: 0,
            });
        }
        side.wait(config.patience, "a subscriber to connect", || {
            streams
                .iter()
                .all(|stream| stream.publication.is_connected())
        })?;
        Ok(Publisher {
            streams,
            turn: 0,
            clock: SystemClock::new(),
            length: config.length,
            burst: config.burst(),
            trickle: config.trickle,
            retries: 0,
        })
    }

    fn messages(&self) -> u64 {
        self.streams.iter().map(|stream| stream.sequence).sum()
    }

    /// Gives the time at which it ended, at or after `end_ns`.
    fn publish_until(&mut self, end_ns: i64, side: &mut impl Host) -> Result<i64, RunError> {
        loop {
            let now_ns = self.clock.now().nanos;
            if now_ns >= end_ns {
                return Ok(now_ns);
            }
            if self.trickle {
                self.trickle(now_ns)?;
            } else {
                self.burst(now_ns)?;
            }
            side.turn()?;
        }
    }

    /// Publishes a message on each stream that takes one.
    fn trickle(&mut self, now_ns: i64) -> Result<(), RunError> {
        for stream in &mut self.streams {
            if !stream.publish(self.length, now_ns)? {
                self.retries += 1;
            }
        }
        Ok(())
    }

    /// Publishes on one stream, until it is refused; the next burst is for the next stream.
    fn burst(&mut self, now_ns: i64) -> Result<(), RunError> {
        if self.turn == self.streams.len() {
            self.turn = 0;
        }
        let stream = &mut self.streams[self.turn];
        self.turn += 1;
        for _ in 0..self.burst {
            if !stream.publish(self.length, now_ns)? {
                self.retries += 1;
                return Ok(());
            }
        }
        Ok(())
    }
}

impl<P: Outgoing> Stream<P> {
    /// Publishes the next message; false if there is no room.
    #[inline]
    fn publish(&mut self, length: usize, now_ns: i64) -> Result<bool, RunError> {
        let sequence = self.sequence;
        let is_sent = self.publication.send(length, |message| {
            payload::write(message, now_ns, sequence);
        })?;
        self.sequence += u64::from(is_sent);
        Ok(is_sent)
    }
}
