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
/// Steps without work after which idle steps get longer, up to [`MAX_STRETCH`] times.
const STRETCH_AFTER: u32 = 8;
/// Maximum stretch of idle steps, in worlds with configured time steps.
const MAX_STRETCH: i64 = 6;

/// Longest jump to the next event, in nanoseconds.
const MAX_JUMP_NS: i64 = 10_000_000_000;
/// One of this many jumps is late, and one is early.
const JITTER: u32 = 8;

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

    /// Returns the nanoseconds until the next step in a world whose processes know their deadlines. `event_ns` is the time
    /// until the next event; `is_quiet` is true if no process can have work before it.
    ///
    /// Some wake-ups are early, and some late, as those of an operating system: which agents run together, and what has
    /// arrived by then, depends on that.
    pub(super) fn jump_ns(&mut self, event_ns: i64, is_quiet: bool) -> i64 {
        let event_ns = event_ns.min(MAX_JUMP_NS);
        if !is_quiet || event_ns <= 0 {
            return self.magnitude(BUSY_BITS);
        }
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

    /// Returns the nanoseconds until the next step in other worlds; `event_ns` is the time until the next event that is
    /// known.
    pub(super) fn next_ns(&mut self, event_ns: Option<i64>) -> i64 {
        let step = self.choose(event_ns);
        self.phase_ns -= step;
        if self.phase_ns < 0 && self.fine_per_mille < 1_000 {
            self.phase_ns = self.random.i64(0..PHASE_NS);
            self.is_fine = self.random.u32(0..1_000) < self.fine_per_mille;
        }
        step
    }

    /// Returns the current stretch of idle steps.
    fn stretch(&self) -> i64 {
        let longer = i64::from(self.idle_steps.saturating_sub(STRETCH_AFTER) / 2);
        (1 + longer).min(self.max_stretch)
    }

    fn choose(&mut self, event_ns: Option<i64>) -> i64 {
        let idle_ns = self.idle_ns * self.stretch();
        if !self.is_fine {
            // Every process is late, as on a busy machine.
            return self.random.i64(1..idle_ns);
        }
        if self.idle_steps < IDLE_AFTER {
            // A uniform choice of the magnitude, including zero.
            return self.magnitude(BUSY_BITS);
        }
        let step = self.random.i64(1..idle_ns);
        match event_ns {
            // Usually the next event ends the wait; sometimes every process is late.
            Some(event) if self.random.u32(0..8) != 0 => step.min(event.max(0)),
            _ => step,
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
