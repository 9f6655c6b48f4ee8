// SPDX-License-Identifier: Apache-2.0
//! Messages between members.

use taran::{FragmentAssembler, Subscription};

use super::{ModuleAgent, ModuleError};
use crate::consensus::{MemberId, Role};
use crate::module::remote::Leader;
use crate::protocol::{
    ConsensusMessage, Context, IngressMessage, MessageError, TerminationAck, TerminationPosition,
};
use crate::service::Service;

/// Messages of members per duty cycle.
const FRAGMENT_LIMIT: usize = 10;

/// The subscription to messages of other members.
pub(super) struct Stream {
    subscription: Subscription,
    assembler: FragmentAssembler,
}

impl Stream {
    pub(super) fn new(subscription: Subscription) -> Self {
        Self {
            subscription,
            assembler: FragmentAssembler::new(),
        }
    }
}

impl<S: Service> ModuleAgent<S> {
    pub(super) fn poll_consensus(&mut self) -> Result<usize, ModuleError> {
        let leadership = self.leadership("");
        let Self {
            stream: Stream {
                subscription,
                assembler,
            },
            core,
            log,
            config,
            now,
            replicated,
            hooks,
            termination,
            ..
        } = self;
        let (me, now) = (config.member_id, now.nanos);
        let mut malformed = 0_u64;
        let polled = subscription.poll(
            assembler.wrap(|bytes: &[u8], _: &taran::Header<'_>| {
                let message = match ConsensusMessage::decode(bytes) {
                    Ok(message) => message,
                    Err(MessageError::UnexpectedTemplate { .. }) => {
                        // A follower passes on what a client sent to it instead of to the leader.
                        if let Ok(IngressMessage::ChallengeResponse(response)) =
                            IngressMessage::decode(bytes)
                            && core.role() == Role::Leader
                        {
                            replicated.sessions.on_challenge_response(
                                &leadership,
                                &response,
                                &mut *hooks.authenticator,
                            );
                        }
                        return;
                    }
                    Err(_) => {
                        malformed += 1;
                        return;
                    }
                };
                match message {
                    ConsensusMessage::CatchupPosition(request) => log
                        .set_catchup_endpoint(request.follower_member_id, request.catchup_endpoint),
                    ConsensusMessage::TerminationPosition(it)
                        if core.role() == Role::Follower
                            && core.term() == Some(it.leadership_term_id) =>
                    {
                        termination.request(it.leadership_term_id, it.log_position);
                    }
                    ConsensusMessage::TerminationAck(it)
                        if core.role() == Role::Leader
                            && core.term() == Some(it.leadership_term_id) =>
                    {
                        termination.on_ack(it.member_id, it.log_position);
                    }
                    _ => {}
                }
                let Some((from, received)) = message.consensus(me, core.leader()) else {
                    return;
                };
                // The endpoints of other nodes are not known: they cannot join yet.
                if config.members.get(from).is_none() {
                    return;
                }
                core.receive(now, from, &received);
                let is_leader = core.role() == Role::Follower && core.leader() == Some(from);
                match message {
                    ConsensusMessage::NewLeadershipTerm(announced)
                        if is_leader && core.term() == Some(announced.leadership_term_id) =>
                    {
                        log.set_leader(Leader {
                            member_id: from,
                            log_session_id: announced.log_session_id,
                            recording_id: announced.leader_recording_id,
                        });
                        log.approach(announced.log_position);
                    }
                    ConsensusMessage::CommitPosition(commit) if is_leader => {
                        log.approach(commit.log_position);
                    }
                    _ => {}
                }
            }),
            FRAGMENT_LIMIT,
        );
        if malformed > 0 {
            self.error(&format!("{malformed} consensus messages cannot be read"));
        }
        polled.map_err(|error| ModuleError::DriverLost(error.to_string()))
    }

    /// Sends a message of the core.
    pub(super) fn send(&mut self, to: MemberId, message: &crate::consensus::Message) {
        let context = Context {
            recording_id: self.log.params().recording_id,
            timestamp: self.timestamp(),
            log_session_id: self.log.session_id().unwrap_or(0),
            app_version: self.config.app_version,
            is_startup: false,
            catchup_endpoint: self.log.catchup_endpoint(),
        };
        let message = ConsensusMessage::new(message, self.config.member_id, to, &context);
        let Ok(length) = message.encode(&mut self.buffer) else {
            return;
        };
        self.send_encoded(to, length);
    }

    /// Sends what the buffer has.
    pub(super) fn send_encoded(&mut self, to: MemberId, length: usize) -> bool {
        let sent = self.peers.send(to, &self.buffer[..length], self.now.nanos);
        sent.unwrap_or_else(|error| {
            self.error(&error.to_string());
            false
        })
    }

    /// Tells all members to end at a position of the log.
    pub(super) fn send_termination_position(&mut self, term: i64, log_position: i64) {
        let message = ConsensusMessage::TerminationPosition(TerminationPosition {
            leadership_term_id: term,
            log_position,
        });
        let Ok(length) = message.encode(&mut self.buffer) else {
            return;
        };
        for member in self.config.members.ids() {
            if member != self.config.member_id {
                self.send_encoded(member, length);
            }
        }
    }

    /// Tells the leader that this member has ended its services. Returns false if that has to be repeated.
    pub(super) fn send_termination_ack(&mut self, term: i64, log_position: i64) -> bool {
        let message = ConsensusMessage::TerminationAck(TerminationAck {
            leadership_term_id: term,
            log_position,
            member_id: self.config.member_id,
        });
        let Some(leader) = self.core.leader() else {
            return true;
        };
        let length = message.encode(&mut self.buffer);
        length.is_ok_and(|length| self.send_encoded(leader, length))
    }
}
