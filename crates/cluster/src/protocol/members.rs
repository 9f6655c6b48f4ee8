// SPDX-License-Identifier: Apache-2.0
//! Messages between members that decide about leadership and the log (`docs/spec/cluster.md` §4.1).

#![expect(
    deprecated,
    reason = "JoinCluster is of the dynamic join that Aeron no longer has"
)]

use taran_sbe::runtime::EncodeError;

use super::MessageError;
use crate::codecs::cluster;
use crate::consensus::{self, AppendFlags, MemberId, NULL_POSITION, ORIGINAL, ProtocolVersion};
use taran_cluster_client::protocol::declare::{FromWire, ToWire};
use taran_cluster_client::{stream, structs};

structs! {
    /// Tells how far the sender's log goes.
    CanvassPosition = canvass_position::{CanvassPositionDecoder, CanvassPositionEncoder} {
        /// Term that the sender's log ends in.
        log_leadership_term_id: i64,
        /// Append position.
        log_position: i64,
        /// Highest term that the sender knows.
        leadership_term_id: i64,
        /// Sender.
        follower_member_id: i32,
        /// Version of the sender.
        protocol_version: ProtocolVersion,
        ;
    }
    /// Asks for a vote.
    RequestVote = request_vote::{RequestVoteDecoder, RequestVoteEncoder} {
        /// Term that the candidate's log ends in.
        log_leadership_term_id: i64,
        /// Append position.
        log_position: i64,
        /// Term of the ballot.
        candidate_term_id: i64,
        /// Sender.
        candidate_member_id: i32,
        /// Version of the sender.
        protocol_version: ProtocolVersion,
        ;
    }
    /// Answers a request for a vote.
    Vote = vote::{VoteDecoder, VoteEncoder} {
        /// Term of the ballot.
        candidate_term_id: i64,
        /// Term that the voter's log ends in.
        log_leadership_term_id: i64,
        /// Append position of the voter.
        log_position: i64,
        /// Candidate.
        candidate_member_id: i32,
        /// Sender.
        follower_member_id: i32,
        /// True if the candidate has the vote.
        vote: bool,
        ;
    }
    /// Announces a leader.
    NewLeadershipTerm = new_leadership_term::{NewLeadershipTermDecoder, NewLeadershipTermEncoder} {
        /// Log term of the receiver, or of the leader before its term.
        log_leadership_term_id: i64,
        /// Term after that, or -1.
        next_leadership_term_id: i64,
        /// Base of that term, or -1.
        next_term_base_log_position: i64,
        /// End of that term, or -1.
        next_log_position: i64,
        /// Term of the leader.
        leadership_term_id: i64,
        /// Base of the leader's term.
        term_base_log_position: i64,
        /// Position of the leader's log.
        log_position: i64,
        /// Recording of the leader's log, or -1.
        leader_recording_id: i64,
        /// Time in the unit of the cluster's clock.
        timestamp: i64,
        /// Sender.
        leader_member_id: i32,
        /// Session id of the log publication.
        log_session_id: i32,
        /// Version of the application.
        app_version: Option<i32>,
        /// True if the leader's node has just been started.
        is_startup: bool,
        /// Commit position; none from older senders.
        commit_position: Option<i64> as i64,
        ;
    }
    /// Acknowledges the log.
    AppendPosition = append_position::{AppendPositionDecoder, AppendPositionEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Append position.
        log_position: i64,
        /// Sender.
        follower_member_id: i32,
        /// Flags.
        flags: AppendFlags,
        ;
    }
    /// Tells how far the log is committed.
    CommitPosition = commit_position::{CommitPositionDecoder, CommitPositionEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Commit position.
        log_position: i64,
        /// Sender.
        leader_member_id: i32,
        ;
    }
    /// Asks for a replay of the log.
    CatchupPosition<'a> = catchup_position::{CatchupPositionDecoder, CatchupPositionEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Position from which the replay starts.
        log_position: i64,
        /// Sender.
        follower_member_id: i32,
        ;
        /// Endpoint that receives the replay.
        catchup_endpoint: &'a str,
    }
    /// Ends a replay.
    StopCatchup = stop_catchup::{StopCatchupDecoder, StopCatchupEncoder} {
        /// Term in the report that the message answers.
        leadership_term_id: i64,
        /// Receiver.
        follower_member_id: i32,
        ;
    }
    /// Tells a node that joined a running cluster that its leader counts it (`docs/spec/cluster.md` §12.5).
    JoinCluster = join_cluster::{JoinClusterDecoder, JoinClusterEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Incarnation of the node that counts.
        member_id: i32,
        ;
    }
    /// Tells followers where to end.
    TerminationPosition = termination_position::{TerminationPositionDecoder, TerminationPositionEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Position.
        log_position: i64,
        ;
    }
    /// Tells the leader that the sender's services have ended.
    TerminationAck = termination_ack::{TerminationAckDecoder, TerminationAckEncoder} {
        /// Term of the leader.
        leadership_term_id: i64,
        /// Position.
        log_position: i64,
        /// Sender.
        member_id: i32,
        ;
    }
}

