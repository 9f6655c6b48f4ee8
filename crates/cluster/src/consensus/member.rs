// SPDX-License-Identifier: Apache-2.0
//! One member: its variables, and the inputs that change them.
//!
//! An input records a fact; `step` then acts on all facts together, as often as the state changes. So each rule stands in one
//! place, whichever fact arrived last.

use std::collections::VecDeque;

use super::config::{Config, Durability, Nanos};
use super::credit::{Report, ReportKind};
use super::decision::{Decision, Fault, LogCommand, LogEvent, StopReason, Write};
use super::defects::{Defect, Defects};
use super::follower::Following;
use super::leader::{Leading, Transfer, TransferError};
use super::membership::{MembershipEntry, Memberships};
pub(super) use super::peer::{NEVER, Peer};
use super::recovery::{Recovered, RecoveryError};
use super::{MemberId, Message, NULL_TERM, Role, State, TermEntry, Terms};

/// Variables of the election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Election {
    /// Time at which the state was entered.
    pub(super) entered: Nanos,
    /// Time of the next periodic message.
    pub(super) next_send: Nanos,
    /// Time from which a quorum of canvassed members is enough.
    pub(super) canvass_deadline: Nanos,
    /// Time of the nomination.
    pub(super) nomination: Nanos,
    /// Number of the durable write that the nomination waits for; 0 if there is none.
    pub(super) nomination_write: u64,
    /// Term of the own ballot.
    pub(super) ballot_term: i64,
    /// Candidate that has the vote for the candidate term.
    pub(super) voted_for: Option<MemberId>,
    /// Vote that is sent once this write is durable.
    pub(super) pending_vote: Option<u64>,
    /// Ballots lost in a row.
    pub(super) lost_ballots: u32,
    /// Time before which the member does not stand.
    pub(super) abstain_until: Nanos,
    /// Time before which the member sends no canvass message and follows no leader.
    pub(super) pause_until: Nanos,
    /// Leader that left in order.
    pub(super) graceful_leader: Option<MemberId>,
    /// Leader of a term that may not be followed: messages, and time of the first.
    pub(super) stale_leader: (u32, Nanos),
    /// Time from which the log may be examined, again if there was no answer.
    pub(super) examine_from: Nanos,
}

/// One member of the cluster; see the module for its contract.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Consensus {
    pub(super) config: Config,
    pub(super) defects: Defects,
    random: u64,
    pub(super) state: State,
    pub(super) role: Role,
    // Durable.
    pub(super) candidate_term: i64,
    pub(super) terms: Terms,
    issued_writes: u64,
    done_writes: u64,
    /// Number of the last truncation.
    truncation: u64,
    // Log.
    pub(super) append: i64,
    pub(super) flushed: i64,
    pub(super) consumed: i64,
    pub(super) commit: i64,
    /// Position up to which the membership changes in the log are known.
    pub(super) examined: i64,
    // Membership.
    pub(super) memberships: Memberships,
    /// This node counts in the membership in effect.
    pub(super) is_voter: bool,
    /// Number of members that are a majority in it.
    pub(super) quorum: usize,
    /// Position behind the entry that removed this member.
    pub(super) left_at: Option<i64>,
    // Election and term.
    pub(super) election: Election,
    pub(super) peers: Vec<Peer>,
    pub(super) leading: Leading,
    pub(super) following: Following,
    /// Time of the last message of the leader, or data of its log.
    pub(super) leader_heard: Nanos,
    last_input: Nanos,
    pub(super) is_stopped: bool,
    decisions: VecDeque<Decision>,
}

