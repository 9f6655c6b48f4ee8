// SPDX-License-Identifier: Apache-2.0
//! Leadership: from the election to the commit of entries, and the hand-over (`docs/spec/cluster.md` §4.3, §4.4 and §12.2).

use thiserror::Error;

use super::config::{MAX_MEMBERS, MemberId, Nanos};
use super::credit::{LedTerm, Report, ReportKind, quorum_position};
use super::decision::LogCommand;
use super::defects::Defect;
use super::member::{Consensus, NEVER};
use super::membership::Membership;
use super::{
    AppendFlags, Fault, Message, NULL_POSITION, NULL_TERM, NewLeadershipTerm, ProtocolVersion,
    State,
};

/// Reason why leadership is not handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TransferError {
    /// This member does not lead.
    #[error("this member does not lead")]
    NotLeader,
    /// There is no other member.
    #[error("the cluster has no other member")]
    OnlyMember,
    /// The member is not one of the others.
    #[error("{id} is not the id of another member")]
    NoOtherMember {
        /// The id.
        id: MemberId,
    },
    /// Only one member may lead.
    #[error(
        "only member {id} may lead (aeron.cluster.appointed.leader.id): remove that option from all members"
    )]
    Appointed {
        /// The member.
        id: MemberId,
    },
    /// An official member cannot be told to wait for another one.
    #[error(
        "member {id} runs Aeron, and cannot be told to wait for another member: hand leadership over without naming a member"
    )]
    OfficialMember {
        /// The member.
        id: MemberId,
    },
}

/// Variables of a leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leading {
    pub(super) led: LedTerm,
    /// Number of the durable write of the TERM entry.
    pub(super) term_write: Option<u64>,
    /// The log publication exists.
    pub(super) is_published: bool,
    /// The own publication is recorded.
    pub(super) is_recording: bool,
    /// NewLeadershipTermEvent is being appended.
    is_event_requested: bool,
    /// Commit position that was sent last.
    pub(super) sent_commit: i64,
    /// Time of the next CommitPosition.
    pub(super) next_commit: Nanos,
    /// The hand-over that is under way.
    pub(super) transfer: Option<Transfer>,
    /// The membership that is about to be appended.
    pub(super) next: Option<Membership>,
}

/// A hand-over of leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Transfer {
    /// Time at which it is given up.
    pub(super) deadline: Nanos,
    /// Member that is to lead; none for any.
    pub(super) to: Option<MemberId>,
}

impl Leading {
    pub(super) const fn new(term: i64, base: i64, prior_term: i64) -> Self {
        Self {
            led: LedTerm {
                term,
                base,
                prior_term,
                is_replicating: true,
            },
            term_write: None,
            is_published: false,
            is_recording: false,
            is_event_requested: false,
            sent_commit: 0,
            next_commit: NEVER,
            transfer: None,
            next: None,
        }
    }
}

impl Default for Leading {
    fn default() -> Self {
        Self::new(NULL_TERM, 0, NULL_TERM)
    }
}

impl Consensus {
    /// A quorum has to have the log up to the base of the term, and, if a log of a term in between may exist, to prove that none
    /// can win any more.
    pub(super) fn step_leader_log_replication(&mut self, now: Nanos) {
        if !self.is_quorum_heard(now) {
            return;
        }
        if !self.leading.is_published {
            self.fails_after_timeout(now, self.election.entered);
            return;
        }
        self.announce(now);
        if !self.has_term_entry() || !self.is_prior_term_settled(now) {
            return;
        }
        let base = self.leading.led.base;
        if self.quorum_position(None) >= base {
            self.raise_commit(base);
            self.leading.led.is_replicating = false;
            self.enter(now, State::LeaderReplay);
            if self.consumed < base {
                self.log(LogCommand::Replay {
                    from: self.consumed,
                    to: base,
                });
            }
        }
    }

    pub(super) fn step_leader_replay(&mut self, now: Nanos) {
        if !self.is_quorum_heard(now) {
            return;
        }
        self.announce(now);
        if self.consumed >= self.leading.led.base {
            let LedTerm { term, base, .. } = self.leading.led;
            if self.leading.term_write.is_none() {
                self.leading.term_write = Some(self.write_term(term, base));
            }
            self.log(LogCommand::Record { term });
            self.enter(now, State::LeaderInit);
        }
    }

