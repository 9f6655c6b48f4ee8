// SPDX-License-Identifier: Apache-2.0
//! Elections: canvass, nomination, ballots and votes (`docs/spec/cluster.md` §5.2 to §5.4).

use super::config::{BallotEnd, Nanos};
use super::credit::ReportKind;
use super::decision::{Decision, LogCommand};
use super::defects::Defect;
use super::leader::Leading;
use super::member::{Consensus, NEVER};
use super::membership::{Incarnation, ORIGINAL};
use super::{MemberId, Message, ProtocolVersion, Role, State};

impl Consensus {
    /// Starts to canvass; a quorum of members is enough to stand from `deadline` on, before that it takes all.
    pub(super) fn enter_canvass(&mut self, now: Nanos, deadline: Nanos) {
        self.election.canvass_deadline = deadline;
        self.election.stale_leader = (0, NEVER);
        for peer in &mut self.peers {
            peer.forget();
        }
        self.election.examine_from = NEVER;
        self.take_role(Role::Follower);
        self.enter(now, State::Canvass);
        self.election.next_send = now.max(self.election.pause_until);
    }

    pub(super) fn step_canvass(&mut self, now: Nanos) {
        let is_examined = self.is_examined(now);
        if is_examined && self.is_only_voter() {
            self.nominate(now, 0);
            return;
        }
        self.canvass_all(now);
        if is_examined && self.may_stand(now) {
            let bound = self.config.timing.nomination_delay << self.election.lost_ballots.min(4);
            // No wait for others if the leader handed over: whichever member sees it first stands.
            let bound = if self.election.graceful_leader.is_some() {
                bound / 4
            } else {
                bound
            };
            let delay = self.random_below(bound.max(1));
            self.nominate(now, delay);
        }
    }

    fn nominate(&mut self, now: Nanos, delay: Nanos) {
        self.election.nomination = now + delay;
        self.election.nomination_write = 0;
        self.state = State::Nominate;
        self.election.entered = now;
        self.decide(Decision::State(State::Nominate));
    }

    pub(super) fn step_nominate(&mut self, now: Nanos) {
        if !self.is_only_voter() {
            self.canvass_all(now);
        }
        if self.election.nomination_write == 0 && now >= self.election.nomination {
            let term = self.candidate_term + 1;
            self.election.nomination_write = self.raise_candidate_term(term);
            self.election.voted_for = Some(self.config.id());
            self.election.ballot_term = term;
        }
        let write = self.election.nomination_write;
        let is_durable = self.is_durable(write) || self.defects.has(Defect::VoteNotDurable);
        if write != 0 && is_durable {
            for peer in &mut self.peers {
                peer.vote = None;
            }
            self.take_role(Role::Candidate);
            self.enter(now, State::CandidateBallot);
        }
    }

    /// Sends canvass messages when they are due.
    fn canvass_all(&mut self, now: Nanos) {
        if self.is_due(now, self.config.timing.status_interval) {
            let message = self.canvass_message(self.terms.log_term());
            self.send_to_all(message);
        }
    }

    pub(super) fn canvass_message(&self, log_term: i64) -> Message {
        Message::CanvassPosition {
            log_term,
            position: self.acknowledged(),
            term: self.candidate_term,
            version: if self.config.has_joined() {
                ProtocolVersion::OWN_LEARNER
            } else {
                ProtocolVersion::OWN
            },
            incarnation: self.config.voter().incarnation,
        }
    }

    /// Returns true if this node may stand: it is a member, or its removal is not committed, as its log may be the only one with
    /// the entry that removes it. It does not count its own vote then.
    const fn is_candidate(&self) -> bool {
        self.is_voter || self.left_at.is_some()
    }

    /// Returns true if there is no other member.
    fn is_only_voter(&self) -> bool {
        self.is_voter && self.members().next().is_none()
    }

