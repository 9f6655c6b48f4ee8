// SPDX-License-Identifier: Apache-2.0
//! Polling scheduler of an agent: the cost of a duty cycle depends on the number of active items, not on the total.
//!
//! Clients write to shared memory without notifying the driver, so every stream has to be polled. Active items, which
//! did something within [`ACTIVE_NS`], are polled in every duty cycle. Idle items are polled one after the other by
//! elapsed time, so that each is reached once per [`SWEEP_PERIOD_NS`] (later only where many are idle and cycles are
//! long). They are polled in every cycle where they are few, and as time permits where the agent has nothing else to
//! do.
//!
//! Contract: `insert` and `remove` items, `mark_active` an item that is known to have work, `schedule_once` an item
//! that may have work. `poll` calls back for each item that is due; the callback returns true if the item did
//! something. An item that has nothing to do before a deadline or a change of some memory returns that from
//! [`Pollable::idle_until`] and is skipped until then.
//!
//! The memory of an idle item has left the cache when the item is due, and most of the cost of polling it would be
//! cache misses. It is therefore prefetched at the beginning of a cycle, before the active items are polled: the memory
//! of the wake condition ([`WakeCondition`]), or the item itself if it has none. What the item points to
//! ([`Pollable::prefetch`]) is prefetched just before the idle items are polled.

use std::fmt::Debug;

use taran_core::memory::prefetch_value;
use taran_protocol::log::TailSnapshot;

/// Time after its last work for which an item is active: ten messages per second keep a stream active.
const ACTIVE_NS: i64 = 100_000_000;
/// Time without work after which an agent is idle. A fast stream leaves single cycles without work, too.
const IDLE_AFTER_NS: i64 = 1_000_000;

// Sweep budget. The interval between two checks of idle items is the sweep period divided by their number. Fewer than a
// thousand items are swept faster than that, as their memory is partly still in the cache: the interval is at most 40
// ns per item, where this limit lies between 2 and 10 us. A busy agent makes at most 64 checks per cycle. An idle agent
// makes at least 64 checks per cycle, but no more than one per 2 us of elapsed time: about four times what a check
// takes, which leaves time to other agents on the same thread. Elapsed time is capped at 1 ms, so that a slow cycle
// does not cause a slower one.

/// Time within which every idle item is polled once.
const SWEEP_PERIOD_NS: i64 = 10_000_000;
/// The same for items that another agent keeps going in the meantime.
pub(crate) const LONG_SWEEP_PERIOD_NS: i64 = 20_000_000;
/// Largest elapsed time that a cycle accounts for.
const MAX_ELAPSED_NS: i64 = 1_000_000;
/// Idle sets up to this size are polled as a whole in every cycle.
const SMALL_IDLE_SET: usize = 8;
/// Longest interval between two checks of a busy agent, per idle item.
const MAX_INTERVAL_NS_PER_ITEM: usize = 40;
/// Lower bound of that limit.
const MAX_INTERVAL_NS_FLOOR: usize = 2_000;
/// Upper bound of that limit.
const MAX_INTERVAL_NS_CEILING: usize = 10_000;
/// Maximum number of checks per cycle of a busy agent.
const MAX_CHECKS_PER_BUSY_CYCLE: usize = 64;
/// Fewest checks per cycle of an idle agent, where the elapsed time permits.
const MIN_CHECKS_PER_IDLE_CYCLE: usize = 64;
/// Elapsed time per check of an idle agent.
const MIN_CHECK_INTERVAL_NS: usize = 2_000;

/// Maximum number of items that are prefetched at once, of about a dozen cache lines each: the number of outstanding
/// misses is limited.
const MAX_PREFETCHED: usize = 4;

/// An item that can be scheduled.
pub(crate) trait Pollable {
    /// Condition that ends its idle periods early.
    type Wake: WakeCondition;

    /// Returns the period for which polling the item has no effect, unless it is scheduled, marked active or changed
    /// before. Called after a poll that did nothing.
    fn idle_until(&self, now_ns: i64) -> Option<IdleUntil<Self::Wake>>;

    /// Returns the next time at which a poll of the item has an effect, if nothing outside of it changes before.
    fn next_deadline_ns(&self) -> i64;

    /// Prefetches the memory that a poll of the item reads, besides the item itself.
    fn prefetch(&self) {}
}

/// Cheap test that ends an idle period early.
pub(crate) trait WakeCondition: Debug {
    /// Returns true if nothing has changed since the condition was created.
    fn is_unchanged(&self) -> bool;

    /// Prefetches the memory that [`is_unchanged`](Self::is_unchanged) reads.
    fn prefetch(&self);
}

