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
/// Most checks per cycle of a busy agent.
const MAX_CHECKS_PER_BUSY_CYCLE: usize = 64;
/// Fewest checks per cycle of an idle agent, where the elapsed time permits.
const MIN_CHECKS_PER_IDLE_CYCLE: usize = 64;
/// Elapsed time per check of an idle agent.
const MIN_CHECK_INTERVAL_NS: usize = 2_000;

/// Most items that are prefetched at once, of about a dozen cache lines each: the number of outstanding misses is
/// limited.
const MAX_PREFETCHED: usize = 4;

/// An item that can be scheduled.
pub(crate) trait Pollable {
    /// Condition that ends its idle periods early.
    type Wake: WakeCondition;

    /// Returns the period for which polling the item has no effect, unless it is scheduled, marked active or changed
    /// before. Called after a poll that did nothing.
    fn idle_until(&self, now_ns: i64) -> Option<IdleUntil<Self::Wake>>;

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

    /// Has an item polled in every cycle for [`ACTIVE_NS`].
    pub(crate) fn mark_active(&mut self, slot: Slot, now_ns: i64) -> Option<&mut T> {
        self.entries.get_mut(slot.0)?.as_mut()?.last_active_ns = now_ns;
        self.schedule_once(slot)
    }

    /// Has an item polled in the next cycle; it becomes active if it does something then.
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
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use proptest::prelude::*;

    use super::*;

    const CYCLE_NS: i64 = 1_000;
    /// An item that is idle until a fixed time.
    const SLEEPER: u32 = u32::MAX;
    const SLEEPS_UNTIL_NS: i64 = 50 * MAX_ELAPSED_NS;

    impl Pollable for u32 {
        type Wake = ();

        fn idle_until(&self, _now_ns: i64) -> Option<IdleUntil<()>> {
            (*self == SLEEPER).then_some(IdleUntil {
                deadline_ns: SLEEPS_UNTIL_NS,
                wake: (),
            })
        }
    }

    /// Returns the items that a cycle polled. Those in `working` did something.
    fn poll(
        schedule: &mut PollSchedule<u32>,
        now_ns: i64,
        load: AgentLoad,
        working: &[u32],
    ) -> Vec<u32> {
        let mut polled = Vec::new();
        schedule.poll(now_ns, load, |_, item, _| {
            polled.push(*item);
            working.contains(item)
        });
        polled
    }

    fn schedule_of(count: u32) -> (PollSchedule<u32>, Vec<Slot>) {
        let mut schedule = PollSchedule::default();
        let slots = (0..count).map(|item| schedule.insert(Box::new(item)));
        let slots = slots.collect();
        (schedule, slots)
    }

    #[test]
    fn insert_polls_item_in_next_cycle() {
        let (mut schedule, _) = schedule_of(1_000);
        assert_eq!(poll(&mut schedule, 0, AgentLoad::Busy, &[]).len(), 1_000);
        assert_eq!(poll(&mut schedule, CYCLE_NS, AgentLoad::Busy, &[]), []);
    }

    #[test]
    fn poll_checks_idle_items_by_elapsed_time() {
        for (idle, interval_ns) in [
            (9, 2_000),
            (100, 4_000),
            (250, 10_000),
            (1_000, 10_000),
            (5_000, 2_000),
        ] {
            let (mut schedule, _) = schedule_of(idle);
            poll(&mut schedule, 0, AgentLoad::Busy, &[]);
            let mut checks = 0;
            for cycle in 1..=1_000 {
                checks += poll(&mut schedule, cycle * CYCLE_NS, AgentLoad::Busy, &[]).len();
            }
            assert_eq!(checks, 1_000 * CYCLE_NS as usize / interval_ns, "{idle}");
        }
    }

    #[test]
    fn poll_with_many_idle_items_checks_few_of_them() {
        let (mut schedule, _) = schedule_of(10_000);
        poll(&mut schedule, 0, AgentLoad::Idle, &[7]);
        for cycle in 1..1_000 {
            let polled = poll(&mut schedule, cycle * CYCLE_NS, AgentLoad::Busy, &[7]);
            assert_eq!(polled[0], 7);
            assert!(polled.len() <= 3, "{}", polled.len());
        }
    }

    #[test]
    fn schedule_once_polls_once_and_mark_active_polls_every_cycle() {
        let (mut schedule, slots) = schedule_of(1_000);
        poll(&mut schedule, 0, AgentLoad::Busy, &[]);
        let mut now_ns = 0;
        let mut polls_of = |schedule: &mut PollSchedule<u32>, item| {
            let polled = (0..10).map(|_| {
                now_ns += CYCLE_NS;
                poll(schedule, now_ns, AgentLoad::Busy, &[])
                    .first()
                    .copied()
            });
            polled.filter(|first| *first == Some(item)).count()
        };
        assert_eq!(polls_of(&mut schedule, 700), 0);
        schedule.schedule_once(slots[700]);
        assert_eq!(polls_of(&mut schedule, 700), 1);
        schedule.mark_active(slots[700], 0);
        assert_eq!(polls_of(&mut schedule, 700), 10);
    }