impl Consensus {
    /// Creates a member that starts now. `seed` determines its random delays.
    ///
    /// # Errors
    /// The recovered state contradicts itself.
    pub fn new(
        config: Config,
        recovered: Recovered,
        seed: u64,
        now: Nanos,
    ) -> Result<Self, RecoveryError> {
        let Recovered {
            candidate_term,
            terms,
            append_position,
            commit_position,
            memberships,
            examined_position,
        } = recovered;
        match terms.entries().last() {
            Some(last) if last.base > append_position => {
                return Err(RecoveryError::LogTooShort {
                    term: last.term,
                    base: last.base,
                    append_position,
                });
            }
            None if append_position > commit_position => {
                return Err(RecoveryError::LogWithoutTerms { append_position });
            }
            _ => {}
        }
        if commit_position > append_position {
            return Err(RecoveryError::SnapshotBeyondLog {
                commit_position,
                append_position,
            });
        }
        let memberships = if memberships.is_empty() {
            vec![MembershipEntry {
                position: 0,
                membership: config.original_membership(),
            }]
        } else {
            memberships
        };
        let mut memberships =
            Memberships::new(memberships).ok_or(RecoveryError::InvalidMemberships)?;
        memberships.truncate(append_position);
        let count = config.members().len();
        let extended = now + config.timing.startup_canvass_timeout;
        let mut member = Self {
            defects: Defects::default(),
            random: seed,
            state: State::Init,
            role: Role::Follower,
            candidate_term: candidate_term.max(terms.log_term()),
            terms,
            issued_writes: 0,
            done_writes: 0,
            truncation: 0,
            append: append_position,
            flushed: append_position,
            consumed: commit_position,
            commit: commit_position,
            examined: examined_position.clamp(commit_position, append_position),
            memberships,
            is_voter: false,
            quorum: 0,
            left_at: None,
            election: Election {
                entered: now,
                next_send: now,
                canvass_deadline: extended,
                nomination: now,
                nomination_write: 0,
                ballot_term: NULL_TERM,
                voted_for: None,
                pending_vote: None,
                lost_ballots: 0,
                abstain_until: NEVER,
                pause_until: NEVER,
                graceful_leader: None,
                stale_leader: (0, NEVER),
                examine_from: NEVER,
            },
            peers: Vec::with_capacity(count),
            leading: Leading::default(),
            following: Following::default(),
            leader_heard: NEVER,
            last_input: now,
            is_stopped: false,
            decisions: VecDeque::with_capacity(8 * count),
            config,
        };
        member.recover_membership();
        member.enter_canvass(now, extended);
        Ok(member)
    }

    /// Advances time.
    pub fn tick(&mut self, now: Nanos) {
        if self.begin(now) {
            self.forget_silent_learners(now);
            self.step(now);
        }
    }

    /// Takes a message of another node. Those that do not introduce an unknown sender, and those of this member itself, are
    /// ignored.
    pub fn receive(&mut self, now: Nanos, from: MemberId, message: &Message) {
        if !self.begin(now) {
            return;
        }
        let Some(from) = self.sender(from, message) else {
            return;
        };
        self.peers[from].seen = now;
        match *message {
            Message::CanvassPosition {
                log_term,
                position,
                version,
                incarnation,
                ..
            } => {
                let peer = &mut self.peers[from];
                peer.is_taran = version.is_taran();
                peer.is_learner = version.is_learner();
                peer.introduce(incarnation);
                if version.is_transfer() {
                    self.on_handed_over(now, from, log_term, position, version);
                } else {
                    self.on_canvass(now, from, log_term, position);
                }
            }
            Message::RequestVote {
                log_term,
                position,
                candidate_term,
                version,
                voter,
            } => {
                self.peers[from].is_taran = version.is_taran();
                let is_transfer = version.is_transfer();
                let log = (log_term, position);
                self.on_request_vote(now, from, log, candidate_term, is_transfer, voter);
            }
            Message::Vote {
                candidate_term,
                log_term,
                position,
                is_granted,
            } => self.on_vote(now, from, candidate_term, (log_term, position), is_granted),
            Message::NewLeadershipTerm(announced) => {
                self.on_new_leadership_term(now, from, announced);
            }
            Message::AppendPosition {
                term,
                position,
                flags,
            } => self.on_append_position(now, from, term, position, flags),
            Message::CommitPosition { term, position } => {
                self.on_commit_position(now, from, term, position);
            }
            Message::CatchupPosition { term, position } => {
                self.on_catchup_position(now, from, term, position);
            }
            Message::StopCatchup { term } => self.on_stop_catchup(from, term),
            Message::Admit { term, incarnation } => self.on_admitted(from, term, incarnation),
        }
        self.step(now);
    }

