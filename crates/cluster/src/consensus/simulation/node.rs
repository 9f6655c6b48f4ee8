// SPDX-License-Identifier: Apache-2.0
//! A member with a log, files and a power switch.

use std::collections::VecDeque;

use super::super::defects::Defects;
use super::super::{
    Config, Consensus, Decision, Incarnation, LogCommand, LogEvent, MemberId, Membership,
    MembershipEntry, Message, NULL_TERM, Nanos, Recovered, StopReason, Terms, Voter, Write,
};

/// Length of each entry; that of a NewLeadershipTermEvent.
pub(in super::super) const LENGTH: i64 = 96;

/// An entry of the log. `id` 0 is the event that begins a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Entry {
    pub(in super::super) term: i64,
    pub(in super::super) id: u32,
    /// Membership that the entry brings ([`pack`]); 0 if it brings none.
    pub(in super::super) members: u64,
}

/// Ids of entries that bring memberships.
const MEMBERSHIP_ID: u32 = 1 << 31;

/// Bits of each id in a packed membership: none, or the incarnation plus one.
const PACKED_BITS: u32 = 4;

/// Returns a membership of ids below 16 with incarnations below 15 as a number.
fn pack(membership: &Membership) -> u64 {
    let bits = |voter: &Voter| {
        let incarnation = u64::try_from(voter.incarnation + 1).expect("a small incarnation");
        incarnation << (voter.id as u32 * PACKED_BITS)
    };
    membership.voters().iter().map(bits).sum()
}

fn unpack(members: u64) -> Membership {
    let ids = 0..(u64::BITS / PACKED_BITS) as MemberId;
    let voters = ids.filter_map(|id| {
        let bits = members >> (id as u32 * PACKED_BITS) & 0xf;
        let incarnation = Incarnation::try_from(bits).ok()? - 1;
        (incarnation >= 0).then_some(Voter { id, incarnation })
    });
    Membership::new(voters.collect()).expect("a packed membership")
}

/// Role of the member's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Stream {
    /// Neither written nor read.
    Idle,
    /// Written by this leader.
    Published { term: i64 },
    /// Copied from the leader's recording.
    Replicated { leader: usize, term: i64, end: i64 },
    /// Received from the leader, as a replay at first.
    Received {
        leader: usize,
        term: i64,
        is_replay: bool,
    },
}

/// A command of the core that takes time or needs the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Pending {
    /// Answered by the member itself.
    Local(LogEvent),
    /// Reads the leader's log.
    Read {
        leader: usize,
        term: i64,
        position: i64,
    },
    /// Joins the leader's log.
    Join {
        leader: usize,
        term: i64,
        is_replay: bool,
    },
}

/// Part of the writes in flight that a crash leaves on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Torn {
    /// Writes are whole: this many of the queue.
    Whole(usize),
    /// And the first half of the next.
    Half(usize),
}

const fn count_of(torn: Torn) -> usize {
    match torn {
        Torn::Whole(count) | Torn::Half(count) => count,
    }
}

/// Consequence of an input for the world: to be done, or to be checked.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Effect {
    Send { to: usize, message: Message },
    Committed { position: i64 },
    Elected { term: i64 },
    Persisting { sequence: u64 },
    Pending(Pending),
    Replicating,
    EndedStream { term: i64 },
    Stopped(StopReason),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Node {
    pub(in super::super) core: Option<Consensus>,
    config: Config,
    defects: Defects,
    /// Page cache: what is recorded.
    pub(in super::super) log: Vec<Entry>,
    /// Disk.
    pub(in super::super) disk_log: Vec<Entry>,
    disk_terms: Terms,
    disk_candidate_term: i64,
    writes: VecDeque<(u64, Write)>,
    pub(in super::super) stream: Stream,
    /// Followers that receive a replay, one bit each.
    pub(in super::super) replays: u32,
    /// Entries seen committed in this run.
    pub(in super::super) commit: i64,
    /// Memberships that the run before knew, and how far it had examined its log.
    hint: (Vec<MembershipEntry>, i64),
}

impl Node {
    pub(in super::super) fn new(config: Config, defects: Defects) -> Self {
        Self {
            core: None,
            config,
            defects,
            log: Vec::new(),
            disk_log: Vec::new(),
            disk_terms: Terms::default(),
            disk_candidate_term: NULL_TERM,
            writes: VecDeque::new(),
            stream: Stream::Idle,
            replays: 0,
            commit: 0,
            hint: (Vec::new(), 0),
        }
    }