stream! {
    /// A message on the consensus stream that decides about leadership and the log.
    enum ConsensusMessage<'a> {
        CanvassPosition,
        RequestVote,
        Vote,
        NewLeadershipTerm,
        AppendPosition,
        CommitPosition,
        CatchupPosition<'a>,
        StopCatchup,
        JoinCluster,
        TerminationPosition,
        TerminationAck,
    }
}

/// Fields of messages that the consensus core does not decide by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context<'a> {
    /// Recording of the own log, or -1.
    pub recording_id: i64,
    /// Time in the unit of the cluster's clock.
    pub timestamp: i64,
    /// Session id of the own log publication.
    pub log_session_id: i32,
    /// Version of the application.
    pub app_version: i32,
    /// True if the node has just been started.
    pub is_startup: bool,
    /// Own catch-up endpoint, with its port.
    pub catchup_endpoint: &'a str,
}

impl<'a> ConsensusMessage<'a> {
    /// Creates a message of the core, from one member to another.
    #[must_use]
    pub const fn new(
        message: &consensus::Message,
        from: MemberId,
        to: MemberId,
        context: &Context<'a>,
    ) -> Self {
        use consensus::Message;
        match *message {
            Message::CanvassPosition {
                log_term,
                position,
                term,
                version,
                incarnation: _,
            } => Self::CanvassPosition(CanvassPosition {
                log_leadership_term_id: log_term,
                log_position: position,
                leadership_term_id: term,
                follower_member_id: from,
                protocol_version: version,
            }),
            Message::RequestVote {
                log_term,
                position,
                candidate_term,
                version,
                voter: _,
            } => Self::RequestVote(RequestVote {
                log_leadership_term_id: log_term,
                log_position: position,
                candidate_term_id: candidate_term,
                candidate_member_id: from,
                protocol_version: version,
            }),
            Message::Vote {
                candidate_term,
                log_term,
                position,
                is_granted,
            } => Self::Vote(Vote {
                candidate_term_id: candidate_term,
                log_leadership_term_id: log_term,
                log_position: position,
                candidate_member_id: to,
                follower_member_id: from,
                vote: is_granted,
            }),
            Message::NewLeadershipTerm(announced) => Self::NewLeadershipTerm(NewLeadershipTerm {
                log_leadership_term_id: announced.log_term,
                next_leadership_term_id: announced.next_term,
                next_term_base_log_position: announced.next_base,
                next_log_position: announced.next_end,
                leadership_term_id: announced.term,
                term_base_log_position: announced.base,
                log_position: announced.position,
                leader_recording_id: context.recording_id,
                timestamp: context.timestamp,
                leader_member_id: from,
                log_session_id: context.log_session_id,
                app_version: Some(context.app_version),
                is_startup: context.is_startup,
                commit_position: Some(announced.commit),
            }),
            Message::AppendPosition {
                term,
                position,
                flags,
            } => Self::AppendPosition(AppendPosition {
                leadership_term_id: term,
                log_position: position,
                follower_member_id: from,
                flags,
            }),
            Message::CommitPosition { term, position } => Self::CommitPosition(CommitPosition {
                leadership_term_id: term,
                log_position: position,
                leader_member_id: from,
            }),
            Message::CatchupPosition { term, position } => Self::CatchupPosition(CatchupPosition {
                leadership_term_id: term,
                log_position: position,
                follower_member_id: from,
                catchup_endpoint: context.catchup_endpoint,
            }),
            Message::StopCatchup { term } => Self::StopCatchup(StopCatchup {
                leadership_term_id: term,
                follower_member_id: to,
            }),
            Message::Admit { term, incarnation } => Self::JoinCluster(JoinCluster {
                leadership_term_id: term,
                member_id: incarnation,
            }),
        }
    }

