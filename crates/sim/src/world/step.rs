// SPDX-License-Identifier: Apache-2.0
//! Progress of time.

use std::time::Duration;

use taran_core::clock::{Now, saturating_nanos};

use super::World;
use super::deadlines::Deadlines;
use super::driver::DriverProcess;
use super::time_stepper::TimeStep;
use crate::check::Violation;
use crate::history::Event;
use crate::process::{AgentId, CycleContext};

/// One of this many duty cycles is omitted, and one is repeated.
const IRREGULARITY: u32 = 12;

impl World {
    /// Advances the clock and runs one duty cycle of each agent. Returns the amount of work done.
    ///
    /// # Panics
    /// If an invariant is violated.
    pub fn step(&mut self) -> usize {
        self.disturb();
        self.step_within(Duration::MAX)
    }

    /// As [`step`](Self::step), with a limit on the time step, for scenarios that act at times of their own.
    ///
    /// # Panics
    /// As [`step`](Self::step).
    pub fn step_within(&mut self, most: Duration) -> usize {
        let most_ns = saturating_nanos(most);
        let by = self.next_step_ns(most_ns).min(most_ns);
        self.step_by(by)
    }

    /// Advances the clock by the next time step, which is limited to `most_ns` if it is a jump.
    fn step_toward(&mut self, most_ns: i64) {
        let by = self.next_step_ns(most_ns);
        self.step_by(by);
    }

    /// Returns the next time step in nanoseconds, and limits jumps.
    fn next_step_ns(&mut self, most_ns: i64) -> i64 {
        // Phases in which all duty cycles are late are for worlds with a driver. Other worlds can jump at any time.
        let may_be_late = self.hosts.iter().any(|host| host.driver.is_some());
        if self.time_stepper.wants_deadlines(may_be_late) {
            self.update_deadlines();
        } else {
            self.deadlines = None;
        }
        let now_ns = self.world_ns();
        let arrival_ns = self.network.next_arrival().unwrap_or(i64::MAX);
        let arrival_ns = arrival_ns.saturating_sub(now_ns);
        let deadline_ns = self.deadlines.as_ref().and_then(Deadlines::next_ns);
        let jump_ns = deadline_ns.map(|at_ns| at_ns.saturating_sub(now_ns).min(arrival_ns));
        match self.time_stepper.next(jump_ns, arrival_ns, may_be_late) {
            TimeStep::Jump(by) => by.min(most_ns),
            TimeStep::Short(by) => by,
        }
    }

    /// Advances the clock by a number of nanoseconds, and runs duty cycles.
    fn step_by(&mut self, by: i64) -> usize {
        self.clock.advance(Duration::from_nanos(by.unsigned_abs()));
        let now = self.clock.read();
        self.history.mix(now.nanos);
        self.network.deliver();
        self.notice_datagrams();
        let mut order = self.shuffle();
        let mut work = 0;
        for agent in order.drain(..) {
            match self.run_agent(agent, now) {
                Ok(done) => work += done,
                Err(violation) => panic!("{violation}"),
            }
        }
        self.order = order;
        if work > 0 {
            self.check_drivers();
        }
        self.check_invariants();
        self.time_stepper.record_work(work);
        work
    }

    /// Checks all drivers, because clients have moved their positions.
    fn check_drivers(&mut self) {
        for (index, host) in self.hosts.iter().enumerate() {
            let Some(process) = host.driver else { continue };
            let slot = self.processes.slot_mut(process);
            let Some(driver) = slot.expect_mut::<DriverProcess>().running_mut() else {
                continue;
            };
            let id = host.network.id();
            let checked = self
                .network
                .with_traffic(id, |traffic| driver.check_against_traffic(traffic));
            if let Err(violation) = checked {
                panic!("host {index}: {violation}");
            }
        }
    }

    /// Runs steps for some time.
    ///
    /// # Panics
    /// As [`step`](Self::step).
    pub fn run_for(&mut self, time: Duration) {
        self.disturb();
        let until = self.clock.read().nanos + saturating_nanos(time);
        loop {
            let left_ns = until - self.clock.read().nanos;
            if left_ns <= 0 {
                return;
            }
            self.step_toward(left_ns);
        }
    }

    /// Runs steps until `condition` holds.
    ///
    /// # Panics
    /// As [`step`](Self::step), and if the time is up before.
    pub fn run_until(&mut self, what: &str, within: Duration, condition: impl Fn(&Self) -> bool) {
        self.disturb();
        let until = self.clock.read().nanos + saturating_nanos(within);
        while !condition(self) {
            let left_ns = until - self.clock.read().nanos;
            if left_ns < 0 {
                panic!("not within {within:?}: {what}\n{}", self.describe());
            }
            self.step_toward(left_ns + 1);
        }
    }

    /// Returns all agents in random order, some omitted and some repeated.
    fn shuffle(&mut self) -> Vec<AgentId> {
        let mut order = std::mem::take(&mut self.order);
        self.processes.agents(&mut order);
        for index in 0..order.len() {
            if self.random.u32(0..IRREGULARITY) == 0 {
                let other = self.random.usize(0..order.len());
                order[index] = order[other];
            } else {
                let other = self.random.usize(index..order.len());
                order.swap(index, other);
            }
        }
        order
    }

    /// Runs one duty cycle of an agent of a process.
    fn run_agent(&mut self, id: AgentId, now: Now) -> Result<usize, Violation> {
        let AgentId { process, agent } = id;
        let slot = self.processes.slot_mut(process);
        if !slot.is_alive || now.nanos < slot.stalled_until_ns {
            return Ok(0);
        }
        let mut context = CycleContext {
            agent,
            now: self.hosts[slot.env.host().0].at(now),
            world_ns: now.nanos,
            env: &mut slot.env,
            history: &mut self.history,
            ledger: &mut self.ledger,
            shared: &mut self.shared,
        };
        let work = slot.process.do_work(&mut context)?;
        if work > 0 || self.network.activity() != self.network_activity {
            self.on_change(id, now)?;
        } else {
            slot.record_idle(agent, self.changes);
        }
        if work > 0 {
            let event = Event::Process {
                process: process.0,
                agent,
                work,
            };
            self.history.record(now.nanos, event);
        }
        Ok(work)
    }

    /// Handles a change that an agent has made.
    fn on_change(&mut self, by: AgentId, now: Now) -> Result<(), Violation> {
        let checked = self
            .deadlines
            .as_ref()
            .map(|it| it.check(by.process, now.nanos));
        if let Some(Err(Violation(what))) = checked {
            let AgentId { process, agent } = by;
            let state = self.describe();
            return Err(Violation(format!(
                "process {}, agent {agent}: {what}\n{state}",
                process.0
            )));
        }
        self.network_activity = self.network.activity();
        self.disturb();
        Ok(())
    }

    /// Describes the state of the world, for a failure.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        let mut line = |what: String| {
            text.push_str("  ");
            text.push_str(&what);
            text.push('\n');
        };
        for (id, slot) in self.processes.slots() {
            let state = if slot.is_alive { "" } else { " (dead)" };
            let what = slot.process.describe();
            line(format!("process {}{state}: {what}", id.0));
        }
        line(format!("network: {:?}", self.network.counts()));
        text
    }
}
