//! Progress of time.

use std::time::Duration;

use taran_core::clock::{Now, saturating_nanos};

use super::World;
use super::driver::DriverProcess;
use crate::check::Violation;
use crate::history::Event;
use crate::process::{AgentId, CycleContext};

/// One of this many duty cycles is omitted, and one is repeated.
const IRREGULARITY: u32 = 12;

/// The times of the next work of all processes, as far as they know them.
struct Deadlines {
    /// Nanoseconds until the first known deadline.
    next_ns: i64,
    are_all_known: bool,
}

impl World {
    /// Advances the clock and runs one duty cycle of each agent. Returns the amount of work done.
    ///
    /// # Panics
    /// If an invariant is violated.
    pub fn step(&mut self) -> usize {
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
        let now = self.clock.read();
        let arrival = self.network.next_arrival();
        let arrival_ns = arrival.map(|arrival| arrival - now.nanos);
        let deadlines = self.deadlines(now);
        let next = deadlines.next_ns.min(arrival_ns.unwrap_or(i64::MAX));
        if deadlines.are_all_known {
            return self.time_stepper.jump_ns(next, self.is_quiet).min(most_ns);
        }
        self.time_stepper.next_ns((next < i64::MAX).then_some(next))
    }

    /// Returns what the processes know about the time of their next work.
    fn deadlines(&self, now: Now) -> Deadlines {
        let mut deadlines = Deadlines {
            next_ns: i64::MAX,
            are_all_known: true,
        };
        for (_, slot) in self.processes.slots() {
            if !slot.is_alive {
                continue;
            }
            let left_ns = if now.nanos < slot.stalled_until_ns {
                slot.stalled_until_ns - now.nanos
            } else if let Some(deadline_ns) = slot.process.next_deadline_ns() {
                deadline_ns.saturating_sub(self.hosts[slot.env.host().0].at(now).nanos)
            } else {
                deadlines.are_all_known = false;
                continue;
            };
            deadlines.next_ns = deadlines.next_ns.min(left_ns);
        }
        deadlines
    }

    /// Advances the clock by a number of nanoseconds, and runs duty cycles.
    fn step_by(&mut self, by: i64) -> usize {
        self.clock.advance(Duration::from_nanos(by.unsigned_abs()));
        let now = self.clock.read();
        self.history.mix(now.nanos);
        let (mut order, is_complete) = self.shuffle();
        self.is_quiet = true;
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
        self.is_quiet &= work == 0 && is_complete;
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
        let until = self.clock.read().nanos + saturating_nanos(within);
        while !condition(self) {
            let left_ns = until - self.clock.read().nanos;
            if left_ns < 0 {
                panic!("not within {within:?}: {what}\n{}", self.describe());
            }
            self.step_toward(left_ns + 1);
        }
    }

    /// Returns all agents in random order, some omitted and some repeated, and true if none is omitted.
    fn shuffle(&mut self) -> (Vec<AgentId>, bool) {
        let mut order = std::mem::take(&mut self.order);
        self.processes.agents(&mut order);
        let mut is_complete = true;
        for index in 0..order.len() {
            if self.random.u32(0..IRREGULARITY) == 0 {
                let other = self.random.usize(0..order.len());
                is_complete &= other == index;
                order[index] = order[other];
            } else {
                let other = self.random.usize(index..order.len());
                order.swap(index, other);
            }
        }
        (order, is_complete)
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