impl WakeCondition for TailSnapshot {
    fn is_unchanged(&self) -> bool {
        self.is_current()
    }

    fn prefetch(&self) {
        self.prefetch();
    }
}

/// No condition in memory: the item is scheduled or marked active by its owner.
impl WakeCondition for () {
    fn is_unchanged(&self) -> bool {
        true
    }

    fn prefetch(&self) {}
}

/// An idle period: it ends after the deadline, or when the wake condition has changed.
#[derive(Debug)]
pub(crate) struct IdleUntil<W> {
    pub(crate) deadline_ns: i64,
    pub(crate) wake: W,
}

impl<W: WakeCondition> IdleUntil<W> {
    /// Returns an idle period that lasts until `wake` changes, but at most [`ACTIVE_NS`]: what the condition does not
    /// cover, such as counters that publish positions, is updated ten times per second.
    pub(crate) fn changed(wake: W, now_ns: i64) -> Self {
        Self {
            deadline_ns: now_ns.saturating_add(ACTIVE_NS),
            wake,
        }
    }

    fn is_current(&self, now_ns: i64) -> bool {
        now_ns <= self.deadline_ns && self.wake.is_unchanged()
    }
}

/// Index of an item in its schedule. It is reused after the item was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) usize);

/// The set that a polled item belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Did something lately. Active items are polled first.
    Active,
    /// Did nothing lately.
    Idle,
}

/// Load of an agent in its last duty cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentLoad {
    /// Did some work: active items must not wait for idle ones.
    Busy,
    /// Did no work for [`IDLE_AFTER_NS`].
    Idle,
}

/// Time at which an agent last did some work.
#[derive(Debug, Default)]
pub(crate) struct WorkTracker {
    last_work_ns: Option<i64>,
}

impl WorkTracker {
    /// Records the work count of a duty cycle.
    pub(crate) fn record(&mut self, work: usize, now_ns: i64) {
        if work > 0 {
            self.last_work_ns = Some(now_ns);
        }
    }

    /// Returns the load of the agent.
    pub(crate) fn load(&self, now_ns: i64) -> AgentLoad {
        match self.last_work_ns {
            Some(last_ns) if now_ns.saturating_sub(last_ns) < IDLE_AFTER_NS => AgentLoad::Busy,
            Some(_) | None => AgentLoad::Idle,
        }
    }
}

#[derive(Debug)]
struct Entry<T: Pollable> {
    item: Box<T>,
    /// Index of its slot in `order`.
    index: usize,
    last_active_ns: i64,
    /// Set only while the item is idle.
    idle: Option<IdleUntil<T::Wake>>,
}

/// Schedule of the items that an agent polls.
#[derive(Debug)]
pub(crate) struct PollSchedule<T: Pollable> {
    entries: Vec<Option<Entry<T>>>,
    free: Vec<Slot>,
    /// All occupied slots, those of active items first.
    order: Vec<Slot>,
    /// Number of active items.
    active: usize,
    /// Index of the active item that is polled first.
    first_active: usize,
    /// Index within the idle items of the one that was checked last.
    sweep_cursor: usize,
    last_poll_ns: Option<i64>,
    sweep_period_ns: i64,
    /// Elapsed time that no check was made for.
    accrued_ns: usize,
    /// Slots whose activity changes at the end of a poll. Kept for its allocation.
    changed: Vec<Slot>,
}

impl<T: Pollable> Default for PollSchedule<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            order: Vec::new(),
            active: 0,
            first_active: 0,
            sweep_cursor: 0,
            last_poll_ns: None,
            sweep_period_ns: SWEEP_PERIOD_NS,
            accrued_ns: 0,
            changed: Vec::new(),
        }
    }
}

impl<T: Pollable> PollSchedule<T> {
    /// Returns an empty schedule that polls every idle item once per `sweep_period_ns`.
    pub(crate) fn with_sweep_period(sweep_period_ns: i64) -> Self {
        Self {
            sweep_period_ns,
            ..Self::default()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the number of active items.
    pub(crate) fn active_len(&self) -> usize {
        self.active
    }

    /// Returns an arbitrary item.
    pub(crate) fn any(&self) -> Option<&T> {
        self.get(*self.order.last()?)
    }

    /// Adds an item, which is polled in the next cycle.
    pub(crate) fn insert(&mut self, item: Box<T>) -> Slot {
        let entry = Entry {
            item,
            index: self.order.len(),
            last_active_ns: i64::MIN,
            idle: None,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            Slot(self.entries.len() - 1)
        });
        self.entries[slot.0] = Some(entry);
        self.order.push(slot);
        self.set_active(slot);
        slot
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<Box<T>> {
        self.entries.get(slot.0)?.as_ref()?;
        self.set_idle(slot);
        let entry = self.entries[slot.0].take()?;
        self.order.swap_remove(entry.index);
        if let Some(&moved) = self.order.get(entry.index) {
            self.set_index(moved, entry.index);
        }
        self.free.push(slot);
        Some(entry.item)
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&T> {
        Some(&self.entries.get(slot.0)?.as_ref()?.item)
    }

    /// Returns an item, for changes that its idle period does not depend on: the period continues.
    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        Some(&mut self.entries.get_mut(slot.0)?.as_mut()?.item)
    }

    /// Returns all items, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten().map(|entry| &*entry.item)
    }

    /// Returns all items, in no particular order, and ends their idle periods.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().flatten().map(Entry::end_idle)
    }