    pub(in super::super) const fn incarnation(&self) -> Incarnation {
        self.config.voter().incarnation
    }

    pub(in super::super) fn start(&mut self, now: Nanos, seed: u64) {
        let recovered = Recovered {
            candidate_term: self.disk_candidate_term,
            terms: self.disk_terms.clone(),
            append_position: position(self.log.len()),
            commit_position: 0,
            memberships: self.hint.0.clone(),
            examined_position: self.hint.1,
        };
        let core = Consensus::new(self.config.clone(), recovered, seed, now);
        let mut core = core.expect("the disk of a member is consistent");
        core.defects = self.defects;
        self.core = Some(core);
        self.stream = Stream::Idle;
        self.replays = 0;
        self.commit = 0;
    }

    pub(in super::super) const fn is_up(&self) -> bool {
        self.core.is_some()
    }

    /// Ends the process; a power cut loses what is not flushed.
    pub(in super::super) fn crash(&mut self, is_power_cut: bool, torn: Torn) {
        // Now and then the file with the hint is an old one.
        if let Some(core) = self.core.take()
            && !(is_power_cut && count_of(torn) == 1)
        {
            self.hint = (core.memberships().to_vec(), core.examined_position());
        }
        let (count, has_half) = match torn {
            Torn::Whole(count) => (count, false),
            Torn::Half(count) => (count, true),
        };
        for _ in 0..count.min(self.writes.len()) {
            self.complete_write();
        }
        if has_half && let Some((_, write)) = self.writes.pop_front() {
            self.write(write, true);
        }
        self.writes.clear();
        if is_power_cut {
            self.log.clone_from(&self.disk_log);
        } else {
            self.disk_log.clone_from(&self.log);
        }
    }

    pub(in super::super) fn pending_writes(&self) -> usize {
        self.writes.len()
    }

    /// Completes the oldest write, and returns its number.
    pub(in super::super) fn complete_write(&mut self) -> Option<u64> {
        let (sequence, write) = self.writes.pop_front()?;
        self.write(write, false);
        Some(sequence)
    }

    fn write(&mut self, write: Write, is_half: bool) {
        match write {
            Write::CandidateTerm(_) if is_half => {}
            Write::CandidateTerm(term) => self.disk_candidate_term = term,
            Write::Term { term, base } => {
                self.flush();
                if !is_half {
                    self.disk_terms.set(super::super::TermEntry { term, base });
                }
            }
            Write::Truncate {
                position,
                from_term,
            } => {
                self.log.truncate(index(position));
                self.flush();
                if is_half {
                    // Entries that start behind the log are removed when the recording log is read.
                    self.disk_terms.truncate(position, i64::MAX);
                } else {
                    self.disk_terms.truncate(position, from_term);
                }
            }
        }
    }

    pub(in super::super) fn flush(&mut self) {
        let common = self
            .log
            .iter()
            .zip(&self.disk_log)
            .take_while(|(a, b)| a == b)
            .count();
        self.disk_log.truncate(common);
        self.disk_log.extend_from_slice(&self.log[common..]);
    }

    /// Returns the position up to which log and disk are equal.
    pub(in super::super) fn flushed(&self) -> i64 {
        position(self.disk_log.len().min(self.log.len()))
    }

    pub(in super::super) fn end(&self) -> i64 {
        position(self.log.len())
    }

    /// Returns the term that this member leads, with an open log.
    pub(in super::super) fn led_term(&self) -> Option<i64> {
        match self.stream {
            Stream::Published { term } if self.is_up() => Some(term),
            _ => None,
        }
    }

    /// Ends a process that the log has removed from the cluster.
    pub(in super::super) fn end_removed(&mut self) {
        self.core = None;
    }

    /// Gives an event of the log to the core, after the memberships that it is about.
    pub(in super::super) fn tell(&mut self, now: Nanos, event: LogEvent) {
        let Some(core) = self.core.as_mut() else {
            return;
        };
        if let LogEvent::Examined { position: end } | LogEvent::Consumed { position: end } = event {
            let count = index(end).min(self.log.len());
            for (at, entry) in self.log[..count].iter().enumerate() {
                if entry.members != 0 {
                    let entry = MembershipEntry {
                        position: position(at + 1),
                        membership: unpack(entry.members),
                    };
                    core.on_membership(now, &entry);
                }
            }
        }
        core.on_log(now, event);
    }

