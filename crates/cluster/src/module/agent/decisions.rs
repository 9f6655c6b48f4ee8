// SPDX-License-Identifier: Apache-2.0
//! Execution of the decisions of the consensus core.

use taran::ImageControlledFragmentAssembler;

use super::{ModuleAgent, ModuleError};
use crate::consensus::{Decision, LogCommand, Role, State};
use crate::module::toggle;
use crate::service::Service;

impl<S: Service> ModuleAgent<S> {
    pub(super) fn poll_log(&mut self) -> Result<usize, ModuleError> {
        let mut work = 0;
        let now = self.now.nanos;
        while let Some(event) = self.log.poll(&mut self.archive, now) {
            self.core.on_log(now, event);
            work += 1;
            self.decide()?;
        }
        while let Some(error) = self.log.next_error() {
            self.error(&error.to_string());
        }
        Ok(work)
    }

    pub(super) fn decide(&mut self) -> Result<usize, ModuleError> {
        let mut work = 0;
        while let Some(decision) = self.core.poll_decision() {
            work += 1;
            match decision {
                Decision::Send { to, message } => self.send(to, &message),
                Decision::Persist { sequence, write } => self.writes.push_back((sequence, write)),
                Decision::Log(command) => self.change_log(command),
                // No member changes the membership yet.
                Decision::Membership => {}
                Decision::Commit { position } => self.on_commit(position),
                Decision::State(state) => self.on_state(state)?,
                Decision::Role(role) => {
                    self.counters.role.set(role as i64);
                    if role != Role::Leader {
                        self.take_role(role);
                    }
                }
                Decision::Fault(fault) => self.error(&format!("WARN - election: {fault:?}")),
                Decision::Stop(reason) => return Err(ModuleError::Stopped(reason)),
            }
        }
        Ok(work)
    }

    fn change_log(&mut self, command: LogCommand) {
        if let LogCommand::AppendTermEvent { term, base } = command {
            self.term_event = Some((term, base));
        }
        if let LogCommand::Record { .. } = command {
            // Services join the log as leader once they have consumed what came before, so that the answers to messages that are
            // replayed are not sent again.
            self.take_role(Role::Leader);
        }
        self.execute_log(command);
    }

    /// Changes the role that the service sees.
    fn take_role(&mut self, role: Role) {
        if self.replicated.role != role {
            self.replicated.role = role;
            self.replicated.service.on_role_change(role);
        }
    }

    fn on_commit(&mut self, position: i64) {
        if self.is_leading() {
            if !self.has_containers() {
                self.counters.commit.set(position);
            }
            self.commit_states(position);
            self.replicated.sessions.on_committed(position);
            self.replicated.timers.on_committed(position);
            for pending in &mut self.replicated.pending {
                pending.on_committed(position);
            }
        }
    }

    fn on_state(&mut self, state: State) -> Result<(), ModuleError> {
        if state == State::Closed {
            // The other counters are those of the new term when this one says that the election is over.
            self.close_election()?;
        }
        self.counters.election_state.set(state as i64);
        if state == State::Init {
            self.begin_election()?;
        }
        Ok(())
    }

    fn begin_election(&mut self) -> Result<(), ModuleError> {
        self.is_transfer_begun = false;
        self.toggled_snapshot = None;
        self.counters.toggle.set(toggle::INACTIVE);
        self.counters.transfer_toggle.set(toggle::INACTIVE);
        self.counters.node_toggle.set(toggle::INACTIVE);
        self.counters.elections.increment();
        self.ingress = None;
        self.term_event = None;
        self.replicated.own_base = None;
        self.log_assembler = ImageControlledFragmentAssembler::new();
        let commit = self.core.commit_position();
        let leadership = self.leadership("");
        self.with_sessions(|sessions, io, authenticator| {
            sessions.end_leadership(&leadership, commit, authenticator, io);
        })?;
        self.roll_back_states(commit);
        self.replicated.timers.roll_back();
        for pending in &mut self.replicated.pending {
            pending.roll_back();
        }
        Ok(())
    }

    fn close_election(&mut self) -> Result<(), ModuleError> {
        self.counters.term.set(self.core.term().unwrap_or(-1));
        self.counters.node_toggle.set(toggle::NEUTRAL);
        let is_leader = self.core.role() == Role::Leader;
        if is_leader {
            self.counters.toggle.set(toggle::NEUTRAL);
            self.counters.transfer_toggle.set(toggle::NEUTRAL);
            let (now, is_startup) = (self.now.nanos, self.is_startup);
            let cluster_id = self.config.cluster_id;
            self.with_sessions(|sessions, io, _| {
                sessions.begin_leadership(now, is_startup, io);
                for session in sessions.in_snapshot() {
                    // The client sends on an image that is not known yet.
                    let (id, info) = (session.id, &session.client_info);
                    if let Some((handle, _)) = sessions.get(id) {
                        io.add_counter(handle, cluster_id, id, info, "sourceIdentity= sessionId=0");
                    }
                }
            })?;
        }
        self.is_startup = false;
        self.connect_ingress(is_leader);
        Ok(())
    }
}
