// SPDX-License-Identifier: Apache-2.0
//! Defects that tests switch on: parts of the official rules, and planted bugs. Outside of tests there are none, and the branches
//! that ask for them are compiled away.

/// A way to break the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Defect {
    /// Official (D1, D2): a reported position counts whatever its term.
    CreditWithoutTerms,
    /// Official (D2, D3): the TERM entry of the leader's term is written when the log is joined.
    LateTermEntry,
    /// Official (D3): entries of older terms are committed although a log of a term in between may exist.
    PriorTermUnchecked,
    /// Official (D24): lists of TERM entries, with fillers, are compared in place of logs.
    TermListTrusted,
    /// Official (D28): a leader of a lower term than the last vote is followed.
    LowerTermFollowed,
    /// Official (D14): a vote is sent before it is durable.
    VoteNotDurable,
    /// Planted: a member votes for each candidate of a term.
    VotesTwice,
    /// Planted: a vote ignores the log of the candidate.
    VoteIgnoresLog,
    /// Planted: one member less than a quorum commits.
    SmallQuorum,
    /// Planted: what is not flushed is acknowledged.
    UnflushedAcknowledged,
    /// Planted: a follower keeps what is behind the end of the leader's log.
    TruncationForgotten,
    /// Planted: a follower takes its leader's commit position before the logs are compared.
    CommitUncompared,
    /// Planted: a membership change is in effect when it is committed.
    MembershipAtCommit,
    /// Planted: a membership change is begun before the one before, and the event of the own term, are committed.
    MembershipUnordered,
    /// Planted: a node counts as the member whose id it takes.
    IncarnationIgnored,
    /// Planted: the votes of all members settle a prior term although the membership is not committed.
    MembershipUnsettled,
    /// Planted: a member that voted waits for a leader without end.
    EndlessBallot,
}

/// A set of defects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Defects {
    #[cfg(test)]
    bits: u32,
}

impl Defects {
    /// Returns true if the defect is switched on.
    #[cfg(test)]
    pub(super) const fn has(self, defect: Defect) -> bool {
        self.bits & (1 << defect as u32) != 0
    }

    /// Returns true if the defect is switched on.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "tests have a field")]
    pub(super) const fn has(self, _: Defect) -> bool {
        false
    }

    #[cfg(test)]
    pub(super) const fn with(self, defect: Defect) -> Self {
        Self {
            bits: self.bits | 1 << defect as u32,
        }
    }
}
