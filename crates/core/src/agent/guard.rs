//! Calls to agents that may panic.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

use super::{Agent, AgentEvent, AgentEventHandler};

/// Calls `call`; returns the text of its panic if it panics. Callers only close and drop an agent that panicked: state
/// that a panic left inconsistent (hence the assertion) is not used otherwise. Does not allocate without a panic.
pub(super) fn call<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(call)).map_err(|payload| panic_text(&*payload))
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

/// Calls `on_close` if the agent was started, then drops it. Reports panics.
pub(super) fn close<A: Agent>(mut agent: A, is_started: bool, handler: &AgentEventHandler) {
    let name = agent.role_name().to_owned();
    if is_started && let Err(message) = call(|| agent.on_close()) {
        panicked(&name, "on_close", message, handler);
    }
    if let Err(message) = call(|| drop(agent)) {
        panicked(&name, "drop", message, handler);
    }
}

/// Reports a panic.
pub(super) fn panicked(
    agent: &str,
    during: &'static str,
    message: String,
    handler: &AgentEventHandler,
) {
    report(
        &AgentEvent::Panicked {
            agent: agent.to_owned(),
            during,
            message,
        },
        handler,
    );
}

/// Calls the handler; its own panic has no one to be reported to, and must not end other agents of the thread.
pub(super) fn report(event: &AgentEvent, handler: &AgentEventHandler) {
    let _ = call(|| handler.handle(event));
}