    /// Takes the completion of the durable write with this number, and of all before.
    pub fn on_durable(&mut self, now: Nanos, sequence: u64) {
        if !self.begin(now) {
            return;
        }
        self.done_writes = self.done_writes.max(sequence.min(self.issued_writes));
        self.step(now);
    }

    /// Takes an event of the log.
    pub fn on_log(&mut self, now: Nanos, event: LogEvent) {
        if !self.begin(now) {
            return;
        }
        match event {
            LogEvent::Released { position } => {
                if self.state == State::Init && !self.stop_if_removed() {
                    self.append = position;
                    self.flushed = position;
                    let deadline = self.leader_heard + self.config.timing.heartbeat_timeout;
                    self.enter_canvass(now, deadline);
                }
            }
            // A report from before the truncation.
            LogEvent::Appended { .. } if !self.is_durable(self.truncation) => {}
            LogEvent::Appended { position, flushed } => {
                if self.role == Role::Follower && position > self.append {
                    self.leader_heard = now;
                }
                self.append = self.append.max(position);
                self.flushed = self.flushed.max(flushed.min(self.append));
                if self.is_leading() {
                    self.examined = self.append;
                }
            }
            LogEvent::Consumed { position } => {
                self.consumed = self.consumed.max(position.min(self.commit));
                self.examined = self.examined.max(self.consumed);
            }
            LogEvent::Examined { position } => {
                if self.state.is_ballot() {
                    self.examined = self.examined.max(position.min(self.append));
                }
            }
            LogEvent::Published => self.leading.is_published = true,
            LogEvent::Recording => self.leading.is_recording = true,
            LogEvent::TermEventRead { position, term } => {
                self.on_term_event_read(now, position, term);
            }
            LogEvent::CatchupOpened => self.on_catchup_opened(now),
            LogEvent::Joined { position } => self.on_joined(now, position),
            LogEvent::EndOfStream => {
                if let Some(leader) = self.leader_followed() {
                    self.enter_election(now, None);
                    self.election.graceful_leader = Some(leader);
                }
            }
            LogEvent::Failed => {
                if self.state.is_ballot() {
                    self.election.examine_from = now + self.config.timing.status_interval;
                } else if self.state != State::Init {
                    self.fail(now, Fault::LogFailed(self.state));
                }
            }
        }
        self.step(now);
    }

    /// Hands leadership over, to the member `to` if it is given: stops taking entries, waits until that member, or any, has all of
    /// them and the own service has consumed them, and ends the log. If that takes longer than the heartbeat timeout, the leader
    /// goes on.
    ///
    /// The others stand at once; `to` is the first to stand, but if it fails at that moment another one may win.
    ///
    /// # Errors
    /// This member cannot hand leadership over, or not to that member.
    pub fn transfer_leadership(
        &mut self,
        now: Nanos,
        to: Option<MemberId>,
    ) -> Result<(), TransferError> {
        if !(self.begin(now) && self.role == Role::Leader && self.state == State::Closed) {
            return Err(TransferError::NotLeader);
        }
        if let Some(id) = to
            && !self.members().any(|index| self.peers[index].id == id)
        {
            return Err(TransferError::NoOtherMember { id });
        }
        if self.members().next().is_none() {
            return Err(TransferError::OnlyMember);
        }
        if let Some(appointed) = self.config.appointed_leader() {
            return Err(TransferError::Appointed { id: appointed });
        }
        // Official members stand whenever a leader ends its log in order.
        let is_official = |index: &usize| {
            let peer = &self.peers[*index];
            peer.heard != NEVER && !peer.is_taran
        };
        if to.is_some()
            && let Some(official) = self.members().find(is_official)
        {
            let id = self.peers[official].id;
            return Err(TransferError::OfficialMember { id });
        }
        self.leading.transfer = Some(Transfer {
            deadline: now + self.config.timing.heartbeat_timeout,
            to,
        });
        self.step(now);
        Ok(())
    }

    /// Returns true while the leader waits for a follower that takes over.
    #[must_use]
    pub const fn is_transferring(&self) -> bool {
        self.leading.transfer.is_some()
    }

    /// Takes the next decision.
    pub fn poll_decision(&mut self) -> Option<Decision> {
        self.decisions.pop_front()
    }

