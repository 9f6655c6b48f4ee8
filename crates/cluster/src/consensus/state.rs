// SPDX-License-Identifier: Apache-2.0
//! States of an election, and roles.

/// State of an election (`docs/spec/cluster.md` §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// The log is released.
    Init = 0,
    /// Members report the ends of their logs.
    Canvass = 1,
    /// The member nominates itself after a random delay.
    Nominate = 2,
    /// The member stands.
    CandidateBallot = 3,
    /// The member has voted for another.
    FollowerBallot = 4,
    /// Elected: a quorum has to have the leader's log.
    LeaderLogReplication = 5,
    /// The leader consumes its log.
    LeaderReplay = 6,
    /// The leader's publication gets recorded.
    LeaderInit = 7,
    /// The leader waits for a quorum to join.
    LeaderReady = 8,
    /// The follower compares its log with the leader's, truncates, and replicates.
    FollowerLogReplication = 9,
    /// The follower consumes its log as far as it is committed.
    FollowerReplay = 10,
    /// The follower opens its catch-up destination.
    FollowerCatchupInit = 11,
    /// The follower waits for the replay.
    FollowerCatchupAwait = 12,
    /// The follower catches up.
    FollowerCatchup = 13,
    /// The follower subscribes to the live log.
    FollowerLogInit = 14,
    /// The follower waits for the live log.
    FollowerLogAwait = 15,
    /// The follower has joined.
    FollowerReady = 16,
    /// The election is over.
    Closed = 17,
}

impl State {
    /// Returns true if the member has neither a leader nor is one.
    #[must_use]
    pub const fn is_ballot(self) -> bool {
        matches!(
            self,
            Self::Canvass | Self::Nominate | Self::CandidateBallot | Self::FollowerBallot
        )
    }
}

/// Role of a member. Its value is that of counter 201.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    /// Follows, or waits for a leader.
    Follower = 0,
    /// Stands for election.
    Candidate = 1,
    /// Leads.
    Leader = 2,
}
