// SPDX-License-Identifier: Apache-2.0
//! Random choice of the faults of one direction of one transport.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{FaultRates, Shared};

/// Number of later datagrams that overtake a delayed one.
const DELAY_DATAGRAMS: std::ops::RangeInclusive<u32> = 1..=8;

/// The fault, or none, of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultAction {
    Pass,
    Drop,
    Duplicate,
    /// Deliver it behind that many later ones.
    Delay(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Direction {
    Incoming,
    Outgoing,
}

/// Draws one action per datagram. An action remains valid until its datagram is accepted: a refused send draws no new
/// one.
#[derive(Debug)]
pub(super) struct FaultRng {
    random: fastrand::Rng,
    shared: Arc<Shared>,
    direction: Direction,
    /// Actions drawn ahead: number of datagrams that pass.
    passes: usize,
    /// Action of the datagram behind them.
    then: Option<FaultAction>,
}

impl FaultRng {
    pub(super) fn new(random: fastrand::Rng, shared: &Arc<Shared>, direction: Direction) -> Self {
        Self {
            random,
            shared: Arc::clone(shared),
            direction,
            passes: 0,
            then: None,
        }
    }

    /// Returns how many of the next `count` datagrams pass before one with a fault.
    pub(super) fn passing(&mut self, count: usize) -> usize {
        let rates = self.rates();
        while self.passes < count && self.then.is_none() {
            match draw(&mut self.random, rates) {
                FaultAction::Pass => self.passes += 1,
                other => self.then = Some(other),
            }
        }
        self.passes.min(count)
    }

    /// Returns the action of the next datagram.
    pub(super) fn next(&mut self) -> FaultAction {
        if self.passing(1) == 1 {
            FaultAction::Pass
        } else {
            self.then.unwrap_or(FaultAction::Pass)
        }
    }

    /// Records that `count` datagrams without a fault were accepted.
    pub(super) fn on_passed(&mut self, count: usize) {
        self.passes = self.passes.saturating_sub(count);
        self.shared
            .passed
            .fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Records that the next datagram was accepted and that `action`, the last result of `next`, was applied to it.
    pub(super) fn on_applied(&mut self, action: FaultAction) {
        let count = match action {
            FaultAction::Pass => return self.on_passed(1),
            FaultAction::Drop => &self.shared.lost,
            FaultAction::Duplicate => &self.shared.duplicated,
            FaultAction::Delay(_) => &self.shared.reordered,
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

fn draw(random: &mut fastrand::Rng, rates: FaultRates) -> FaultAction {
    let drawn = random.f64();
    let lost = rates.loss;
    let duplicated = lost + rates.duplicate;
    let held = duplicated + rates.reorder;
    if drawn < lost {
        FaultAction::Drop
    } else if drawn < duplicated {
        FaultAction::Duplicate
    } else if drawn < held {
        FaultAction::Delay(random.u32(DELAY_DATAGRAMS))
    } else {
        FaultAction::Pass
    }
}
