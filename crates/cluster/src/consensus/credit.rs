// SPDX-License-Identifier: Apache-2.0
//! The commit rule: how far reports of members count towards the commit (`docs/spec/cluster.md` §12.2).

use super::config::MAX_MEMBERS;

/// The last report of a member about its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Report {
    /// Term in the report: log term of a canvass or vote, leader's term in an AppendPosition.
    pub(super) term: i64,
    /// Append position.
    pub(super) position: i64,
    /// Message that carried it.
    pub(super) kind: ReportKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ReportKind {
    /// Canvass or vote.
    Log,
    /// AppendPosition.
    Append {
        /// The TERM entry of the leader's term is durable.
        is_term_durable: bool,
        /// The member receives a replay that it requested in this term.
        is_catching_up: bool,
    },
}

/// The term of a leader, as the commit rule sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LedTerm {
    /// Term of the leader.
    pub(super) term: i64,
    /// Position at which it starts.
    pub(super) base: i64,
    /// Term that the leader's log ended in when it was elected.
    pub(super) prior_term: i64,
    /// True in LEADER_LOG_REPLICATION.
    pub(super) is_replicating: bool,
}

impl LedTerm {
    /// Returns the position up to which the member's log is known to equal the leader's, and which no log that could win the next
    /// election lacks. `shown` is the log term in its last canvass or vote.
    pub(super) fn credit(&self, report: &Report, shown: Option<i64>) -> i64 {
        let branch = report.position.min(self.base);
        match report.kind {
            _ if report.term > self.term => 0,
            ReportKind::Append {
                is_term_durable, ..
            } if report.term == self.term => {
                if is_term_durable || !self.is_replicating || shown == Some(self.prior_term) {
                    report.position
                } else {
                    0
                }
            }
            // A canvass with the leader's own term: its TERM entry is that leader's.
            ReportKind::Log if report.term == self.term => report.position,
            ReportKind::Append {
                is_catching_up: true,
                ..
            } => branch,
            ReportKind::Log if report.term == self.prior_term => branch,
            ReportKind::Log | ReportKind::Append { .. } => 0,
        }
    }

    /// Returns true if no log of a term between that of the leader's log and its own can exist.
    pub(super) const fn follows_prior_term(&self) -> bool {
        self.term == self.prior_term + 1
    }
}

/// Returns the greatest position that at least `quorum` of the credits reach.
pub(super) fn quorum_position(credits: impl Iterator<Item = i64>, quorum: usize) -> i64 {
    let mut ranked = [0; MAX_MEMBERS];
    let mut count = 0;
    for (slot, credit) in ranked.iter_mut().zip(credits) {
        *slot = credit;
        count += 1;
    }
    let ranked = &mut ranked[..count];
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    ranked.get(quorum - 1).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LED: LedTerm = LedTerm {
        term: 7,
        base: 1_000,
        prior_term: 4,
        is_replicating: false,
    };
    const REPLICATING: LedTerm = LedTerm {
        is_replicating: true,
        ..LED
    };

    const fn canvass(term: i64) -> Report {
        Report {
            term,
            position: 2_000,
            kind: ReportKind::Log,
        }
    }

    const fn append(term: i64, is_term_durable: bool, is_catching_up: bool) -> Report {
        Report {
            term,
            position: 2_000,
            kind: ReportKind::Append {
                is_term_durable,
                is_catching_up,
            },
        }
    }

    #[test]
    fn credit_of_another_branch_is_nothing() {
        for term in [0, 3, 5, 6, 8] {
            assert_eq!(LED.credit(&canvass(term), Some(term)), 0, "{term}");
            assert_eq!(LED.credit(&append(term, false, false), Some(term)), 0);
        }
    }

    #[test]
    fn credit_of_the_prior_term_ends_at_the_base() {
        assert_eq!(LED.credit(&canvass(4), Some(4)), 1_000);
        let short = Report {
            position: 500,
            ..canvass(4)
        };
        assert_eq!(LED.credit(&short, Some(4)), 500);
    }

    #[test]
    fn credit_of_the_own_term_is_the_position() {
        assert_eq!(LED.credit(&append(7, true, false), None), 2_000);
        assert_eq!(LED.credit(&append(7, false, false), None), 2_000);
        assert_eq!(REPLICATING.credit(&append(7, true, false), None), 2_000);
    }

    #[test]
    fn credit_without_durable_term_needs_the_prior_term_while_replicating() {
        assert_eq!(REPLICATING.credit(&append(7, false, false), None), 0);
        assert_eq!(REPLICATING.credit(&append(7, false, false), Some(3)), 0);
        assert_eq!(REPLICATING.credit(&append(7, false, false), Some(4)), 2_000);
    }

    #[test]
    fn credit_of_an_official_catch_up_ends_at_the_base() {
        assert_eq!(LED.credit(&append(4, false, true), None), 1_000);
        assert_eq!(LED.credit(&append(2, false, true), None), 1_000);
    }

    #[test]
    fn quorum_position_is_the_credit_that_a_quorum_reaches() {
        assert_eq!(quorum_position([5, 9, 7].into_iter(), 2), 7);
        assert_eq!(quorum_position([5, 9, 7, 1, 0].into_iter(), 3), 5);
        assert_eq!(quorum_position([3].into_iter(), 1), 3);
    }
}
