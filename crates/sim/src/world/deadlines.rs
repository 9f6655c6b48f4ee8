// SPDX-License-Identifier: Apache-2.0
//! The times of the next work of all processes, and the check that none works before.
//!
//! Contract: [`Deadlines`] are made when each agent has had a duty cycle that changed nothing, since the last change. They are
//! dropped with the next change. Until then [`Deadlines::check`] is called for each duty cycle that changed something.

use super::World;
use crate::check::{Violation, violation};
use crate::process::{ProcessId, Slot};

/// Knowledge of the world about the deadlines of its processes.
#[derive(Debug)]
pub(super) struct Deadlines {
    /// By process; `None` if it is not known. `i64::MAX` for processes that are dead.
    deadlines_ns: Vec<Option<i64>>,
}

impl Deadlines {
    /// Returns the first deadline, if all are known.
    pub(super) fn next_ns(&self) -> Option<i64> {
        let mut all = self.deadlines_ns.iter().copied();
        all.try_fold(i64::MAX, |next, deadline| Some(next.min(deadline?)))
    }

    /// Fails if `process`, which has changed something at this time of the world, has a later deadline. Does not fail while the
    /// deadline of any process is unknown: that process may give others something to do at any time.
    pub(super) fn check(&self, process: ProcessId, now_ns: i64) -> Result<(), Violation> {
        match self.deadlines_ns.get(process.0) {
            Some(&Some(deadline_ns)) if now_ns < deadline_ns && self.next_ns().is_some() => {
                let by = deadline_ns.saturating_sub(now_ns);
                violation!(
                    "it did something {by} ns before its next deadline, and nothing else had changed"
                );
            }
            _ => Ok(()),
        }
    }
}

impl World {
    /// Records a change that may give an agent something to do.
    pub(super) fn disturb(&mut self) {
        self.changes += 1;
        self.deadlines = None;
    }

    /// Records a change if datagrams were sent or have arrived. Returns true if so.
    pub(super) fn notice_datagrams(&mut self) -> bool {
        let activity = self.network.activity();
        let has_changed = std::mem::replace(&mut self.network_activity, activity) != activity;
        if has_changed {
            self.disturb();
        }
        has_changed
    }

    /// Asks all processes for their deadlines, if nothing changes before one of them, an arrival, or an operation of the
    /// scenario.
    pub(super) fn update_deadlines(&mut self) {
        let now_ns = self.world_ns();
        if self.notice_datagrams() || !self.processes.have_seen(self.changes, now_ns) {
            self.deadlines = None;
            return;
        }
        let slots = self.processes.slots();
        let deadlines = slots.map(|(_, slot)| self.deadline_ns(slot, now_ns));
        let deadlines_ns = deadlines.collect();
        self.deadlines = Some(Deadlines { deadlines_ns });
    }

    /// Returns the time of the next work of a process on the clock of the world.
    fn deadline_ns(&self, slot: &Slot, now_ns: i64) -> Option<i64> {
        if !slot.is_alive {
            return Some(i64::MAX);
        }
        if now_ns < slot.stalled_until_ns {
            return Some(slot.stalled_until_ns);
        }
        let ahead_ns = self.hosts[slot.env.host().0].at(self.clock.read()).nanos - now_ns;
        let deadline_ns = slot.process.next_deadline_ns()?;
        Some(deadline_ns.saturating_sub(ahead_ns))
    }
}
