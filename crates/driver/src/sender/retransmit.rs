//! Answers to NAKs (spec/02 §3.8).
//!
//! Input: [`Retransmits::on_nak`] for each valid NAK, then [`Retransmits::turn`] in every duty cycle. Output: `turn` calls
//! back for each stretch to send again. Long answers are spread over several turns, so that small NAKs cannot keep the
//! sender from its other streams; repeated NAKs are ignored while it lasts and for a while after. Whoever sends NAKs gets
//! many bytes for few, so that what is sent again is limited: to a multiple of what is sent, and to so much in a second.

use std::ops::ControlFlow;

use super::plan::TURN_BYTES;
use crate::allowance::Allowance;
use crate::boundary::RetransmitSpec;

/// For each byte that is sent so many may be sent again: four receivers of five may lose it.
const REPEATS: i64 = 4;

/// In a second, whatever was sent, half a term may be sent again, and this much at least.
const PER_SECOND_MIN: i64 = 1 << 20;

/// What became of a NAK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It will be answered.
    Accepted,
    /// It is being answered, or was just now.
    Suppressed,
    /// Too many at a time, or too much altogether.
    Overflow,
}

/// A stretch of the stream to send again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) position: i64,
    pub(super) length: i64,
}

#[derive(Debug)]
pub(super) struct Retransmits {
    actions: Vec<Action>,
    spec: RetransmitSpec,
    allowance: Allowance,
}

#[derive(Debug)]
struct Action {
    asked: Stretch,
    state: State,
}

#[derive(Debug)]
enum State {
    Delayed { until_ns: i64 },
    Sending { sent: i64 },
    Lingering { until_ns: i64 },
}

impl Retransmits {
    pub(super) fn new(spec: RetransmitSpec, term_length: i32) -> Self {
        let max_actions = spec.max_actions.max(1);
        let per_second = i64::from(term_length / 2).max(PER_SECOND_MIN);
        Self {
            actions: Vec::with_capacity(max_actions),
            spec: RetransmitSpec {
                max_actions,
                ..spec
            },
            allowance: Allowance::new(per_second, per_second),
        }
    }

    /// So many bytes of the stream went out for the first time.
    #[inline]
    pub(super) fn sent(&mut self, bytes: usize) {
        self.allowance.earn(REPEATS * bytes as i64);
    }

    pub(super) fn on_nak(&mut self, asked: Stretch, now_ns: i64) -> Verdict {
        self.forget_lingering(now_ns);
        let is_known = |action: &Action| {
            let start = action.asked.position;
            (start..start + action.asked.length).contains(&asked.position)
        };
        if self.actions.iter().any(is_known) {
            return Verdict::Suppressed;
        }
        if self.allowance.left(now_ns) <= 0 {
            return Verdict::Overflow;
        }
        if self.spec.max_actions == 1 {
            // One receiver misses one thing at a time: what it asks for now is what it needs.
            self.actions.clear();
        } else if self.actions.len() == self.spec.max_actions {
            return Verdict::Overflow;
        }
        let state = if self.spec.delay_ns == 0 {
            State::Sending { sent: 0 }
        } else {
            State::Delayed {
                until_ns: now_ns + self.spec.delay_ns,
            }
        };
        self.actions.push(Action { asked, state });
        Verdict::Accepted
    }

    /// Whether something is still to be sent, now or later.
    pub(super) fn is_pending(&self) -> bool {
        let mut actions = self.actions.iter();
        actions.any(|action| matches!(action.state, State::Delayed { .. } | State::Sending { .. }))
    }

    /// Carries on with what is due. `resend` gets what is left of a stretch and whether that is all of it, sends
    /// the start of it and returns how far it came; `Break`: no further, leave the rest to the next NAK.
    pub(super) fn turn(
        &mut self,
        now_ns: i64,
        mut resend: impl FnMut(Stretch, bool) -> ControlFlow<i64, i64>,
    ) {
        if self.actions.is_empty() {
            return;
        }
        self.forget_lingering(now_ns);
        let mut budget = i64::from(TURN_BYTES).min(self.allowance.left(now_ns));
        for action in &mut self.actions {
            if let State::Delayed { until_ns } = action.state
                && until_ns < now_ns
            {
                action.state = State::Sending { sent: 0 };
            }
            if let State::Sending { sent } = &mut action.state
                && budget > 0
            {
                let rest = Stretch {
                    position: action.asked.position + *sent,
                    length: action.asked.length - *sent,
                };
                let (advanced, is_over) = match resend(rest, *sent == 0) {
                    ControlFlow::Continue(advanced) => (advanced, advanced >= rest.length),
                    ControlFlow::Break(advanced) => (advanced, true),
                };
                budget -= advanced;
                *sent += advanced;
                // The body of padding is not sent.
                self.allowance.spend(advanced.min(i64::from(TURN_BYTES)));
                if is_over {
                    // What was not sent may be asked for again at once.
                    action.asked.length = action.asked.length.min(*sent);
                    action.state = State::Lingering {
                        until_ns: now_ns + self.spec.linger_ns,
                    };
                }
            }
        }
    }

