// SPDX-License-Identifier: Apache-2.0
//! Retransmission of data that receivers ask for with NAKs (docs/spec/wire.md §3.8).
//!
//! Input: [`RetransmitHandler::on_nak`] for each valid NAK, then [`RetransmitHandler::poll`] in each poll of the
//! publication. Output: `poll` calls back for each range to send. Long ranges are spread over several polls, so that
//! small NAKs cannot keep the sender from its other streams; repeated NAKs are ignored while a range is pending and
//! during the linger time after it. A NAK is much shorter than the data it asks for, so retransmission is limited: to a
//! multiple of what is sent, plus a rate in bytes per second. Within the limit ranges are served in stream order and
//! not in the order of NAKs (`queue`): forged NAKs get no larger share than real ones, and what a receiver misses is
//! sent in bounded time whatever else is asked for.

mod queue;

use self::queue::{AddResult, RetransmitQueue};
use super::send_plan::MAX_BATCH_BYTES;
use crate::boundary::RetransmitSpec;
use crate::token_bucket::TokenBucket;

pub(super) use self::queue::StreamRange;

/// Bytes that may be retransmitted per byte sent: each of four receivers may lose it.
const RESENDS_PER_BYTE: i64 = 4;

/// Fewest bytes per second that may be retransmitted, whatever was sent. The limit is half a term per second if that is
/// more.
const MIN_BYTES_PER_SECOND: i64 = 1 << 20;

/// Fewest ranges that are kept apart, even where only one receiver asks.
const MIN_RANGES: usize = 4;

/// Outcome of a NAK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NakOutcome {
    /// The range will be sent.
    Accepted,
    /// The range is pending or was just sent.
    Suppressed,
    /// The range will be sent later, or as part of a longer one: too many ranges or too many bytes are pending.
    Overflow,
}

/// Outcome of sending the start of a range: the number of bytes by which it advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetransmitOutcome {
    /// The bytes were sent.
    Sent(i64),
    /// The bytes, possibly none, were sent; the rest is left to the next NAK.
    Blocked(i64),
    /// The bytes are too old and were skipped.
    Expired(i64),
}

/// Retransmission state of a publication.
#[derive(Debug)]
pub(super) struct RetransmitHandler {
    queue: RetransmitQueue,
    /// Ranges sent within the linger time. For a single receiver, which misses one range at a time, only the last is
    /// kept.
    lingering: Vec<Lingering>,
    spec: RetransmitSpec,
    bucket: TokenBucket,
}

#[derive(Debug)]
struct Lingering {
    range: StreamRange,
    until_ns: i64,
}

impl RetransmitHandler {
    pub(super) fn new(spec: RetransmitSpec, term_length: i32) -> Self {
        let max_actions = spec.max_actions.max(1);
        let per_second = i64::from(term_length / 2).max(MIN_BYTES_PER_SECOND);
        Self {
            queue: RetransmitQueue::with_capacity(max_actions.max(MIN_RANGES)),
            lingering: Vec::with_capacity(max_actions),
            spec: RetransmitSpec {
                max_actions,
                ..spec
            },
            bucket: TokenBucket::new(per_second, per_second),
        }
    }

    /// Records that `bytes` of the stream were sent for the first time.
    #[inline]
    pub(super) fn on_data_sent(&mut self, bytes: usize) {
        self.bucket.refill(RESENDS_PER_BYTE * bytes as i64);
    }

    pub(super) fn on_nak(&mut self, asked: StreamRange, now_ns: i64) -> NakOutcome {
        self.lingering.retain(|it| now_ns <= it.until_ns);
        let asked = self.without_lingering(asked);
        // A delay has to be exceeded.
        let delay_ns = self.spec.delay_ns + i64::from(self.spec.delay_ns > 0);
        match self.queue.add(asked, now_ns + delay_ns) {
            AddResult::Duplicate => NakOutcome::Suppressed,
            AddResult::Added if self.bucket.available(now_ns) > 0 => NakOutcome::Accepted,
            AddResult::Added | AddResult::Coalesced => NakOutcome::Overflow,
        }
    }

    /// Returns the part of a range behind what was just sent. A retransmission of less than a receiver misses must not
    /// suppress the rest.
    fn without_lingering(&self, mut asked: StreamRange) -> StreamRange {
        let end = asked.end();
        let mut lingering = self.lingering.iter();
        while let Some(known) = lingering.find(|it| it.range.contains(asked.position)) {
            asked.position = known.range.end();
            asked.length = (end - asked.position).max(0);
            lingering = self.lingering.iter();
        }
        asked
    }

    /// Returns true if ranges are still to be sent, now or later.
    pub(super) fn is_pending(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Returns the time at which the first range is due, which is in the past if the limits delay it; `i64::MAX` without one.
    pub(super) fn next_deadline_ns(&self) -> i64 {
        self.queue.first_due_ns()
    }

    /// Sends what is due, up to the limits. `resend` gets the rest of a range and true if nothing of it was sent yet,
    /// and sends its start.
    pub(super) fn poll(
        &mut self,
        now_ns: i64,
        mut resend: impl FnMut(StreamRange, bool) -> RetransmitOutcome,
    ) {
        if self.queue.is_empty() {
            return;
        }
        let mut budget = i64::from(MAX_BATCH_BYTES).min(self.bucket.available(now_ns));
        for _ in 0..self.queue.len() {
            if budget <= 0 {
                return;
            }
            let Some((next, is_start)) = self.queue.next_due(now_ns) else {
                return;
            };
            let outcome = resend(next, is_start);
            let (RetransmitOutcome::Sent(advanced)
            | RetransmitOutcome::Blocked(advanced)
            | RetransmitOutcome::Expired(advanced)) = outcome;
            budget -= advanced;
            if let RetransmitOutcome::Expired(_) = outcome {
                self.queue.on_skipped(next, advanced);
                continue;
            }
            // The body of padding is not sent.
            self.bucket
                .consume(advanced.min(i64::from(MAX_BATCH_BYTES)));
            self.queue.on_sent(next, advanced);
            if let RetransmitOutcome::Blocked(_) = outcome {
                self.queue.remove_at(next.position + advanced);
            }
            self.record_lingering(next.position, advanced, now_ns);
        }
    }

    /// Records a range that was sent. It lingers from its first byte on: if it is lost, the next NAK must count.
    fn record_lingering(&mut self, position: i64, length: i64, now_ns: i64) {
        if length == 0 {
            return;
        }
        if let Some(last) = self.lingering.last_mut()
            && last.range.end() == position
            && now_ns <= last.until_ns
        {
            last.range.length += length;
            return;
        }
        if self.lingering.len() == self.spec.max_actions {
            self.lingering.remove(0);
        }
        self.lingering.push(Lingering {
            range: StreamRange { position, length },
            until_ns: now_ns + self.spec.linger_ns,
        });
    }
}

#[cfg(test)]
mod tests;
