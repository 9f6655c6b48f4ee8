//! How time passes: in small steps while there is work, in long ones while there is none.

/// Longest step while there is work, nanoseconds, as a power of two: half a millisecond.
const BUSY_BITS: u32 = 19;
/// Longest step while there is none, nanoseconds.
const IDLE_NS: i64 = 10_000_000;
/// Steps without work after which the world counts as idle.
const PATIENCE: u32 = 3;

/// Chooses time steps.
#[derive(Debug)]
pub(super) struct Pace {
    random: fastrand::Rng,
    idle_steps: u32,
}

impl Pace {
    pub(super) fn new(random: fastrand::Rng) -> Self {
        Self {
            random,
            idle_steps: 0,
        }
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
        if self.idle_steps < PATIENCE {
            // All magnitudes alike, none at all included.
            let most = 1 << self.random.u32(0..=BUSY_BITS);
            return self.random.i64(0..most);
        }
        let step = self.random.i64(1..IDLE_NS);
        match next_arrival_ns {
            // Mostly the next datagram ends the wait; now and then everybody is late.
            Some(arrival) if self.random.u32(0..8) != 0 => step.min(arrival.max(0)),
            _ => step,
        }
    }
}
