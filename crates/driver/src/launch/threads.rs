// SPDX-License-Identifier: Apache-2.0
//! Threading modes: the agents run on three threads, two, one, or by invocation (docs/spec/uri-and-configuration.md
//! §2.10).

use std::sync::Arc;

use taran_core::affinity;
use taran_core::agent::{
    Agent, AgentEvent, AgentEventHandler, AgentGroup, AgentHost, AgentInvoker, AgentStartHook,
    AgentThread, CompositeAgent, HostingAgent,
};
use taran_core::clock::{Clock, SystemClock};
use taran_core::counters::Counter;
use taran_core::error_log::ErrorHandler;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::option::{Affinity, IdleRole, OptionSet, ThreadingMode};

use super::invoked::InvokedDriver;
use super::invoker_agent::InvokerAgent;
use super::network_agents::NetworkAgents;
use super::parts::DriverParts;
use super::signal::ShutdownSignal;
use crate::error::DriverError;

/// Running agents. The thread of the conductor hosts the agents that are added.
pub(crate) enum Running {
    /// In order of start: the conductor first, because clients observe its end and it is closed last.
    Threads(AgentGroup),
    Invoker(InvokedDriver),
}

/// Everything that determines how agents are run.
pub(crate) struct ThreadingPlan<'a> {
    pub(crate) options: &'a OptionSet,
    pub(crate) idle_status: Counter,
    pub(crate) supervisor: &'a Supervisor,
}

/// Starts the agents in the configured threading mode. Returns them, and the host of the agents that are added.
pub(crate) fn start(
    parts: DriverParts,
    plan: &ThreadingPlan<'_>,
) -> Result<(Running, AgentHost), DriverError> {
    let DriverParts {
        conductor,
        sender,
        receiver,
        ..
    } = parts;
    let mode = plan.options.threading_mode();
    let cores = Cores::new(plan.options, mode);
    let mut threads =
        AgentGroup::new(plan.supervisor.driver_agents()).start_hook(plan.supervisor.start_hook());
    let host = match mode {
        ThreadingMode::Dedicated => {
            let conductor = plan.hosting(conductor);
            let host = conductor.host();
            let [on_conductor, on_sender, on_receiver] =
                [cores.conductor, cores.sender, cores.receiver];
            plan.start(
                &mut threads,
                "conductor",
                conductor,
                IdleRole::Conductor,
                on_conductor,
            )?;
            plan.start(&mut threads, "sender", sender, IdleRole::Sender, on_sender)?;
            plan.start(
                &mut threads,
                "receiver",
                receiver,
                IdleRole::Receiver,
                on_receiver,
            )?;
            host
        }
        ThreadingMode::SharedNetwork => {
            let conductor = plan.hosting(conductor);
            let host = conductor.host();
            let (name, role) = ("[sender, receiver]", IdleRole::SharedNetwork);
            let network = NetworkAgents::new(sender, receiver);
            plan.start(
                &mut threads,
                "conductor",
                conductor,
                IdleRole::Conductor,
                cores.conductor,
            )?;
            plan.start(&mut threads, name, network, role, cores.sender)?;
            host
        }
        ThreadingMode::Shared => {
            let all: Vec<Box<dyn Agent>> =
                vec![Box::new(conductor), Box::new(sender), Box::new(receiver)];
            // The receiver's park ends when a datagram arrives.
            let all = plan.hosting(CompositeAgent::new(all).park_through(2));
            let host = all.host();
            let name = "[conductor, sender, receiver]";
            plan.start(&mut threads, name, all, IdleRole::Shared, cores.conductor)?;
            host
        }
        ThreadingMode::Invoker => {
            let network = NetworkAgents::new(sender, receiver);
            let all = plan.hosting(InvokerAgent::new(conductor, network));
            let host = all.host();
            let invoker =
                AgentInvoker::new(all, SystemClock::new()).start_hook(plan.supervisor.start_hook());
            let invoked = InvokedDriver::new(invoker, plan.supervisor.driver_agents());
            return Ok((Running::Invoker(invoked), host));
        }
    };
    Ok((Running::Threads(threads), host))
}

