// SPDX-License-Identifier: Apache-2.0
//! A cluster without time: each member's clock runs on its own, and each message arrives when it is chosen.

use std::cell::RefCell;

use super::super::defects::Defects;
use super::super::simulation::checks::Violation;
use super::super::simulation::node::{Effect, Entry, Node, Pending, Stream, Torn, index, position};
use super::super::{
    BallotEnd, Config, Consensus, Durability, LogEvent, MembershipChange, Message, NULL_TERM,
    Nanos, Role, State, Timing,
};

/// Short periods, so that few situations differ in time only.
const TIMING: Timing = Timing {
    heartbeat_interval: 1,
    heartbeat_timeout: 4,
    election_timeout: 4,
    status_interval: 1,
    startup_canvass_timeout: 1,
    nomination_delay: 1,
    ballot_end: BallotEnd::Quorum,
};

/// Time behind all deadlines.
const HORIZON: Nanos = 8;

/// A step of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The message at this place arrives.
    Deliver(usize),
    /// The clock of the member reaches its next deadline.
    Tick(usize),
    /// The clock of the member passes all its deadlines.
    Timeout(usize),
    /// The member's log command proceeds: an entry, an answer, or a failure.
    Serve(usize),
    /// The oldest write of the member completes.
    Write(usize),
    /// A client appends an entry.
    Append(usize),
    /// Power cut.
    Crash(usize),
    Restart(usize),
}

/// Bounds of what may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) crashes: u8,
    pub(super) appends: u8,
    /// Highest term that a member may stand for.
    pub(super) terms: i64,
    /// Messages in flight; further ones are lost.
    pub(super) messages: usize,
}

thread_local! {
    /// States before the steps of a directed run.
    static RECORD: RefCell<Option<Vec<Cluster>>> = const { RefCell::new(None) };
}