    fn forget_lingering(&mut self, now_ns: i64) {
        self.actions.retain(|action| match action.state {
            State::Lingering { until_ns } => action.asked.length > 0 && now_ns <= until_ns,
            State::Delayed { .. } | State::Sending { .. } => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const UNICAST: RetransmitSpec = RetransmitSpec {
        max_actions: 1,
        delay_ns: 0,
        linger_ns: 10 * MS,
    };
    const GROUP: RetransmitSpec = RetransmitSpec {
        max_actions: 2,
        ..UNICAST
    };

    fn stretch(position: i64, length: i64) -> Stretch {
        Stretch { position, length }
    }

    /// What a turn sends again, at most 1000 bytes of each stretch.
    fn turn(retransmits: &mut Retransmits, now_ns: i64) -> Vec<Stretch> {
        let mut sent = Vec::new();
        retransmits.turn(now_ns, |rest, _| {
            sent.push(stretch(rest.position, rest.length.min(1000)));
            ControlFlow::Continue(rest.length.min(1000))
        });
        sent
    }

    #[test]
    fn a_nak_is_answered_at_once_and_its_repetition_ignored_until_linger_ends() {
        let mut retransmits = Retransmits::new(UNICAST, 1 << 30);
        assert_eq!(retransmits.on_nak(stretch(64, 320), 0), Verdict::Accepted);
        assert_eq!(turn(&mut retransmits, 0), [stretch(64, 320)]);
        assert_eq!(turn(&mut retransmits, 1), []);
        assert_eq!(
            retransmits.on_nak(stretch(64, 320), 10 * MS),
            Verdict::Suppressed
        );
        assert_eq!(
            retransmits.on_nak(stretch(128, 32), 10 * MS),
            Verdict::Suppressed
        );
        assert_eq!(
            retransmits.on_nak(stretch(64, 320), 10 * MS + 1),
            Verdict::Accepted
        );
        assert_eq!(turn(&mut retransmits, 10 * MS + 1), [stretch(64, 320)]);
    }

    #[test]
    fn a_long_answer_takes_several_turns() {
        let mut retransmits = Retransmits::new(UNICAST, 1 << 30);
        assert_eq!(retransmits.on_nak(stretch(0, 2500), 0), Verdict::Accepted);
        assert_eq!(turn(&mut retransmits, 0), [stretch(0, 1000)]);
        assert_eq!(retransmits.on_nak(stretch(0, 2500), 0), Verdict::Suppressed);
        assert_eq!(turn(&mut retransmits, 1), [stretch(1000, 1000)]);
        assert_eq!(turn(&mut retransmits, 2), [stretch(2000, 500)]);
        assert_eq!(turn(&mut retransmits, 3), []);
        assert_eq!(
            retransmits.on_nak(stretch(0, 2500), 2 + 10 * MS),
            Verdict::Suppressed
        );
        assert_eq!(
            retransmits.on_nak(stretch(0, 2500), 3 + 10 * MS),
            Verdict::Accepted
        );
    }

    #[test]
    fn what_cannot_be_sent_is_left_to_the_next_nak() {
        let mut retransmits = Retransmits::new(UNICAST, 1 << 30);
        assert_eq!(retransmits.on_nak(stretch(0, 2500), 0), Verdict::Accepted);
        retransmits.turn(0, |_, _| ControlFlow::Break(0));
        assert_eq!(turn(&mut retransmits, 1), []);
        assert_eq!(retransmits.on_nak(stretch(0, 2500), 1), Verdict::Accepted);
        retransmits.turn(1, |_, _| ControlFlow::Break(1000));
        assert_eq!(retransmits.on_nak(stretch(0, 2500), 2), Verdict::Suppressed);
        assert_eq!(
            retransmits.on_nak(stretch(1000, 1500), 2),
            Verdict::Accepted
        );
        assert_eq!(turn(&mut retransmits, 2), [stretch(1000, 1000)]);
    }

    #[test]
    fn an_answer_of_nothing_takes_no_room_in_a_group() {
        let mut retransmits = Retransmits::new(GROUP, 1 << 30);
        for position in [0, 640] {
            retransmits.on_nak(stretch(position, 64), 0);
        }
        retransmits.turn(0, |_, _| ControlFlow::Break(0));
        assert_eq!(retransmits.on_nak(stretch(1280, 64), 0), Verdict::Accepted);
    }

    #[test]
    fn unicast_turns_to_the_newest_nak() {
        let mut retransmits = Retransmits::new(UNICAST, 1 << 30);
        assert_eq!(retransmits.on_nak(stretch(0, 64), 0), Verdict::Accepted);
        turn(&mut retransmits, 0);
        assert_eq!(retransmits.on_nak(stretch(640, 64), 1), Verdict::Accepted);
        assert_eq!(turn(&mut retransmits, 1), [stretch(640, 64)]);
    }

    #[test]
    fn a_group_has_a_limited_number_of_answers_under_way() {
        let mut retransmits = Retransmits::new(GROUP, 1 << 30);
        assert_eq!(retransmits.on_nak(stretch(0, 64), 0), Verdict::Accepted);
        assert_eq!(retransmits.on_nak(stretch(640, 64), 0), Verdict::Accepted);
        assert_eq!(retransmits.on_nak(stretch(1280, 64), 0), Verdict::Overflow);
        assert_eq!(turn(&mut retransmits, 0).len(), 2);
        assert_eq!(
            retransmits.on_nak(stretch(1280, 64), 10 * MS),
            Verdict::Overflow
        );
        assert_eq!(
            retransmits.on_nak(stretch(1280, 64), 10 * MS + 1),
            Verdict::Accepted
        );
    }

    #[test]
    fn the_answers_of_a_group_share_the_bytes_of_a_turn() {
        let long = i64::from(TURN_BYTES);
        let mut retransmits = Retransmits::new(GROUP, 1 << 30);
        retransmits.on_nak(stretch(0, 2 * long), 0);
        retransmits.on_nak(stretch(4 * long, 64), 0);
        let mut turn = || {
            let mut sent = Vec::new();
            retransmits.turn(0, |rest, _| {
                sent.push((rest.position, rest.length.min(long)));
                ControlFlow::Continue(rest.length.min(long))
            });
            sent
        };
        assert_eq!(turn(), [(0, long)]);
        assert_eq!(turn(), [(long, long)]);
        assert_eq!(turn(), [(4 * long, 64)]);
    }

    #[test]
    fn a_delay_is_waited_for_strictly() {
        let mut retransmits = Retransmits::new(
            RetransmitSpec {
                delay_ns: 5,
                ..UNICAST
            },
            1 << 30,
        );
        assert_eq!(retransmits.on_nak(stretch(0, 64), 0), Verdict::Accepted);
        assert_eq!(turn(&mut retransmits, 5), []);
        assert_eq!(retransmits.on_nak(stretch(0, 64), 5), Verdict::Suppressed);
        assert_eq!(turn(&mut retransmits, 6), [stretch(0, 64)]);
    }

    #[test]
    fn what_is_sent_again_is_limited_by_what_is_sent_and_by_time() {
        let mut retransmits = Retransmits::new(UNICAST, 64 * 1024);
        let ask = |retransmits: &mut Retransmits, from: i64, count: i64, now_ns: i64| {
            let mut sent = 0;
            for number in from..from + count {
                // Each for something else.
                retransmits.on_nak(stretch(number * 1_000, 1_000), now_ns);
                sent += turn(retransmits, now_ns)
                    .iter()
                    .map(|it| it.length)
                    .sum::<i64>();
            }
            sent
        };
        let second = PER_SECOND_MIN;
        assert_eq!(
            ask(&mut retransmits, 0, 2_000, 0),
            (second / 1_000 + 1) * 1_000
        );
        assert_eq!(retransmits.on_nak(stretch(0, 1_000), 0), Verdict::Overflow);
        retransmits.sent(100_000);
        let repeated = ask(&mut retransmits, 5_000, 2_000, 0);
        assert!((399_000..=401_000).contains(&repeated), "{repeated}");
        let repeated = ask(&mut retransmits, 9_000, 2_000, 500 * MS);
        assert!(
            (second / 2 - 1_000..=second / 2 + 1_000).contains(&repeated),
            "{repeated}"
        );
    }
}
