// SPDX-License-Identifier: Apache-2.0
//! The agents of a driver in `INVOKER` mode.

use std::panic::{self, AssertUnwindSafe};
use std::thread;
use std::time::Duration;

use taran_core::agent::{
    Agent, AgentEvent, AgentEventHandler, AgentInvoker, HostedId, HostingAgent,
};
use taran_core::clock::SystemClock;

use super::invoker_agent::InvokerAgent;
use super::network_agents::NetworkAgents;
use crate::conductor::Conductor;
use crate::receiver::Receiver;
use crate::sender::Sender;

/// All agents of a driver as one agent, which hosts those that are added.
pub(crate) type InvokedAgents =
    HostingAgent<InvokerAgent<Conductor, NetworkAgents<Sender, Receiver>>>;

type Invoker = AgentInvoker<InvokedAgents, SystemClock>;

/// Runs the agents of a driver on the thread of the caller.
///
/// Contract: the panic or end of an agent of the driver is passed to the handler and closes all agents, as on a thread of
/// its own. No panic of an agent reaches the caller.
pub(crate) struct InvokedDriver {
    /// Absent once closed.
    invoker: Option<Box<Invoker>>,
    handler: AgentEventHandler,
}

impl InvokedDriver {
    pub(crate) fn new(invoker: Invoker, handler: AgentEventHandler) -> Self {
        Self {
            invoker: Some(Box::new(invoker)),
            handler,
        }
    }

    /// Returns true until the agents are closed.
    pub(crate) fn is_running(&self) -> bool {
        self.invoker.is_some()
    }

    /// Starts the agents, unless they have started already.
    pub(crate) fn start(&mut self) {
        if self
            .invoker
            .as_ref()
            .is_some_and(|invoker| !invoker.is_started())
        {
            self.call("on_start", AgentInvoker::start);
        }
    }

    /// Runs one duty cycle of all agents and returns the amount of work.
    pub(crate) fn invoke(&mut self) -> usize {
        self.start();
        match self.call("do_work", AgentInvoker::invoke) {
            Some(Ok(work)) => work,
            Some(Err(end)) => {
                self.fail(|agent| AgentEvent::Ended { agent, end });
                0
            }
            None => 0,
        }
    }

    /// Waits until a datagram arrives or a waker of the thread is used, for `longest` at most.
    pub(crate) fn park(&mut self, longest: Duration) {
        self.start();
        let park = |invoker: &mut Invoker| invoker.agent_mut().park(longest);
        if self.call("park", park).is_none() {
            thread::sleep(longest);
        }
    }

    /// Closes an agent that was added.
    pub(crate) fn close_hosted(&mut self, id: HostedId) {
        // The driver starts before the agents that it hosts.
        self.start();
        self.call("on_close", |invoker| invoker.agent_mut().close_hosted(id));
    }

    /// Closes all agents.
    pub(crate) fn close(&mut self) {
        let Some(mut invoker) = self.invoker.take() else {
            return;
        };
        let agent = role_name(&invoker);
        self.report_panic(&agent, "on_close", || invoker.close());
        self.report_panic(&agent, "drop", || drop(invoker));
    }

    /// Calls `call` unless the agents are closed. If it panics, they are.
    fn call<T>(&mut self, during: &'static str, call: impl FnOnce(&mut Invoker) -> T) -> Option<T> {
        let invoker = self.invoker.as_mut()?;
        // Agents that panicked are only closed and dropped.
        match panic::catch_unwind(AssertUnwindSafe(|| call(invoker))) {
            Ok(result) => Some(result),
            Err(payload) => {
                self.fail(|agent| AgentEvent::panicked(&agent, during, &*payload));
                None
            }
        }
    }

    #[cold]
    fn fail(&mut self, event: impl FnOnce(String) -> AgentEvent) {
        if let Some(invoker) = &self.invoker {
            self.handler.handle(&event(role_name(invoker)));
        }
        self.close();
    }

    fn report_panic(&self, agent: &str, during: &'static str, call: impl FnOnce()) {
        if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(call)) {
            let event = AgentEvent::panicked(agent, during, &*payload);
            self.handler.handle(&event);
        }
    }
}

fn role_name(invoker: &Invoker) -> String {
    invoker.agent().role_name().to_owned()
}