    /// Returns the items in up to `count` slots from `slot` on, ends their idle periods, and returns the slot to
    /// continue at; `None` after the last slot.
    pub(crate) fn range_mut(
        &mut self,
        slot: usize,
        count: usize,
    ) -> (impl Iterator<Item = &mut T>, Option<usize>) {
        let end = slot.saturating_add(count).min(self.entries.len());
        let next = (end < self.entries.len()).then_some(end);
        let entries = self.entries[slot.min(end)..end].iter_mut().flatten();
        (entries.map(Entry::end_idle), next)
    }

    /// Polls an item in every cycle for [`ACTIVE_NS`].
    pub(crate) fn mark_active(&mut self, slot: Slot, now_ns: i64) -> Option<&mut T> {
        self.entries.get_mut(slot.0)?.as_mut()?.last_active_ns = now_ns;
        self.schedule_once(slot)
    }

    /// Polls an item in the next cycle; it becomes active if it does something then.
    pub(crate) fn schedule_once(&mut self, slot: Slot) -> Option<&mut T> {
        self.set_active(slot);
        self.get_mut(slot)
    }

    /// Polls all active items, beginning with a different one each time, and the idle items that are due. `poll_item`
    /// returns true if the item did something.
    pub(crate) fn poll(
        &mut self,
        now_ns: i64,
        load: AgentLoad,
        mut poll_item: impl FnMut(Slot, &mut T, Activity) -> bool,
    ) {
        let mut changed = std::mem::take(&mut self.changed);
        let (active, idle) = (self.active, self.order.len() - self.active);
        let checks = self.checks_due(idle, now_ns, load);
        if checks < idle {
            self.prefetch_idle(checks, now_ns);
        } else {
            // All idle items are checked: begin with a different one.
            self.sweep_cursor = next_index(self.sweep_cursor, idle);
        }
        self.first_active = next_index(self.first_active, active);
        for index in (self.first_active..active).chain(0..self.first_active) {
            let slot = self.order[index];
            if let Some(entry) = &mut self.entries[slot.0] {
                if poll_item(slot, &mut entry.item, Activity::Active) {
                    entry.last_active_ns = now_ns;
                } else if now_ns.saturating_sub(entry.last_active_ns) > ACTIVE_NS {
                    changed.push(slot);
                }
            }
        }
        let became_idle = changed.len();
        if checks < idle {
            let due = self
                .next_idle(checks)
                .filter(|entry| !entry.is_idle(now_ns));
            due.take(MAX_PREFETCHED)
                .for_each(|entry| entry.item.prefetch());
        }
        for _ in 0..checks {
            self.sweep_cursor = next_index(self.sweep_cursor, idle);
            let slot = self.order[active + self.sweep_cursor];
            let Some(entry) = &mut self.entries[slot.0] else {
                continue;
            };
            if entry.is_idle(now_ns) {
                continue;
            }
            if poll_item(slot, &mut entry.item, Activity::Idle) {
                entry.last_active_ns = now_ns;
                changed.push(slot);
            } else {
                entry.idle = entry.item.idle_until(now_ns);
            }
        }
        for (index, slot) in changed.drain(..).enumerate() {
            if index < became_idle {
                self.set_idle(slot);
            } else {
                self.set_active(slot);
            }
        }
        self.changed = changed;
    }

