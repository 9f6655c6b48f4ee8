// SPDX-License-Identifier: Apache-2.0
//! Services in containers, and requests of tools.

use super::{ModuleAgent, ModuleError};
use crate::consensus::{Consensus, LogCommand};
use crate::protocol::{MessageError, ServiceRequest, split};
use crate::service::Service;
use crate::state::{AckRound, CompleteRound};

/// Messages of containers and tools per duty cycle.
const FRAGMENT_LIMIT: usize = 25;

impl<S: Service> ModuleAgent<S> {
    pub(super) fn has_containers(&self) -> bool {
        self.container_count > 0
    }

    /// Takes what containers and tools send.
    pub(super) fn poll_containers(&mut self) -> Result<usize, ModuleError> {
        self.containers.flush()?;
        let has_containers = self.has_containers();
        let Self {
            containers,
            replicated,
            ..
        } = self;
        let mut failure = None;
        let mut queries = Vec::new();
        let mut malformed = 0_u64;
        let mut is_unexpected = false;
        let handler = |bytes: &[u8], _: &taran::Header<'_>| {
            let result = match ServiceRequest::decode(bytes) {
                Ok(ServiceRequest::ClusterMembersQuery(it)) => {
                    queries.push(it);
                    Ok(())
                }
                Ok(_) if !has_containers => {
                    is_unexpected = true;
                    Ok(())
                }
                Ok(ServiceRequest::SessionMessageHeader(header)) => {
                    let service = usize::try_from(header.cluster_session_id).ok();
                    let pending = service.and_then(|index| replicated.pending.get_mut(index));
                    match (split(bytes), pending) {
                        (Ok((_, payload)), Some(pending)) => {
                            pending.enqueue(payload).map_err(ModuleError::from)
                        }
                        _ => Err(ModuleError::Entry(format!(
                            "a container sends a message as service {}, but there are {} services",
                            header.cluster_session_id,
                            replicated.pending.len()
                        ))),
                    }
                }
                Ok(ServiceRequest::ScheduleTimer(it)) => {
                    replicated.timers.schedule(it.correlation_id, it.deadline);
                    Ok(())
                }
                Ok(ServiceRequest::CancelTimer(it)) => {
                    replicated.timers.cancel(it.correlation_id);
                    Ok(())
                }
                Ok(ServiceRequest::CloseSession(it)) => {
                    replicated.sessions.close_by_service(it.cluster_session_id);
                    Ok(())
                }
                Ok(ServiceRequest::ServiceAck(ack)) => {
                    containers.acks.on_ack(ack).map_err(ModuleError::from)
                }
                Err(MessageError::UnexpectedTemplate { .. }) => Ok(()),
                Err(_) => {
                    malformed += 1;
                    Ok(())
                }
            };
            if let Err(error) = result
                && failure.is_none()
            {
                failure = Some(error);
            }
        };
        let polled = containers
            .subscription
            .poll(containers.assembler.wrap(handler), FRAGMENT_LIMIT);
        let fragments = polled.map_err(|error| ModuleError::DriverLost(error.to_string()))?;
        if malformed > 0 {
            self.error(&format!(
                "{malformed} messages of containers cannot be read"
            ));
        }
        if is_unexpected {
            self.error(
                "requests of a container are ignored: the service runs in the process of this member; end the container",
            );
        }
        for query in queries {
            self.answer_members(&query);
        }
        if let Some(error) = failure {
            return Err(error);
        }
        while let Some(round) = self.containers.acks.next_complete() {
            self.on_round(round)?;
        }
        Ok(fragments)
    }

    fn on_round(&mut self, round: CompleteRound) -> Result<(), ModuleError> {
        match round.round {
            AckRound::Start => {
                let failed = round.relevant_ids.iter().position(|id| *id == -1);
                if let Some(service_id) = failed {
                    return Err(ModuleError::ServiceNotStarted { service_id });
                }
                self.containers.on_started(round.relevant_ids);
                self.mark.set_ready(self.now.epoch_millis);
                if let Some(seed) = self.awaiting_services.take() {
                    // Its periods begin now.
                    self.core = Consensus::new(
                        seed.consensus,
                        seed.recovered,
                        seed.random,
                        self.now.nanos,
                    )?;
                }
            }
            AckRound::Join => {
                self.log.on_services_joined();
                if !self.containers.acks.is_expecting(AckRound::Join) {
                    for command in std::mem::take(&mut self.held) {
                        self.execute_log(command);
                    }
                }
            }
            AckRound::Snapshot => self.on_services_snapshot(round.relevant_ids),
            AckRound::Termination => self.has_ended_services = true,
        }
        Ok(())
    }

    /// Asks containers to join the log that is to be consumed next.
    pub(super) fn join_services(&mut self) {
        if let Some(join) = self.log.take_join() {
            self.containers.acks.expect(AckRound::Join, join.position);
            let (member_id, is_startup) = (self.config.member_id, self.is_startup);
            self.containers.join_log(&join, member_id, is_startup);
        }
    }

    /// Executes a command for the log. One that comes while containers join a log waits: they cannot join one that is gone.
    pub(super) fn execute_log(&mut self, command: LogCommand) {
        if self.containers.acks.is_expecting(AckRound::Join) {
            self.held.push(command);
        } else {
            self.log.execute(command, &mut self.archive, self.now.nanos);
        }
    }

    /// Fails if a container is gone.
    pub(super) fn watch_containers(&self) -> Result<(), ModuleError> {
        if self.termination.is_requested() {
            return Ok(());
        }
        match self.containers.lost(&self.client) {
            Some(service_id) => Err(ModuleError::ServiceLost { service_id }),
            None => Ok(()),
        }
    }
}
