// SPDX-License-Identifier: Apache-2.0
//! Change of the membership: nodes that join and leave (`docs/spec/cluster.md` §12.5).

use thiserror::Error;

use super::config::{MAX_MEMBERS, Nanos};
use super::decision::{Decision, LogCommand, StopReason};
use super::defects::Defect;
use super::member::{Consensus, Peer};
use super::membership::{
    Incarnation, Membership, MembershipChange, MembershipEntry, ORIGINAL, Voter,
};
use super::{MemberId, Message, Role, State};

/// Other nodes that are known at a time, members and learners.
const MAX_PEERS: usize = 2 * MAX_MEMBERS;

/// Heartbeat timeouts after which a silent learner is forgotten.
const LEARNER_TIMEOUTS: Nanos = 10;

/// Reason why the membership is not changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// This member does not lead.
    #[error("this member does not lead")]
    NotLeader,
    /// The leader hands over.
    #[error("the leader is handing leadership over")]
    Transferring,
    /// The change before is not committed yet.
    #[error("the last change of the members is not committed yet")]
    InProgress,
    /// The leader has not committed an entry of its own term yet.
    #[error("the leader has just been elected: no entry of its term is committed yet")]
    TermNotCommitted,
    /// Members that are official, or were not heard yet.
    #[error(
        "the members {ids:?} run Aeron, or were not heard since this leader started: all members have to run Taran and be up once"
    )]
    OfficialMembers {
        /// Their ids.
        ids: Vec<MemberId>,
    },
    /// The id is that of a member.
    #[error("{id} is the id of a member")]
    AlreadyMember {
        /// The id.
        id: MemberId,
    },
    /// The id is not that of a member.
    #[error("{id} is not the id of a member")]
    NoMember {
        /// The id.
        id: MemberId,
    },
    /// No node with this id has asked to join.
    #[error("no node with the id {id} asks to join: start it first")]
    UnknownLearner {
        /// The id.
        id: MemberId,
    },
    /// The learner does not have the log yet.
    #[error("node {id} has not caught up: its log ends at {position}, and {commit} is committed")]
    Behind {
        /// The id.
        id: MemberId,
        /// End of its log, as far as it is known.
        position: i64,
        /// Commit position.
        commit: i64,
    },
    /// The last member would leave.
    #[error("{id} is the last member")]
    LastMember {
        /// The id.
        id: MemberId,
    },
    /// There are too many members.
    #[error("a cluster has at most {MAX_MEMBERS} members")]
    TooManyMembers,
    /// The members that would remain could not commit.
    #[error(
        "{heard} of the members after the change are heard, and they need {quorum}: the cluster would stop; start the others first"
    )]
    QuorumAtRisk {
        /// Members that are heard.
        heard: usize,
        /// Majority of the members after the change.
        quorum: usize,
    },
}

impl Consensus {
    /// Returns the membership in effect.
    #[must_use]
    pub fn membership(&self) -> &MembershipEntry {
        let entries = self.memberships.entries();
        if self.defects.has(Defect::MembershipAtCommit) {
            let committed = entries.iter().rev();
            let mut committed = committed.filter(|entry| entry.position <= self.commit);
            return committed.next().unwrap_or(&entries[0]);
        }
        self.memberships.newest()
    }

    /// Returns all memberships that are known, in ascending order of position: the last one is in effect, and the others are
    /// those that a truncation may restore.
    #[must_use]
    pub fn memberships(&self) -> &[MembershipEntry] {
        self.memberships.entries()
    }

    /// Returns the position up to which the membership changes in the log are known.
    #[must_use]
    pub const fn examined_position(&self) -> i64 {
        self.examined
    }

    /// Returns the membership that [`LogCommand::AppendMembership`] is about.
    #[must_use]
    pub const fn next_membership(&self) -> Option<&Membership> {
        self.leading.next.as_ref()
    }

    /// Returns true if this node is a member.
    #[must_use]
    pub const fn is_voter(&self) -> bool {
        self.is_voter
    }

    /// Returns the nodes that have the log, or are about to get it, without being members.
    pub fn learners(&self) -> impl Iterator<Item = MemberId> {
        let learners = self.peers.iter().filter(|peer| !peer.is_member());
        learners.map(|peer| peer.id)
    }

    /// Changes the membership by one member. It is in effect when the owner has appended it, which
    /// [`LogCommand::AppendMembership`] asks for, and the next change is possible once it is committed.
    ///
    /// A leader that removes itself goes on until that is committed, and hands leadership over.
    ///
    /// # Errors
    /// See [`ChangeError`].
    pub fn change_membership(
        &mut self,
        now: Nanos,
        change: MembershipChange,
    ) -> Result<(), ChangeError> {
        if !(self.begin(now) && self.role == Role::Leader && self.state == State::Closed) {
            return Err(ChangeError::NotLeader);
        }
        let next = self.membership_after(now, change)?;
        self.leading.next = Some(next);
        self.log(LogCommand::AppendMembership);
        self.step(now);
        Ok(())
    }

