// SPDX-License-Identifier: Apache-2.0
//! A follower: from the announcement of its leader to the live log (`docs/spec/cluster.md` §4.5, §5.5 and §5.6).

use super::config::{MemberId, Nanos};
use super::decision::LogCommand;
use super::defects::Defect;
use super::member::{Consensus, NEVER};
use super::reconciliation::Reconciliation;
use super::{
    AppendFlags, Durability, Fault, Message, NULL_TERM, NewLeadershipTerm, ProtocolVersion, Role,
    State,
};

/// Variables of a follower.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Following {
    pub(super) leader: MemberId,
    pub(super) term: i64,
    pub(super) base: i64,
    /// Number of the last durable write that the following of this term needs.
    pub(super) write: u64,
    /// Last announcement of this leader.
    pub(super) announced: NewLeadershipTerm,
    pub(super) reconciliation: Reconciliation,
    /// Commit position that the leader told.
    notified_commit: i64,
    /// End of the replay of the own log that runs.
    replay_end: Option<i64>,
    /// The image of the log is available.
    is_joined: bool,
    /// The leader has ended the replay.
    is_catchup_stopped: bool,
    /// Append position in the last report.
    pub(super) reported: i64,
    /// The leader counts this node, which joined a running cluster.
    pub(super) is_admitted: bool,
    /// Time at which the log grew last.
    pub(super) progress: Nanos,
    progress_append: i64,
}

impl Default for Following {
    fn default() -> Self {
        Self::new(
            0,
            &NewLeadershipTerm {
                log_term: NULL_TERM,
                next_term: NULL_TERM,
                next_base: 0,
                next_end: 0,
                term: NULL_TERM,
                base: 0,
                position: 0,
                commit: 0,
            },
            NEVER,
        )
    }
}

impl Following {
    fn new(leader: MemberId, announced: &NewLeadershipTerm, now: Nanos) -> Self {
        Self {
            leader,
            term: announced.term,
            base: announced.base,
            write: 0,
            announced: *announced,
            reconciliation: Reconciliation::default(),
            notified_commit: announced.commit,
            replay_end: None,
            is_joined: false,
            is_catchup_stopped: false,
            reported: 0,
            is_admitted: false,
            progress: now,
            progress_append: 0,
        }
    }
}

impl Consensus {
    /// Returns true in FOLLOWER_* states and as a follower of a running leader.
    pub(super) const fn is_following(&self) -> bool {
        matches!(self.role, Role::Follower)
            && !self.state.is_ballot()
            && !matches!(self.state, State::Init)
    }

    /// Returns the leader that this member follows.
    pub(super) fn leader_followed(&self) -> Option<MemberId> {
        self.is_following().then_some(self.following.leader)
    }

    pub(super) fn on_new_leadership_term(
        &mut self,
        now: Nanos,
        from: usize,
        announced: NewLeadershipTerm,
    ) {
        if self.is_leading() {
            if announced.term > self.leading.led.term {
                self.enter_election(now, None);
            }
        } else if self.is_following() {
            if announced.term > self.following.term {
                self.enter_election(now, None);
            } else if announced.term == self.following.term
                && self.peers[from].id == self.following.leader
            {
                self.leader_heard = now;
                self.following.announced = announced;
                self.following.notified_commit =
                    self.following.notified_commit.max(announced.commit);
            }
        } else if self.state.is_ballot() && now >= self.election.pause_until {
            let is_lower = announced.term < self.candidate_term;
            if is_lower && !self.defects.has(Defect::LowerTermFollowed) {
                // The vote for a later term forbids to acknowledge this one.
                if self.is_stale_leader_persistent(now) {
                    let message = self.stale_leader_answer();
                    self.send(from, message);
                }
                return;
            }
            let leader = self.peers[from].id;
            self.follow(now, leader, &announced);
        }
    }

    fn follow(&mut self, now: Nanos, leader: MemberId, announced: &NewLeadershipTerm) {
        self.leader_heard = now;
        self.election.lost_ballots = 0;
        self.election.graceful_leader = None;
        self.following = Following::new(leader, announced, now);
        self.raise_candidate_term(announced.term);
        self.following.write = self.last_write();
        self.take_role(Role::Follower);
        self.enter(now, State::FollowerLogReplication);
    }