    /// Returns true if the owner may append entries to the log now: this member leads and has heard a quorum recently.
    #[must_use]
    pub fn accepts_entries(&self, now: Nanos) -> bool {
        !self.is_stopped
            && self.role == Role::Leader
            && self.state == State::Closed
            && self.leading.transfer.is_none()
            && now - self.last_input <= self.config.timing.heartbeat_timeout
            && now - self.quorum_heard(now) <= self.config.timing.heartbeat_timeout
    }

    /// Returns the time at which [`Self::tick`] has something to do, if no other input comes before.
    #[must_use]
    pub fn next_deadline(&self) -> Nanos {
        if self.is_stopped {
            return Nanos::MAX;
        }
        self.state_deadline()
    }

    /// Returns the state of the election.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Returns the role.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Returns the term that this member leads or follows.
    #[must_use]
    pub const fn term(&self) -> Option<i64> {
        match self.role {
            Role::Leader => Some(self.leading.led.term),
            Role::Follower if self.is_following() => Some(self.following.term),
            Role::Follower | Role::Candidate => None,
        }
    }

    /// Returns the other members, each with the term and append position in its last report, and the time at which it was heard
    /// last.
    pub fn reports(&self) -> impl Iterator<Item = (MemberId, Option<(i64, i64)>, Option<Nanos>)> {
        self.others().map(|index| {
            let peer = &self.peers[index];
            let report = peer.report.map(|report| (report.term, report.position));
            let heard = (peer.heard != NEVER).then_some(peer.heard);
            (peer.id, report, heard)
        })
    }

    /// Returns the leader, which may be this member.
    #[must_use]
    pub fn leader(&self) -> Option<MemberId> {
        if self.role == Role::Leader {
            return Some(self.config.id());
        }
        self.leader_followed()
    }

    /// Returns the commit position.
    #[must_use]
    pub const fn commit_position(&self) -> i64 {
        self.commit
    }

    /// Returns the append position.
    #[must_use]
    pub const fn append_position(&self) -> i64 {
        self.append
    }

    /// Returns the terms of the log.
    #[must_use]
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns the highest term that this member voted in or followed.
    #[must_use]
    pub const fn candidate_term(&self) -> i64 {
        self.candidate_term
    }

    /// Begins an input. Returns false if the member is stopped. A leader that was not run for so long that others may have
    /// elected one steps down before it acts on messages that arrived in the meantime.
    pub(super) fn begin(&mut self, now: Nanos) -> bool {
        let silence = now - self.last_input;
        self.last_input = self.last_input.max(now);
        if self.is_stopped {
            return false;
        }
        if self.role == Role::Leader
            && self.members().next().is_some()
            && silence > self.config.timing.heartbeat_timeout
        {
            self.enter_election(now, Some(Fault::Stalled));
        }
        true
    }

    /// Acts on all facts, until the state does not change any more.
    pub(super) fn step(&mut self, now: Nanos) {
        // Each state leads to a later one or to INIT, CANVASS or a stop, so few rounds suffice; the bound excludes a hang.
        for _ in 0..32 {
            if self.is_stopped {
                return;
            }
            let before = self.state;
            match self.state {
                State::Init => {}
                State::Canvass => self.step_canvass(now),
                State::Nominate => self.step_nominate(now),
                State::CandidateBallot => self.step_candidate_ballot(now),
                State::FollowerBallot => self.step_follower_ballot(now),
                State::LeaderLogReplication => self.step_leader_log_replication(now),
                State::LeaderReplay => self.step_leader_replay(now),
                State::LeaderInit => self.step_leader_init(now),
                State::LeaderReady => self.step_leader_ready(now),
                State::FollowerLogReplication => self.step_follower_log_replication(now),
                State::FollowerReplay => self.step_follower_replay(now),
                State::FollowerCatchupInit | State::FollowerCatchupAwait => {
                    self.step_follower_catchup_await(now);
                }
                State::FollowerCatchup => self.step_follower_catchup(now),
                State::FollowerLogInit | State::FollowerLogAwait => {
                    self.step_follower_log_await(now);
                }
                State::FollowerReady => self.step_follower_ready(now),
                State::Closed if self.role == Role::Leader => self.step_leader(now),
                State::Closed => self.step_follower(now),
            }
            if self.state == before {
                return;
            }
        }
    }

