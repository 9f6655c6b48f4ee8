//! Answers to NAKs (docs/spec/wire.md §3.8).
//!
//! Input: [`Retransmits::on_nak`] for each valid NAK, then [`Retransmits::turn`] in each turn of the stream. Output: `turn`
//! calls back for each stretch to send again. Long answers are spread over several turns, so that small NAKs cannot keep the
//! sender from its other streams; repeated NAKs are ignored while it lasts and for a while after. Whoever sends NAKs gets
//! many bytes for few, so that what is sent again is limited: to a multiple of what is sent, and to so much in a second.
//! What is left of that is shared by bytes of the stream, not by NAKs (`wanted`), so that a forger of NAKs takes no more of
//! it than anybody, and what a receiver misses is sent again in time whatever else is asked for.

mod wanted;

use self::wanted::{Added, Wanted};
use super::plan::TURN_BYTES;
use crate::boundary::RetransmitSpec;
use crate::token_bucket::TokenBucket;

pub(super) use self::wanted::Stretch;

/// For each byte that is sent so many may be sent again: four receivers of five may lose it.
const REPEATS: i64 = 4;

/// In a second, whatever was sent, half a term may be sent again, and this much at least.
const PER_SECOND_MIN: i64 = 1 << 20;

/// Stretches that are kept apart where only one receiver asks.
const APART_MIN: usize = 4;

/// What became of a NAK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It will be answered.
    Accepted,
    /// It is being answered, or was just now.
    Suppressed,
    /// It will be answered later, or with more than it asked for: too many at a time, or too much altogether.
    Overflow,
}

/// What came of sending the start of a stretch again: how far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resent {
    /// So much went out.
    Went(i64),
    /// So much went out, or nothing; the rest is left to the next NAK.
    Stuck(i64),
    /// So much is too old, and was passed over.
    Passed(i64),
}

#[derive(Debug)]
pub(super) struct Retransmits {
    wanted: Wanted,
    /// What was sent again just now. Of one receiver, who misses one thing at a time, the last answer is kept.
    answered: Vec<Answered>,
    spec: RetransmitSpec,
    bucket: TokenBucket,
}

#[derive(Debug)]
struct Answered {
    stretch: Stretch,
    until_ns: i64,
}

impl Retransmits {
    pub(super) fn new(spec: RetransmitSpec, term_length: i32) -> Self {
        let max_actions = spec.max_actions.max(1);
        let per_second = i64::from(term_length / 2).max(PER_SECOND_MIN);
        Self {
            wanted: Wanted::up_to(max_actions.max(APART_MIN)),
            answered: Vec::with_capacity(max_actions),
            spec: RetransmitSpec {
                max_actions,
                ..spec
            },
            bucket: TokenBucket::new(per_second, per_second),
        }
    }

    /// So many bytes of the stream went out for the first time.
    #[inline]
    pub(super) fn sent(&mut self, bytes: usize) {
        self.bucket.refill(REPEATS * bytes as i64);
    }

    pub(super) fn on_nak(&mut self, asked: Stretch, now_ns: i64) -> Verdict {
        self.answered.retain(|it| now_ns <= it.until_ns);
        let asked = self.without_answered(asked);
        // A delay is waited for strictly.
        let delay_ns = self.spec.delay_ns + i64::from(self.spec.delay_ns > 0);
        match self.wanted.add(asked, now_ns + delay_ns) {
            Added::Nothing => Verdict::Suppressed,
            Added::Something if self.bucket.available(now_ns) > 0 => Verdict::Accepted,
            Added::Something | Added::Crowded => Verdict::Overflow,
        }
    }

    /// What is left of it behind what was just answered. An answer to less than a receiver misses must not be all it gets.
    fn without_answered(&self, mut asked: Stretch) -> Stretch {
        let end = asked.end();
        let mut answered = self.answered.iter();
        while let Some(known) = answered.find(|it| it.stretch.contains(asked.position)) {
            asked.position = known.stretch.end();
            asked.length = (end - asked.position).max(0);
            answered = self.answered.iter();
        }
        asked
    }

    /// Whether something is still to be sent, now or later.
    pub(super) fn is_pending(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Carries on with what is due. `resend` gets what is left of a stretch and whether nothing of it went out yet, and
    /// sends the start of it.
    pub(super) fn turn(&mut self, now_ns: i64, mut resend: impl FnMut(Stretch, bool) -> Resent) {
        if self.wanted.is_empty() {
            return;
        }
        let mut budget = i64::from(TURN_BYTES).min(self.bucket.available(now_ns));
        for _ in 0..self.wanted.len() {
            if budget <= 0 {
                return;
            }
            let Some((next, is_start)) = self.wanted.next(now_ns) else {
                return;
            };
            let outcome = resend(next, is_start);
            let (Resent::Went(advanced) | Resent::Stuck(advanced) | Resent::Passed(advanced)) =
                outcome;
            budget -= advanced;
            if let Resent::Passed(_) = outcome {
                self.wanted.passed(next, advanced);
                continue;
            }
            // The body of padding is not sent.
            self.bucket.consume(advanced.min(i64::from(TURN_BYTES)));
            self.wanted.sent(next, advanced);
            if let Resent::Stuck(_) = outcome {
                self.wanted.give_up(next.position + advanced);
            }
            self.note_answered(next.position, advanced, now_ns);
        }
    }

    /// Until `linger` after its first byte an answer counts as just given: if it is lost, the next NAK must count.
    fn note_answered(&mut self, position: i64, length: i64, now_ns: i64) {
        if length == 0 {
            return;
        }
        if let Some(last) = self.answered.last_mut()
            && last.stretch.end() == position
            && now_ns <= last.until_ns
        {
            last.stretch.length += length;
            return;
        }
        if self.answered.len() == self.spec.max_actions {
            self.answered.remove(0);
        }
        self.answered.push(Answered {
            stretch: Stretch { position, length },
            until_ns: now_ns + self.spec.linger_ns,
        });
    }
}

#[cfg(test)]
mod tests;