    pub(super) fn step_leader_init(&mut self, now: Nanos) {
        if !self.is_quorum_heard(now) {
            return;
        }
        self.announce(now);
        if self.leading.is_recording && self.has_term_entry() {
            self.enter(now, State::LeaderReady);
        } else {
            self.fails_after_timeout(now, self.election.entered);
        }
    }

    pub(super) fn step_leader_ready(&mut self, now: Nanos) {
        if !self.is_quorum_heard(now) {
            return;
        }
        self.announce(now);
        let LedTerm { term, base, .. } = self.leading.led;
        let has_joined = |report: Option<Report>| {
            report.is_some_and(|report| report.term == term && report.position >= base)
        };
        let joined = self
            .others()
            .filter(|index| self.acknowledges(*index) && has_joined(self.peers[*index].report))
            .count();
        if self.leading.is_event_requested {
            if self.append > base {
                self.enter(now, State::Closed);
            }
        } else if joined + usize::from(self.is_voter) >= self.quorum {
            self.leading.is_event_requested = true;
            self.log(LogCommand::AppendTermEvent { term, base });
        }
    }

    /// A running leader: commits, sends heartbeats, and gives up without a quorum.
    pub(super) fn step_leader(&mut self, now: Nanos) {
        if !self.is_quorum_heard(now) {
            return;
        }
        let position = self.quorum_position(None);
        self.raise_commit(position);
        self.send_commit(now);
        if self.is_removed() && self.leading.transfer.is_none() {
            self.leading.transfer = Some(Transfer {
                deadline: now + self.config.timing.heartbeat_timeout,
                to: None,
            });
        }
        let Some(transfer) = self.leading.transfer else {
            return;
        };
        if self.is_transferable(transfer) {
            self.tell_transfer(transfer);
            // The others stand first, and official ones have time to notice the end of the log.
            let timing = &self.config.timing;
            self.election.abstain_until = now + timing.heartbeat_timeout + timing.election_timeout;
            self.leader_heard = now;
            self.leave_term(now, None, true);
        } else if now >= transfer.deadline && self.is_removed() {
            self.leave_term(now, None, true);
        } else if now >= transfer.deadline {
            self.leading.transfer = None;
        }
    }

    /// Returns true if a follower that may take over has the whole log, and all of it is committed, and consumed by this member.
    fn is_transferable(&self, transfer: Transfer) -> bool {
        let term = self.leading.led.term;
        let has_all = |report: Option<Report>| {
            report.is_some_and(|report| report.term == term && report.position >= self.append)
        };
        let mut followers = self.others().filter(|index| {
            let id = self.peers[*index].id;
            self.acknowledges(*index) && transfer.to.is_none_or(|to| to == id)
        });
        let is_consumed = self.commit == self.append && self.consumed == self.append;
        is_consumed && followers.any(|index| has_all(self.peers[index].report))
    }

    /// Tells the other members of Taran at once what the end of the log tells all a little later.
    fn tell_transfer(&mut self, transfer: Transfer) {
        for to in self.others() {
            if !self.peers[to].is_taran {
                continue;
            }
            let id = self.peers[to].id;
            let is_to_other = transfer.to.is_some_and(|target| target != id);
            let message = Message::CanvassPosition {
                log_term: self.leading.led.term,
                position: self.append,
                term: self.leading.led.term,
                version: if is_to_other {
                    ProtocolVersion::OWN_TRANSFER_TO_OTHER
                } else {
                    ProtocolVersion::OWN_TRANSFER
                },
                incarnation: self.config.voter().incarnation,
            };
            self.send(to, message);
        }
    }

    /// Returns the time since which fewer than a quorum of members were heard.
    pub(super) fn quorum_heard(&self, now: Nanos) -> Nanos {
        let mut heard = [NEVER; MAX_MEMBERS];
        let own = self.is_voter.then_some(now);
        // A node that joined shows with its first report in a term only that it is the one that counts.
        let others = self.others().filter(|index| self.may_vote(*index));
        let all = own
            .into_iter()
            .chain(others.map(|index| self.peers[index].heard));
        for (slot, time) in heard.iter_mut().zip(all) {
            *slot = time;
        }
        heard.sort_unstable_by(|a, b| b.cmp(a));
        heard[self.quorum - 1]
    }