    #[test]
    fn poll_reaches_every_idle_item_within_sweep_period() {
        let cases = [
            (CYCLE_NS, AgentLoad::Busy),
            (50_000, AgentLoad::Busy),
            (MAX_ELAPSED_NS, AgentLoad::Idle),
        ];
        for (cycle_ns, load) in cases {
            for period_ns in [SWEEP_PERIOD_NS, LONG_SWEEP_PERIOD_NS] {
                let mut schedule = PollSchedule::with_sweep_period(period_ns);
                for item in 0..5_000 {
                    schedule.insert(Box::new(item));
                }
                poll(&mut schedule, 0, AgentLoad::Busy, &[]);
                let mut polled = BTreeSet::new();
                for cycle in 1..=period_ns / cycle_ns {
                    polled.extend(poll(&mut schedule, cycle * cycle_ns, load, &[]));
                }
                assert_eq!(polled.len(), 5_000, "{cycle_ns} {period_ns}");
            }
        }
    }

    #[test]
    fn poll_after_slow_cycle_is_bounded() {
        let (mut schedule, _) = schedule_of(10_000);
        poll(&mut schedule, 0, AgentLoad::Busy, &[]);
        for (cycle, load, checks) in [
            (100, AgentLoad::Busy, MAX_CHECKS_PER_BUSY_CYCLE),
            (
                200,
                AgentLoad::Idle,
                MAX_ELAPSED_NS as usize / MIN_CHECK_INTERVAL_NS,
            ),
        ] {
            let polled = poll(&mut schedule, cycle * SWEEP_PERIOD_NS, load, &[]);
            assert_eq!(polled.len(), checks);
        }
    }

    #[test]
    fn poll_skips_idle_item_until_deadline_or_change() {
        let (mut schedule, mut slots) = schedule_of(3);
        slots.push(schedule.insert(Box::new(SLEEPER)));
        let sleeper = slots[3];
        let polls = |schedule: &mut PollSchedule<u32>, now_ns| {
            poll(schedule, now_ns, AgentLoad::Idle, &[]).contains(&SLEEPER)
        };
        assert!(polls(&mut schedule, 0), "new");
        assert!(polls(&mut schedule, 1), "idle for the first time");
        assert!(!polls(&mut schedule, 2) && !polls(&mut schedule, SLEEPS_UNTIL_NS));
        schedule.schedule_once(sleeper);
        assert!(polls(&mut schedule, 3), "scheduled");
        assert!(polls(&mut schedule, 4), "idle again");
        assert!(!polls(&mut schedule, 5));
        schedule.iter_mut().for_each(|_| ());
        assert!(polls(&mut schedule, 6), "changed by iter_mut");
        assert!(!polls(&mut schedule, 7));
        schedule.range_mut(0, 4).0.for_each(|_| ());
        assert!(polls(&mut schedule, 8), "changed by range_mut");
        assert!(!polls(&mut schedule, 9));
        assert!(polls(&mut schedule, SLEEPS_UNTIL_NS + 1), "deadline");
    }

    /// Idle until the flag is set.
    struct FlagPollable(Arc<AtomicBool>);

    impl WakeCondition for Arc<AtomicBool> {
        fn is_unchanged(&self) -> bool {
            !self.load(Ordering::Relaxed)
        }

        fn prefetch(&self) {}
    }

    impl Pollable for FlagPollable {
        type Wake = Arc<AtomicBool>;

        fn idle_until(&self, now_ns: i64) -> Option<IdleUntil<Self::Wake>> {
            self.0
                .is_unchanged()
                .then(|| IdleUntil::changed(self.0.clone(), now_ns))
        }
    }

    #[test]
    fn wake_condition_change_ends_idle_period_early() {
        let mut schedule = PollSchedule::default();
        let flag = Arc::new(AtomicBool::new(false));
        schedule.insert(Box::new(FlagPollable(flag.clone())));
        let mut is_polled = |now_ns| {
            let mut is_polled = false;
            schedule.poll(now_ns, AgentLoad::Idle, |_, _, _| {
                is_polled = true;
                false
            });
            is_polled
        };
        assert!(is_polled(0) && is_polled(1), "new, then idle");
        assert!(!is_polled(2) && !is_polled(1 + ACTIVE_NS));
        assert!(is_polled(2 + ACTIVE_NS), "deadline");
        assert!(!is_polled(3 + ACTIVE_NS));
        flag.store(true, Ordering::Relaxed);
        assert!(is_polled(4 + ACTIVE_NS));
        assert!(is_polled(5 + ACTIVE_NS), "no idle period once it changed");
    }

    #[test]
    fn idle_agent_polls_small_set_every_cycle() {
        let (mut schedule, _) = schedule_of(MIN_CHECKS_PER_IDLE_CYCLE as u32);
        for cycle in 0..10 {
            let now_ns = cycle * (MIN_CHECKS_PER_IDLE_CYCLE * MIN_CHECK_INTERVAL_NS) as i64;
            let polled = poll(&mut schedule, now_ns, AgentLoad::Idle, &[]);
            assert_eq!(polled.len(), MIN_CHECKS_PER_IDLE_CYCLE);
        }
    }

