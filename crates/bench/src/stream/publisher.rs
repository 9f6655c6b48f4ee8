// SPDX-License-Identifier: Apache-2.0
//! The publishing side.

use std::time::Duration;

use taran_core::clock::{Clock, SystemClock, saturating_nanos};

use super::{StreamConfig, StreamReport};
use crate::client_api::{BenchClient, BenchPublication};
use crate::payload;
use crate::side::RunError;

/// Publishes during the warm-up, the measured time and a margin, so that the subscriber measures full streams. If it is
/// interrupted in the measured time, the report is that of the time before.
///
/// # Errors
/// [`RunError`] if a driver, a connection or an option fails, or if it is interrupted earlier.
pub fn publish<H: BenchClient>(
    config: &StreamConfig,
    side: &mut H,
) -> Result<StreamReport, RunError> {
    let mut publisher = Publisher::connect(config, side)?;
    let begin_ns = publisher.clock.now().nanos;
    let start_ns = begin_ns.saturating_add(saturating_nanos(config.warmup));
    let start_ns = publisher.publish_until(start_ns, side)?;
    let before = publisher.messages();
    let end_ns = start_ns.saturating_add(saturating_nanos(config.duration));
    let (end_ns, is_interrupted) = match publisher.publish_until(end_ns, side) {
        Ok(end_ns) => (end_ns, false),
        Err(RunError::Interrupted) => (publisher.clock.now().nanos, true),
        Err(error) => return Err(error),
    };
    let report = StreamReport {
        messages: publisher.messages() - before,
        length: config.length,
        elapsed: Duration::from_nanos(u64::try_from(end_ns - start_ns).unwrap_or(0)),
        troubles: publisher.retries,
    };
    if is_interrupted {
        return Ok(report);
    }
    // The subscriber began its warm-up slightly later.
    let margin = saturating_nanos(config.duration / 10 + Duration::from_millis(500));
    publisher.publish_until(end_ns.saturating_add(margin), side)?;
    Ok(report)
}

struct Publisher<P> {
    streams: Vec<Stream<P>>,
    /// Index of the stream of the next burst.
    next_stream: usize,
    clock: SystemClock,
    length: usize,
    /// Messages between two duty cycles of the driver and between two readings of the clock.
    burst: usize,
    trickle: bool,
    retries: u64,
}

struct Stream<P> {
    publication: P,
    sequence: u64,
}

impl<P: BenchPublication> Publisher<P> {
    fn connect<H: BenchClient<Publication = P>>(
        config: &StreamConfig,
        side: &mut H,
    ) -> Result<Publisher<P>, RunError> {
        let mut streams = Vec::new();
        for (channel, stream_id) in config.channel_streams() {
            let publication = side.publication(channel, stream_id)?;
            let max = publication.max_payload_length();
            if config.length > max {
                return Err(RunError::Config(format!(
                    "length is {} bytes, but a frame on {channel} carries at most {max}; increase its mtu",
                    config.length
                )));
            }
            streams.push(Stream {
                publication,
                sequence: 0,
            });
        }
        side.wait(config.timeout, "a subscriber to connect", || {
            streams
                .iter()
                .all(|stream| stream.publication.is_connected())
        })?;
        Ok(Publisher {
            streams,
            next_stream: 0,
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

    /// Publishes until `end_ns`; returns the actual end time, at or after it.
    fn publish_until(&mut self, end_ns: i64, side: &mut impl BenchClient) -> Result<i64, RunError> {
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
            side.duty_cycle()?;
        }
    }

    /// Publishes one message on each stream that accepts it.
    fn trickle(&mut self, now_ns: i64) -> Result<(), RunError> {
        for stream in &mut self.streams {
            if !stream.publish(self.length, now_ns)? {
                self.retries += 1;
            }
        }
        Ok(())
    }

    /// Publishes a burst on one stream, until a send is rejected; the next burst uses the next stream.
    fn burst(&mut self, now_ns: i64) -> Result<(), RunError> {
        if self.next_stream == self.streams.len() {
            self.next_stream = 0;
        }
        let stream = &mut self.streams[self.next_stream];
        self.next_stream += 1;
        for _ in 0..self.burst {
            if !stream.publish(self.length, now_ns)? {
                self.retries += 1;
                return Ok(());
            }
        }
        Ok(())
    }
}

impl<P: BenchPublication> Stream<P> {
    /// Publishes the next message; returns false if it has to be tried again.
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
