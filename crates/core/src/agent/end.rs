// SPDX-License-Identifier: Apache-2.0
//! The end of an agent, and what the program that runs it is told.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use crate::affinity::AffinityError;

/// Reason why an agent ends its own duty cycles. [`Agent::do_work`](super::Agent::do_work) returns it; the agent is then
/// closed. Exhaustive: there is no third way to end.
///
/// Everything that converts into a boxed error converts into a failure: errors, also boxed ones, those of `anyhow` and
/// `eyre`, and texts. So `?` ends an agent:
///
/// ```
/// use taran_core::agent::AgentEnd;
///
/// fn duty_cycle(quorum: bool) -> Result<usize, AgentEnd> {
///     if !quorum {
///         return Err("the quorum is lost".into());
///     }
///     let _length: usize = "not a number".parse()?;
///     Ok(0)
/// }
///
/// assert_eq!(duty_cycle(false).unwrap_err().to_string(), "the quorum is lost");
/// // Also what `unwrap` prints.
/// assert_eq!(format!("{:?}", duty_cycle(false).unwrap_err()), "the quorum is lost");
/// let end = duty_cycle(true).unwrap_err();
/// assert!(end.error::<std::num::ParseIntError>().is_some());
/// ```
#[derive(Clone)]
#[doc(alias = "AgentTerminationException")]
pub enum AgentEnd {
    /// The agent has done all its work.
    Finished,
    /// The agent cannot go on.
    Failed(Arc<dyn Error + Send + Sync>),
}

impl AgentEnd {
    /// Returns a failure with its reason: an error, or a text.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into().into())
    }

    /// Returns true if the agent could not go on.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    /// Returns the reason of a failure, if it is of this type. (That of an error which was converted from one of `anyhow` is
    /// hidden by it.)
    pub fn error<E: Error + 'static>(&self) -> Option<&E> {
        match self {
            Self::Finished => None,
            Self::Failed(error) => error.downcast_ref(),
        }
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for AgentEnd {
    fn from(error: E) -> Self {
        Self::failed(error)
    }
}

/// Displays the reason, and its causes unless the text before includes them.
impl fmt::Display for AgentEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("all work is done"),
            Self::Failed(error) => f.write_str(&text_with_causes(&**error)),
        }
    }
}

crate::debug_is_display!(AgentEnd);

fn text_with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
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
    /// Returns the event of a panic in a method of the agent, with the text of the panic's payload.
    pub fn panicked(agent: &str, during: &'static str, payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self::Panicked {
            agent: agent.to_owned(),
            during,
            message: text.unwrap_or("no message").to_owned(),
        }
    }

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

    /// Calls the handler. Its own panic is not propagated: it must not end other agents of the thread.
    pub fn handle(&self, event: &AgentEvent) {
        // The state of the handler is its own matter.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| (self.0)(event)));
    }
}

impl fmt::Debug for AgentEventHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentEventHandler").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_end_converts_from_errors_boxed_errors_and_texts() {
        fn fails<E: Into<AgentEnd>>(error: E) -> AgentEnd {
            error.into()
        }
        let boxed: Box<dyn Error + Send + Sync> = Box::new(fmt::Error);
        for end in [
            fails(fmt::Error),
            fails(boxed),
            AgentEnd::failed(fmt::Error),
        ] {
            assert!(end.is_failure() && end.error::<fmt::Error>().is_some());
        }
        for end in [fails("no space"), fails("no space".to_owned())] {
            assert_eq!(end.to_string(), "no space");
        }
        assert!(!fails(AgentEnd::Finished).is_failure());
    }

    #[test]
    fn agent_end_displays_each_cause_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("no space")]
        struct Cause;
        #[derive(Debug, thiserror::Error)]
        #[error("cannot write")]
        struct Hides(#[source] Cause);
        #[derive(Debug, thiserror::Error)]
        #[error("cannot write: {0}")]
        struct Includes(#[source] Cause);
        for end in [
            AgentEnd::failed(Hides(Cause)),
            AgentEnd::failed(Includes(Cause)),
        ] {
            assert_eq!(end.to_string(), "cannot write: no space");
        }
    }

    #[test]
    fn handle_contains_the_panic_of_the_handler() {
        let handler = AgentEventHandler::new(|event| panic!("{event}"));
        handler.handle(&AgentEvent::panicked("agent", "do_work", &"reason"));
    }
}
