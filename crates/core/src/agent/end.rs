//! The end of an agent, and what the program that runs it is told.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::affinity::AffinityError;

/// Reason why an agent ends its own duty cycles. [`Agent::do_work`](super::Agent::do_work) returns it; the agent is then
/// closed. Exhaustive: there is no third way to end.
///
/// Any error converts into a failure, so that `?` ends an agent:
///
/// ```
/// use taran_core::agent::AgentEnd;
///
/// fn duty_cycle() -> Result<usize, AgentEnd> {
///     let _length: usize = "not a number".parse()?;
///     Ok(0)
/// }
///
/// let end = duty_cycle().unwrap_err();
/// assert!(end.error::<std::num::ParseIntError>().is_some());
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "AgentTerminationException")]
pub enum AgentEnd {
    /// The agent has done all its work.
    Finished,
    /// The agent cannot go on.
    Failed(Arc<dyn Error + Send + Sync>),
}

impl AgentEnd {
    /// Returns a failure with its reason.
    pub fn failed(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Failed(Arc::new(error))
    }

    /// Returns true if the agent could not go on.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    /// Returns the reason of a failure, if it is of this type.
    pub fn error<E: Error + 'static>(&self) -> Option<&E> {
        match self {
            Self::Finished => None,
            Self::Failed(error) => error.downcast_ref(),
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for AgentEnd {
    fn from(error: E) -> Self {
        Self::failed(error)
    }
}

impl fmt::Display for AgentEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("all work is done"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

/// Something that happened to an agent other than being stopped. Exhaustive, so that a new kind does not compile until
/// each program of agents handles it.
#[derive(Clone, Debug)]
pub enum AgentEvent {
    /// The agent ended its own duty cycles; it is closed next.
    Ended {
        /// The agent's role name.
        agent: String,
        /// The reason.
        end: AgentEnd,
    },
    /// The agent panicked: it runs no more duty cycles. Unless it was being closed or dropped, it is closed next.
    Panicked {
        /// The agent's role name.
        agent: String,
        /// `on_start`, `do_work`, `on_close` or `drop`.
        during: &'static str,
        /// The text of the panic.
        message: String,
    },
    /// The agent runs, but not on the requested CPU.
    NotPinned {
        /// The agent's role name.
        agent: String,
        /// The reason.
        source: Arc<AffinityError>,
    },
}

impl AgentEvent {
    /// Returns the role name of the agent.
    pub fn agent(&self) -> &str {
        match self {
            Self::Ended { agent, .. }
            | Self::Panicked { agent, .. }
            | Self::NotPinned { agent, .. } => agent,
        }
    }

    /// Returns true if the agent does not run any more and has not done all its work: it panicked or failed.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Ended { end, .. } => end.is_failure(),
            Self::Panicked { .. } => true,
            Self::NotPinned { .. } => false,
        }
    }
}

impl fmt::Display for AgentEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { agent, end } => write!(f, "agent `{agent}` has ended: {end}"),
            Self::Panicked {
                agent,
                during,
                message,
            } => write!(
                f,
                "agent `{agent}` panicked in {during} and has stopped: {message}"
            ),
            Self::NotPinned { agent, source } => {
                write!(f, "agent `{agent}` is not pinned: {source}")
            }
        }
    }
}

/// Handler of events of agents. It is called on the agent's thread and must not block. Clones are the same handler.
#[derive(Clone)]
pub struct AgentEventHandler(Arc<dyn Fn(&AgentEvent) + Send + Sync>);

impl AgentEventHandler {
    /// Creates a handler that calls `handle`.
    pub fn new(handle: impl Fn(&AgentEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(handle))
    }

    /// Calls the handler.
    pub fn handle(&self, event: &AgentEvent) {
        (self.0)(event);
    }
}

impl fmt::Debug for AgentEventHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentEventHandler").finish_non_exhaustive()
    }
}
