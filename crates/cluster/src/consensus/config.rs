// SPDX-License-Identifier: Apache-2.0
//! Settings of one member.

use thiserror::Error;

use super::membership::{Incarnation, Membership, ORIGINAL, Voter};

/// Identifies a member of the cluster.
pub type MemberId = i32;

/// Greatest number of members.
pub const MAX_MEMBERS: usize = 16;

/// Period of time in nanoseconds.
pub type Nanos = i64;

const MILLISECOND: Nanos = 1_000_000;

/// Durability of an entry at an acknowledged position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A quorum has the entry in memory: it survives the death of processes, not a power cut of a quorum. Aeron's level.
    QuorumMemory,
    /// A quorum has flushed the entry to its disks.
    QuorumDisk,
}

/// The end of a ballot in which a quorum has voted for the candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BallotEnd {
    /// At once.
    Quorum,
    /// At once if all members voted for it, else at the election timeout, and not at all if a member voted against it.
    Timeout,
}

/// Periods of time that elections and heartbeats use (`docs/spec/cluster.md` §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// Period of a leader's heartbeat, and of repeated reports of followers.
    pub heartbeat_interval: Nanos,
    /// Silence after which a member counts as dead.
    pub heartbeat_timeout: Nanos,
    /// Duration of a ballot.
    pub election_timeout: Nanos,
    /// Period of canvass messages.
    pub status_interval: Nanos,
    /// Time after the start for which all members are awaited before a quorum is enough.
    pub startup_canvass_timeout: Nanos,
    /// Upper bound, exclusive, of the random delay before a nomination.
    pub nomination_delay: Nanos,
    /// End of a ballot with a quorum of votes.
    pub ballot_end: BallotEnd,
}

impl Timing {
    /// Sub-second failover: heartbeat 25 ms, timeout 200 ms (`docs/spec/cluster.md` §12.3).
    #[must_use]
    pub const fn fast() -> Self {
        Self {
            heartbeat_interval: 25 * MILLISECOND,
            heartbeat_timeout: 200 * MILLISECOND,
            election_timeout: 200 * MILLISECOND,
            status_interval: 20 * MILLISECOND,
            startup_canvass_timeout: 1_000 * MILLISECOND,
            nomination_delay: 30 * MILLISECOND,
            ballot_end: BallotEnd::Quorum,
        }
    }

    /// Aeron's defaults and rules, for clusters whose other members are official (`docs/spec/cluster.md` §4.2).
    #[must_use]
    pub const fn official() -> Self {
        Self {
            heartbeat_interval: 200 * MILLISECOND,
            heartbeat_timeout: 10_000 * MILLISECOND,
            election_timeout: 1_000 * MILLISECOND,
            status_interval: 100 * MILLISECOND,
            startup_canvass_timeout: 60_000 * MILLISECOND,
            nomination_delay: 500 * MILLISECOND,
            ballot_end: BallotEnd::Timeout,
        }
    }
}

/// Reason why settings are no cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No member, or too many.
    #[error("a cluster has 1 to {MAX_MEMBERS} members, `aeron.cluster.members` has {count}")]
    MemberCount {
        /// Number of members.
        count: usize,
    },
    /// Two members with one id.
    #[error("the member id {id} comes twice in `aeron.cluster.members`")]
    DuplicateMember {
        /// The id.
        id: MemberId,
    },
    /// The own id is missing.
    #[error("`aeron.cluster.members` has no member with the own id {id}")]
    UnknownMember {
        /// The id.
        id: MemberId,
    },
    /// A node that joins a cluster knows no member of it.
    #[error(
        "a node that joins a cluster needs other members in `aeron.cluster.members`, which has only its own id {id}"
    )]
    NoneToJoin {
        /// The id.
        id: MemberId,
    },
    /// The incarnation is that of the members that a cluster starts with.
    #[error(
        "the incarnation of a node that joins a cluster is {incarnation}; it has to be positive"
    )]
    InvalidIncarnation {
        /// The incarnation.
        incarnation: Incarnation,
    },
    /// The appointed leader is no member.
    #[error("`aeron.cluster.appointed.leader.id` is {id}, which is no member")]
    UnknownAppointedLeader {
        /// The id.
        id: MemberId,
    },
    /// A period that is not positive.
    #[error("the {name} is {value} ns; it has to be positive")]
    NotPositive {
        /// Name of the period.
        name: &'static str,
        /// Its value.
        value: Nanos,
    },
    /// A heartbeat timeout that the heartbeat interval reaches.
    #[error(
        "the heartbeat timeout, {timeout} ns, has to exceed the heartbeat interval, {interval} ns"
    )]
    TimeoutTooShort {
        /// Heartbeat timeout.
        timeout: Nanos,
        /// Heartbeat interval.
        interval: Nanos,
    },
}

