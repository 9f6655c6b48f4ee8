//! What happens to the next datagrams of one direction of one transport.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{FaultRates, Shared};

/// Datagrams that may overtake one that is held back.
const OVERTAKERS: std::ops::RangeInclusive<u32> = 1..=8;

/// What happens to one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Pass,
    Lose,
    Duplicate,
    /// Hold it back behind that many later ones.
    Hold(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Direction {
    Incoming,
    Outgoing,
}

/// Throws once per datagram. A throw stands until its datagram was taken: a refused send does not throw again.
#[derive(Debug)]
pub(super) struct Dice {
    random: fastrand::Rng,
    shared: Arc<Shared>,
    direction: Direction,
    /// Thrown ahead: so many datagrams pass,
    passes: usize,
    /// and this is what happens to the one behind them.
    then: Option<Fate>,
}

impl Dice {
    pub(super) fn new(random: fastrand::Rng, shared: &Arc<Shared>, direction: Direction) -> Self {
        Self {
            random,
            shared: Arc::clone(shared),
            direction,
            passes: 0,
            then: None,
        }
    }

    /// How many of the next `count` datagrams pass before one does not.
    pub(super) fn passes(&mut self, count: usize) -> usize {
        let rates = self.rates();
        while self.passes < count && self.then.is_none() {
            match throw(&mut self.random, rates) {
                Fate::Pass => self.passes += 1,
                other => self.then = Some(other),
            }
        }
        self.passes.min(count)
    }

    /// What happens to the next datagram.
    pub(super) fn next(&mut self) -> Fate {
        if self.passes(1) == 1 {
            Fate::Pass
        } else {
            self.then.unwrap_or(Fate::Pass)
        }
    }

    /// `count` datagrams that pass were taken.
    pub(super) fn passed(&mut self, count: usize) {
        self.passes = self.passes.saturating_sub(count);
        self.shared
            .passed
            .fetch_add(count as u64, Ordering::Relaxed);
    }

    /// The next datagram was taken, and `fate`, the last answer of `next`, has happened to it.
    pub(super) fn happened(&mut self, fate: Fate) {
        let count = match fate {
            Fate::Pass => return self.passed(1),
            Fate::Lose => &self.shared.lost,
            Fate::Duplicate => &self.shared.duplicated,
            Fate::Hold(_) => &self.shared.reordered,
        };
        count.fetch_add(1, Ordering::Relaxed);
        self.then = None;
    }

    fn rates(&self) -> FaultRates {
        match self.direction {
            Direction::Incoming => self.shared.incoming.read(),
            Direction::Outgoing => self.shared.outgoing.read(),
        }
    }
}

fn throw(random: &mut fastrand::Rng, rates: FaultRates) -> Fate {
    let thrown = random.f64();
    let lost = rates.loss;
    let duplicated = lost + rates.duplicate;
    let held = duplicated + rates.reorder;
    if thrown < lost {
        Fate::Lose
    } else if thrown < duplicated {
        Fate::Duplicate
    } else if thrown < held {
        Fate::Hold(random.u32(OVERTAKERS))
    } else {
        Fate::Pass
    }
}
