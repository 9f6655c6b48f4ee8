// SPDX-License-Identifier: Apache-2.0
//! Messages between members (`docs/spec/cluster.md` §4.1), reduced to the fields that decide.

use super::{Incarnation, NULL_POSITION, NULL_TERM};

/// Version of the protocol between members, with the capabilities of the sender in its lowest byte
/// (`docs/spec/cluster.md` §12.2, "capability").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProtocolVersion(i32);

impl ProtocolVersion {
    const NUMBER: i32 = 0x01_0000;
    const TARAN: i32 = 0x80;
    const TRANSFER: i32 = 0x40;
    const YIELD: i32 = 0x20;
    const LEARNER: i32 = 0x10;

    /// Version of this implementation.
    pub const OWN: Self = Self(Self::NUMBER | Self::TARAN);

    /// [`Self::OWN`], in a RequestVote that is to be answered although a leader is heard: its leader handed leadership over, or
    /// its sender may not follow that leader. In the CanvassPosition of a leader: it has handed leadership over.
    pub const OWN_TRANSFER: Self = Self(Self::NUMBER | Self::TARAN | Self::TRANSFER);

    /// [`Self::OWN`], in the CanvassPosition of a node that joined a running cluster: its log does not count by its id alone.
    pub const OWN_LEARNER: Self = Self(Self::NUMBER | Self::TARAN | Self::LEARNER);

    /// [`Self::OWN_TRANSFER`], to a member that lets another one stand first.
    pub const OWN_TRANSFER_TO_OTHER: Self =
        Self(Self::NUMBER | Self::TARAN | Self::TRANSFER | Self::YIELD);

    /// Takes a version from a message.
    #[must_use]
    pub const fn from_raw(raw: i32) -> Self {
        Self(raw)
    }

    /// Returns the version for a message.
    #[must_use]
    pub const fn raw(self) -> i32 {
        self.0
    }

    /// Returns true if the sender follows the rules of `docs/spec/cluster.md` §12.2.
    #[must_use]
    pub const fn is_taran(self) -> bool {
        self.0 & Self::TARAN != 0
    }

    /// Returns true if a vote is requested although a leader is heard, or if the sender has handed leadership over.
    #[must_use]
    pub const fn is_transfer(self) -> bool {
        self.is_taran() && self.0 & Self::TRANSFER != 0
    }

    /// Returns true if the sender joined a running cluster.
    #[must_use]
    pub const fn is_learner(self) -> bool {
        self.is_taran() && self.0 & Self::LEARNER != 0
    }

    /// Returns true if leadership was handed over to another member than the receiver.
    #[must_use]
    pub const fn is_transfer_to_other(self) -> bool {
        self.is_transfer() && self.0 & Self::YIELD != 0
    }
}

/// Flags of an [`Message::AppendPosition`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AppendFlags(u8);

impl AppendFlags {
    const CATCHING_UP: u8 = 0x01;
    const LEARNER: u8 = 0x20;
    const FLUSHED: u8 = 0x40;
    const TERM_DURABLE: u8 = 0x80;

    /// Takes the flags from a message.
    #[must_use]
    pub const fn from_raw(raw: u8) -> Self {
        Self(raw)
    }

    /// Combines flags.
    #[must_use]
    pub const fn new(is_catching_up: bool, is_flushed: bool, is_term_durable: bool) -> Self {
        let mut raw = 0;
        if is_catching_up {
            raw |= Self::CATCHING_UP;
        }
        if is_flushed {
            raw |= Self::FLUSHED;
        }
        if is_term_durable {
            raw |= Self::TERM_DURABLE;
        }
        Self(raw)
    }

    /// Returns the flags, of a node that its leader does not know to be a member.
    #[must_use]
    pub const fn of_learner(self) -> Self {
        Self(self.0 | Self::LEARNER)
    }

    /// Returns the flags for a message.
    #[must_use]
    pub const fn raw(self) -> u8 {
        self.0
    }

    /// Returns true if the follower receives a replay of the log.
    #[must_use]
    pub const fn is_catching_up(self) -> bool {
        self.0 & Self::CATCHING_UP != 0
    }

    /// Returns true if the report does not count by the id of the follower alone.
    #[must_use]
    pub const fn is_learner(self) -> bool {
        self.0 & Self::LEARNER != 0
    }

    /// Returns true if the TERM entry of the leader's term is durable at the follower.
    #[must_use]
    pub const fn is_term_durable(self) -> bool {
        self.0 & Self::TERM_DURABLE != 0
    }
}

/// A leader's answer to a canvass, and its announcement during an election (`docs/spec/cluster.md` §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NewLeadershipTerm {
    /// Log term of the asker, or of the leader before this term.
    pub log_term: i64,
    /// First term of the leader's log after `log_term`, or [`NULL_TERM`].
    pub next_term: i64,
    /// Base of `next_term`, which is the end of `log_term` if the leader has it; or [`NULL_POSITION`].
    pub next_base: i64,
    /// End of `next_term`, or [`NULL_POSITION`].
    pub next_end: i64,
    /// Term of the leader.
    pub term: i64,
    /// Position at which the leader's term starts.
    pub base: i64,
    /// Position of the leader's log.
    pub position: i64,
    /// Commit position; 0 while it is not known in this term.
    pub commit: i64,
}

impl NewLeadershipTerm {
    /// Returns true if the message says where the leader's log leaves this term.
    pub(super) const fn tells_end_of(&self, term: i64) -> bool {
        self.log_term == term && self.next_term != NULL_TERM && self.next_base != NULL_POSITION
    }
}

/// A message from one member to one other. The sender is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    /// Tells how far the sender's log goes, while the sender knows no leader or catches up with one.
    CanvassPosition {
        /// Term that the log ends in.
        log_term: i64,
        /// Append position.
        position: i64,
        /// Highest term known.
        term: i64,
        /// Version of the sender.
        version: ProtocolVersion,
        /// Incarnation of the sender.
        incarnation: Incarnation,
    },
    /// Asks for a vote.
    RequestVote {
        /// Term that the candidate's log ends in.
        log_term: i64,
        /// Append position of the candidate.
        position: i64,
        /// Term of the ballot.
        candidate_term: i64,
        /// Version of the sender.
        version: ProtocolVersion,
        /// Incarnation whose vote the sender counts under the id of the receiver.
        voter: Incarnation,
    },
    /// Answers a [`Message::RequestVote`].
    Vote {
        /// Term of the ballot.
        candidate_term: i64,
        /// Term that the voter's log ends in.
        log_term: i64,
        /// Append position of the voter.
        position: i64,
        /// True if the candidate has the vote.
        is_granted: bool,
    },
    /// Announces a leader.
    NewLeadershipTerm(NewLeadershipTerm),
    /// Acknowledges the log.
    AppendPosition {
        /// Term of the leader.
        term: i64,
        /// Append position.
        position: i64,
        /// Flags.
        flags: AppendFlags,
    },
    /// Tells how far the log is committed: the heartbeat of a leader.
    CommitPosition {
        /// Term of the leader.
        term: i64,
        /// Commit position.
        position: i64,
    },
    /// Asks for a replay of the log.
    CatchupPosition {
        /// Term of the leader.
        term: i64,
        /// Position from which the replay starts.
        position: i64,
    },
    /// Ends a replay.
    StopCatchup {
        /// Term in the report that the message answers.
        term: i64,
    },
    /// Tells a node that joined a running cluster that its leader counts it from now on.
    Admit {
        /// Term of the leader.
        term: i64,
        /// Incarnation that counts.
        incarnation: Incarnation,
    },
}
