// SPDX-License-Identifier: Apache-2.0
//! Parks of a driver's agents: an idle strategy that waits for the longest time after each duty cycle without work.
//!
//! Contract: [`Parks::start`] starts the agents. [`Parks::is_parked`] tells whether an agent has a duty cycle now; if it has,
//! [`Parks::begin_cycle`] comes before it and [`Parks::end_cycle`] after it. A waker of the agent and the arrival of a datagram at one
//! of its sockets end its park, as with threads and sockets of an operating system.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use taran_core::agent::Agent;
use taran_core::clock::{Now, saturating_nanos};
use taran_driver::DriverParts;
use taran_net::{AgentRole, WaitRegistration, register_wait};

use crate::network::{HostId, SimNetwork};

/// Agents by their numbers.
const ROLES: [AgentRole; 3] = [AgentRole::Conductor, AgentRole::Sender, AgentRole::Receiver];

/// Parks of the three agents of a driver.
#[derive(Debug)]
pub(super) struct Parks {
    longest_ns: i64,
    network: SimNetwork,
    host: HostId,
    agents: [Parked; 3],
}

#[derive(Debug)]
struct Parked {
    /// End of the current park.
    until_ns: i64,
    waker: Arc<ParkWaker>,
    /// Registration of the waker.
    _wait: WaitRegistration,
}

#[derive(Debug, Default)]
struct ParkWaker(AtomicBool);

impl Wake for ParkWaker {
    fn wake(self: Arc<Self>) {
        // A world runs in one thread.
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Parks {
    /// Starts the agents of a driver.
    pub(super) fn start(
        parts: &mut DriverParts,
        longest: Duration,
        network: SimNetwork,
        host: HostId,
    ) -> Self {
        Self {
            longest_ns: saturating_nanos(longest),
            network,
            host,
            agents: [
                start(&mut parts.conductor),
                start(&mut parts.sender),
                start(&mut parts.receiver),
            ],
        }
    }

    /// Returns true if something has ended the park of an agent before its time.
    fn is_woken(&self, agent: usize) -> bool {
        self.agents[agent].waker.0.load(Ordering::Relaxed)
            || self.network.has_arrivals(self.host, ROLES[agent])
    }

    /// Returns true if an agent has no duty cycle at this time.
    pub(super) fn is_parked(&self, agent: usize, now: Now) -> bool {
        now.nanos < self.agents[agent].until_ns && !self.is_woken(agent)
    }

    /// Begins a duty cycle: from here on wakers end the next park.
    pub(super) fn begin_cycle(&self, agent: usize) {
        self.agents[agent].waker.0.store(false, Ordering::Relaxed);
    }

    /// Ends a duty cycle. The agent parks if it did nothing.
    pub(super) fn end_cycle(&mut self, agent: usize, now: Now, work: usize) {
        self.agents[agent].until_ns = if work > 0 {
            i64::MIN
        } else {
            now.nanos.saturating_add(self.longest_ns)
        };
    }

    /// Returns the time of the next duty cycle of any agent.
    pub(super) fn next_deadline_ns(&self) -> i64 {
        let deadlines = (0..self.agents.len()).map(|agent| {
            if self.is_woken(agent) {
                i64::MIN
            } else {
                self.agents[agent].until_ns
            }
        });
        deadlines.min().unwrap_or(i64::MAX)
    }
}

/// Starts an agent on a thread of its own, so that its wakers are told from those of other agents.
fn start(agent: &mut impl Agent) -> Parked {
    let waker = Arc::<ParkWaker>::default();
    let registered = Waker::from(Arc::clone(&waker));
    let started = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let wait = register_wait(registered);
            agent.on_start();
            wait
        });
        thread.join()
    });
    Parked {
        until_ns: i64::MIN,
        waker,
        _wait: started.expect("an agent of a driver starts without a panic"),
    }
}
