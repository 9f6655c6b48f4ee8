// SPDX-License-Identifier: Apache-2.0
//! Calls to agents that may panic.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

use super::{Agent, AgentEvent, AgentEventHandler};

/// Payload of a panic.
pub(super) type Panic = Box<dyn Any + Send>;

/// Calls `call`; returns the payload of its panic if it panics. Callers only close and drop an agent that panicked: state
/// that a panic left inconsistent (hence the assertion) is not used otherwise. Does not allocate without a panic.
pub(super) fn call<T>(call: impl FnOnce() -> T) -> Result<T, Panic> {
    panic::catch_unwind(AssertUnwindSafe(call))
}

/// Calls `on_close` if the agent was started, then drops it. Reports panics.
pub(super) fn close<A: Agent>(mut agent: A, is_started: bool, handler: &AgentEventHandler) {
    let name = agent.role_name().to_owned();
    if is_started && let Err(panic) = call(|| agent.on_close()) {
        handler.handle(&AgentEvent::panicked(&name, "on_close", &*panic));
    }
    if let Err(panic) = call(|| drop(agent)) {
        handler.handle(&AgentEvent::panicked(&name, "drop", &*panic));
    }
}
