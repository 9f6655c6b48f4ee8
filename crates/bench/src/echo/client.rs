// SPDX-License-Identifier: Apache-2.0
//! The client side: sends on schedule and measures round trips.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hdrhistogram::Histogram;
use taran::{ExclusivePublication, FragmentAssembler, OfferError, Subscription};
use taran_core::clock::{Clock, SystemClock};

use super::config::EchoConfig;
use super::progress::{Counts, Progress};
use crate::client_api::BenchClient;
use crate::payload;
use crate::report::{EchoReport, histogram_of_times};
use crate::schedule::Schedule;
use crate::side::{RunError, Side};

/// Minimum timeout for the connection, even if the configured timeout for messages is shorter.
const MIN_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of messages sent between two polls of the subscription.
const BURST: u32 = 64;
/// Maximum number of fragments per poll.
const FRAGMENT_LIMIT: usize = 64;
/// Runs the warm-up, then the measured iterations.
pub(super) fn run(config: &EchoConfig, side: &mut Side) -> Result<EchoReport, RunError> {
    let mut client = EchoClient::connect(config, side)?;
    client.run_phase(config.warmup, side)?;
    client.results.clear();
    let mut is_interrupted = false;
    for _ in 0..config.iterations {
        match client.run_phase(config.duration, side) {
            Ok(()) => {}
            // What was measured before is a result, too.
            Err(RunError::Interrupted) if client.results.received > 0 => {
                is_interrupted = true;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let results = client.results;
    Ok(EchoReport {
        rate: config.rate,
        length: config.length,
        elapsed: results.elapsed,
        sent: results.sent,
        received: results.received,
        damaged: results.damaged,
        retries: results.retries,
        histogram: results.histogram,
        is_interrupted,
    })
}

struct EchoClient {
    publication: ExclusivePublication,
    subscription: Subscription,
    assembler: FragmentAssembler,
    clock: SystemClock,
    rate: u64,
    batch: u64,
    timeout: Duration,
    /// Buffer for messages that are too long for a claim.
    message: Vec<u8>,
    /// Sequence number of the next message to send, over all phases.
    next_sent: u64,
    /// Sequence number of the next message to be received, over all phases.
    next_received: u64,
    results: Results,
    progress: Progress,
}

/// Totals of the measured phases.
struct Results {
    elapsed: Duration,
    sent: u64,
    received: u64,
    damaged: u64,
    retries: u64,
    histogram: Histogram<u64>,
}

impl Results {
    fn clear(&mut self) {
        self.elapsed = Duration::ZERO;
        (self.sent, self.received, self.damaged, self.retries) = (0, 0, 0, 0);
        self.histogram.reset();
    }
}

impl EchoClient {
    fn connect(config: &EchoConfig, side: &mut Side) -> Result<EchoClient, RunError> {
        let subscription = side.add_subscription(&config.reply_channel, config.reply_stream_id)?;
        let publication = side.add_exclusive_publication(&config.channel, config.stream_id)?;
        side.wait(
            config.timeout.max(MIN_CONNECT_TIMEOUT),
            "the echo server to connect",
            || publication.is_connected() && subscription.is_connected(),
        )?;
        let max = publication.max_message_length();
        if config.length > max {
            return Err(RunError::Config(format!(
                "length is {} bytes, but a message on {} is limited to {max}; increase its term-length",
                config.length, config.channel
            )));
        }
        let histogram = histogram_of_times();
        Ok(EchoClient {
            publication,
            subscription,
            assembler: FragmentAssembler::new(),
            clock: SystemClock::new(),
            rate: config.rate,
            batch: config.batch,
            timeout: config.timeout,
            message: vec![0; config.length],
            next_sent: 0,
            next_received: 0,
            results: Results {
                elapsed: Duration::ZERO,
                sent: 0,
                received: 0,
                damaged: 0,
                retries: 0,
                histogram,
            },
            progress: Progress::start(config.progress),
        })
    }

    /// Sends at the configured rate for `duration`, then waits for the remaining replies. If it is interrupted, the results
    /// are those so far.
    fn run_phase(&mut self, duration: Duration, side: &mut Side) -> Result<(), RunError> {
        let start_ns = self.clock.now().nanos;
        let schedule = Schedule::new(start_ns, self.rate, self.batch);
        let total = schedule.messages_in(duration);
        let timeout_ns = i64::try_from(self.timeout.as_nanos()).unwrap_or(i64::MAX);
        let base = self.next_sent;
        let mut last_event_ns = start_ns;
        let mut last_sent_ns = start_ns;
        while self.next_received - base < total {
            let now_ns = self.clock.now().nanos;
            let sent = self.send_due(&schedule, base, total, now_ns)?;
            if sent > 0 {
                last_sent_ns = now_ns;
            }
            if let Err(error) = side.duty_cycle() {
                self.end_phase(
                    base,
                    Duration::from_nanos((last_sent_ns - start_ns).unsigned_abs()),
                );
                return Err(error);
            }
            let received = self.receive()?;
            if sent + received > 0 {
                last_event_ns = now_ns;
                self.publish_progress();
            } else if now_ns - last_event_ns > timeout_ns {
                break;
            }
        }
        // The last batch accounts for the interval until the next one would be due.
        let end_ns = last_sent_ns.max(schedule.due_ns(total));
        let elapsed = Duration::from_nanos(u64::try_from(end_ns - start_ns).unwrap_or(0));
        self.end_phase(base, elapsed);
        Ok(())
    }

    /// Adds a phase to the results.
    fn end_phase(&mut self, base: u64, elapsed: Duration) {
        self.results.elapsed += elapsed;
        self.results.sent += self.next_sent - base;
        // Replies still missing are lost; the next phase starts at its own first message.
        self.next_received = self.next_sent;
    }

    /// Sends the messages that are due, at most [`BURST`]; returns the number sent.
    fn send_due(
        &mut self,
        schedule: &Schedule,
        base: u64,
        total: u64,
        now_ns: i64,
    ) -> Result<u64, RunError> {
        for sent in 0..u64::from(BURST) {
            let index = self.next_sent - base;
            if index >= total {
                return Ok(sent);
            }
            let due_ns = schedule.due_ns(index);
            if due_ns > now_ns {
                return Ok(sent);
            }
            match self.send(due_ns) {
                Ok(()) => self.next_sent += 1,
                Err(error) if error.is_retryable() => {
                    self.results.retries += 1;
                    return Ok(sent);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(u64::from(BURST))
    }

    fn send(&mut self, due_ns: i64) -> Result<(), OfferError> {
        if self.message.len() <= self.publication.max_payload_length() {
            let mut claim = self.publication.try_claim(self.message.len())?;
            payload::write(&mut claim, due_ns, self.next_sent);
            claim.commit();
        } else {
            payload::write(&mut self.message, due_ns, self.next_sent);
            self.publication.offer(&self.message)?;
        }
        Ok(())
    }

    /// Polls for replies; returns the number of fragments.
    fn receive(&mut self) -> Result<u64, RunError> {
        let (clock, results) = (&mut self.clock, &mut self.results);
        let next = &mut self.next_received;
        let length = self.message.len();
        let fragments = self.subscription.poll(
            self.assembler
                .wrap(|message, _| match payload::read(message, length) {
                    // A skipped number is a loss, found by counting; a lower number is a duplicate.
                    Ok((due_ns, sequence)) if sequence >= *next => {
                        *next = sequence + 1;
                        results.received += 1;
                        let round_trip = u64::try_from(clock.now().nanos - due_ns).unwrap_or(0);
                        results.histogram.saturating_record(round_trip);
                    }
                    _ => results.damaged += 1,
                }),
            FRAGMENT_LIMIT,
        )?;
        Ok(fragments as u64)
    }

    fn publish_progress(&self) {
        let Counts { sent, received } = self.progress.counts();
        sent.store(self.next_sent, Ordering::Relaxed);
        received.store(self.next_received, Ordering::Relaxed);
    }
}