    /// Returns the indices of all other nodes, members and learners.
    pub(super) fn others(&self) -> std::ops::Range<usize> {
        0..self.peers.len()
    }

    /// Returns the indices of all other members.
    pub(super) fn members(&self) -> impl Iterator<Item = usize> {
        self.others().filter(|index| self.peers[*index].is_member())
    }

    pub(super) fn decide(&mut self, decision: Decision) {
        self.decisions.push_back(decision);
    }

    pub(super) fn log(&mut self, command: LogCommand) {
        self.decide(Decision::Log(command));
    }

    pub(super) fn send(&mut self, to: usize, message: Message) {
        let to = self.peers[to].id;
        self.send_to(to, message);
    }

    pub(super) fn send_to(&mut self, to: MemberId, message: Message) {
        self.decide(Decision::Send { to, message });
    }

    pub(super) fn send_to_all(&mut self, message: Message) {
        for to in self.others() {
            self.send(to, message);
        }
    }

    /// Issues a durable write and returns its number.
    pub(super) fn persist(&mut self, write: Write) -> u64 {
        self.issued_writes += 1;
        let sequence = self.issued_writes;
        self.decide(Decision::Persist { sequence, write });
        sequence
    }

    pub(super) const fn last_input(&self) -> Nanos {
        self.last_input
    }

    /// Returns the number of the last write that was issued.
    pub(super) const fn last_write(&self) -> u64 {
        self.issued_writes
    }

    pub(super) const fn is_durable(&self, sequence: u64) -> bool {
        self.done_writes >= sequence
    }

    /// Raises the highest term voted in or followed, and returns the number of the write.
    pub(super) fn raise_candidate_term(&mut self, term: i64) -> u64 {
        if term > self.candidate_term {
            self.candidate_term = term;
            self.election.voted_for = None;
            self.election.pending_vote = None;
            return self.persist(Write::CandidateTerm(term));
        }
        self.issued_writes
    }

    /// Writes a TERM entry, and returns the number of the write.
    pub(super) fn write_term(&mut self, term: i64, base: i64) -> u64 {
        if self.defects.has(Defect::TermListTrusted) {
            // The official list has an entry for each term.
            for filler in self.terms.log_term() + 1..term {
                if self.terms.log_term() != NULL_TERM {
                    self.terms.set(TermEntry { term: filler, base });
                    self.persist(Write::Term { term: filler, base });
                }
            }
        }
        self.terms.set(TermEntry { term, base });
        self.persist(Write::Term { term, base })
    }

    /// Truncates the log and removes terms from `from_term` on. Returns false, and stops the member, if an entry would go that
    /// this member has seen committed.
    pub(super) fn truncate(&mut self, position: i64, from_term: i64) -> bool {
        if position < self.commit {
            self.is_stopped = true;
            self.decide(Decision::Stop(StopReason::CommittedEntryLost {
                commit: self.commit,
                truncation: position,
                leader: self.following.leader,
                term: self.following.term,
            }));
            return false;
        }
        self.append = self.append.min(position);
        self.flushed = self.flushed.min(position);
        self.terms.truncate(position, from_term);
        self.truncate_memberships(position);
        self.truncation = self.persist(Write::Truncate {
            position,
            from_term,
        });
        true
    }

    /// Returns the own position that counts towards the commit.
    pub(super) fn acknowledged(&self) -> i64 {
        match self.config.durability {
            Durability::QuorumMemory => self.append,
            Durability::QuorumDisk if self.defects.has(Defect::UnflushedAcknowledged) => {
                self.append
            }
            Durability::QuorumDisk => self.flushed,
        }
    }

    pub(super) fn raise_commit(&mut self, position: i64) {
        if position > self.commit {
            self.commit = position;
            self.decide(Decision::Commit { position });
            self.commit_memberships();
        }
    }

    pub(super) fn enter(&mut self, now: Nanos, state: State) {
        self.state = state;
        self.election.entered = now;
        self.election.next_send = now;
        self.decide(Decision::State(state));
    }