    /// Steps down if no quorum was heard within the heartbeat timeout.
    fn is_quorum_heard(&mut self, now: Nanos) -> bool {
        let heard = self.quorum_heard(now);
        let is_heard = now - heard < self.config.timing.heartbeat_timeout;
        if !is_heard {
            self.enter_election(now, Some(Fault::InactiveQuorum));
        }
        is_heard
    }

    fn has_term_entry(&self) -> bool {
        self.leading
            .term_write
            .map_or(self.defects.has(Defect::LateTermEntry), |write| {
                self.is_durable(write)
            })
    }

    /// The prior-term rule.
    fn is_prior_term_settled(&self, now: Nanos) -> bool {
        let led = self.leading.led;
        if led.follows_prior_term() || self.defects.has(Defect::PriorTermUnchecked) {
            return true;
        }
        // A former member may have a log of a term in between, as long as the membership without it is not committed.
        let is_settled = self.memberships.newest().position <= self.commit
            || self.defects.has(Defect::MembershipUnsettled);
        let is_unanimous = is_settled
            && self
                .members()
                .all(|index| self.peers[index].vote == Some(true));
        let has_term = |report: Option<Report>| {
            report.is_some_and(|report| {
                report.term == led.term
                    && !matches!(
                        report.kind,
                        ReportKind::Append {
                            is_term_durable: false,
                            ..
                        }
                    )
            })
        };
        let marks = 1 + self
            .others()
            .filter(|index| self.acknowledges(*index) && has_term(self.peers[*index].report))
            .count();
        let is_waived = self.config.prior_term_wait.is_some_and(|wait| {
            now - self.election.entered >= wait
                && self.members().any(|index| !self.peers[index].is_taran)
        });
        is_unanimous || marks >= self.quorum || is_waived
    }

    /// Returns the position that a quorum has. `catching_up` is an official follower that may know a little more than others, so
    /// that it can consume the event that begins the term (`docs/spec/cluster.md` §12.2).
    fn quorum_position(&self, catching_up: Option<usize>) -> i64 {
        let led = self.leading.led;
        let own = self.is_voter.then(|| self.acknowledged());
        let others = self.others().filter(|index| self.acknowledges(*index));
        let credits = own.into_iter().chain(others.map(|index| {
            let peer = &self.peers[index];
            let Some(report) = &peer.report else {
                return 0;
            };
            if self.defects.has(Defect::CreditWithoutTerms) {
                return report.position;
            }
            if catching_up == Some(index) && is_official_catch_up(report, led.term) {
                return report.position.min(led.base + TERM_EVENT_LENGTH);
            }
            led.credit(report, peer.shown_log_term)
        }));
        let mut quorum = self.quorum;
        if self.defects.has(Defect::SmallQuorum) {
            quorum = (quorum - 1).max(1);
        }
        quorum_position(credits, quorum).min(self.append)
    }

    /// Announces the leader to all, with its commit position, each heartbeat interval.
    fn announce(&mut self, now: Nanos) {
        if self.is_due(now, self.config.timing.heartbeat_interval) {
            let log_term = if self.state == State::LeaderReady {
                self.leading.led.term
            } else {
                self.leading.led.prior_term
            };
            let message = Message::NewLeadershipTerm(self.announcement(log_term));
            self.send_to_all(message);
        }
        self.send_commit(now);
    }

    /// Sends the commit position when it has grown, and each heartbeat interval. In LEADER_LOG_REPLICATION it is 0: official
    /// followers reject a position between 0 and what they have consumed.
    fn send_commit(&mut self, now: Nanos) {
        let commit = self.announced_commit();
        if commit == self.leading.sent_commit && now < self.leading.next_commit {
            return;
        }
        self.leading.sent_commit = commit;
        self.leading.next_commit = now + self.config.timing.heartbeat_interval;
        let term = self.leading.led.term;
        for to in self.others() {
            let report = self.peers[to].report;
            let position = if report.is_some_and(|report| is_official_catch_up(&report, term)) {
                commit.max(self.quorum_position(Some(to)))
            } else {
                commit
            };
            self.send(to, Message::CommitPosition { term, position });
        }
    }