    /// Returns sender and message for the core of the member `me`. Returns none for a message that is not for the core, not for
    /// this member, or whose positions and terms are none. A StopCatchup does not name its sender: `leader` is taken.
    #[must_use]
    pub fn consensus(
        &self,
        me: MemberId,
        leader: Option<MemberId>,
    ) -> Option<(MemberId, consensus::Message)> {
        use consensus::Message;
        let is_number = |value: i64| value >= NULL_POSITION;
        let is_position = |value: i64| value >= 0;
        let (from, message, is_valid) = match *self {
            Self::CanvassPosition(it) => (
                it.follower_member_id,
                Message::CanvassPosition {
                    log_term: it.log_leadership_term_id,
                    position: it.log_position,
                    term: it.leadership_term_id,
                    version: it.protocol_version,
                    incarnation: ORIGINAL,
                },
                is_number(it.log_leadership_term_id) && is_position(it.log_position),
            ),
            Self::RequestVote(it) => (
                it.candidate_member_id,
                Message::RequestVote {
                    log_term: it.log_leadership_term_id,
                    position: it.log_position,
                    candidate_term: it.candidate_term_id,
                    version: it.protocol_version,
                    voter: ORIGINAL,
                },
                is_number(it.log_leadership_term_id)
                    && is_position(it.log_position)
                    && is_term(it.candidate_term_id),
            ),
            Self::Vote(it) => (
                it.follower_member_id,
                Message::Vote {
                    candidate_term: it.candidate_term_id,
                    log_term: it.log_leadership_term_id,
                    position: it.log_position,
                    is_granted: it.vote,
                },
                it.candidate_member_id == me
                    && is_number(it.log_leadership_term_id)
                    && is_position(it.log_position),
            ),
            Self::NewLeadershipTerm(it) => (
                it.leader_member_id,
                Message::NewLeadershipTerm(consensus::NewLeadershipTerm {
                    log_term: it.log_leadership_term_id,
                    next_term: it.next_leadership_term_id,
                    next_base: it.next_term_base_log_position,
                    next_end: it.next_log_position,
                    term: it.leadership_term_id,
                    base: it.term_base_log_position,
                    position: it.log_position,
                    commit: it.commit_position.unwrap_or(0).max(0),
                }),
                is_number(it.log_leadership_term_id)
                    && is_number(it.next_leadership_term_id)
                    && is_number(it.next_term_base_log_position)
                    && is_number(it.next_log_position)
                    && is_term(it.leadership_term_id)
                    && is_position(it.term_base_log_position)
                    && it.log_position >= it.term_base_log_position,
            ),
            Self::AppendPosition(it) => (
                it.follower_member_id,
                Message::AppendPosition {
                    term: it.leadership_term_id,
                    position: it.log_position,
                    flags: it.flags,
                },
                is_number(it.leadership_term_id) && is_position(it.log_position),
            ),
            Self::CommitPosition(it) => (
                it.leader_member_id,
                Message::CommitPosition {
                    term: it.leadership_term_id,
                    position: it.log_position,
                },
                is_term(it.leadership_term_id) && is_position(it.log_position),
            ),
            Self::CatchupPosition(it) => (
                it.follower_member_id,
                Message::CatchupPosition {
                    term: it.leadership_term_id,
                    position: it.log_position,
                },
                is_term(it.leadership_term_id) && is_position(it.log_position),
            ),
            Self::StopCatchup(it) => (
                leader?,
                Message::StopCatchup {
                    term: it.leadership_term_id,
                },
                it.follower_member_id == me,
            ),
            Self::JoinCluster(it) => (
                leader?,
                Message::Admit {
                    term: it.leadership_term_id,
                    incarnation: it.member_id,
                },
                is_term(it.leadership_term_id) && it.member_id > ORIGINAL,
            ),
            Self::TerminationPosition(_) | Self::TerminationAck(_) => return None,
        };
        is_valid.then_some((from, message))
    }
}

/// Returns true for a term that a member can lead: the greatest ones would leave no later term.
const fn is_term(term: i64) -> bool {
    term >= 0 && term < i64::MAX / 2
}

impl FromWire<Option<i32>> for ProtocolVersion {
    fn from_wire(value: Option<i32>, _: &'static str) -> Result<Self, MessageError> {
        Ok(Self::from_raw(value.unwrap_or(0)))
    }
}

impl ToWire<Option<i32>> for ProtocolVersion {
    fn to_wire(self) -> Option<i32> {
        Some(self.raw())
    }
}

impl FromWire<Option<u8>> for AppendFlags {
    fn from_wire(value: Option<u8>, _: &'static str) -> Result<Self, MessageError> {
        Ok(Self::from_raw(value.unwrap_or(0)))
    }
}

impl ToWire<u8> for AppendFlags {
    fn to_wire(self) -> u8 {
        self.raw()
    }
}