/// Returns the state this many steps before the violation that a directed run ends in.
pub(super) fn steps_before_violation(
    steps: usize,
    run: impl FnOnce() -> Result<(), Violation>,
) -> Cluster {
    RECORD.set(Some(Vec::new()));
    let result = run();
    let record = RECORD.take().unwrap_or_default();
    assert!(result.is_err(), "the directed run ends in a violation");
    record[record.len() - steps].clone()
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cluster {
    pub(super) nodes: Vec<Node>,
    pending: Vec<Option<Pending>>,
    pub(super) network: Vec<(usize, usize, Message)>,
    pub(super) committed: Vec<(Entry, i64)>,
    leaders: Vec<(i64, usize)>,
    next_id: u32,
    /// Writes complete by themselves.
    pub(super) has_fast_disks: bool,
    pub(super) budget: Budget,
}

impl Cluster {
    pub(super) fn new(members: usize, defects: Defects) -> Self {
        let ids: Vec<i32> = (0..).take(members).collect();
        let mut cluster = Self {
            nodes: Vec::new(),
            pending: vec![None; members],
            network: Vec::new(),
            committed: Vec::new(),
            leaders: Vec::new(),
            next_id: 0,
            has_fast_disks: true,
            budget: Budget {
                crashes: u8::MAX,
                appends: u8::MAX,
                terms: i64::MAX,
                messages: usize::MAX,
            },
        };
        for id in &ids {
            let config = Config::new(*id, &ids, TIMING, Durability::QuorumDisk);
            let node = Node::new(config.expect("a valid cluster"), defects);
            cluster.nodes.push(node);
        }
        for member in 0..members {
            cluster.start(member);
        }
        cluster
    }

    fn start(&mut self, member: usize) {
        self.nodes[member].start(0, 0);
        if let Some(core) = &mut self.nodes[member].core {
            core.rebase(0, HORIZON);
        }
        self.pending[member] = None;
    }

    pub(super) fn core(&self, member: usize) -> Option<&Consensus> {
        self.nodes[member].core.as_ref()
    }

    pub(super) fn is_leader(&self, member: usize) -> bool {
        self.core(member)
            .is_some_and(|core| core.role() == Role::Leader && core.state() == State::Closed)
    }

    pub(super) fn is_follower(&self, member: usize, leader: usize) -> bool {
        self.core(member).is_some_and(|core| {
            core.state() == State::Closed && core.leader() == Some(leader as i32)
        })
    }

    /// Returns all steps that are possible now.
    pub(super) fn actions(&self) -> Vec<Action> {
        let mut actions: Vec<Action> = (0..self.network.len()).map(Action::Deliver).collect();
        for (member, node) in self.nodes.iter().enumerate() {
            let Some(core) = &node.core else {
                actions.push(Action::Restart(member));
                continue;
            };
            let may_stand = core.candidate_term() < self.budget.terms;
            let stands = matches!(core.state(), State::Canvass | State::Nominate);
            if may_stand || !stands {
                actions.push(Action::Tick(member));
            }
            if core.state() != State::Canvass {
                actions.push(Action::Timeout(member));
            }
            if self.has_service(member) {
                actions.push(Action::Serve(member));
            }
            if node.pending_writes() > 0 {
                actions.push(Action::Write(member));
            }
            if self.budget.appends > 0 && core.accepts_entries(0) {
                actions.push(Action::Append(member));
            }
            if self.budget.crashes > 0 {
                actions.push(Action::Crash(member));
            }
        }
        actions
    }

    fn has_service(&self, member: usize) -> bool {
        if self.pending[member].is_some() {
            return true;
        }
        let (leader, term, end) = match self.nodes[member].stream {
            Stream::Idle | Stream::Published { .. } => return false,
            Stream::Replicated { leader, term, end } => (leader, term, index(end)),
            Stream::Received { leader, term, .. } => (leader, term, usize::MAX),
        };
        let is_led = self.nodes[leader].led_term() == Some(term);
        !is_led || self.nodes[member].log.len() < self.nodes[leader].log.len().min(end)
    }

    /// Takes a step, and checks all invariants.
    pub(super) fn apply(&mut self, action: Action) -> Result<(), Violation> {
        match action {
            Action::Deliver(at) => {
                let (from, to, message) = self.network.remove(at);
                if let Some(core) = &mut self.nodes[to].core {
                    core.receive(0, from as i32, &message);
                }
                self.after(to, 0)
            }
            Action::Tick(member) => {
                let deadline = self.core(member).map_or(0, Consensus::next_deadline);
                let now = if deadline > HORIZON {
                    0
                } else {
                    deadline.max(0)
                };
                self.tick(member, now)
            }
            Action::Timeout(member) => self.tick(member, HORIZON),
            Action::Serve(member) => {
                self.serve(member);
                self.after(member, 0)
            }
            Action::Write(member) => {
                self.complete_write(member);
                self.after(member, 0)
            }
            Action::Append(member) => {
                let term = self.core(member).and_then(Consensus::term);
                self.budget.appends -= 1;
                self.next_id += 1;
                let node = &mut self.nodes[member];
                node.log.push(Entry {
                    term: term.unwrap_or(NULL_TERM),
                    id: self.next_id,
                    members: 0,
                });
                node.flush();
                self.appended(member);
                self.after(member, 0)
            }
            Action::Crash(member) => {
                self.budget.crashes -= 1;
                self.nodes[member].crash(true, Torn::Whole(0));
                self.pending[member] = None;
                Ok(())
            }
            Action::Restart(member) => {
                self.start(member);
                Ok(())
            }
        }
    }

    fn tick(&mut self, member: usize, now: Nanos) -> Result<(), Violation> {
        if let Some(core) = &mut self.nodes[member].core {
            core.tick(now);
        }
        self.after(member, now)
    }

    fn log_event(&mut self, member: usize, event: LogEvent) {
        if let Some(core) = &self.nodes[member].core {
            let now = core_now(core);
            self.nodes[member].tell(now, event);
        }
    }

    fn appended(&mut self, member: usize) {
        let position = self.nodes[member].end();
        let flushed = position;
        self.log_event(member, LogEvent::Appended { position, flushed });
    }

    fn complete_write(&mut self, member: usize) {
        if let Some(sequence) = self.nodes[member].complete_write() {
            self.appended(member);
            if let Some(core) = &mut self.nodes[member].core {
                core.on_durable(core_now(core), sequence);
            }
        }
    }

    fn serve(&mut self, member: usize) {
        let serves =
            |cluster: &Self, leader: usize, term| cluster.nodes[leader].led_term() == Some(term);
        match self.pending[member].take() {
            Some(Pending::Local(event)) => self.log_event(member, event),
            Some(Pending::Read {
                leader,
                term,
                position,
            }) => {
                let event = if serves(self, leader, term) {
                    let entry = self.nodes[leader].log.get(index(position));
                    let term = entry.filter(|entry| entry.id == 0).map(|entry| entry.term);
                    LogEvent::TermEventRead { position, term }
                } else {
                    LogEvent::Failed
                };
                self.log_event(member, event);
            }
            Some(Pending::Join {
                leader,
                term,
                is_replay,
            }) => {
                if !serves(self, leader, term) {
                    self.log_event(member, LogEvent::Failed);
                    return;
                }
                if is_replay && self.nodes[leader].replays >> member & 1 == 0 {
                    self.pending[member] = Some(Pending::Join {
                        leader,
                        term,
                        is_replay,
                    });
                    return;
                }
                let own = self.nodes[member].end();
                let position = if is_replay {
                    own
                } else {
                    self.nodes[leader].end()
                };
                if position == own {
                    self.nodes[member].stream = Stream::Received {
                        leader,
                        term,
                        is_replay,
                    };
                }
                self.log_event(member, LogEvent::Joined { position });
            }
            None => self.receive_entry(member),
        }
    }

    fn receive_entry(&mut self, member: usize) {
        let (Stream::Replicated { leader, term, .. } | Stream::Received { leader, term, .. }) =
            self.nodes[member].stream
        else {
            return;
        };
        if self.nodes[leader].led_term() != Some(term) {
            self.nodes[member].stream = Stream::Idle;
            self.log_event(member, LogEvent::Failed);
            return;
        }
        let at = self.nodes[member].log.len();
        if let Some(entry) = self.nodes[leader].log.get(at).copied() {
            self.nodes[member].log.push(entry);
            self.nodes[member].flush();
            self.appended(member);
        }
    }

    /// Takes the decisions of a member; its own log and, if they are fast, its disks answer at once.
    fn after(&mut self, member: usize, now: Nanos) -> Result<(), Violation> {
        let mut effects = Vec::new();
        loop {
            self.nodes[member].execute(&mut effects);
            let mut is_done = true;
            let mut events = Vec::new();
            for effect in effects.drain(..) {
                match effect {
                    Effect::Send { to, message } => {
                        let sent = (member, to, message);
                        if self.network.len() < self.budget.messages
                            && let Err(at) = self.network.binary_search(&sent)
                        {
                            self.network.insert(at, sent);
                        }
                    }
                    Effect::Committed { position } => {
                        self.commit(member, position)?;
                        events.push(LogEvent::Consumed { position });
                    }
                    Effect::Elected { term } => self.elect(member, term)?,
                    Effect::Pending(Pending::Local(event)) => {
                        if matches!(event, LogEvent::Released { .. } | LogEvent::Published) {
                            self.pending[member] = None;
                        }
                        events.push(event);
                    }
                    Effect::Pending(pending) => self.pending[member] = Some(pending),
                    Effect::Stopped(_) => {
                        return Err(Violation::CommittedLost {
                            index: index(self.nodes[member].commit),
                        });
                    }
                    Effect::Persisting { .. }
                    | Effect::Replicating
                    | Effect::EndedStream { .. } => {}
                }
            }
            if self.has_fast_disks {
                while self.nodes[member].pending_writes() > 0 {
                    self.complete_write(member);
                    is_done = false;
                }
            }
            for event in events {
                is_done = false;
                let event = match event {
                    LogEvent::Released { .. } => LogEvent::Released {
                        position: self.nodes[member].end(),
                    },
                    LogEvent::Appended { .. } => {
                        self.nodes[member].flush();
                        self.appended(member);
                        continue;
                    }
                    event => event,
                };
                self.log_event(member, event);
            }
            if is_done {
                break;
            }
        }
        if let Some(core) = &mut self.nodes[member].core {
            core.rebase(now, HORIZON);
        }
        self.check_logs()
    }

    fn commit(&mut self, member: usize, position: i64) -> Result<(), Violation> {
        let term = self.core(member).and_then(Consensus::term);
        for index in 0..index(position) {
            let entry = self.nodes[member].log.get(index).copied();
            let known = self.committed.get(index).map(|(entry, _)| *entry);
            match (entry, known) {
                (Some(entry), None) => self.committed.push((entry, term.unwrap_or(NULL_TERM))),
                (Some(entry), Some(known)) if entry == known => {}
                _ => return Err(Violation::StateMachineSafety { member, index }),
            }
        }
        Ok(())
    }

    fn elect(&mut self, member: usize, term: i64) -> Result<(), Violation> {
        if self
            .leaders
            .iter()
            .any(|(led, by)| *led == term && *by != member)
        {
            return Err(Violation::ElectionSafety { term });
        }
        self.leaders.push((term, member));
        self.leaders.sort_unstable();
        self.leaders.dedup();
        for (index, (entry, by)) in self.committed.iter().enumerate() {
            if *by < term && self.nodes[member].log.get(index) != Some(entry) {
                return Err(Violation::LeaderCompleteness { term, index });
            }
        }
        Ok(())
    }

    fn check_logs(&self) -> Result<(), Violation> {
        for (member, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[..member] {
                let same = |index: &usize| node.log[*index] == other.log[*index];
                let common = node.log.len().min(other.log.len());
                let first = (0..common).find(|index| !same(index)).unwrap_or(common);
                let again =
                    (first..common).find(|index| node.log[*index].term == other.log[*index].term);
                if let Some(index) = again {
                    return Err(Violation::LogMatching { member, index });
                }
            }
        }
        Ok(())
    }

    // Directed runs.

    pub(super) fn take(&mut self, action: Action) -> Result<(), Violation> {
        RECORD.with_borrow_mut(|record| {
            if let Some(record) = record {
                record.push(self.clone());
            }
        });
        self.apply(action)
    }

    /// Delivers all messages between these members, and loses the others.
    pub(super) fn exchange(&mut self, members: &[usize]) -> Result<(), Violation> {
        for _ in 0..64 {
            self.network
                .retain(|(from, to, _)| members.contains(from) && members.contains(to));
            if self.network.is_empty() {
                break;
            }
            self.take(Action::Deliver(0))?;
        }
        Ok(())
    }

    /// Runs these members, which hear each other and no other, until the condition holds.
    pub(super) fn run(
        &mut self,
        members: &[usize],
        is_done: impl Fn(&Self) -> bool,
    ) -> Result<bool, Violation> {
        for _ in 0..200 {
            if is_done(self) {
                return Ok(true);
            }
            for &member in members {
                if self.nodes[member].is_up() {
                    self.take(Action::Tick(member))?;
                }
                self.exchange(members)?;
                if self.nodes[member].is_up() && self.has_service(member) {
                    self.take(Action::Serve(member))?;
                }
                self.exchange(members)?;
            }
        }
        Ok(is_done(self))
    }

    /// Delivers the first message that fits. Returns false if there is none.
    pub(super) fn deliver(
        &mut self,
        fits: impl Fn(usize, usize, &Message) -> bool,
    ) -> Result<bool, Violation> {
        let found = self
            .network
            .iter()
            .position(|(from, to, message)| fits(*from, *to, message));
        let Some(at) = found else {
            return Ok(false);
        };
        self.take(Action::Deliver(at))?;
        Ok(true)
    }

    /// Lets the member be elected by the voters, and loses all other messages, among them those of the new leader. Returns false
    /// if they refuse.
    pub(super) fn elect_by(&mut self, member: usize, voters: &[usize]) -> Result<bool, Violation> {
        let has_led = |cluster: &Self| {
            cluster
                .core(member)
                .is_some_and(|core| core.role() == Role::Leader)
        };
        for &each in voters.iter().chain(&[member]) {
            if self
                .core(each)
                .is_some_and(|core| !core.state().is_ballot())
            {
                self.take(Action::Timeout(each))?;
            }
        }
        for _ in 0..32 {
            self.network.clear();
            for &voter in voters {
                if self
                    .core(voter)
                    .is_some_and(|core| core.state() != State::CandidateBallot)
                {
                    self.take(Action::Tick(voter))?;
                }
            }
            // Voters do not hear each other's canvass, so none of them stands.
            self.network.retain(|(_, to, _)| *to == member);
            self.take(Action::Tick(member))?;
            while self.deliver(|from, to, message| {
                (from == member
                    && matches!(message, Message::RequestVote { .. })
                    && voters.contains(&to))
                    || (to == member && voters.contains(&from))
            })? {
                while self.nodes[member].pending_writes() > 0 {
                    self.take(Action::Write(member))?;
                }
                if has_led(self) {
                    self.network.clear();
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Runs these members until the leader runs and all others follow.
    pub(super) fn establish(
        &mut self,
        leader: usize,
        members: &[usize],
    ) -> Result<bool, Violation> {
        self.run(members, |cluster| {
            cluster.is_leader(leader)
                && members.iter().all(|member| {
                    *member == leader
                        || cluster.is_follower(*member, leader)
                            && cluster.nodes[*member].log.len() == cluster.nodes[leader].log.len()
                            && cluster.nodes[*member].commit
                                == position(cluster.nodes[leader].log.len())
                })
        })
    }

    pub(super) fn append(&mut self, member: usize) -> Result<(), Violation> {
        assert!(
            self.core(member)
                .is_some_and(|core| core.accepts_entries(0))
        );
        self.take(Action::Append(member))
    }

    /// Lets the leader change the membership.
    pub(super) fn change(
        &mut self,
        member: usize,
        change: MembershipChange,
    ) -> Result<(), Violation> {
        let core = self.nodes[member].core.as_mut();
        let changed = core.map(|core| core.change_membership(core_now(core), change));
        assert_eq!(changed, Some(Ok(())));
        self.after(member, 0)
    }

    pub(super) fn serve_once(&mut self, member: usize) -> Result<(), Violation> {
        self.take(Action::Serve(member))
    }

    pub(super) fn crash(&mut self, member: usize) {
        let _ = self.apply(Action::Crash(member));
    }

    pub(super) fn restart(&mut self, member: usize) {
        self.start(member);
    }

    pub(super) fn tick_of(&mut self, member: usize) -> Result<(), Violation> {
        self.take(Action::Tick(member))
    }

    /// Number of entries that were committed.
    pub(super) fn committed(&self) -> usize {
        self.committed.len()
    }
}

fn core_now(core: &Consensus) -> Nanos {
    core.last_input()
}
