//! The conductor as an agent on a thread of its own.

use std::sync::Arc;
use std::time::Duration;

use taran_core::agent::{Agent, ThreadWaker};
use taran_core::clock::Now;

use crate::link::Link;

/// Longest nap while the driver's answer is awaited.
const NAP: Duration = Duration::from_micros(100);

/// Runs the conductor of a link.
#[derive(Debug)]
pub(crate) struct ConductorAgent(Arc<Link>);

impl ConductorAgent {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self(link)
    }
}

impl Agent for ConductorAgent {
    fn do_work(&mut self, now: Now) -> usize {
        self.0.do_work(now)
    }

    fn role_name(&self) -> &'static str {
        "taran-client"
    }

    fn on_start(&mut self) {
        self.0.set_waker(ThreadWaker::for_current_thread());
    }

    fn park(&mut self, max: Duration) {
        let max = if self.0.is_awaiting() {
            max.min(NAP)
        } else {
            max
        };
        std::thread::park_timeout(max);
    }
}