    const fn announced_commit(&self) -> i64 {
        if self.leading.led.is_replicating {
            0
        } else {
            self.commit
        }
    }

    /// Returns the announcement for a member whose log ends in this term.
    fn announcement(&self, log_term: i64) -> NewLeadershipTerm {
        let led = self.leading.led;
        let next = self.terms.after(log_term);
        let (next_term, next_base, next_end) = match next {
            _ if log_term == led.term => (NULL_TERM, NULL_POSITION, NULL_POSITION),
            Some((entry, end)) => (entry.term, entry.base, end.unwrap_or(NULL_POSITION)),
            None => (led.term, led.base, NULL_POSITION),
        };
        NewLeadershipTerm {
            log_term,
            next_term,
            next_base,
            next_end,
            term: led.term,
            base: led.base,
            position: self.append,
            commit: self.announced_commit(),
        }
    }

    pub(super) fn on_canvass_as_leader(
        &mut self,
        now: Nanos,
        from: usize,
        log_term: i64,
        position: i64,
    ) {
        if log_term > self.leading.led.term {
            self.enter_election(now, None);
            return;
        }
        self.note(now, from, log_term, position, ReportKind::Log);
        self.peers[from].requested_catchup = false;
        self.stop_catchup(from);
        if !self.leading.is_published {
            return;
        }
        let is_comparable = self.peers[from].is_taran
            || log_term == NULL_TERM
            || self.terms.get(log_term).is_some();
        if is_comparable {
            let message = Message::NewLeadershipTerm(self.announcement(log_term));
            self.send(from, message);
        } else {
            let id = self.peers[from].id;
            self.decide(super::Decision::Fault(Fault::DivergentMember {
                id,
                log_term,
            }));
        }
    }

    pub(super) fn on_append_position(
        &mut self,
        now: Nanos,
        from: usize,
        term: i64,
        position: i64,
        flags: AppendFlags,
    ) {
        if !self.is_leading() {
            return;
        }
        let led = self.leading.led;
        if term > led.term {
            self.enter_election(now, None);
            return;
        }
        let peer = &mut self.peers[from];
        peer.is_learner = flags.is_learner();
        peer.is_taran |= flags.is_term_durable();
        let is_catching_up = flags.is_catching_up() && peer.requested_catchup;
        if term < led.term && !is_catching_up {
            // Of a term before: no news.
            return;
        }
        let kind = ReportKind::Append {
            is_term_durable: flags.is_term_durable(),
            is_catching_up,
        };
        self.note(now, from, term, position, kind);
        if flags.is_learner() {
            self.admit(from);
        }
        if !flags.is_catching_up() && position >= self.leading.sent_commit {
            self.peers[from].has_caught_up = true;
        }
        if flags.is_catching_up() && position >= self.append {
            self.stop_catchup(from);
            self.send(from, Message::StopCatchup { term });
        }
    }

    pub(super) fn on_catchup_position(
        &mut self,
        now: Nanos,
        from: usize,
        term: i64,
        position: i64,
    ) {
        if !self.is_leading() {
            return;
        }
        if term > self.leading.led.term {
            self.enter_election(now, None);
            return;
        }
        let peer = &mut self.peers[from];
        peer.heard = now;
        if term == self.leading.led.term {
            peer.requested_catchup = true;
        }
        if !peer.is_catching_up {
            peer.is_catching_up = true;
            let to = self.peers[from].id;
            self.log(LogCommand::StartCatchup { to, from: position });
        }
    }

    pub(super) fn stop_catchup(&mut self, index: usize) {
        if std::mem::take(&mut self.peers[index].is_catching_up) {
            let to = self.peers[index].id;
            self.log(LogCommand::StopCatchup { to });
        }
    }

    /// Returns true in LEADER_* states and as a running leader.
    pub(super) fn is_leading(&self) -> bool {
        self.role == super::Role::Leader
    }
}

/// Length of a NewLeadershipTermEvent in the log.
const TERM_EVENT_LENGTH: i64 = 96;

/// Returns true if an official follower catches up, and has not consumed the event that begins the leader's term.
const fn is_official_catch_up(report: &Report, term: i64) -> bool {
    report.term < term
        && matches!(
            report.kind,
            ReportKind::Append {
                is_catching_up: true,
                ..
            }
        )
}
