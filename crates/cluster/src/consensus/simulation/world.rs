// SPDX-License-Identifier: Apache-2.0
//! Members, network, disks and clocks in virtual time.

mod operator;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fastrand::Rng;

use super::super::defects::Defects;
use super::super::{
    Durability, Incarnation, LogEvent, MemberId, MembershipChange, Message, Nanos, State,
    StopReason,
};
use super::checks::{Checks, Violation};
use super::node::{Effect, Entry, LENGTH, Node, Pending, Stream, Torn, position};
use super::schedule::{Fault, MILLISECOND, Schedule};

/// Time after the end of faults within which everything has to be committed everywhere.
const RECOVERY: Nanos = 8_000 * MILLISECOND;

/// Entries that clients append after the end of faults.
const LAST_ENTRIES: usize = 3;

/// Time that a slow service needs for what is committed.
const SLOW_SERVICE: Nanos = 20 * MILLISECOND;

#[derive(Clone, Copy, Debug)]
enum Event {
    Tick {
        member: usize,
    },
    Deliver {
        from: usize,
        to: usize,
        message: Message,
    },
    Written {
        member: usize,
        run: u32,
        sequence: u64,
    },
    Flushed {
        member: usize,
        run: u32,
        position: i64,
    },
    Local {
        member: usize,
        command: u32,
        event: LogEvent,
    },
    Pending {
        member: usize,
        command: u32,
        pending: Pending,
    },
    Pump {
        member: usize,
        command: u32,
    },
    Client,
    Operator,
    Fault {
        index: usize,
    },
    Resume {
        member: usize,
    },
    Whole,
}

struct Timed {
    at: Nanos,
    order: u64,
    event: Event,
}

impl PartialEq for Timed {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Timed {}
impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Timed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// A member, and what the world knows of its process.
struct Process {
    node: Node,
    /// Number of the run; events of an earlier one are void.
    run: u32,
    /// Number of the last log command that was replaced; likewise.
    command: u32,
    tick_at: Nanos,
    stalled_until: Nanos,
    /// Events of the time of the stall, in order.
    held: Vec<Event>,
    disk_factor: i64,
    disk_free: Nanos,
    is_flushing: bool,
    /// The node takes part: it is there, and was not removed.
    is_present: bool,
}

pub(super) struct World<'a> {
    schedule: &'a Schedule,
    defects: Defects,
    random: Rng,
    now: Nanos,
    order: u64,
    events: BinaryHeap<Reverse<Timed>>,
    processes: Vec<Process>,
    checks: Checks,
    /// Bits of the members that hear this one.
    links: Vec<u32>,
    ended_terms: Vec<i64>,
    next_id: u32,
    /// Changes of the members that are to be made, in order.
    wishes: VecDeque<MembershipChange>,
    next_incarnation: Vec<Incarnation>,
    is_whole: bool,
    committed_when_whole: usize,
    effects: Vec<Effect>,
    pub(super) steps: u64,
    /// Times at which entries were accepted.
    pub(super) accepted: Vec<Nanos>,
}

impl<'a> World<'a> {
    pub(super) fn new(schedule: &'a Schedule, defects: Defects) -> Self {
        let count = schedule.nodes();
        let originals: Vec<MemberId> = (0..).take(schedule.members).collect();
        let config = |member| {
            if member < schedule.members {
                schedule.config(member)
            } else {
                schedule.joining(member, &originals, 1)
            }
        };
        let process = |member| Process {
            node: Node::new(config(member), defects),
            run: 0,
            command: 0,
            tick_at: Nanos::MAX,
            stalled_until: 0,
            held: Vec::new(),
            disk_factor: 1,
            disk_free: 0,
            is_flushing: false,
            is_present: member < schedule.members,
        };
        let mut world = Self {
            schedule,
            random: Rng::with_seed(schedule.seed ^ 0x5eed),
            now: 0,
            order: 0,
            events: BinaryHeap::new(),
            processes: (0..count).map(process).collect(),
            checks: Checks::new(count),
            links: vec![u32::MAX; count],
            ended_terms: Vec::new(),
            next_id: 0,
            wishes: VecDeque::new(),
            next_incarnation: vec![1; count],
            defects,
            is_whole: false,
            committed_when_whole: 0,
            effects: Vec::new(),
            steps: 0,
            accepted: Vec::new(),
        };
        for member in 0..count {
            let at = world.random.i64(0..20 * MILLISECOND);
            world.start(member);
            world.at(at, Event::Tick { member });
        }
        for (index, (at, _)) in schedule.faults.iter().enumerate() {
            world.at(*at, Event::Fault { index });
        }
        world.at(schedule.end, Event::Whole);
        world.at(0, Event::Client);
        world.at(0, Event::Operator);
        world
    }

