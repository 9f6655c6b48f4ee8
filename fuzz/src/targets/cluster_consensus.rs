// SPDX-License-Identifier: Apache-2.0
//! Messages between members, taken by a member whose log and files do what it decides.

use taran_cluster::consensus::{
    Config, Consensus, Decision, Durability, LogCommand, LogEvent, MembershipChange,
    MembershipEntry, Nanos, Recovered, Timing, Write,
};
use taran_cluster::protocol::{ConsensusMessage, Context};

use crate::script::Script;

/// Id of the member; the others are 0 and 2.
const ME: i32 = 1;
/// Length of the entry that begins a term.
const TERM_EVENT: i64 = 96;
/// Length of the entry that changes the membership.
const MEMBERSHIP_EVENT: i64 = 192;
/// Decisions that one input may cause.
const DECISIONS_MAX: usize = 1_000;

/// A member with a log that is as long as it says, and a disk that writes at once.
struct Member {
    core: Consensus,
    now: Nanos,
    append: i64,
    commit: i64,
    term: i64,
    is_stopped: bool,
}

/// Runs a script: messages, time, and entries of the leader.
pub fn run(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let config = Config::new(ME, &[0, ME, 2], Timing::fast(), Durability::QuorumDisk);
    let core = Consensus::new(
        config.expect("it is a cluster"),
        Recovered {
            candidate_term: -1,
            ..Recovered::default()
        },
        42,
        0,
    );
    let mut member = Member {
        core: core.expect("the disk is empty"),
        now: 0,
        append: 0,
        commit: 0,
        term: -1,
        is_stopped: false,
    };
    member.execute(&mut script);
    while !script.is_over() && !member.is_stopped {
        match script.u8() % 8 {
            0 => member.now += 20_000_000,
            1 => member.now += 300_000_000,
            2 if member.core.accepts_entries(member.now) => {
                member.append += 64;
                member.report();
            }
            3 => {
                let event = [LogEvent::Failed, LogEvent::EndOfStream][script.below(2)];
                member.core.on_log(member.now, event);
            }
            4 => {
                let to = [None, Some(0), Some(2), Some(9)][script.below(4)];
                // Refused, unless the member leads, and to itself or to no member of the cluster.
                let _refused = member.core.transfer_leadership(member.now, to);
            }
            5 => {
                let id = [0, ME, 2, 9][script.below(4)];
                let change = [MembershipChange::Remove(id), MembershipChange::Add(id)];
                let change = change[script.below(2)];
                // Refused, unless the member leads, and the cluster goes on.
                let _refused = member.core.change_membership(member.now, change);
            }
            _ => member.receive(script.chunk()),
        }
        member.core.tick(member.now);
        member.execute(&mut script);
    }
}

impl Member {
    fn receive(&mut self, bytes: &[u8]) {
        let Ok(message) = ConsensusMessage::decode(bytes) else {
            return;
        };
        let mut buffer = vec![0; bytes.len() + 512];
        let length = message.encode(&mut buffer).expect("there is room");
        assert_eq!(ConsensusMessage::decode(&buffer[..length]), Ok(message));
        if let Some((from, message)) = message.consensus(ME, self.core.leader()) {
            self.core.receive(self.now, from, &message);
        }
    }

    fn report(&mut self) {
        let position = self.append;
        let flushed = position;
        let event = LogEvent::Appended { position, flushed };
        self.core.on_log(self.now, event);
    }

    /// Does what the core decides, and checks it.
    fn execute(&mut self, script: &mut Script<'_>) {
        let mut count = 0;
        while let Some(decision) = self.core.poll_decision() {
            count += 1;
            assert!(count < DECISIONS_MAX, "{decision:?}");
            match decision {
                Decision::Send { to, message } => {
                    assert_ne!(to, ME, "it is no other node");
                    let context = Context::default();
                    let message = ConsensusMessage::new(&message, ME, to, &context);
                    let mut buffer = [0; 512];
                    message.encode(&mut buffer).expect("there is room");
                }
                Decision::Persist { sequence, write } => {
                    if let Write::Truncate { position, .. } = write {
                        assert!(position >= self.commit, "what is committed is truncated");
                        self.append = self.append.min(position);
                    }
                    self.core.on_durable(self.now, sequence);
                }
                Decision::Log(command) => self.execute_log(command, script),
                Decision::Commit { position } => {
                    assert!(position > self.commit, "{position} after {}", self.commit);
                    assert!(position <= self.append, "{position} of {}", self.append);
                    self.commit = position;
                }
                Decision::Stop(_) => self.is_stopped = true,
                _ => {}
            }
            let term = self.core.term().unwrap_or(self.term);
            assert!(term >= self.term, "term {term} after {}", self.term);
            self.term = term;
        }
    }

    fn execute_log(&mut self, command: LogCommand, script: &mut Script<'_>) {
        let now = self.now;
        let position = self.append;
        match command {
            LogCommand::Release { .. } => self.core.on_log(now, LogEvent::Released { position }),
            LogCommand::Publish { .. } => self.core.on_log(now, LogEvent::Published),
            LogCommand::Replay { to, .. } => {
                self.core.on_log(now, LogEvent::Consumed { position: to });
            }
            LogCommand::Record { .. } => self.core.on_log(now, LogEvent::Recording),
            LogCommand::AppendTermEvent { base, .. } => {
                assert_eq!(base, self.append, "the term event is appended at the base");
                self.append += TERM_EVENT;
                self.report();
            }
            LogCommand::AppendMembership => self.append_membership(),
            LogCommand::Examine { to, .. } => {
                self.core.on_log(now, LogEvent::Examined { position: to });
            }
            LogCommand::ReadTermEvent { position, .. } => {
                let term = Some(script.near(&[-1, 0, 1, 2, 3])).filter(|term| *term >= 0);
                let event = LogEvent::TermEventRead { position, term };
                self.core.on_log(now, event);
            }
            LogCommand::Replicate { from, to, .. } => {
                assert_eq!(from, self.append, "the log goes on");
                assert!(to >= from, "{to} before {from}");
                self.append = to;
                self.report();
            }
            LogCommand::OpenCatchup { .. } => {
                self.core.on_log(now, LogEvent::CatchupOpened);
                self.core.on_log(now, LogEvent::Joined { position });
            }
            LogCommand::JoinLive { .. } => self.core.on_log(now, LogEvent::Joined { position }),
            LogCommand::StartCatchup { from, .. } => assert!(from >= 0, "{from}"),
            LogCommand::StopCatchup { .. } | LogCommand::CloseCatchup => {}
        }
    }

    fn append_membership(&mut self) {
        // None once the member does not lead any more.
        let Some(membership) = self.core.next_membership().cloned() else {
            return;
        };
        self.append += MEMBERSHIP_EVENT;
        let entry = MembershipEntry {
            position: self.append,
            membership,
        };
        self.core.on_membership(self.now, &entry);
        self.report();
    }
}
