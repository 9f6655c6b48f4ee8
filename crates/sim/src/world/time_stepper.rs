// SPDX-License-Identifier: Apache-2.0
//! Time steps: to the next event where it is known; otherwise small while there is work, and large without.

use std::time::Duration;

/// Maximum step while there is work, as a power of two of nanoseconds: half a millisecond.
const BUSY_BITS: u32 = 19;
/// Default maximum step while there is no work, in nanoseconds.
const IDLE_NS: i64 = 10_000_000;
/// Maximum duration of a phase of fine or coarse steps, in nanoseconds.
const PHASE_NS: i64 = 1_000_000_000;
/// Steps without work after which the world counts as idle.
const IDLE_AFTER: u32 = 3;
/// Steps without work after which a process that has something to do at once, by its deadline, does not count as busy.
const PATIENCE: u32 = 16;
/// Steps without work after which idle steps get longer, up to [`MAX_STRETCH`] times.
const STRETCH_AFTER: u32 = 8;
/// Maximum stretch of idle steps, in worlds with configured time steps.
const MAX_STRETCH: i64 = 6;

/// One of this many fine phases has jumps, in worlds with configured time steps.
const JUMPING: u32 = 6;
/// One of this many steps in other phases checks the deadlines.
const CHECKED: u32 = 8;
/// Longest jump to the next event, in nanoseconds.
const MAX_JUMP_NS: i64 = 10_000_000_000;
/// One of this many jumps is late, and one is early.
const JITTER: u32 = 8;

/// A step of time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeStep {
    /// To the next event, or close to it.
    Jump(i64),
    /// A short one.
    Short(i64),
}

/// Chooses time steps.
#[derive(Debug)]
pub(super) struct TimeStepper {
    random: fastrand::Rng,
    idle_steps: u32,
    idle_ns: i64,
    /// Maximum stretch of idle steps.
    max_stretch: i64,
    /// Share of the time, per mille, in which steps are small while there is work.
    fine_per_mille: u32,
    is_fine: bool,
    /// True if steps in a fine phase end at the next event, while nothing happens before.
    jumps: bool,
    /// Time until the next choice of fine or coarse steps.
    phase_ns: i64,
}

impl TimeStepper {
    pub(super) fn new(random: fastrand::Rng) -> Self {
        Self {
            random,
            idle_steps: 0,
            idle_ns: IDLE_NS,
            max_stretch: 1,
            fine_per_mille: 1_000,
            is_fine: true,
            jumps: true,
            phase_ns: 0,
        }
    }

    /// Sets the maximum idle step and the share of fine steps, per mille.
    pub(super) fn set(&mut self, idle_ns: i64, fine_per_mille: u32) {
        (self.idle_ns, self.max_stretch, self.fine_per_mille) =
            (idle_ns, MAX_STRETCH, fine_per_mille);
    }

    /// Records the work done in the last step.
    pub(super) fn record_work(&mut self, work: usize) {
        if work > 0 {
            self.idle_steps = 0;
        } else {
            self.idle_steps += 1;
        }
    }

    /// Returns the next step. `arrival_ns` is the time until the next arrival of a datagram; `jump_ns` that until the next event
    /// of any kind, if nothing happens before and it is known. Phases in which all processes are late do not apply to a world
    /// where none `may_be_late`.
    ///
    /// Some wake-ups are early, and some late, as those of an operating system: which agents run together, and what has
    /// arrived by then, depends on that.
    pub(super) fn next(
        &mut self,
        jump_ns: Option<i64>,
        arrival_ns: i64,
        may_be_late: bool,
    ) -> TimeStep {
        let step = match jump_ns.filter(|_| self.jumps(may_be_late)) {
            Some(jump_ns) if jump_ns > 0 => TimeStep::Jump(self.jump_ns(jump_ns)),
            event_ns => TimeStep::Short(self.choose(event_ns.unwrap_or(arrival_ns))),
        };
        let (TimeStep::Jump(by) | TimeStep::Short(by)) = step;
        self.phase_ns -= by;
        if self.phase_ns < 0 && self.fine_per_mille < 1_000 {
            self.phase_ns = self.random.i64(0..PHASE_NS);
            self.is_fine = self.random.u32(0..1_000) < self.fine_per_mille;
            self.jumps = self.random.u32(0..JUMPING) == 0;
        }
        step
    }

    /// Returns true if a jump is possible in this phase.
    fn jumps(&self, may_be_late: bool) -> bool {
        (self.is_fine && self.jumps) || !may_be_late
    }

    /// Returns true if the times of the next events are needed: for a jump, or now and then for their check.
    pub(super) fn wants_deadlines(&mut self, may_be_late: bool) -> bool {
        self.jumps(may_be_late) || self.random.u32(0..CHECKED) == 0
    }

    fn jump_ns(&mut self, event_ns: i64) -> i64 {
        let event_ns = event_ns.min(MAX_JUMP_NS);
        match self.random.u32(0..JITTER) {
            0 => event_ns + self.magnitude(self.idle_ns.ilog2()),
            1 => self.random.i64(0..=event_ns),
            _ => event_ns,
        }
    }

    /// Returns a random time below a power of two nanoseconds; all magnitudes have the same probability.
    fn magnitude(&mut self, bits: u32) -> i64 {
        let most = 1 << self.random.u32(0..=bits);
        self.random.i64(0..most)
    }

    /// Returns the current stretch of idle steps.
    fn stretch(&self) -> i64 {
        let longer = i64::from(self.idle_steps.saturating_sub(STRETCH_AFTER) / 2);
        (1 + longer).min(self.max_stretch)
    }

    fn choose(&mut self, event_ns: i64) -> i64 {
        let idle_ns = self.idle_ns * self.stretch();
        if !self.is_fine {
            // Every process is late, as on a busy machine.
            return self.random.i64(1..idle_ns);
        }
        let is_busy = self.idle_steps < IDLE_AFTER;
        if is_busy || (event_ns <= 0 && self.idle_steps < PATIENCE) {
            // A uniform choice of the magnitude, including zero.
            return self.magnitude(BUSY_BITS);
        }
        let step = self.random.i64(1..idle_ns);
        // Usually the next event ends the wait; sometimes every process is late.
        if event_ns > 0 && self.random.u32(0..JITTER) != 0 {
            step.min(event_ns)
        } else {
            step
        }
    }
}

/// Longest gap between duty cycles.
#[derive(Clone, Copy, Debug)]
pub(super) struct StallMeter {
    last_cycle_ns: i64,
    longest_ns: i64,
}

impl StallMeter {
    /// Creates the meter for something that starts now.
    pub(super) fn new(now_ns: i64) -> Self {
        Self {
            last_cycle_ns: now_ns,
            longest_ns: 0,
        }
    }

    /// Records a duty cycle.
    pub(super) fn on_duty_cycle(&mut self, now_ns: i64) {
        self.longest_ns = self.longest_ns.max(now_ns - self.last_cycle_ns);
        self.last_cycle_ns = now_ns;
    }

    /// Returns the longest gap between two duty cycles, including the current one.
    pub(super) fn longest(&self, now_ns: i64) -> Duration {
        let longest_ns = self.longest_ns.max(now_ns - self.last_cycle_ns);
        Duration::from_nanos(longest_ns.unsigned_abs())
    }
}