    /// Runs the schedule to its end.
    pub(super) fn run(&mut self) -> Result<(), Violation> {
        while let Some(Reverse(Timed { at, event, .. })) = self.events.pop() {
            self.now = at;
            self.steps += 1;
            self.handle(event)?;
            if self.is_whole {
                if self.has_recovered() {
                    return Ok(());
                }
                if self.now > self.schedule.end + RECOVERY {
                    return Err(Violation::Progress {
                        committed: self.checks.committed.len(),
                    });
                }
            }
        }
        Err(Violation::Progress { committed: 0 })
    }

    fn has_recovered(&self) -> bool {
        let all = self.checks.committed.len();
        all >= self.committed_when_whole + LAST_ENTRIES
            && self.living_members().all(|process| {
                process.node.commit >= position(self.committed_when_whole + LAST_ENTRIES)
            })
    }

    fn at(&mut self, at: Nanos, event: Event) {
        self.order += 1;
        self.events.push(Reverse(Timed {
            at: at.max(self.now),
            order: self.order,
            event,
        }));
    }

    /// Time on the clock of a member.
    fn clock(&self, member: usize) -> Nanos {
        self.now / 1_000 * self.schedule.clocks[member]
    }

    fn start(&mut self, member: usize) {
        let now = self.clock(member);
        let seed = self.random.u64(..);
        let process = &mut self.processes[member];
        if process.node.is_up() || !process.is_present {
            return;
        }
        process.run += 1;
        process.command += 1;
        process.tick_at = Nanos::MAX;
        process.is_flushing = false;
        process.disk_free = 0;
        process.node.start(now, seed);
        let at = self.now;
        self.at(at, Event::Tick { member });
    }

    fn crash(&mut self, member: usize, is_power_cut: bool) {
        let process = &mut self.processes[member];
        if !process.node.is_up() {
            return;
        }
        let count = self.random.usize(..=process.node.pending_writes());
        let torn = if self.random.bool() {
            Torn::Whole(count)
        } else {
            Torn::Half(count)
        };
        process.node.crash(is_power_cut, torn);
        process.run += 1;
        process.command += 1;
    }