    #[test]
    fn idle_agent_checks_are_limited_by_elapsed_time() {
        let (mut schedule, _) = schedule_of(10_000);
        poll(&mut schedule, 0, AgentLoad::Idle, &[]);
        for (cycle_ns, checks) in [(500, SMALL_IDLE_SET), (40_000, 20)] {
            let mut now_ns = 0;
            for _ in 0..10 {
                now_ns += cycle_ns;
                poll(&mut schedule, now_ns, AgentLoad::Idle, &[]);
            }
            let polled = poll(&mut schedule, now_ns + cycle_ns, AgentLoad::Idle, &[]);
            assert_eq!(polled.len(), checks, "{cycle_ns}");
        }
    }

    #[test]
    fn poll_with_work_keeps_item_active_for_100ms() {
        let (mut schedule, _) = schedule_of(100);
        poll(&mut schedule, 0, AgentLoad::Busy, &[]);
        poll(&mut schedule, MAX_ELAPSED_NS, AgentLoad::Idle, &[42]);
        let last = MAX_ELAPSED_NS + ACTIVE_NS;
        let over = last + 1;
        assert_eq!(poll(&mut schedule, last, AgentLoad::Busy, &[])[0], 42);
        assert_eq!(poll(&mut schedule, over, AgentLoad::Busy, &[])[0], 42);
        assert_eq!(poll(&mut schedule, over, AgentLoad::Busy, &[]), []);
    }

    #[test]
    fn mark_active_polls_item_first_in_next_cycle() {
        let (mut schedule, slots) = schedule_of(10_000);
        poll(&mut schedule, 0, AgentLoad::Busy, &[]);
        assert_eq!(schedule.mark_active(slots[9_999], 1), Some(&mut 9_999));
        assert_eq!(poll(&mut schedule, 1, AgentLoad::Busy, &[])[0], 9_999);
    }

    #[test]
    fn poll_rotates_first_active_item() {
        let (mut schedule, _) = schedule_of(3);
        let all = [0, 1, 2];
        let firsts: BTreeSet<u32> = (0..3)
            .map(|cycle| poll(&mut schedule, cycle, AgentLoad::Busy, &all)[0])
            .collect();
        assert_eq!(firsts.len(), 3);
    }

    #[test]
    fn poll_of_whole_idle_set_rotates_first_item() {
        let (mut schedule, _) = schedule_of(3);
        poll(&mut schedule, 0, AgentLoad::Idle, &[]);
        let firsts: BTreeSet<u32> = (1..4)
            .map(|cycle| poll(&mut schedule, cycle, AgentLoad::Idle, &[])[0])
            .collect();
        assert_eq!(firsts.len(), 3);
    }

    #[test]
    fn range_mut_reaches_every_item_once() {
        let (mut schedule, slots) = schedule_of(10);
        schedule.remove(slots[4]);
        let (mut seen, mut next) = (Vec::new(), Some(0));
        while let Some(slot) = next {
            let (range, rest) = schedule.range_mut(slot, 3);
            seen.extend(range.map(|item| *item));
            next = rest;
        }
        assert_eq!(seen, [0, 1, 2, 3, 5, 6, 7, 8, 9]);
    }

    proptest! {
        /// After any sequence of insertions and removals, items are found by slot, and an idle agent polls each once.
        #[test]
        fn schedule_after_random_changes_is_consistent(steps in prop::collection::vec((0_u8..4, any::<prop::sample::Index>()), 0..200)) {
            let mut schedule: PollSchedule<u32> = PollSchedule::default();
            let mut slots: Vec<(Slot, u32)> = Vec::new();
            let (mut item, mut now_ns) = (0, 0);
            for (step, index) in steps {
                match step {
                    0 => {
                        slots.push((schedule.insert(Box::new(item)), item));
                        item += 1;
                    }
                    1 if !slots.is_empty() => {
                        let (slot, item) = slots.swap_remove(index.index(slots.len()));
                        prop_assert_eq!(schedule.remove(slot), Some(Box::new(item)));
                        prop_assert!(schedule.get(slot).is_none() && schedule.remove(slot).is_none());
                    }
                    2 if !slots.is_empty() => {
                        let (slot, _) = slots[index.index(slots.len())];
                        schedule.mark_active(slot, now_ns);
                    }
                    _ => {
                        now_ns += ACTIVE_NS / 2;
                        let working: Vec<u32> = slots.iter().map(|(_, item)| *item).filter(|item| item % 3 == 0).collect();
                        let polled = poll(&mut schedule, now_ns, AgentLoad::Idle, &working);
                        let once: BTreeSet<u32> = polled.iter().copied().collect();
                        prop_assert_eq!((once.len(), polled.len()), (slots.len(), slots.len()));
                    }
                }
                prop_assert_eq!(schedule.len(), slots.len());
                prop_assert_eq!(schedule.any().is_none(), slots.is_empty());
                for (slot, item) in &slots {
                    prop_assert_eq!(schedule.get(*slot), Some(item));
                }
            }
        }
    }
}
