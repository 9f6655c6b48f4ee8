// SPDX-License-Identifier: Apache-2.0
//! Timers of services.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// Timers, in the order of their deadlines, and in the order of scheduling for equal ones.
///
/// **Input**: [`schedule`](Self::schedule) and [`cancel`](Self::cancel) come from services of every member;
/// [`on_timer_event`](Self::on_timer_event) from the log, on members that do not lead. The leader asks for
/// [`due`](Self::due) timers, appends an event for each, and reports it with [`fired`](Self::fired).
/// [`on_committed`](Self::on_committed) follows the commit position; [`roll_back`](Self::roll_back) ends a leadership.
///
/// A log that is ahead of the commands of services holds events of timers that are not scheduled yet: these are counted, and each
/// uses up one command that comes later (`docs/spec/cluster.md` §8.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timers {
    by_deadline: BTreeMap<(i64, u64), i64>,
    by_id: HashMap<i64, (i64, u64)>,
    next_sequence: u64,
    /// Ids whose events came before the commands, with the number of such events.
    expired_early: HashMap<i64, u32>,
    /// Events of this leader that are not committed: log position and id.
    uncommitted: VecDeque<(i64, i64)>,
}

impl Timers {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Schedules a timer, or moves it.
    pub fn schedule(&mut self, id: i64, deadline: i64) {
        if let Some(events) = self.expired_early.get_mut(&id) {
            *events -= 1;
            if *events == 0 {
                self.expired_early.remove(&id);
            }
            return;
        }
        self.insert(id, deadline);
    }

    fn insert(&mut self, id: i64, deadline: i64) {
        self.remove(id);
        let key = (deadline, self.next_sequence);
        self.next_sequence += 1;
        self.by_deadline.insert(key, id);
        self.by_id.insert(id, key);
    }

    fn remove(&mut self, id: i64) -> bool {
        let key = self.by_id.remove(&id);
        key.is_some_and(|key| self.by_deadline.remove(&key).is_some())
    }

    /// Cancels a timer. Returns true if it was scheduled.
    pub fn cancel(&mut self, id: i64) -> bool {
        self.remove(id)
    }

    /// Returns the first timer whose deadline has passed.
    #[must_use]
    pub fn due(&self, now: i64) -> Option<i64> {
        let (key, id) = self.by_deadline.first_key_value()?;
        (key.0 <= now).then_some(*id)
    }

    /// Returns the first deadline.
    #[must_use]
    pub fn next_deadline(&self) -> Option<i64> {
        self.by_deadline.keys().next().map(|key| key.0)
    }

    /// Takes the log position behind the event that the leader has appended for a timer.
    pub fn fired(&mut self, id: i64, position: i64) {
        if self.remove(id) {
            self.uncommitted.push_back((position, id));
        }
    }

    /// Takes an event from the log.
    pub fn on_timer_event(&mut self, id: i64) {
        if !self.remove(id) {
            *self.expired_early.entry(id).or_insert(0) += 1;
        }
    }

    /// Takes the commit position: events below it are final.
    pub fn on_committed(&mut self, position: i64) {
        while self
            .uncommitted
            .front()
            .is_some_and(|(at, _)| *at <= position)
        {
            self.uncommitted.pop_front();
        }
    }

    /// Schedules the timers again whose events were not committed; the next leader fires them at once.
    pub fn roll_back(&mut self) {
        for (_, id) in std::mem::take(&mut self.uncommitted) {
            self.insert(id, 0);
        }
    }

    /// Returns all timers, id and deadline, in the order in which they are due.
    pub fn iter(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.by_deadline.iter().map(|(key, id)| (*id, key.0))
    }

    /// Returns the number of timers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns true if there is no timer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fire_all(timers: &mut Timers, now: i64) -> Vec<i64> {
        let mut fired = Vec::new();
        while let Some(id) = timers.due(now) {
            timers.fired(id, 96 * (fired.len() as i64 + 1));
            fired.push(id);
        }
        fired
    }

    #[test]
    fn timers_fire_in_order_of_deadlines_and_of_scheduling() {
        let mut timers = Timers::new();
        for (id, deadline) in [(1, 30), (2, 10), (3, 20), (4, 10)] {
            timers.schedule(id, deadline);
        }
        assert_eq!(timers.next_deadline(), Some(10));
        assert_eq!(fire_all(&mut timers, 9), []);
        assert_eq!(fire_all(&mut timers, 20), [2, 4, 3]);
        assert_eq!(timers.len(), 1);
    }

    #[test]
    fn timer_that_is_scheduled_again_moves() {
        let mut timers = Timers::new();
        timers.schedule(1, 10);
        timers.schedule(2, 20);
        timers.schedule(1, 30);
        assert_eq!(fire_all(&mut timers, 100), [2, 1]);
    }

    #[test]
    fn timer_that_is_cancelled_does_not_fire() {
        let mut timers = Timers::new();
        timers.schedule(1, 10);
        assert!(timers.cancel(1));
        assert!(!timers.cancel(1));
        assert_eq!(timers.due(100), None);
    }

    #[test]
    fn event_before_the_command_uses_the_command_up() {
        let mut timers = Timers::new();
        timers.on_timer_event(7);
        timers.schedule(7, 10);
        assert!(timers.is_empty());
        timers.schedule(7, 20);
        assert_eq!(timers.due(20), Some(7));
    }

    #[test]
    fn each_event_before_its_command_uses_one_command_up() {
        let mut timers = Timers::new();
        timers.on_timer_event(7);
        timers.on_timer_event(7);
        timers.schedule(7, 10);
        timers.schedule(7, 20);
        assert!(timers.is_empty());
        timers.schedule(7, 30);
        assert_eq!(timers.due(30), Some(7));
    }

    #[test]
    fn rolled_back_timer_fires_at_once_and_committed_one_does_not() {
        let mut timers = Timers::new();
        timers.schedule(1, 1_000);
        timers.schedule(2, 1_001);
        timers.fired(1, 96);
        timers.fired(2, 192);
        timers.on_committed(96);
        timers.roll_back();
        assert_eq!(fire_all(&mut timers, 0), [2]);
        timers.on_committed(96);
        timers.roll_back();
        assert!(timers.is_empty());
    }
}
