//! Threading modes: the agents run on three threads, two, one, or by invocation (docs/spec/uri-and-configuration.md
//! §2.10).

use std::sync::Arc;

use taran_core::affinity;
use taran_core::agent::{
    Agent, AgentFailure, AgentInvoker, AgentRunner, CompositeAgent, RunningAgent,
};
use taran_core::clock::{Clock, SystemClock};
use taran_core::counters::Counter;
use taran_core::error_log::ErrorHandler;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::option::{Affinity, IdleRole, OptionSet, ThreadingMode};

use super::invoker_agent::InvokerAgent;
use super::parts::DriverParts;
use super::signal::ShutdownSignal;
use crate::conductor::Conductor;
use crate::error::DriverError;

/// Running agents.
pub(crate) enum Running {
    /// In order of start: the conductor first, because clients observe its end and it is closed last.
    Threads(Vec<RunningAgent>),
    Invoker(Box<AgentInvoker<InvokerAgent<Conductor, CompositeAgent>, SystemClock>>),
}

/// Everything that determines how agents are run.
pub(crate) struct ThreadingPlan<'a> {
    pub(crate) options: &'a OptionSet,
    pub(crate) errors: ErrorHandler,
    pub(crate) idle_status: Counter,
    pub(crate) signal: Arc<ShutdownSignal>,
}

/// Starts the agents in the configured threading mode.
pub(crate) fn start(parts: DriverParts, plan: &ThreadingPlan<'_>) -> Result<Running, DriverError> {
    let DriverParts {
        conductor,
        sender,
        receiver,
        ..
    } = parts;
    let mode = plan.options.threading_mode();
    let cores = Cores::new(plan.options, mode);
    let threads = match mode {
        ThreadingMode::Dedicated => vec![
            plan.thread("conductor", conductor, IdleRole::Conductor, cores.conductor)?,
            plan.thread("sender", sender, IdleRole::Sender, cores.sender)?,
            plan.thread("receiver", receiver, IdleRole::Receiver, cores.receiver)?,
        ],
        ThreadingMode::SharedNetwork => {
            // The receiver's park ends when a datagram arrives.
            let network =
                CompositeAgent::new(vec![Box::new(sender), Box::new(receiver)]).park_through(1);
            vec![
                plan.thread("conductor", conductor, IdleRole::Conductor, cores.conductor)?,
                plan.thread(
                    "[sender, receiver]",
                    network,
                    IdleRole::SharedNetwork,
                    cores.sender,
                )?,
            ]
        }
        ThreadingMode::Shared => {
            let all = CompositeAgent::new(vec![
                Box::new(conductor),
                Box::new(sender),
                Box::new(receiver),
            ])
            .park_through(2);
            vec![plan.thread(
                "[conductor, sender, receiver]",
                all,
                IdleRole::Shared,
                cores.conductor,
            )?]
        }
        ThreadingMode::Invoker => {
            let network =
                CompositeAgent::new(vec![Box::new(sender), Box::new(receiver)]).park_through(1);
            let mut invoker =
                AgentInvoker::new(InvokerAgent::new(conductor, network), SystemClock::new());
            invoker.start();
            return Ok(Running::Invoker(Box::new(invoker)));
        }
    };
    Ok(Running::Threads(threads))
}

impl ThreadingPlan<'_> {
    fn thread(
        &self,
        name: &'static str,
        agent: impl Agent + 'static,
        role: IdleRole,
        cpu: Option<usize>,
    ) -> Result<RunningAgent, DriverError> {
        let idle = self.options.idle(role)?.build_controlled(&self.idle_status);
        let (errors, signal) = (self.errors.clone(), Arc::clone(&self.signal));
        let on_failure = move |failure: AgentFailure| {
            let now = SystemClock::new().now();
            errors.on_error(
                now.epoch_millis,
                GENERIC_ERROR.code(),
                &GENERIC_ERROR.record(&failure.to_string()),
            );
            if matches!(failure, AgentFailure::Panicked { .. }) {
                // A driver without one of its agents is useless.
                signal.fail(failure.to_string());
            }
        };
        AgentRunner::new(agent, SystemClock::new(), idle, on_failure)
            .thread_name(name)
            .cpu(cpu)
            .start()
            .map_err(|source| DriverError::Thread {
                agent: name,
                source,
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
