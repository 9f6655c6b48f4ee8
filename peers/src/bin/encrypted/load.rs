// SPDX-License-Identifier: Apache-2.0
//! The load, independent of the protocol.

use std::time::Duration;

use hdrhistogram::Histogram;
use taran_bench::payload::{self, MIN_LENGTH};
use taran_bench::report::{RATE_TOLERANCE, histogram_of_times};
use taran_bench::schedule::Schedule;
use taran_bench::side::RunError;
use taran_core::clock::{Clock, SystemClock};
use taran_peers::measured::Measured;

/// Time without a reply after which the missing ones count as lost.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of messages sent between two looks for replies.
const BURST: usize = 64;

/// Messages that are due, and the replies to them.
///
/// Contract: a phase begins with [`begin`](Self::begin). Until [`is_done`](Self::is_done), the connection alternates between
/// [`due`](Self::due), whose bytes it sends, and [`receive`](Self::receive). A message that is sent late keeps the time at which
/// it was due. [`end`](Self::end) ends a phase. The result is that of the last phase.
pub(crate) struct Load {
    clock: SystemClock,
    rate: u64,
    length: usize,
    phase: Phase,
    outgoing: Vec<u8>,
    /// The first bytes of a reply whose end is missing.
    incoming: Vec<u8>,
}

struct Phase {
    schedule: Schedule,
    start_ns: i64,
    total: u64,
    sent: u64,
    received: u64,
    /// Sequence number of the next reply.
    next: u64,
    damaged: u64,
    last_sent_ns: i64,
    last_event_ns: i64,
    histogram: Histogram<u64>,
}

impl Load {
    pub(crate) fn new(rate: u64, length: usize) -> Result<Self, RunError> {
        if length < MIN_LENGTH {
            return Err(RunError::Config(format!(
                "--length is {length}, the least is {MIN_LENGTH}"
            )));
        }
        let histogram = histogram_of_times();
        Ok(Self {
            clock: SystemClock::new(),
            rate,
            length,
            phase: Phase {
                schedule: Schedule::new(0, rate, 1),
                start_ns: 0,
                total: 0,
                sent: 0,
                received: 0,
                next: 0,
                damaged: 0,
                last_sent_ns: 0,
                last_event_ns: 0,
                histogram,
            },
            outgoing: vec![0; length * BURST],
            incoming: Vec::with_capacity(length),
        })
    }

    /// Begins a phase and forgets the one before.
    pub(crate) fn begin(&mut self, duration: Duration) {
        let now_ns = self.clock.now().nanos;
        let schedule = Schedule::new(now_ns, self.rate, 1);
        let phase = &mut self.phase;
        phase.total = schedule.messages_in(duration);
        phase.schedule = schedule;
        (phase.start_ns, phase.last_sent_ns, phase.last_event_ns) = (now_ns, now_ns, now_ns);
        (phase.sent, phase.received, phase.next, phase.damaged) = (0, 0, 0, 0);
        phase.histogram.reset();
        self.incoming.clear();
    }

    /// Returns true once all replies are there, or none has come for two seconds.
    pub(crate) fn is_done(&mut self) -> bool {
        let phase = &self.phase;
        phase.next >= phase.total
            || self.clock.now().nanos - phase.last_event_ns > TIMEOUT.as_nanos() as i64
    }

    /// Ends a phase.
    ///
    /// # Errors
    /// Replies are missing, which would be taken for those of the next phase.
    pub(crate) fn end(&self) -> Result<(), RunError> {
        if self.phase.next < self.phase.total {
            return Err(RunError::TimedOut(TIMEOUT, "the last replies"));
        }
        Ok(())
    }

    /// Returns the messages that are due, at most [`BURST`].
    pub(crate) fn due(&mut self) -> &[u8] {
        let now_ns = self.clock.now().nanos;
        let phase = &mut self.phase;
        let mut count = 0;
        for message in self.outgoing.chunks_exact_mut(self.length) {
            if phase.sent >= phase.total {
                break;
            }
            let due_ns = phase.schedule.due_ns(phase.sent);
            if due_ns > now_ns {
                break;
            }
            payload::write(message, due_ns, phase.sent);
            phase.sent += 1;
            count += 1;
        }
        if count > 0 {
            (phase.last_sent_ns, phase.last_event_ns) = (now_ns, now_ns);
        }
        &self.outgoing[..count * self.length]
    }

    /// Takes bytes of replies, cut anywhere.
    pub(crate) fn receive(&mut self, mut bytes: &[u8]) {
        if !self.incoming.is_empty() {
            let missing = (self.length - self.incoming.len()).min(bytes.len());
            let (end, rest) = bytes.split_at(missing);
            self.incoming.extend_from_slice(end);
            bytes = rest;
            if self.incoming.len() < self.length {
                return;
            }
            let whole = std::mem::take(&mut self.incoming);
            self.on_reply(&whole);
            self.incoming = whole;
            self.incoming.clear();
        }
        let mut replies = bytes.chunks_exact(self.length);
        for reply in &mut replies {
            self.on_reply(reply);
        }
        self.incoming.extend_from_slice(replies.remainder());
    }

    fn on_reply(&mut self, reply: &[u8]) {
        let phase = &mut self.phase;
        match payload::read(reply, self.length) {
            // A skipped number is a loss, found by counting; a lower number is a duplicate.
            Ok((due_ns, sequence)) if sequence >= phase.next => {
                let now_ns = self.clock.now().nanos;
                phase.received += 1;
                phase.next = sequence + 1;
                phase.last_event_ns = now_ns;
                let round_trip = u64::try_from(now_ns - due_ns).unwrap_or(0);
                phase.histogram.saturating_record(round_trip);
            }
            _ => phase.damaged += 1,
        }
    }

    /// Returns the result of the last phase.
    pub(crate) fn measured(&self) -> Measured {
        let phase = &self.phase;
        // The last message accounts for the interval until the next one would be due.
        let end_ns = phase.last_sent_ns.max(phase.schedule.due_ns(phase.total));
        let seconds = (end_ns - phase.start_ns) as f64 / 1e9;
        let rate = phase.sent as f64 / seconds.max(f64::MIN_POSITIVE);
        Measured {
            defects: phase.total - phase.received + phase.damaged,
            is_held: rate >= RATE_TOLERANCE * self.rate as f64,
            ..Measured::of(rate).with_round_trips(&phase.histogram)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a phase of 100 messages to itself, in pieces of `step` bytes.
    fn looped(step: usize, damage: impl Fn(&mut Vec<u8>)) -> Measured {
        let mut load = Load::new(10_000, 32).unwrap();
        load.begin(Duration::from_millis(10));
        let mut all = Vec::new();
        while all.len() < 100 * 32 {
            all.extend_from_slice(load.due());
        }
        damage(&mut all);
        all.chunks(step).for_each(|piece| load.receive(piece));
        load.measured()
    }

    #[test]
    fn replies_cut_anywhere_are_complete() {
        for step in [1, 31, 32, 33, 100, 3_200] {
            let measured = looped(step, |_| ());
            assert_eq!(measured.defects, 0, "{step}");
            assert!(measured.round_trip(0.5).is_some_and(|nanos| nanos > 0));
        }
    }

    #[test]
    fn damaged_and_missing_replies_are_defects() {
        assert_eq!(looped(32, |all| all[40 * 32 + 20] ^= 1).defects, 2);
        assert_eq!(looped(32, |all| all.truncate(90 * 32)).defects, 10);
    }
}