    /// Returns the membership after a change that is possible now.
    fn membership_after(
        &self,
        now: Nanos,
        change: MembershipChange,
    ) -> Result<Membership, ChangeError> {
        if self.leading.transfer.is_some() || !self.is_voter {
            return Err(ChangeError::Transferring);
        }
        let is_ordered = !self.defects.has(Defect::MembershipUnordered);
        let is_committed = self.memberships.newest().position <= self.commit;
        if self.leading.next.is_some() || is_ordered && !is_committed {
            return Err(ChangeError::InProgress);
        }
        if is_ordered && self.commit <= self.leading.led.base {
            return Err(ChangeError::TermNotCommitted);
        }
        let membership = &self.membership().membership;
        let leaving = match change {
            MembershipChange::Remove(id) => Some(id),
            MembershipChange::Add(_) => None,
        };
        let official = self
            .members()
            .map(|index| &self.peers[index])
            .filter(|peer| !peer.is_taran && Some(peer.id) != leaving);
        let ids: Vec<MemberId> = official.map(|peer| peer.id).collect();
        if !ids.is_empty() {
            return Err(ChangeError::OfficialMembers { ids });
        }
        let next = match change {
            MembershipChange::Add(id) => membership.with(self.learner(now, id)?),
            MembershipChange::Remove(id) if membership.get(id).is_none() => {
                return Err(ChangeError::NoMember { id });
            }
            MembershipChange::Remove(id) if membership.voters().len() == 1 => {
                return Err(ChangeError::LastMember { id });
            }
            MembershipChange::Remove(id) => membership.without(id),
        };
        if next.voters().len() > MAX_MEMBERS {
            return Err(ChangeError::TooManyMembers);
        }
        let is_heard = |voter: &&Voter| {
            let peer = self.index_of(voter.id).map(|index| &self.peers[index]);
            voter.id == self.config.id()
                || peer.is_some_and(|peer| {
                    let is_meant = peer.acknowledges() || peer.incarnation == voter.incarnation;
                    is_meant && now - peer.heard < self.config.timing.heartbeat_timeout
                })
        };
        let heard = next.voters().iter().filter(is_heard).count();
        let quorum = next.quorum();
        if heard < quorum {
            return Err(ChangeError::QuorumAtRisk { heard, quorum });
        }
        Ok(next)
    }

    /// Returns the learner with this id, if it can become a member.
    fn learner(&self, now: Nanos, id: MemberId) -> Result<Voter, ChangeError> {
        let membership = &self.membership().membership;
        if membership.get(id).is_some() {
            return Err(ChangeError::AlreadyMember { id });
        }
        let timeout = self.config.timing.heartbeat_timeout;
        let learner = self.index_of(id).map(|index| &self.peers[index]);
        let learner = learner
            .filter(|peer| peer.asks_to_join() && now - peer.seen < timeout)
            .ok_or(ChangeError::UnknownLearner { id })?;
        if !learner.has_caught_up {
            return Err(ChangeError::Behind {
                id,
                position: learner.report.map_or(0, |report| report.position),
                commit: self.commit,
            });
        }
        Ok(Voter {
            id,
            incarnation: learner.incarnation,
        })
    }

    /// Takes a membership that the log has: the own change once it is appended, or one that was found in the recording, before
    /// the position behind it is reported as examined or consumed.
    pub fn on_membership(&mut self, now: Nanos, entry: &MembershipEntry) {
        if !self.begin(now) {
            return;
        }
        self.leading.next = None;
        if entry.position > self.memberships.newest().position {
            self.memberships.push(entry.clone());
            self.apply_membership();
        }
        self.step(now);
    }

    /// Takes the membership of the recovered log.
    pub(super) fn recover_membership(&mut self) {
        self.set_membership();
        // A node that joined is a learner, unless it was a member before a change that may not be committed.
        let own = self.config.voter();
        let mut entries = self.memberships.entries().iter();
        let was_member =
            !self.config.has_joined() || entries.any(|entry| entry.membership.contains(own));
        if !self.is_voter && was_member {
            self.left_at = Some(self.membership().position);
        }
    }

    fn apply_membership(&mut self) {
        let was_voter = self.is_voter;
        self.set_membership();
        if self.is_voter {
            self.left_at = None;
        } else if was_voter {
            self.left_at = Some(self.membership().position);
        }
        self.decide(Decision::Membership);
    }

