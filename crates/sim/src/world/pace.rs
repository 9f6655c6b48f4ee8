//! How time passes: in small steps while there is work, in long ones while there is none.

use std::time::Duration;

/// Longest step while there is work, nanoseconds, as a power of two: half a millisecond.
const BUSY_BITS: u32 = 19;
/// Longest step while there is none, nanoseconds, unless the world was told otherwise.
const IDLE_NS: i64 = 10_000_000;
/// How long it stays the same whether steps are fine, at most, nanoseconds.
const PHASE_NS: i64 = 1_000_000_000;
/// Steps without work after which the world counts as idle.
const PATIENCE: u32 = 3;
/// Steps without work after which idle steps get longer: see [`RELAXED`].
const COMPOSED: u32 = 8;
/// How much longer steps get at most when nothing happens for a while, in worlds that were told how long steps may be.
const RELAXED: i64 = 6;

/// Chooses time steps.
#[derive(Debug)]
pub(super) struct Pace {
    random: fastrand::Rng,
    idle_steps: u32,
    idle_ns: i64,
    /// How many times longer than that a step may get.
    relaxed: i64,
    /// In which part of the time steps are small while there is work, per mille.
    fine: u32,
    is_fine: bool,
    /// Time until that is thrown again.
    phase_ns: i64,
}

impl Pace {
    pub(super) fn new(random: fastrand::Rng) -> Self {
        Self {
            random,
            idle_steps: 0,
            idle_ns: IDLE_NS,
            relaxed: 1,
            fine: 1_000,
            is_fine: true,
            phase_ns: 0,
        }
    }

    /// The longest step while there is no work, and in which part of the time, per mille, there are others.
    pub(super) fn set(&mut self, idle_ns: i64, fine: u32) {
        (self.idle_ns, self.relaxed, self.fine) = (idle_ns, RELAXED, fine);
    }

    /// How much was done in the last step.
    pub(super) fn worked(&mut self, work: usize) {
        if work > 0 {
            self.idle_steps = 0;
        } else {
            self.idle_steps += 1;
        }
    }

    /// Nanoseconds until the next step; `next_arrival_ns` is how long the next datagram takes.
    pub(super) fn next_ns(&mut self, next_arrival_ns: Option<i64>) -> i64 {
        let step = self.choose(next_arrival_ns);
        self.phase_ns -= step;
        if self.phase_ns < 0 && self.fine < 1_000 {
            self.phase_ns = self.random.i64(0..PHASE_NS);
            self.is_fine = self.random.u32(0..1_000) < self.fine;
        }
        step
    }

    /// How many times longer a step may be than usual: where nothing happens nobody minds.
    fn composure(&self) -> i64 {
        let longer = i64::from(self.idle_steps.saturating_sub(COMPOSED) / 2);
        (1 + longer).min(self.relaxed)
    }

    fn choose(&mut self, next_arrival_ns: Option<i64>) -> i64 {
        let idle_ns = self.idle_ns * self.composure();
        if !self.is_fine {
            // Machines that have other things to do.
            return self.random.i64(1..idle_ns);
        }
        if self.idle_steps < PATIENCE {
            // All magnitudes alike, none at all included.
            let most = 1 << self.random.u32(0..=BUSY_BITS);
            return self.random.i64(0..most);
        }
        let step = self.random.i64(1..idle_ns);
        match next_arrival_ns {
            // Mostly the next datagram ends the wait; now and then everybody is late.
            Some(arrival) if self.random.u32(0..8) != 0 => step.min(arrival.max(0)),
            _ => step,
        }
    }
}

/// How long something had no turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    turned_ns: i64,
    longest_ns: i64,
}

impl Rest {
    /// Of something that is new.
    pub(super) fn since(now_ns: i64) -> Self {
        Self {
            turned_ns: now_ns,
            longest_ns: 0,
        }
    }

    /// It has a turn.
    pub(super) fn turned(&mut self, now_ns: i64) {
        self.longest_ns = self.longest_ns.max(now_ns - self.turned_ns);
        self.turned_ns = now_ns;
    }

    /// The longest time between two turns, and since the last one.
    pub(super) fn longest(&self, now_ns: i64) -> Duration {
        let longest_ns = self.longest_ns.max(now_ns - self.turned_ns);
        Duration::from_nanos(longest_ns.unsigned_abs())
    }
}