    pub(super) fn take_role(&mut self, role: Role) {
        if self.role != role {
            self.role = role;
            self.decide(Decision::Role(role));
        }
    }

    /// Leaves leader or leadership, and starts an election once the log is released.
    pub(super) fn enter_election(&mut self, now: Nanos, fault: Option<Fault>) {
        self.leave_term(now, fault, false);
    }

    pub(super) fn leave_term(&mut self, now: Nanos, fault: Option<Fault>, ends_stream: bool) {
        if let Some(fault) = fault {
            self.decide(Decision::Fault(fault));
        }
        self.election.graceful_leader = None;
        self.take_role(Role::Follower);
        self.leading = Leading::default();
        self.following = Following::default();
        self.log(LogCommand::Release { ends_stream });
        self.enter(now, State::Init);
    }

    /// Ends a step that failed. A leader does not stand again for one election timeout; no member takes part in the election for
    /// one interval of canvass messages, so that a step that fails each time is not repeated without a pause.
    pub(super) fn fail(&mut self, now: Nanos, fault: Fault) {
        if self.role == Role::Leader {
            self.election.abstain_until = now + self.config.timing.election_timeout;
        }
        self.election.pause_until = now + self.config.timing.status_interval;
        self.enter_election(now, Some(fault));
    }

    /// Fails if the state lasts longer than the heartbeat timeout since `since`.
    pub(super) fn fails_after_timeout(&mut self, now: Nanos, since: Nanos) -> bool {
        let has_failed = now - since >= self.config.timing.heartbeat_timeout;
        if has_failed {
            self.fail(now, Fault::StateTimeout(self.state));
        }
        has_failed
    }

    /// Returns true if a periodic message is due, and sets the time of the next one.
    pub(super) fn is_due(&mut self, now: Nanos, interval: Nanos) -> bool {
        let is_due = now >= self.election.next_send;
        if is_due {
            self.election.next_send = now + interval;
        }
        is_due
    }

    /// Returns a random number below `bound`, by splitmix64.
    pub(super) fn random_below(&mut self, bound: Nanos) -> Nanos {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let range = u64::try_from(bound).unwrap_or(0).max(1);
        Nanos::try_from((mixed ^ (mixed >> 31)) % range).unwrap_or(0)
    }

    /// Notes a report of a member about its log.
    pub(super) fn note(
        &mut self,
        now: Nanos,
        from: usize,
        term: i64,
        position: i64,
        kind: ReportKind,
    ) {
        let peer = &mut self.peers[from];
        peer.heard = now;
        peer.report = Some(Report {
            term,
            position,
            kind,
        });
        if kind == ReportKind::Log {
            peer.shown_log_term = Some(term);
        }
    }

    /// Makes `now` the time 0, and forgets what can decide nothing any more, so that equal situations are equal states.
    #[cfg(test)]
    pub(super) fn rebase(&mut self, now: Nanos, horizon: Nanos) {
        let shift = |time: &mut Nanos| *time = (*time - now).max(-horizon);
        let election = &mut self.election;
        for time in [
            &mut election.entered,
            &mut election.next_send,
            &mut election.canvass_deadline,
            &mut election.nomination,
            &mut election.abstain_until,
            &mut election.pause_until,
            &mut election.stale_leader.1,
            &mut election.examine_from,
            &mut self.leading.next_commit,
            &mut self.following.progress,
            &mut self.leader_heard,
            &mut self.last_input,
        ] {
            shift(time);
        }
        for peer in &mut self.peers {
            shift(&mut peer.heard);
            shift(&mut peer.seen);
        }
        if let Some(transfer) = &mut self.leading.transfer {
            shift(&mut transfer.deadline);
        }
        self.random = 0;
        self.election.lost_ballots = 0;
        if self.done_writes == self.issued_writes && self.issued_writes > 0 {
            self.done_writes = 1;
            self.issued_writes = 1;
            let old = |write: &mut u64| *write = (*write).min(1);
            old(&mut self.election.nomination_write);
            old(&mut self.following.write);
            self.truncation = 0;
            if let Some(write) = &mut self.leading.term_write {
                old(write);
            }
            if let Some(write) = &mut self.election.pending_vote {
                old(write);
            }
        }
    }
}