    /// Consumes the own log as far as it is committed. Only then the log may be joined, so that services never see more.
    pub(super) fn step_follower_replay(&mut self, now: Nanos) {
        if self.is_leader_silent(now) || !self.is_durable(self.following.write) {
            return;
        }
        self.report(now, false);
        self.follow_commit();
        if self.consumed >= self.append {
            let is_behind = self.following.announced.position > self.append;
            let Following { leader, term, .. } = self.following;
            if is_behind {
                self.log(LogCommand::OpenCatchup { leader, term });
                self.enter(now, State::FollowerCatchupInit);
            } else {
                self.log(LogCommand::JoinLive { leader, term });
                self.enter(now, State::FollowerLogInit);
            }
            return;
        }
        let is_idle = self
            .following
            .replay_end
            .is_none_or(|end| self.consumed >= end);
        if is_idle && self.commit > self.consumed {
            self.following.replay_end = Some(self.commit);
            self.log(LogCommand::Replay {
                from: self.consumed,
                to: self.commit,
            });
        }
    }

    pub(super) fn on_catchup_opened(&mut self, now: Nanos) {
        if self.state == State::FollowerCatchupInit {
            self.enter(now, State::FollowerCatchupAwait);
        }
    }

    pub(super) fn step_follower_catchup_await(&mut self, now: Nanos) {
        if self.is_leader_silent(now) || self.fails_after_timeout(now, self.following.progress) {
            return;
        }
        if self.following.is_joined {
            self.following.progress = now;
            self.enter(now, State::FollowerCatchup);
        } else if self.state == State::FollowerCatchupAwait
            && self.is_due(now, self.config.timing.heartbeat_interval)
        {
            let message = Message::CatchupPosition {
                term: self.following.term,
                position: self.append,
            };
            self.send_to(self.following.leader, message);
        }
    }

    pub(super) fn on_joined(&mut self, now: Nanos, position: i64) {
        let is_awaited = matches!(
            self.state,
            State::FollowerCatchupInit
                | State::FollowerCatchupAwait
                | State::FollowerLogInit
                | State::FollowerLogAwait
        );
        if !is_awaited {
            return;
        }
        if position == self.append {
            self.following.is_joined = true;
        } else if matches!(self.state, State::FollowerLogInit | State::FollowerLogAwait)
            && position > self.append
        {
            // The leader has gone on in the meantime.
            let Following { leader, term, .. } = self.following;
            self.log(LogCommand::OpenCatchup { leader, term });
            self.enter(now, State::FollowerCatchupInit);
        } else {
            self.fail(now, Fault::LogFailed(self.state));
        }
    }

    pub(super) fn step_follower_catchup(&mut self, now: Nanos) {
        if self.is_leader_silent(now) || self.has_stalled(now) {
            return;
        }
        self.report(now, true);
        self.follow_commit();
        if self.following.is_catchup_stopped {
            self.log(LogCommand::CloseCatchup);
            self.write_late_term();
            self.enter(now, State::FollowerReady);
        }
    }

    pub(super) fn on_stop_catchup(&mut self, from: usize, term: i64) {
        if self.state == State::FollowerCatchup
            && self.peers[from].id == self.following.leader
            && term == self.reported_term(true)
        {
            self.following.is_catchup_stopped = true;
        }
    }

    pub(super) fn step_follower_log_await(&mut self, now: Nanos) {
        if self.is_leader_silent(now) {
            return;
        }
        if self.following.is_joined {
            self.write_late_term();
            self.enter(now, State::FollowerReady);
        } else {
            if self.state == State::FollowerLogInit {
                self.enter(now, State::FollowerLogAwait);
            }
            self.report(now, false);
            self.fails_after_timeout(now, self.following.progress);
        }
    }

    pub(super) fn step_follower_ready(&mut self, now: Nanos) {
        self.following.reported = 0;
        self.report(now, false);
        self.enter(now, State::Closed);
    }

    /// A follower of a running leader.
    pub(super) fn step_follower(&mut self, now: Nanos) {
        if self.is_leader_silent(now) {
            return;
        }
        self.report(now, false);
        self.follow_commit();
    }