    /// Returns true if this member may become leader: no member that it knows of has a longer log.
    fn may_stand(&self, now: Nanos) -> bool {
        if !self.is_candidate() || !self.config.is_eligible() || now < self.election.abstain_until {
            return false;
        }
        let end = self.log_end();
        let passes = |index: usize| {
            let report = self.peers[index].report;
            self.may_vote(index)
                && report.is_some_and(|report| (report.term, report.position) <= end)
        };
        let own = usize::from(self.is_voter);
        let passing = own + self.others().filter(|index| passes(*index)).count();
        // A leader that left in order may be among those that pass; it is not waited for.
        let count = own + self.members().count();
        let expected = count - usize::from(self.election.graceful_leader.is_some());
        let is_unanimous = passing >= expected;
        let is_late = now >= self.election.canvass_deadline;
        passing >= self.quorum && (is_unanimous || is_late)
    }

    /// Returns log term and length of the own log, by which votes compare.
    fn log_end(&self) -> (i64, i64) {
        (self.terms.log_term(), self.append)
    }

    pub(super) fn step_candidate_ballot(&mut self, now: Nanos) {
        let own = usize::from(self.is_voter);
        let (mut granted, mut refused) = (own, 0);
        for index in self.members() {
            match self.peers[index].vote {
                Some(true) => granted += 1,
                Some(false) => refused += 1,
                None => {}
            }
        }
        let (count, quorum) = (own + self.members().count(), self.quorum);
        let is_over = now - self.election.entered >= self.config.timing.election_timeout;
        let (is_won, is_lost) = match self.config.timing.ballot_end {
            BallotEnd::Quorum => (granted >= quorum, is_over || refused > count - quorum),
            BallotEnd::Timeout => {
                let without_graceful = self.election.graceful_leader.map_or(0, |_| 1);
                let is_unanimous = granted >= quorum.max(count - without_graceful);
                (
                    is_unanimous || is_over && granted >= quorum && refused == 0,
                    is_over,
                )
            }
        };
        if is_won {
            self.lead(now);
        } else if is_lost {
            self.election.lost_ballots += 1;
            let deadline = self.election.canvass_deadline;
            self.enter_canvass(now, deadline);
        } else if self.is_due(now, self.config.timing.status_interval) {
            let version = if self.election.graceful_leader.is_some() {
                ProtocolVersion::OWN_TRANSFER
            } else {
                ProtocolVersion::OWN
            };
            for to in self.others() {
                let peer = &self.peers[to];
                if let (Some(voter), None) = (peer.member, peer.vote) {
                    let message = Message::RequestVote {
                        log_term: self.terms.log_term(),
                        position: self.append,
                        candidate_term: self.election.ballot_term,
                        version,
                        voter,
                    };
                    self.send(to, message);
                }
            }
        }
    }

    /// Becomes leader of the term of the ballot. The TERM entry is written at once: a quorum with it proves that no log of a term
    /// in between can win any more, and the leader counts itself.
    fn lead(&mut self, now: Nanos) {
        let term = self.election.ballot_term;
        self.election.lost_ballots = 0;
        self.election.graceful_leader = None;
        self.leading = Leading::new(term, self.append, self.terms.log_term());
        if !self.defects.has(Defect::LateTermEntry) {
            self.leading.term_write = Some(self.write_term(term, self.append));
        }
        self.take_role(Role::Leader);
        self.log(LogCommand::Publish {
            term,
            position: self.append,
        });
        self.enter(now, State::LeaderLogReplication);
    }

    pub(super) fn step_follower_ballot(&mut self, now: Nanos) {
        if let Some(write) = self.election.pending_vote
            && (self.is_durable(write) || self.defects.has(Defect::VoteNotDurable))
            && let Some(candidate) = self.election.voted_for
        {
            self.election.pending_vote = None;
            self.send_vote(candidate, self.candidate_term, true);
        }
        let is_over = now - self.election.entered >= self.config.timing.election_timeout;
        if is_over && !self.defects.has(Defect::EndlessBallot) {
            let deadline = self.election.canvass_deadline;
            self.enter_canvass(now, deadline);
        }
    }

    fn send_vote(&mut self, candidate: MemberId, candidate_term: i64, is_granted: bool) {
        let vote = Message::Vote {
            candidate_term,
            log_term: self.terms.log_term(),
            position: self.acknowledged(),
            is_granted,
        };
        self.send_to(candidate, vote);
    }