/// Checked settings of one member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    members: Box<[MemberId]>,
    id: MemberId,
    incarnation: Incarnation,
    appointed: Option<MemberId>,
    pub(super) timing: Timing,
    pub(super) durability: Durability,
    pub(super) prior_term_wait: Option<Nanos>,
}

impl Config {
    /// Creates the settings of the member `id` of a cluster with these members.
    ///
    /// # Errors
    /// There is no or more than [`MAX_MEMBERS`] members, an id comes twice, the own one is missing, or a period makes no sense.
    pub fn new(
        id: MemberId,
        members: &[MemberId],
        timing: Timing,
        durability: Durability,
    ) -> Result<Self, ConfigError> {
        let count = members.len();
        if count == 0 || count > MAX_MEMBERS {
            return Err(ConfigError::MemberCount { count });
        }
        for (index, id) in members.iter().enumerate() {
            if members[..index].contains(id) {
                return Err(ConfigError::DuplicateMember { id: *id });
            }
        }
        for (name, value) in [
            ("heartbeat interval", timing.heartbeat_interval),
            ("heartbeat timeout", timing.heartbeat_timeout),
            ("election timeout", timing.election_timeout),
            ("election status interval", timing.status_interval),
            ("startup canvass timeout", timing.startup_canvass_timeout),
            ("nomination delay", timing.nomination_delay),
        ] {
            if value <= 0 {
                return Err(ConfigError::NotPositive { name, value });
            }
        }
        if timing.heartbeat_timeout <= timing.heartbeat_interval {
            return Err(ConfigError::TimeoutTooShort {
                timeout: timing.heartbeat_timeout,
                interval: timing.heartbeat_interval,
            });
        }
        if !members.contains(&id) {
            return Err(ConfigError::UnknownMember { id });
        }
        Ok(Self {
            members: members.into(),
            id,
            incarnation: ORIGINAL,
            appointed: None,
            timing,
            durability,
            prior_term_wait: None,
        })
    }

    /// Lets only this member become leader, for tests (`docs/spec/cluster.md` §5.11).
    ///
    /// # Errors
    /// It is no member.
    pub fn with_appointed_leader(mut self, id: MemberId) -> Result<Self, ConfigError> {
        if !self.members.contains(&id) {
            return Err(ConfigError::UnknownAppointedLeader { id });
        }
        self.appointed = Some(id);
        Ok(self)
    }

    /// Makes this a node that joins a running cluster of the other members (`docs/spec/cluster.md` §12.5): it gets the log, and
    /// counts once an entry of the log makes it a member. `incarnation` is a random number that the node keeps as long as its
    /// files.
    ///
    /// # Errors
    /// There is no other member, or the number is not positive.
    pub fn joining(mut self, incarnation: Incarnation) -> Result<Self, ConfigError> {
        if incarnation <= ORIGINAL {
            return Err(ConfigError::InvalidIncarnation { incarnation });
        }
        let id = self.id;
        let others = self.members.iter().copied().filter(|other| *other != id);
        self.members = others.collect();
        if self.members.is_empty() {
            return Err(ConfigError::NoneToJoin { id });
        }
        self.incarnation = incarnation;
        Ok(self)
    }

    /// Limits how long a leader whose term does not follow that of its log waits for proof that the log is committed. Then it
    /// commits as an official leader does: less safe, and needed only with official followers
    /// (`docs/spec/cluster.md` §12.2, "prior-term rule"). Unlimited by default.
    #[must_use]
    pub const fn with_prior_term_wait(mut self, wait: Nanos) -> Self {
        self.prior_term_wait = Some(wait);
        self
    }

    /// Returns the ids of the members that the cluster starts with; for a node that joins, those of the others.
    #[must_use]
    pub const fn members(&self) -> &[MemberId] {
        &self.members
    }

    /// Returns the own id.
    #[must_use]
    pub const fn id(&self) -> MemberId {
        self.id
    }

    /// Returns this node, as it is in a membership.
    #[must_use]
    pub const fn voter(&self) -> Voter {
        Voter {
            id: self.id,
            incarnation: self.incarnation,
        }
    }

    /// Returns true if this node joined a running cluster.
    pub(super) const fn has_joined(&self) -> bool {
        self.incarnation != ORIGINAL
    }

    /// Returns the membership of a log without entries.
    pub(super) fn original_membership(&self) -> Membership {
        Membership::original(&self.members)
    }

    /// Returns the only member that may lead, if one is appointed.
    pub(super) const fn appointed_leader(&self) -> Option<MemberId> {
        self.appointed
    }

    /// Returns true if this member may become leader.
    pub(super) fn is_eligible(&self) -> bool {
        self.appointed.is_none_or(|appointed| appointed == self.id)
    }
}