    fn set_membership(&mut self) {
        let membership = self.membership().membership.clone();
        let own = self.config.voter();
        self.is_voter = membership.contains(own);
        self.quorum = membership.quorum();
        for voter in membership.voters() {
            if voter.id != own.id && self.index_of(voter.id).is_none() {
                self.peers.push(Peer::new(voter.id));
            }
        }
        for peer in &mut self.peers {
            let member = membership.get(peer.id);
            peer.set_member(member.map(|voter| voter.incarnation));
        }
    }

    /// Takes a truncation of the log.
    pub(super) fn truncate_memberships(&mut self, position: i64) {
        self.examined = self.examined.min(position);
        if self.memberships.truncate(position) {
            self.apply_membership();
        }
    }

    /// Takes a commit.
    pub(super) fn commit_memberships(&mut self) {
        self.memberships.forget_before(self.commit);
        if self.defects.has(Defect::MembershipAtCommit) {
            self.apply_membership();
        }
        if !self.is_leading() {
            self.stop_if_removed();
        }
    }

    /// Stops a member whose removal is committed. A leader hands leadership over before.
    pub(super) fn stop_if_removed(&mut self) -> bool {
        let removed = self.left_at.filter(|position| *position <= self.commit);
        if let Some(position) = removed {
            self.is_stopped = true;
            self.decide(Decision::Stop(StopReason::Removed { position }));
        }
        removed.is_some()
    }

    /// Returns true if the removal of this leader is committed.
    pub(super) fn is_removed(&self) -> bool {
        self.left_at.is_some_and(|position| position <= self.commit)
    }

    pub(super) fn index_of(&self, id: MemberId) -> Option<usize> {
        self.peers.iter().position(|peer| peer.id == id)
    }

    /// Returns the index of a sender. Members and leaders that are not known yet, and learners, introduce themselves.
    pub(super) fn sender(&mut self, from: MemberId, message: &Message) -> Option<usize> {
        if from == self.config.id() {
            return None;
        }
        let known = self.index_of(from);
        let is_introduced = match message {
            Message::CanvassPosition { version, .. } | Message::RequestVote { version, .. } => {
                version.is_taran()
            }
            Message::NewLeadershipTerm(_) | Message::CommitPosition { .. } => true,
            _ => false,
        };
        if known.is_none() && is_introduced && self.peers.len() < MAX_PEERS {
            self.peers.push(Peer::new(from));
            return Some(self.peers.len() - 1);
        }
        known
    }

    /// Forgets learners that are gone.
    pub(super) fn forget_silent_learners(&mut self, now: Nanos) {
        let timeout = LEARNER_TIMEOUTS * self.config.timing.heartbeat_timeout;
        let leader = self.leader_followed();
        let is_kept =
            |peer: &Peer| peer.is_member() || Some(peer.id) == leader || now - peer.seen < timeout;
        if self.peers.iter().all(is_kept) {
            return;
        }
        for index in self.others() {
            if !is_kept(&self.peers[index]) {
                self.stop_catchup(index);
            }
        }
        self.peers.retain(is_kept);
    }

    /// Returns true if the reports of another node count.
    pub(super) fn acknowledges(&self, index: usize) -> bool {
        let peer = &self.peers[index];
        peer.acknowledges() || peer.is_member() && self.defects.has(Defect::IncarnationIgnored)
    }

    /// Returns true if another node is likely to answer a request for its vote.
    pub(super) fn may_vote(&self, index: usize) -> bool {
        self.peers[index].may_vote() || self.acknowledges(index)
    }

    /// Returns true if a candidate counts the vote of this very node.
    pub(super) fn is_voter_meant(&self, incarnation: Incarnation) -> bool {
        incarnation == self.config.voter().incarnation
            || self.defects.has(Defect::IncarnationIgnored)
    }

    /// Tells a learner that it counts, if it is the one that the membership has.
    pub(super) fn admit(&mut self, index: usize) {
        if let Some(incarnation) = self.peers[index].member
            && incarnation != ORIGINAL
        {
            let term = self.leading.led.term;
            self.send(index, Message::Admit { term, incarnation });
        }
    }

    pub(super) fn on_admitted(&mut self, from: usize, term: i64, incarnation: Incarnation) {
        if self.leader_followed() == Some(self.peers[from].id)
            && self.following.term == term
            && incarnation == self.config.voter().incarnation
            && !self.following.is_admitted
        {
            self.following.is_admitted = true;
            self.following.reported = 0;
        }
    }

    /// Returns true if all membership changes in the log are known; asks for those that are not. Only then the quorum is known
    /// that elects this member.
    pub(super) fn is_examined(&mut self, now: Nanos) -> bool {
        if self.examined >= self.append {
            return true;
        }
        if now >= self.election.examine_from {
            self.election.examine_from = now + self.config.timing.heartbeat_timeout;
            self.log(LogCommand::Examine {
                from: self.examined,
                to: self.append,
            });
        }
        false
    }
}