    pub(super) fn on_commit_position(&mut self, now: Nanos, from: usize, term: i64, position: i64) {
        if self.is_leading() {
            if term > self.leading.led.term {
                self.enter_election(now, None);
            }
        } else if self.is_following() {
            if term == self.following.term && self.peers[from].id == self.following.leader {
                self.leader_heard = now;
                self.following.notified_commit = self.following.notified_commit.max(position);
            } else if term > self.following.term {
                self.enter_election(now, None);
            }
        } else if self.state.is_ballot()
            && term < self.candidate_term
            && !self.defects.has(Defect::LowerTermFollowed)
            && self.is_stale_leader_persistent(now)
        {
            let message = self.stale_leader_answer();
            self.send(from, message);
        }
    }

    pub(super) fn follow_commit(&mut self) {
        let position = self.following.notified_commit.min(self.append);
        self.raise_commit(position);
        if self.state == State::FollowerCatchup && self.commit > self.following.base {
            self.write_late_term();
        }
    }

    /// Takes the message of a leader that has handed leadership over at the end of its log. A follower that has the whole log starts
    /// an election, as at the end of the log's stream; others have that still to come.
    pub(super) fn on_handed_over(
        &mut self,
        now: Nanos,
        from: usize,
        term: i64,
        position: i64,
        version: ProtocolVersion,
    ) {
        let from = self.peers[from].id;
        let is_followed = self.leader_followed() == Some(from) && self.following.term == term;
        // The end of the log's stream may come first.
        let is_known = self.election.graceful_leader == Some(from) && self.terms.log_term() == term;
        if version.is_transfer_to_other() && (is_followed || is_known) {
            self.election.abstain_until = now + self.config.timing.election_timeout;
            if self.state == State::Nominate {
                let deadline = self.election.canvass_deadline;
                self.enter_canvass(now, deadline);
            }
        }
        if is_followed && self.append >= position {
            self.enter_election(now, None);
            self.election.graceful_leader = Some(from);
        }
    }

    /// Writes the TERM entry where official followers do.
    fn write_late_term(&mut self) {
        let Following { term, base, .. } = self.following;
        if self.defects.has(Defect::LateTermEntry) && self.terms.log_term() < term {
            self.write_term(term, base);
        }
    }

    /// Returns the term in an AppendPosition.
    fn reported_term(&self, is_catching_up: bool) -> i64 {
        if self.defects.has(Defect::LateTermEntry) && is_catching_up {
            self.terms.log_term()
        } else {
            self.following.term
        }
    }

    /// Reports the append position when it has grown, and each heartbeat interval.
    fn report(&mut self, now: Nanos, is_catching_up: bool) {
        let position = self.acknowledged();
        let interval = self.config.timing.heartbeat_interval;
        if position <= self.following.reported && now < self.election.next_send {
            return;
        }
        self.election.next_send = now + interval;
        self.following.reported = position;
        let has_term = self.terms.log_term() == self.following.term;
        let flags = AppendFlags::new(
            is_catching_up,
            self.config.durability == Durability::QuorumDisk,
            has_term && !self.defects.has(Defect::LateTermEntry),
        );
        let is_learner = self.config.has_joined() && !self.following.is_admitted;
        let flags = if is_learner {
            flags.of_learner()
        } else {
            flags
        };
        let message = Message::AppendPosition {
            term: self.reported_term(is_catching_up),
            position,
            flags,
        };
        self.send_to(self.following.leader, message);
    }

    /// Starts an election if neither a message of the leader nor data of its log came within the heartbeat timeout.
    pub(super) fn is_leader_silent(&mut self, now: Nanos) -> bool {
        let is_silent = now - self.leader_heard >= self.config.timing.heartbeat_timeout;
        if is_silent {
            self.enter_election(now, Some(Fault::LeaderTimeout));
        }
        is_silent
    }

    /// Fails if the log has not grown within the heartbeat timeout.
    pub(super) fn has_stalled(&mut self, now: Nanos) -> bool {
        if self.append > self.following.progress_append {
            self.following.progress_append = self.append;
            self.following.progress = now;
        }
        self.fails_after_timeout(now, self.following.progress)
    }
}