impl ThreadingPlan<'_> {
    fn hosting<A: Agent>(&self, agent: A) -> HostingAgent<A> {
        HostingAgent::new(agent, self.supervisor.added_agents())
    }

    fn start(
        &self,
        threads: &mut AgentGroup,
        name: &'static str,
        agent: impl Agent + 'static,
        role: IdleRole,
        cpu: Option<usize>,
    ) -> Result<(), DriverError> {
        let idle = self.options.idle(role)?.build_controlled(&self.idle_status);
        let thread = AgentThread::new(idle).name(name).cpu(cpu);
        threads
            .start(agent, thread)
            .map_err(|source| DriverError::Thread {
                agent: name,
                source,
            })
    }
}

/// Records what happens to agents, and tells the program that runs the driver.
pub(crate) struct Supervisor {
    pub(crate) errors: ErrorHandler,
    pub(crate) signal: Arc<ShutdownSignal>,
    pub(crate) agent_events: Option<AgentEventHandler>,
    pub(crate) start_hook: Option<AgentStartHook>,
}

impl Supervisor {
    pub(crate) fn start_hook(&self) -> Option<AgentStartHook> {
        self.start_hook.clone()
    }

    /// Returns the handler for agents of the driver, which is useless without one of them.
    fn driver_agents(&self) -> AgentEventHandler {
        self.handler(|signal, event| signal.fail(event.to_string()))
    }

    /// Returns the handler for agents that are added.
    pub(crate) fn added_agents(&self) -> AgentEventHandler {
        self.handler(|signal, event| signal.agent_failed(event.clone()))
    }

    fn handler(
        &self,
        on_failure: impl Fn(&ShutdownSignal, &AgentEvent) + Send + Sync + 'static,
    ) -> AgentEventHandler {
        let (errors, signal) = (self.errors.clone(), Arc::clone(&self.signal));
        let agent_events = self.agent_events.clone();
        AgentEventHandler::new(move |event| {
            // First, because the functions of the embedding program below may panic.
            if event.is_failure() {
                on_failure(&signal, event);
            }
            let is_error = event.is_failure() || matches!(event, AgentEvent::NotPinned { .. });
            if is_error {
                let now = SystemClock::new().now();
                let description = GENERIC_ERROR.record(&event.to_string());
                errors.on_error(now.epoch_millis, GENERIC_ERROR.code(), &description);
            }
            if let Some(handler) = &agent_events {
                handler.handle(event);
            }
        })
    }
}

const GENERIC_ERROR: ErrorCode = ErrorCode::GenericError;

/// Cores to which threads are pinned.
struct Cores {
    conductor: Option<usize>,
    sender: Option<usize>,
    receiver: Option<usize>,
}

impl Cores {
    fn new(options: &OptionSet, mode: ThreadingMode) -> Self {
        let affinities = [
            options.conductor_cpu_affinity(),
            options.sender_cpu_affinity(),
            options.receiver_cpu_affinity(),
        ];
        let threads = match mode {
            ThreadingMode::Dedicated => 3,
            ThreadingMode::SharedNetwork => 2,
            ThreadingMode::Shared | ThreadingMode::Invoker => 1,
        };
        let mut free = free_cores(&affinities[..threads]);
        let [conductor, sender, receiver] = affinities.map(|affinity| match affinity {
            Affinity::None => None,
            Affinity::Core(core) => Some(core),
            Affinity::Auto => free.pop(),
        });
        Self {
            conductor,
            sender,
            receiver,
        }
    }
}

/// Returns cores for `auto`, the last one first. Returns none unless there are more cores than pinned threads, so that
/// other processes have a core.
fn free_cores(affinities: &[Affinity]) -> Vec<usize> {
    let taken: Vec<usize> = affinities
        .iter()
        .filter_map(|affinity| match affinity {
            Affinity::Core(core) => Some(*core),
            Affinity::None | Affinity::Auto => None,
        })
        .collect();
    let bound = affinities
        .iter()
        .filter(|affinity| **affinity != Affinity::None)
        .count();
    let allowed = affinity::allowed_cpus();
    if allowed.len() <= bound {
        return Vec::new();
    }
    allowed
        .into_iter()
        .filter(|core| !taken.contains(core))
        .collect()
}
