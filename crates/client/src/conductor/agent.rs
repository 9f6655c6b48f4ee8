// SPDX-License-Identifier: Apache-2.0
//! The conductor as an agent on its own thread.

use std::sync::Arc;
use std::time::Duration;

use taran_core::agent::{Agent, AgentEnd, ThreadWaker};
use taran_core::clock::Now;

use crate::client_core::ClientCore;

/// Maximum park time while a response of the driver is awaited.
const MAX_PARK_WHILE_PENDING: Duration = Duration::from_micros(100);

/// Runs the conductor of a client.
#[derive(Debug)]
pub(crate) struct ConductorAgent(Arc<ClientCore>);

impl ConductorAgent {
    pub(crate) fn new(client: Arc<ClientCore>) -> Self {
        Self(client)
    }
}

impl Agent for ConductorAgent {
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd> {
        Ok(self.0.do_work(now))
    }

    fn role_name(&self) -> &'static str {
        "taran-client"
    }

    fn next_deadline_ns(&self) -> Option<i64> {
        Some(self.0.next_deadline_ns())
    }

    fn on_start(&mut self) {
        self.0.set_waker(ThreadWaker::for_current_thread());
    }

    fn park(&mut self, max: Duration) {
        let max = if self.0.has_pending_commands() {
            max.min(MAX_PARK_WHILE_PENDING)
        } else {
            max
        };
        std::thread::park_timeout(max);
    }
}
