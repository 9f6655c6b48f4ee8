// SPDX-License-Identifier: Apache-2.0
//! Control of the member by toggles, sessions and termination: what is due each slow tick.

use std::collections::VecDeque;
use std::sync::Arc;

use taran_archive_client::Call;

use super::{ModuleAgent, ModuleError};
use crate::consensus::{MemberId, Role, State};
use crate::files::EntryKind;
use crate::module::replicated::ModuleState;
use crate::module::toggle;
use crate::protocol::ClusterAction;
use crate::service::Service;
use crate::state::{AckRound, TerminationInput, TerminationStep};

/// Check that the archive has the recordings of all snapshots.
pub(super) struct Validation {
    recordings: VecDeque<i64>,
    call: Option<Call<i64>>,
}

impl<S: Service> ModuleAgent<S> {
    pub(super) fn tick_slowly(&mut self) -> Result<(), ModuleError> {
        self.replicated.egress.poll();
        self.keep_mark();
        self.watch_containers()?;
        if let Some(ingress) = &self.ingress {
            while let Some(image) = ingress.next_gone() {
                if self.core.role() == Role::Leader {
                    self.replicated.sessions.on_image_gone(image);
                }
            }
        }
        if self.core.state() == State::Closed {
            let is_leader = self.takes_entries();
            let endpoints = Arc::clone(&self.ingress_endpoints);
            let leadership = self.leadership(&endpoints);
            self.with_sessions(|sessions, io, authenticator| {
                sessions.step(&leadership, is_leader, authenticator, io);
            })?;
            self.report_rejected();
            self.check_node_toggle();
        }
        if self.is_leading() {
            self.check_toggle()?;
            self.check_transfer_toggle();
        }
        self.counters.state.set(self.replicated.state as i64);
        let timed_out = self.replicated.sessions.timed_out();
        self.counters
            .timed_out
            .set(i64::try_from(timed_out).unwrap_or(i64::MAX));
        Ok(())
    }

    /// Stores the heartbeat of the mark file each second. The wall clock may be set back.
    pub(super) fn keep_mark(&mut self) {
        let now_ms = self.now.epoch_millis;
        if now_ms < self.heartbeat_ms || now_ms >= self.heartbeat_ms.saturating_add(1_000) {
            self.heartbeat_ms = now_ms;
            self.mark.heartbeat(now_ms);
        }
    }

    fn check_toggle(&mut self) -> Result<(), ModuleError> {
        let state = self.replicated.state;
        let value = self.counters.toggle.get();
        if self.termination.is_requested() {
            return Ok(());
        }
        match (value, state) {
            (toggle::SUSPEND, ModuleState::Active) => {
                self.change_state(ClusterAction::SUSPEND, ModuleState::Suspended)?;
            }
            (toggle::RESUME, ModuleState::Active) => self.counters.toggle.set(toggle::NEUTRAL),
            (toggle::RESUME, ModuleState::Suspended)
                if self
                    .change_state(ClusterAction::RESUME, ModuleState::Active)?
                    .is_some() =>
            {
                self.counters.toggle.set(toggle::NEUTRAL);
            }
            (toggle::SNAPSHOT, ModuleState::Active) if self.toggled_snapshot.is_none() => {
                self.toggled_snapshot =
                    self.change_state(ClusterAction::SNAPSHOT, ModuleState::Snapshot)?;
            }
            (toggle::STANDBY_SNAPSHOT, ModuleState::Active)
                if self.append_action(ClusterAction::SNAPSHOT, 1)?.is_some() =>
            {
                self.counters.toggle.set(toggle::NEUTRAL);
            }
            (toggle::SHUTDOWN, ModuleState::Active)
                if self
                    .change_state(ClusterAction::SNAPSHOT, ModuleState::Snapshot)?
                    .is_some() =>
            {
                self.terminate_all();
            }
            (toggle::ABORT, ModuleState::Active) => self.terminate_all(),
            _ => {}
        }
        Ok(())
    }

    fn check_transfer_toggle(&mut self) {
        let to = toggle::transfer_target(self.counters.transfer_toggle.get());
        if let Some(to) = to
            && !self.termination.is_requested()
        {
            self.transfer(to);
        }
    }

    /// Hands leadership over, or reports that it is not. The election sets the toggle to INACTIVE.
    fn transfer(&mut self, to: Option<MemberId>) {
        if self.core.is_transferring() {
            return;
        }
        let text = if std::mem::take(&mut self.is_transfer_begun) {
            "within the heartbeat timeout, no follower that may take over had the whole log, or the own service had \
             not consumed it"
                .to_owned()
        } else {
            match self.core.transfer_leadership(self.now.nanos, to) {
                Ok(()) => {
                    self.is_transfer_begun = true;
                    return;
                }
                Err(reason) => reason.to_string(),
            }
        };
        self.error(&format!("WARN - leadership is not handed over: {text}"));
        self.counters.transfer_toggle.set(toggle::NEUTRAL);
    }