    /// Returns the next time at which a poll has an effect, if nothing outside of the items changes before. Returns `None` if
    /// that time is not known: the sweep is to poll an idle item that has returned no idle period, and that may have work.
    pub(crate) fn next_deadline_ns(&self) -> Option<i64> {
        let is_swept = self.order.len() - self.active > SMALL_IDLE_SET;
        let mut next_ns = i64::MAX;
        for entry in self.entries.iter().flatten() {
            let deadline_ns = match &entry.idle {
                Some(idle) if !idle.wake.is_unchanged() => i64::MIN,
                Some(idle) => {
                    let ended_ns = idle.deadline_ns.saturating_add(1);
                    entry.item.next_deadline_ns().max(ended_ns)
                }
                None if is_swept && entry.index >= self.active => return None,
                None => entry.item.next_deadline_ns(),
            };
            next_ns = next_ns.min(deadline_ns);
        }
        Some(next_ns)
    }

    /// Prefetches what this cycle reads first of each idle item that is due.
    fn prefetch_idle(&self, checks: usize, now_ns: i64) {
        let mut items_left = MAX_PREFETCHED;
        for entry in self.next_idle(checks) {
            match &entry.idle {
                Some(idle) if now_ns <= idle.deadline_ns => idle.wake.prefetch(),
                _ if items_left > 0 => {
                    items_left -= 1;
                    prefetch_value(&*entry.item);
                }
                _ => {}
            }
        }
    }

    /// Returns the idle items that the next `checks` checks reach.
    fn next_idle(&self, checks: usize) -> impl Iterator<Item = &Entry<T>> {
        let idle = &self.order[self.active..];
        let first = idle.iter().skip(self.sweep_cursor + 1);
        let slots = first.chain(idle).take(checks);
        slots.filter_map(|slot| self.entries[slot.0].as_ref())
    }

    /// Returns the number of idle items to check in this cycle.
    fn checks_due(&mut self, idle: usize, now_ns: i64, load: AgentLoad) -> usize {
        let last_ns = self.last_poll_ns.replace(now_ns).unwrap_or(now_ns);
        let elapsed_ns = now_ns.saturating_sub(last_ns).clamp(0, MAX_ELAPSED_NS);
        let max_interval_ns =
            (MAX_INTERVAL_NS_PER_ITEM * idle).clamp(MAX_INTERVAL_NS_FLOOR, MAX_INTERVAL_NS_CEILING);
        let interval_ns = (self.sweep_period_ns as usize / idle.max(1)).clamp(1, max_interval_ns);
        self.accrued_ns += elapsed_ns as usize;
        let by_interval = self.accrued_ns / interval_ns;
        self.accrued_ns %= interval_ns;
        let checks = match load {
            AgentLoad::Busy if idle <= SMALL_IDLE_SET => idle,
            AgentLoad::Busy => by_interval.min(MAX_CHECKS_PER_BUSY_CYCLE),
            AgentLoad::Idle => {
                let by_elapsed = elapsed_ns as usize / MIN_CHECK_INTERVAL_NS;
                by_interval
                    .max(MIN_CHECKS_PER_IDLE_CYCLE)
                    .min(by_elapsed.max(SMALL_IDLE_SET))
            }
        };
        checks.min(idle)
    }

    fn set_active(&mut self, slot: Slot) {
        if let Some(Some(entry)) = self.entries.get_mut(slot.0) {
            entry.idle = None;
        }
        if self
            .index_of(slot)
            .is_some_and(|index| index >= self.active)
        {
            self.swap_to(slot, self.active);
            self.active += 1;
        }
    }

    fn set_idle(&mut self, slot: Slot) {
        if self.index_of(slot).is_some_and(|index| index < self.active) {
            self.active -= 1;
            self.swap_to(slot, self.active);
        }
    }

    fn index_of(&self, slot: Slot) -> Option<usize> {
        Some(self.entries.get(slot.0)?.as_ref()?.index)
    }

    /// Moves a slot to `index` of `order`, in exchange with the slot that is there.
    fn swap_to(&mut self, slot: Slot, index: usize) {
        if let Some(own) = self.index_of(slot) {
            let other = self.order[index];
            self.order.swap(own, index);
            self.set_index(other, own);
            self.set_index(slot, index);
        }
    }

    fn set_index(&mut self, slot: Slot, index: usize) {
        if let Some(entry) = &mut self.entries[slot.0] {
            entry.index = index;
        }
    }
}

impl<T: Pollable> Entry<T> {
    fn is_idle(&self, now_ns: i64) -> bool {
        self.idle.as_ref().is_some_and(|it| it.is_current(now_ns))
    }

    /// Ends the idle period and returns the item: a change may give it something to do.
    fn end_idle(&mut self) -> &mut T {
        self.idle = None;
        &mut self.item
    }
}

/// Returns the index after `index` in a ring of `count` items.
fn next_index(index: usize, count: usize) -> usize {
    if index + 1 < count { index + 1 } else { 0 }
}

#[cfg(test)]
mod tests;
