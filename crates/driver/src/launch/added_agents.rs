// SPDX-License-Identifier: Apache-2.0
//! Agents of the embedding program that run with those of the driver.

use std::io;
use std::time::Duration;

use taran_core::agent::{Agent, AgentHost, AgentThread, HostEnded, HostedId, RunningAgent};

use super::threads::{Running, Supervisor};

/// Longest wait of an idle invoked driver while an agent on a thread of its own closes.
const CLOSE_PARK: Duration = Duration::from_millis(1);

/// Thread that runs an added agent.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentPlacement {
    /// On the thread of the driver's conductor: of its own (`DEDICATED`, `SHARED_NETWORK`), the only one (`SHARED`), or the
    /// one that invokes the driver (`INVOKER`). The agent runs after those of the driver in each duty cycle and, like them,
    /// must not block, and in particular not wait for the driver. When no agent of the
    /// thread has work to do, the idle strategy of the driver decides how long all of them pause: `park` of this agent is
    /// not called.
    DriverThread,
    /// On a thread of its own, in each threading mode.
    OwnThread(AgentThread),
}

/// Identifies an agent added to a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(u64);

/// An agent could not be added to a driver; it was dropped.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum AddAgentError {
    /// The driver's thread has ended, see [`MediaDriver::termination`](crate::MediaDriver::termination).
    #[error("{0}; close the driver")]
    DriverEnded(#[from] HostEnded),
    /// A thread could not be started.
    #[error("cannot start a thread for agent `{agent}`: {source}")]
    Thread {
        /// The role name of the agent.
        agent: String,
        /// The system's reason.
        source: io::Error,
    },
}

taran_core::debug_is_display!(AddAgentError);

/// The added agents that are not closed, in order of their addition. Those that have ended by themselves are forgotten when
/// the next one is added.
///
/// Contract: all are closed before the agents of the driver.
pub(crate) struct AddedAgents {
    host: AgentHost,
    agents: Vec<(AgentId, AddedAgent)>,
    next_id: u64,
}

enum AddedAgent {
    Hosted(HostedId),
    OwnThread(RunningAgent),
}

impl AddedAgents {
    pub(crate) fn new(host: AgentHost) -> Self {
        Self {
            host,
            agents: Vec::new(),
            next_id: 0,
        }
    }

    pub(crate) fn add(
        &mut self,
        agent: impl Agent + 'static,
        placement: AgentPlacement,
        supervisor: &Supervisor,
    ) -> Result<AgentId, AddAgentError> {
        let added = match placement {
            AgentPlacement::DriverThread => AddedAgent::Hosted(self.host.add(agent)?),
            AgentPlacement::OwnThread(thread) => {
                let name = agent.role_name().to_owned();
                let (handler, hook) = (supervisor.added_agents(), supervisor.start_hook());
                let started = thread.start(agent, handler, hook);
                AddedAgent::OwnThread(started.map_err(|source| AddAgentError::Thread {
                    agent: name,
                    source,
                })?)
            }
        };
        let ended: Vec<AgentId> = self.ended().collect();
        self.agents.retain(|(id, _)| !ended.contains(id));
        let id = AgentId(self.next_id);
        self.next_id += 1;
        self.agents.push((id, added));
        Ok(id)
    }

    fn ended(&self) -> impl Iterator<Item = AgentId> {
        let ids = self.agents.iter().map(|(id, _)| *id);
        ids.filter(|id| !self.is_running(*id))
    }

    /// Returns true while an agent runs, or is yet to start.
    pub(crate) fn is_running(&self, id: AgentId) -> bool {
        let agent = self.agents.iter().find(|(added, _)| *added == id);
        agent.is_some_and(|(_, agent)| match agent {
            AddedAgent::Hosted(id) => self.host.is_open(*id),
            AddedAgent::OwnThread(running) => !running.is_finished(),
        })
    }

    /// Closes an agent on its thread and waits for its end.
    pub(crate) fn close(&mut self, id: AgentId, driver: &mut Running) {
        if let Some(index) = self.agents.iter().position(|(added, _)| *added == id) {
            let (_, agent) = self.agents.remove(index);
            self.close_agent(agent, driver);
        }
    }

    /// Closes all agents, the last one first.
    pub(crate) fn close_all(&mut self, driver: &mut Running) {
        while let Some((_, agent)) = self.agents.pop() {
            self.close_agent(agent, driver);
        }
    }

    fn close_agent(&self, agent: AddedAgent, driver: &mut Running) {
        match (agent, driver) {
            (AddedAgent::OwnThread(running), Running::Threads(_)) => running.close(),
            (AddedAgent::OwnThread(running), Running::Invoker(driver)) => {
                running.stop();
                // The agent may need the driver for its close.
                while driver.is_running() && !running.is_finished() {
                    if driver.invoke() == 0 {
                        driver.park(CLOSE_PARK);
                    }
                }
                running.close();
            }
            (AddedAgent::Hosted(id), Running::Threads(_)) => self.host.close(id),
            (AddedAgent::Hosted(id), Running::Invoker(driver)) => driver.close_hosted(id),
        }
    }
}