    pub(super) fn on_canvass(&mut self, now: Nanos, from: usize, log_term: i64, position: i64) {
        if self.role == Role::Leader {
            self.on_canvass_as_leader(now, from, log_term, position);
        } else if self.state.is_ballot() {
            self.note(now, from, log_term, position, ReportKind::Log);
        }
    }

    pub(super) fn on_request_vote(
        &mut self,
        now: Nanos,
        from: usize,
        log: (i64, i64),
        candidate_term: i64,
        is_transfer: bool,
        voter: Incarnation,
    ) {
        if self.role == Role::Leader {
            // A leader that hears a quorum is not deposed by one member, unless that member may not follow it.
            if candidate_term > self.leading.led.term && is_transfer {
                self.raise_candidate_term(candidate_term);
                self.enter_election(now, None);
            }
            return;
        }
        if self.is_following() {
            let timeout = self.config.timing.heartbeat_timeout;
            let is_leader_heard = now - self.leader_heard < timeout;
            if candidate_term > self.candidate_term && (is_transfer || !is_leader_heard) {
                self.enter_election(now, None);
            }
            return;
        }
        // The votes of a node that is not the one that the candidate means would count twice.
        if !self.state.is_ballot() || !self.is_voter_meant(voter) {
            return;
        }
        let candidate = self.peers[from].id;
        let is_repeated = candidate_term == self.candidate_term
            && (self.election.voted_for == Some(candidate) || self.defects.has(Defect::VotesTwice));
        if candidate_term < self.candidate_term
            || candidate_term == self.candidate_term && !is_repeated
        {
            self.send_vote(candidate, candidate_term, false);
            return;
        }
        self.raise_candidate_term(candidate_term);
        if self.log_end() > log && !self.defects.has(Defect::VoteIgnoresLog) {
            self.send_vote(candidate, candidate_term, false);
            if self.state != State::Canvass {
                // The own nomination or ballot is of a lower term now.
                let deadline = self.election.canvass_deadline;
                self.enter_canvass(now, deadline);
            }
            return;
        }
        self.election.voted_for = Some(candidate);
        // The writes so far include the one of this term.
        self.election.pending_vote = Some(self.last_write());
        self.take_role(Role::Follower);
        self.enter(now, State::FollowerBallot);
    }

    pub(super) fn on_vote(
        &mut self,
        now: Nanos,
        from: usize,
        candidate_term: i64,
        (log_term, position): (i64, i64),
        is_granted: bool,
    ) {
        let is_replicating = self.state == State::LeaderLogReplication;
        if candidate_term != self.election.ballot_term
            || !(self.state == State::CandidateBallot || is_replicating)
        {
            return;
        }
        self.peers[from].vote = Some(is_granted);
        // Only the node that was meant votes.
        self.peers[from].is_learner &= !is_granted;
        if !is_replicating || self.peers[from].report.is_none() {
            self.note(now, from, log_term, position, ReportKind::Log);
        }
    }

    /// Notes a message of a leader whose term is lower than one that this member has voted in, and which it may not follow.
    /// Returns true once per election timeout in which such messages go on.
    pub(super) fn is_stale_leader_persistent(&mut self, now: Nanos) -> bool {
        let (count, since) = self.election.stale_leader;
        let (count, since) = if count == 0 {
            (1, now)
        } else {
            (count + 1, since)
        };
        let is_persistent = count >= 3 && now - since >= self.config.timing.election_timeout;
        self.election.stale_leader = if is_persistent {
            (0, NEVER)
        } else {
            (count, since)
        };
        is_persistent
    }

    /// Returns the message that makes such a leader start an election, in a term that this member may follow.
    pub(super) fn stale_leader_answer(&self) -> Message {
        Message::RequestVote {
            log_term: self.terms.log_term(),
            position: self.append,
            candidate_term: self.candidate_term + 1,
            version: ProtocolVersion::OWN_TRANSFER,
            voter: ORIGINAL,
        }
    }
}