    fn handle(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::Tick { member } => {
                let process = &mut self.processes[member];
                if self.now >= process.tick_at || process.tick_at == Nanos::MAX {
                    process.tick_at = Nanos::MAX;
                    return self.input(member, event);
                }
                Ok(())
            }
            Event::Deliver { from, to, .. } => {
                if self.is_heard(from, to) && self.processes[to].node.is_up() {
                    return self.input(to, event);
                }
                Ok(())
            }
            Event::Written { member, run, .. } | Event::Flushed { member, run, .. } => {
                if self.processes[member].run == run {
                    return self.input(member, event);
                }
                Ok(())
            }
            Event::Local {
                member, command, ..
            }
            | Event::Pending {
                member, command, ..
            }
            | Event::Pump { member, command } => {
                if self.processes[member].command == command {
                    return self.input(member, event);
                }
                Ok(())
            }
            Event::Client => self.append_of_clients(),
            Event::Operator => self.operate(),
            Event::Fault { index } => self.fault(self.schedule.faults[index].1),
            Event::Resume { member } => {
                if self.now < self.processes[member].stalled_until {
                    return Ok(());
                }
                self.resume(member)
            }
            Event::Whole => {
                self.links.fill(u32::MAX);
                for member in 0..self.processes.len() {
                    self.processes[member].stalled_until = 0;
                    self.resume(member)?;
                    self.processes[member].disk_factor = 1;
                    self.start(member);
                }
                self.is_whole = true;
                self.committed_when_whole = self.checks.committed.len();
                Ok(())
            }
        }
    }

    fn is_heard(&self, from: usize, to: usize) -> bool {
        self.links[from] >> to & 1 == 1
    }

    /// Lets the process of a member take what was held during its stall.
    fn resume(&mut self, member: usize) -> Result<(), Violation> {
        let held = std::mem::take(&mut self.processes[member].held);
        held.into_iter().try_for_each(|event| self.handle(event))
    }

    /// Lets the process of a member take an event, after its stall if it is stalled.
    fn input(&mut self, member: usize, event: Event) -> Result<(), Violation> {
        let process = &mut self.processes[member];
        if self.now < process.stalled_until || !process.held.is_empty() {
            process.held.push(event);
            return Ok(());
        }
        let now = self.clock(member);
        let process = &mut self.processes[member];
        let Some(core) = process.node.core.as_mut() else {
            return Ok(());
        };
        match event {
            Event::Tick { .. } => core.tick(now),
            Event::Deliver { from, message, .. } => core.receive(now, from as i32, &message),
            Event::Written { sequence, .. } => {
                assert_eq!(process.node.complete_write(), Some(sequence));
                let appended = LogEvent::Appended {
                    position: process.node.end(),
                    flushed: process.node.flushed(),
                };
                if let Some(core) = process.node.core.as_mut() {
                    core.on_durable(now, sequence);
                    core.on_log(now, appended);
                }
            }
            Event::Flushed { position, .. } => {
                process.is_flushing = false;
                if process.node.end() >= position {
                    process.node.flush();
                    let flushed = process.node.flushed();
                    let appended = LogEvent::Appended {
                        position: process.node.end(),
                        flushed,
                    };
                    if let Some(core) = process.node.core.as_mut() {
                        core.on_log(now, appended);
                    }
                }
            }
            Event::Local { event, .. } => self.local(member, event),
            Event::Pending { pending, .. } => self.pending(member, pending),
            Event::Pump { .. } => self.pump(member),
            Event::Client
            | Event::Operator
            | Event::Fault { .. }
            | Event::Resume { .. }
            | Event::Whole => {}
        }
        self.after(member)
    }

    fn local(&mut self, member: usize, event: LogEvent) {
        let now = self.clock(member);
        if matches!(event, LogEvent::Released { .. })
            && self.processes[member].node.pending_writes() > 0
        {
            // Writes come before what follows them.
            let command = self.processes[member].command;
            let at = self.now + MILLISECOND;
            self.at(
                at,
                Event::Local {
                    member,
                    command,
                    event,
                },
            );
            return;
        }
        let node = &mut self.processes[member].node;
        let event = if let LogEvent::Released { .. } = event {
            node.flush();
            LogEvent::Released {
                position: node.end(),
            }
        } else {
            event
        };
        node.tell(now, event);
    }

    /// Returns true if the leader still leads the term, and both hear each other.
    fn is_served(&self, member: usize, leader: usize, term: i64) -> bool {
        self.processes[leader].node.led_term() == Some(term)
            && self.is_heard(leader, member)
            && self.is_heard(member, leader)
            && self.now >= self.processes[leader].stalled_until
    }

    fn pending(&mut self, member: usize, pending: Pending) {
        let now = self.clock(member);
        let event = match pending {
            Pending::Local(event) => event,
            Pending::Read {
                leader,
                term,
                position,
            } => {
                if self.is_served(member, leader, term) {
                    let entry = self.processes[leader]
                        .node
                        .log
                        .get(super::node::index(position));
                    let term = entry.filter(|entry| entry.id == 0).map(|entry| entry.term);
                    LogEvent::TermEventRead { position, term }
                } else {
                    LogEvent::Failed
                }
            }
            Pending::Join {
                leader,
                term,
                is_replay,
            } => {
                let replay = self.processes[leader].node.replays >> member & 1 == 1;
                if !self.is_served(member, leader, term) || is_replay && !replay {
                    // Not yet: the core gives up by itself.
                    let command = self.processes[member].command;
                    let at = self.now + 3 * MILLISECOND;
                    self.at(
                        at,
                        Event::Pending {
                            member,
                            command,
                            pending,
                        },
                    );
                    return;
                }
                let position = if is_replay {
                    self.processes[member].node.end()
                } else {
                    self.processes[leader].node.end()
                };
                if position == self.processes[member].node.end() {
                    self.processes[member].node.stream = Stream::Received {
                        leader,
                        term,
                        is_replay,
                    };
                    let command = self.processes[member].command;
                    let at = self.now;
                    self.at(at, Event::Pump { member, command });
                }
                LogEvent::Joined { position }
            }
        };
        if let Some(core) = self.processes[member].node.core.as_mut() {
            core.on_log(now, event);
        }
    }

    /// Moves entries of the leader's log to the log of a follower.
    fn pump(&mut self, member: usize) {
        let now = self.clock(member);
        let (leader, term, end) = match self.processes[member].node.stream {
            Stream::Idle | Stream::Published { .. } => return,
            Stream::Replicated { leader, term, end } => (leader, term, end),
            Stream::Received { leader, term, .. } => (leader, term, i64::MAX),
        };
        let command = self.processes[member].command;
        let at = self.now + MILLISECOND + self.random.i64(0..self.schedule.delay.max(1) * 2);
        let own = self.processes[member].node.log.len();
        let is_stream_ended = self.ended_terms.contains(&term);
        if !self.is_served(member, leader, term) {
            let is_gone = self.processes[leader].node.led_term() != Some(term);
            let event = if is_stream_ended && self.is_heard(leader, member) {
                Some(LogEvent::EndOfStream)
            } else if is_gone && self.random.u8(..8) == 0 || self.random.u8(..64) == 0 {
                Some(LogEvent::Failed)
            } else {
                None
            };
            match (event, self.processes[member].node.core.as_mut()) {
                (Some(event), Some(core)) => core.on_log(now, event),
                _ => self.at(at, Event::Pump { member, command }),
            }
            return;
        }
        let available = self.processes[leader]
            .node
            .log
            .len()
            .min(super::node::index(end.min(i64::MAX - LENGTH)));
        let count = available
            .saturating_sub(own)
            .min(1 + self.random.usize(..4));
        let lost = self.random.u32(..1_000) < self.schedule.loss;
        if count > 0 && !lost {
            let from = &self.processes[leader].node.log[own..own + count];
            let entries: Vec<Entry> = from.to_vec();
            let node = &mut self.processes[member].node;
            node.log.extend(entries);
            let appended = LogEvent::Appended {
                position: node.end(),
                flushed: node.flushed(),
            };
            if let Some(core) = node.core.as_mut() {
                core.on_log(now, appended);
            }
            self.flush_later(member);
        }
        self.at(at, Event::Pump { member, command });
    }

    fn flush_later(&mut self, member: usize) {
        let delay = self.disk_delay(member);
        let process = &mut self.processes[member];
        if self.schedule.durability == Durability::QuorumDisk && !process.is_flushing {
            process.is_flushing = true;
            let (run, position) = (process.run, process.node.end());
            let at = self.now + delay;
            self.at(
                at,
                Event::Flushed {
                    member,
                    run,
                    position,
                },
            );
        }
    }

    fn disk_delay(&mut self, member: usize) -> Nanos {
        let factor = self.processes[member].disk_factor;
        1_000 + self.random.i64(0..=self.schedule.disk_delay) * factor
    }

    /// Takes the decisions of a member, checks, and plans its next tick.
    fn after(&mut self, member: usize) -> Result<(), Violation> {
        let mut effects = std::mem::take(&mut self.effects);
        self.processes[member].node.execute(&mut effects);
        let mut result = Ok(());
        for effect in effects.drain(..) {
            if result.is_ok() {
                result = self.effect(member, effect);
            }
        }
        self.effects = effects;
        result?;
        self.checks.log(&self.processes[member].node, member)?;
        let Some(core) = self.processes[member].node.core.as_ref() else {
            return Ok(());
        };
        let deadline = core.next_deadline();
        if deadline < Nanos::MAX {
            // The first world time at which the clock shows the deadline.
            let clock = self.schedule.clocks[member];
            let at = (deadline.div_euclid(clock) + 1) * 1_000;
            let at = at.max(self.now + 1_000);
            if at < self.processes[member].tick_at {
                self.processes[member].tick_at = at;
                self.at(at, Event::Tick { member });
            }
        }
        Ok(())
    }

    fn effect(&mut self, member: usize, effect: Effect) -> Result<(), Violation> {
        match effect {
            Effect::Send { to, message } => {
                let draw = self.random.u32(..1_000);
                if draw >= self.schedule.loss || self.is_whole {
                    self.transmit(member, to, message);
                }
                if draw % 1_000 > 999 - self.schedule.duplicates {
                    self.transmit(member, to, message);
                }
                Ok(())
            }
            Effect::Committed { position } => {
                // A service may be slow, but it takes all that is committed.
                let delay = if self.random.bool() {
                    self.random.i64(0..3 * MILLISECOND)
                } else {
                    SLOW_SERVICE
                };
                let command = self.processes[member].command;
                let event = LogEvent::Consumed { position };
                self.at(
                    self.now + delay,
                    Event::Local {
                        member,
                        command,
                        event,
                    },
                );
                self.checks
                    .committed(&self.processes[member].node, member, position)
            }
            Effect::Elected { term } => {
                self.checks
                    .elected(&self.processes[member].node, member, term)
            }
            Effect::Persisting { sequence } => {
                let delay = self.disk_delay(member);
                let process = &mut self.processes[member];
                let at = (self.now + delay).max(process.disk_free + 1);
                process.disk_free = at;
                let run = process.run;
                self.at(
                    at,
                    Event::Written {
                        member,
                        run,
                        sequence,
                    },
                );
                Ok(())
            }
            Effect::Pending(pending) => {
                let is_consumed = matches!(pending, Pending::Local(LogEvent::Consumed { .. }));
                let is_flush = matches!(pending, Pending::Local(LogEvent::Appended { .. }));
                // A catch-up is one command with two answers.
                let is_second = matches!(
                    pending,
                    Pending::Join {
                        is_replay: true,
                        ..
                    }
                );
                if !is_consumed && !is_flush && !is_second {
                    self.processes[member].command += 1;
                }
                if is_flush {
                    self.flush_later(member);
                }
                let command = self.processes[member].command;
                let at = self.now + self.random.i64(0..3 * MILLISECOND);
                let event = match pending {
                    Pending::Local(event) => Event::Local {
                        member,
                        command,
                        event,
                    },
                    _ => Event::Pending {
                        member,
                        command,
                        pending,
                    },
                };
                self.at(at, event);
                Ok(())
            }
            Effect::Replicating => {
                self.processes[member].command += 1;
                let command = self.processes[member].command;
                let at = self.now + MILLISECOND;
                self.at(at, Event::Pump { member, command });
                Ok(())
            }
            Effect::EndedStream { term } => {
                self.ended_terms.push(term);
                Ok(())
            }
            Effect::Stopped(StopReason::Removed { .. }) => {
                let process = &mut self.processes[member];
                process.node.end_removed();
                process.is_present = false;
                process.run += 1;
                process.command += 1;
                Ok(())
            }
            Effect::Stopped(StopReason::CommittedEntryLost { commit, .. }) => {
                Err(Violation::CommittedLost {
                    index: super::node::index(commit),
                })
            }
        }
    }

    fn transmit(&mut self, from: usize, to: usize, message: Message) {
        let mut delay = 50_000 + self.random.i64(0..self.schedule.delay);
        if self.random.u32(..1_000) < self.schedule.late && !self.is_whole {
            delay += self.random.i64(0..300 * MILLISECOND);
        }
        let at = self.now + delay;
        self.at(at, Event::Deliver { from, to, message });
    }

    fn append_of_clients(&mut self) -> Result<(), Violation> {
        let at = self.now + MILLISECOND + self.random.i64(0..8 * MILLISECOND);
        self.at(at, Event::Client);
        for member in 0..self.processes.len() {
            if self.now < self.processes[member].stalled_until {
                continue;
            }
            let now = self.clock(member);
            let node = &mut self.processes[member].node;
            let Some(core) = node.core.as_mut().filter(|core| core.accepts_entries(now)) else {
                continue;
            };
            let term = core.term().expect("a leader has a term");
            self.next_id += 1;
            node.log.push(Entry {
                term,
                id: self.next_id,
                members: 0,
            });
            let appended = LogEvent::Appended {
                position: position(node.log.len()),
                flushed: position(node.disk_log.len().min(node.log.len())),
            };
            core.on_log(now, appended);
            self.accepted.push(self.now);
            self.flush_later(member);
            self.after(member)?;
        }
        Ok(())
    }

    fn fault(&mut self, fault: Fault) -> Result<(), Violation> {
        match fault {
            Fault::Kill { member } => self.crash(member, false),
            Fault::CutPower { member } => {
                self.crash(member, true);
                return self.check_disks();
            }
            Fault::CutPowerOfAll => {
                for member in 0..self.processes.len() {
                    self.crash(member, true);
                }
                self.check_disks()?;
                for member in 0..self.processes.len() {
                    self.start(member);
                }
            }
            Fault::KillLeader => {
                let leader = self.leader();
                self.crash(leader.expect("a member leads"), false);
            }
            Fault::Restart { member } => self.start(member),
            Fault::Block { from, to } => self.links[from] &= !to,
            Fault::Split { side } => {
                for (from, links) in self.links.iter_mut().enumerate() {
                    *links &= if side >> from & 1 == 1 { side } else { !side };
                }
            }
            Fault::Heal => self.links.fill(u32::MAX),
            Fault::Stall { member, time } => {
                let until = self.now + time;
                self.processes[member].stalled_until = until;
                self.at(until, Event::Resume { member });
            }
            Fault::SlowDisk { member, factor } => self.processes[member].disk_factor = factor,
            Fault::Transfer { member, to } => {
                let now = self.clock(member);
                if self.now < self.processes[member].stalled_until {
                    return Ok(());
                }
                if let Some(core) = self.processes[member].node.core.as_mut() {
                    // Refused by a member that does not lead.
                    let _ = core.transfer_leadership(now, to);
                    return self.after(member);
                }
            }
            Fault::Join { .. } | Fault::Leave { .. } | Fault::Replace { .. } => {
                self.wish(fault);
            }
            Fault::FailLog { member } => {
                let command = self.processes[member].command;
                let at = self.now;
                let event = LogEvent::Failed;
                self.at(
                    at,
                    Event::Local {
                        member,
                        command,
                        event,
                    },
                );
            }
        }
        Ok(())
    }

    /// Returns the member that takes entries.
    pub(super) fn leader(&self) -> Option<usize> {
        let takes_entries = |member: &usize| {
            let core = self.processes[*member].node.core.as_ref();
            core.is_some_and(|core| core.accepts_entries(self.clock(*member)))
        };
        (0..self.processes.len()).find(takes_entries)
    }

    fn check_disks(&self) -> Result<(), Violation> {
        let nodes: Vec<Node> = self
            .processes
            .iter()
            .map(|process| process.node.clone())
            .collect();
        self.checks.kept(&nodes, true)
    }

    /// State of each member, for reports.
    pub(super) fn describe(&self) -> String {
        let mut text = String::new();
        for (member, process) in self.processes.iter().enumerate() {
            let node = &process.node;
            let core = node
                .core
                .as_ref()
                .map(|core| (core.state(), core.role(), core.term()));
            let core: Option<(State, _, _)> = core;
            text += &format!(
                "  member {member}: {core:?} log {} commit {} terms {:?}\n",
                node.log.len(),
                node.commit,
                node.core
                    .as_ref()
                    .map(|core| core.terms().entries().to_vec())
            );
        }
        text
    }
}