    /// Takes all decisions of the core.
    pub(in super::super) fn execute(&mut self, effects: &mut Vec<Effect>) {
        while let Some(decision) = self.core.as_mut().and_then(Consensus::poll_decision) {
            match decision {
                Decision::Send { to, message } => effects.push(Effect::Send {
                    to: to as usize,
                    message,
                }),
                Decision::Persist { sequence, write } => {
                    self.writes.push_back((sequence, write));
                    effects.push(Effect::Persisting { sequence });
                }
                Decision::Log(command) => self.execute_log(command, effects),
                Decision::Commit { position } => {
                    self.commit = position;
                    effects.push(Effect::Committed { position });
                }
                Decision::Role(_)
                | Decision::State(_)
                | Decision::Fault(_)
                | Decision::Membership => {}
                Decision::Stop(reason) => effects.push(Effect::Stopped(reason)),
            }
        }
    }

    fn execute_log(&mut self, command: LogCommand, effects: &mut Vec<Effect>) {
        let term = self.core.as_ref().and_then(Consensus::term);
        let term = term.unwrap_or(NULL_TERM);
        match command {
            LogCommand::Release { ends_stream } => {
                if let Stream::Published { term } = self.stream
                    && ends_stream
                {
                    effects.push(Effect::EndedStream { term });
                }
                self.stream = Stream::Idle;
                self.replays = 0;
                let position = self.end();
                effects.push(local(LogEvent::Released { position }));
            }
            LogCommand::Publish { term, .. } => {
                self.stream = Stream::Published { term };
                effects.push(Effect::Elected { term });
                effects.push(local(LogEvent::Published));
            }
            LogCommand::Replay { to, .. } => {
                effects.push(local(LogEvent::Consumed { position: to }));
            }
            LogCommand::Record { .. } => effects.push(local(LogEvent::Recording)),
            LogCommand::AppendTermEvent { term, base } => {
                assert_eq!(self.end(), base, "the term event is appended at the base");
                self.log.push(Entry {
                    term,
                    id: 0,
                    members: 0,
                });
                effects.push(local(LogEvent::Appended {
                    position: self.end(),
                    flushed: self.flushed(),
                }));
            }
            LogCommand::AppendMembership => self.append_membership(term, effects),
            LogCommand::Examine { to, .. } => {
                effects.push(local(LogEvent::Examined { position: to }));
            }
            LogCommand::StartCatchup { to, .. } => self.replays |= 1 << to,
            LogCommand::StopCatchup { to } => self.replays &= !(1 << to),
            LogCommand::ReadTermEvent { leader, position } => {
                effects.push(Effect::Pending(Pending::Read {
                    leader: leader as usize,
                    term,
                    position,
                }));
            }
            LogCommand::Replicate { leader, to, .. } => {
                self.stream = Stream::Replicated {
                    leader: leader as usize,
                    term,
                    end: to,
                };
                effects.push(Effect::Replicating);
            }
            LogCommand::OpenCatchup { leader, term } => {
                effects.push(local(LogEvent::CatchupOpened));
                effects.push(join(leader, term, true));
            }
            LogCommand::JoinLive { leader, term } => effects.push(join(leader, term, false)),
            LogCommand::CloseCatchup => {
                if let Stream::Received { is_replay, .. } = &mut self.stream {
                    *is_replay = false;
                }
            }
        }
    }
}

impl Node {
    fn append_membership(&mut self, term: i64, effects: &mut Vec<Effect>) {
        let Some(core) = self.core.as_mut() else {
            return;
        };
        // A leader that has stepped down meanwhile appends nothing.
        let Some(membership) = core.next_membership().cloned() else {
            return;
        };
        let id = MEMBERSHIP_ID | self.log.len() as u32;
        let members = pack(&membership);
        self.log.push(Entry { term, id, members });
        let entry = MembershipEntry {
            position: position(self.log.len()),
            membership,
        };
        let now = core.last_input();
        core.on_membership(now, &entry);
        effects.push(local(LogEvent::Appended {
            position: self.end(),
            flushed: self.flushed(),
        }));
    }
}

const fn local(event: LogEvent) -> Effect {
    Effect::Pending(Pending::Local(event))
}

const fn join(leader: MemberId, term: i64, is_replay: bool) -> Effect {
    Effect::Pending(Pending::Join {
        leader: leader as usize,
        term,
        is_replay,
    })
}

pub(in super::super) const fn position(index: usize) -> i64 {
    index as i64 * LENGTH
}

pub(in super::super) const fn index(position: i64) -> usize {
    (position / LENGTH) as usize
}
