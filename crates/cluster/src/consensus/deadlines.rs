// SPDX-License-Identifier: Apache-2.0
//! The next time at which a member has something to do.

use super::config::Nanos;
use super::member::Consensus;
use super::{Role, State};

impl Consensus {
    /// Returns the earliest time at which a rule of the current state depends on time alone.
    pub(super) fn state_deadline(&self) -> Nanos {
        let timing = self.config.timing;
        let election = &self.election;
        let timeout = election.entered + timing.heartbeat_timeout;
        match self.state {
            State::Init => Nanos::MAX,
            State::Canvass => {
                let stand = election.canvass_deadline.max(election.abstain_until);
                // Once both have passed, only messages decide.
                if stand > self.last_input() {
                    election.next_send.min(stand)
                } else {
                    election.next_send
                }
            }
            State::Nominate if election.nomination_write == 0 => {
                election.next_send.min(election.nomination)
            }
            State::Nominate => election.next_send,
            State::CandidateBallot => election
                .next_send
                .min(election.entered + timing.election_timeout),
            State::FollowerBallot => election.entered + timing.election_timeout,
            State::Closed
            | State::LeaderLogReplication
            | State::LeaderReplay
            | State::LeaderInit
            | State::LeaderReady
                if self.role == Role::Leader =>
            {
                let quorum = self.quorum_heard(self.last_input()) + timing.heartbeat_timeout;
                let next = self.leading.next_commit.min(quorum);
                let next = match self.state {
                    State::Closed => self
                        .leading
                        .transfer
                        .map_or(next, |it| it.deadline.min(next)),
                    State::LeaderLogReplication if !self.leading.is_published => {
                        return quorum.min(timeout);
                    }
                    State::LeaderInit => next.min(election.next_send).min(timeout),
                    _ => next.min(election.next_send),
                };
                let waived = self
                    .config
                    .prior_term_wait
                    .map(|wait| election.entered + wait);
                match waived {
                    Some(at) if at > self.last_input() => next.min(at),
                    _ => next,
                }
            }
            _ => {
                let silence = self.leader_heard + timing.heartbeat_timeout;
                let progress = self.following.progress + timing.heartbeat_timeout;
                match self.state {
                    State::FollowerReplay if !self.is_durable(self.following.write) => silence,
                    State::Closed | State::FollowerReplay => silence.min(election.next_send),
                    State::FollowerCatchupInit => silence.min(progress),
                    _ => silence.min(election.next_send).min(progress),
                }
            }
        }
    }
}
