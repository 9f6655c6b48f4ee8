// SPDX-License-Identifier: Apache-2.0
//! Decisions of a member, and events of its log.

use super::{MemberId, Message, Role, State};

/// An output of [`Consensus`](super::Consensus), executed by its owner in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decision {
    /// Sends a message. It may be lost.
    Send {
        /// Receiver.
        to: MemberId,
        /// Message.
        message: Message,
    },
    /// Writes to disk, after all writes before. [`Consensus::on_durable`](super::Consensus::on_durable) reports the completion.
    Persist {
        /// Number of the write, in ascending order.
        sequence: u64,
        /// Content.
        write: Write,
    },
    /// Changes what the member does with the log.
    Log(LogCommand),
    /// The membership in effect has changed ([`Consensus::membership`](super::Consensus::membership)): nodes came or went, or a
    /// truncation has restored the one before.
    Membership,
    /// Raises the commit position: entries below it may be consumed.
    Commit {
        /// Position.
        position: i64,
    },
    /// Tells that the state of the election changed (counter 207).
    State(State),
    /// Tells that the role changed (counter 201).
    Role(Role),
    /// Reports a fault that the member survives, for an error counter.
    Fault(Fault),
    /// Ends the member: it must not go on.
    Stop(StopReason),
}

/// A durable write. It is complete once a power cut cannot undo it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// Highest term that the member voted in or followed: the node state file.
    CandidateTerm(i64),
    /// TERM entry of the recording log. The log is flushed up to `base`, and that is reported ([`LogEvent::Appended`]), before
    /// the entry is written; entries of later terms are marked invalid after it.
    Term {
        /// Term.
        term: i64,
        /// Log position at which it starts.
        base: i64,
    },
    /// Truncates the log, and after that marks TERM entries invalid: those that start behind `position`, and those from the term
    /// `from_term` on.
    Truncate {
        /// New append position.
        position: i64,
        /// First invalid term.
        from_term: i64,
    },
}

/// A change of what a member does with the log. A new command that reads or writes the log replaces the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogCommand {
    /// Leaves publication, subscription, recording, replay and replication, and flushes what is recorded. Answer:
    /// [`LogEvent::Released`].
    Release {
        /// True if followers are to see the end of the stream: leadership is handed over.
        ends_stream: bool,
    },
    /// Leader: creates the log publication at this position. Answer: [`LogEvent::Published`].
    Publish {
        /// Term.
        term: i64,
        /// Position.
        position: i64,
    },
    /// Consumes the own recording in this range. Answer: [`LogEvent::Consumed`].
    Replay {
        /// First position.
        from: i64,
        /// End.
        to: i64,
    },
    /// Leader: records the own publication and lets the services join. Answer: [`LogEvent::Recording`].
    Record {
        /// Term.
        term: i64,
    },
    /// Leader: appends the NewLeadershipTermEvent of the term at its base. Answer: [`LogEvent::Appended`].
    AppendTermEvent {
        /// Term.
        term: i64,
        /// Log position at which it starts.
        base: i64,
    },
    /// Leader: appends a MembershipChangeEvent with
    /// [`Consensus::next_membership`](super::Consensus::next_membership). Answer:
    /// [`Consensus::on_membership`](super::Consensus::on_membership), before anything else is appended or received.
    AppendMembership,
    /// Looks for MembershipChangeEvents in the own recording in this range. Answers:
    /// [`Consensus::on_membership`](super::Consensus::on_membership) for each, then [`LogEvent::Examined`].
    Examine {
        /// First position.
        from: i64,
        /// End.
        to: i64,
    },
    /// Leader: replays the recording to a follower.
    StartCatchup {
        /// Follower.
        to: MemberId,
        /// Position from which the replay starts.
        from: i64,
    },
    /// Leader: ends the replay to a follower.
    StopCatchup {
        /// Follower.
        to: MemberId,
    },
    /// Follower: reads the entry at this position from the leader's recording. Answer: [`LogEvent::TermEventRead`].
    ReadTermEvent {
        /// Leader.
        leader: MemberId,
        /// Position.
        position: i64,
    },
    /// Follower: replicates the leader's recording. Answers: [`LogEvent::Appended`].
    Replicate {
        /// Leader.
        leader: MemberId,
        /// Own append position.
        from: i64,
        /// End.
        to: i64,
    },
    /// Follower: opens the catch-up destination. Answer: [`LogEvent::CatchupOpened`], then [`LogEvent::Joined`].
    OpenCatchup {
        /// Leader.
        leader: MemberId,
        /// Term.
        term: i64,
    },
    /// Follower: closes the catch-up destination; the live log goes on.
    CloseCatchup,
    /// Follower: subscribes to the live log. Answer: [`LogEvent::Joined`].
    JoinLive {
        /// Leader.
        leader: MemberId,
        /// Term.
        term: i64,
    },
}

/// An event of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogEvent {
    /// Nothing reads or writes the log any more; everything that is recorded is flushed.
    Released {
        /// Append position.
        position: i64,
    },
    /// The log publication exists.
    Published,
    /// The own publication is recorded.
    Recording,
    /// The recording has grown.
    Appended {
        /// Append position.
        position: i64,
        /// Position up to which the recording is flushed.
        flushed: i64,
    },
    /// The membership changes in the own recording are known.
    Examined {
        /// Position up to which they are.
        position: i64,
    },
    /// The consensus module and its services have consumed the log; membership changes up to there were reported.
    Consumed {
        /// Position.
        position: i64,
    },
    /// Content of the leader's recording.
    TermEventRead {
        /// Position that was read.
        position: i64,
        /// Term of the NewLeadershipTermEvent there; none if there is another entry, or none.
        term: Option<i64>,
    },
    /// The catch-up destination is open.
    CatchupOpened,
    /// The image of the log, live or catch-up, is available and recorded.
    Joined {
        /// Position at which the image starts.
        position: i64,
    },
    /// The image of a follower has reached the end of the stream: the leader left in order.
    EndOfStream,
    /// The command cannot be executed, or image or recording ended.
    Failed,
}

/// A fault that a member survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// No message from the leader within the heartbeat timeout.
    LeaderTimeout,
    /// The leader has not heard a quorum within the heartbeat timeout.
    InactiveQuorum,
    /// The leader was not run within the heartbeat timeout.
    Stalled,
    /// A step of an election took longer than the heartbeat timeout.
    StateTimeout(State),
    /// Publication, subscription, recording or replication failed.
    LogFailed(State),
    /// The log of an official member cannot be compared with the own one: it has to be re-seeded.
    DivergentMember {
        /// Member.
        id: MemberId,
        /// Term that its log ends in.
        log_term: i64,
    },
}

/// The reason why a member must not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// An entry of the log, which is committed, has removed this member from the cluster.
    Removed {
        /// Position behind the entry.
        position: i64,
    },
    /// A leader requires the truncation of an entry that this member has seen committed: the cluster lost it.
    CommittedEntryLost {
        /// Own commit position.
        commit: i64,
        /// Position to truncate to.
        truncation: i64,
        /// Leader.
        leader: MemberId,
        /// Term of the leader.
        term: i64,
    },
}
