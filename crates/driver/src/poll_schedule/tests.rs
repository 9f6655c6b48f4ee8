// SPDX-License-Identifier: Apache-2.0
//! Tests of the poll schedule with counters as items.

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

    fn next_deadline_ns(&self) -> i64 {
        i64::MAX
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

    fn next_deadline_ns(&self) -> i64 {
        i64::MAX
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

#[test]
fn next_deadline_is_known_unless_idle_items_wait_for_the_sweep() {
    let mut schedule = PollSchedule::default();
    let flag = Arc::new(AtomicBool::new(false));
    let items = (0..=SMALL_IDLE_SET).map(|_| Box::new(FlagPollable(flag.clone())));
    let slots: Vec<Slot> = items.map(|item| schedule.insert(item)).collect();
    let poll = |schedule: &mut PollSchedule<_>, now_ns| {
        schedule.poll(now_ns, AgentLoad::Idle, |_, _, _| false);
    };
    poll(&mut schedule, 0);
    assert_eq!(
        schedule.next_deadline_ns(),
        None,
        "idle, and not polled yet"
    );
    // Nine items: two cycles reach all of them.
    poll(&mut schedule, MAX_ELAPSED_NS);
    poll(&mut schedule, 2 * MAX_ELAPSED_NS);
    assert_eq!(schedule.next_deadline_ns(), Some(i64::MAX));
    flag.store(true, Ordering::Relaxed);
    assert_eq!(schedule.next_deadline_ns(), Some(i64::MIN));
    flag.store(false, Ordering::Relaxed);
    for slot in slots {
        schedule.schedule_once(slot);
    }
    assert_eq!(
        schedule.next_deadline_ns(),
        Some(i64::MAX),
        "all are active"
    );
}