    /// Prepares the end of the member, once that is requested: a leader hands over, and waits until another one leads.
    pub(super) fn leave(&mut self) {
        if !self.hooks.leave.is_requested() {
            return;
        }
        let is_over = if self.is_leaving {
            let me = self.config.member_id;
            !self.core.is_transferring()
                && (self.is_leading() || self.core.leader().is_some_and(|leader| leader != me))
        } else {
            self.is_leaving = true;
            // A member that does not lead, or cannot hand over, ends at once.
            self.core.transfer_leadership(self.now.nanos, None).is_err()
        };
        if is_over {
            self.hooks.leave.complete();
        }
    }

    /// Appends an action, and enters its state. Returns the position behind it, or none if there is no room now.
    fn change_state(
        &mut self,
        action: ClusterAction,
        state: ModuleState,
    ) -> Result<Option<i64>, ModuleError> {
        let Some(position) = self.append_action(action, 0)? else {
            return Ok(None);
        };
        let before = std::mem::replace(&mut self.replicated.state, state);
        self.uncommitted_states.push_back((position, before));
        // Before the toggle: tools that wait for it may ask for the next action at once.
        self.counters.state.set(state as i64);
        Ok(Some(position))
    }

    /// Forgets how to undo actions that are committed.
    pub(super) fn commit_states(&mut self, commit: i64) {
        while let Some((position, _)) = self.uncommitted_states.front()
            && *position <= commit
        {
            self.uncommitted_states.pop_front();
        }
    }

    /// Undoes actions that were not committed.
    pub(super) fn roll_back_states(&mut self, commit: i64) {
        self.commit_states(commit);
        if let Some((_, state)) = self.uncommitted_states.front() {
            self.replicated.state = *state;
        }
        self.uncommitted_states.clear();
    }

    /// Tells all members to end at the end of the log.
    fn terminate_all(&mut self) {
        let Some(publication) = self.log.publication() else {
            return;
        };
        let position = publication.position();
        let term = self.core.term().unwrap_or(-1);
        let me = self.config.member_id;
        let ids = self.config.members.ids();
        let followers = ids.into_iter().filter(|id| *id != me);
        self.termination.begin(term, position, followers);
        self.send_termination_position(term, position);
    }

    /// Proceeds with a termination. Returns true once the member has ended.
    pub(super) fn terminate(&mut self) -> bool {
        let input = TerminationInput {
            now: self.now.nanos,
            consumed: self.replicated.position,
            is_taking_snapshot: self.snapshot.is_some() || self.replicated.snapshot_due.is_some(),
            has_ended_services: self.has_ended_services,
        };
        match self.termination.step(&input) {
            None => false,
            Some(TerminationStep::EndServices { position }) => {
                self.replicated.state = ModuleState::Terminating;
                self.counters.state.set(ModuleState::Terminating as i64);
                self.replicated.service.on_terminate();
                if self.has_containers() {
                    self.containers.acks.expect(AckRound::Termination, position);
                    self.containers.terminate(position);
                }
                false
            }
            Some(TerminationStep::Acknowledge { term, position }) => {
                // A leader of another term has not asked for it.
                if self.core.term() != Some(term) || self.send_termination_ack(term, position) {
                    self.termination.acknowledged();
                }
                false
            }
            Some(TerminationStep::End { position }) => {
                if self.replicated.state != ModuleState::Closed {
                    self.replicated.state = ModuleState::Closed;
                    let term = self.replicated.term;
                    self.files
                        .change(|log| log.end_term(term, position).into_iter().collect());
                }
                self.files.is_flushed()
            }
        }
    }

    fn check_node_toggle(&mut self) {
        match self.counters.node_toggle.get() {
            toggle::node::REPLICATE_STANDBY_SNAPSHOT => {
                self.error("standby snapshots cannot be replicated: there is no standby");
                self.counters.node_toggle.set(toggle::NEUTRAL);
            }
            toggle::node::VALIDATE_RECORDING_LOG => {
                if self.validation.is_none() {
                    let entries = self.files.recording_log().entries();
                    let snapshots =
                        entries.filter(|it| it.kind == EntryKind::Snapshot && it.is_valid);
                    self.validation = Some(Validation {
                        recordings: snapshots.map(|it| it.recording_id).collect(),
                        call: None,
                    });
                }
                self.validate();
            }
            _ => {}
        }
    }

    /// Asks the archive for the recording of each snapshot; those that it does not have are invalidated.
    fn validate(&mut self) {
        let Some(validation) = &mut self.validation else {
            return;
        };
        let Some(recording_id) = validation.recordings.front().copied() else {
            self.validation = None;
            self.counters.node_toggle.set(toggle::NEUTRAL);
            return;
        };
        let archive = &mut self.archive;
        let call = validation
            .call
            .get_or_insert_with(|| archive.start_position(recording_id));
        let Some(result) = call.poll() else {
            return;
        };
        validation.call = None;
        validation.recordings.pop_front();
        match result {
            Ok(_) => {}
            Err(error) if error.code().is_some() => {
                self.files
                    .change(|log| log.invalidate_snapshot(recording_id));
                self.error(&format!(
                    "WARN - the archive has no recording {recording_id}: its snapshot is invalidated"
                ));
            }
            Err(error) => self.error(&format!("cannot ask for recording {recording_id}: {error}")),
        }
    }
}
