// SPDX-License-Identifier: Apache-2.0
//! State machine of an IPC publication.

use super::{Event, IpcPublication, State};

impl IpcPublication {
    /// Advances the state. Called once per timer interval.
    pub(crate) fn tick(&mut self, now_ns: i64) -> Vec<Event> {
        match self.state {
            State::Active if self.log.is_revoked() => self.end_revoked(),
            State::Active => self.tick_active(now_ns),
            State::Draining => self.tick_draining(now_ns),
            State::Linger if self.references == 0 => {
                self.state = State::Done;
                vec![Event::Done]
            }
            State::Linger | State::Done => Vec::new(),
        }
    }

    fn end_revoked(&mut self) -> Vec<Event> {
        let end = self.log.producer_position();
        self.counters.position.set(end);
        self.counters.limit.set(end);
        self.log.end_at(end);
        self.log.set_connected(false);
        self.state = State::Linger;
        vec![Event::Ended { revoked: true }]
    }

    fn tick_active(&mut self, now_ns: i64) -> Vec<Event> {
        let mut events = self.tick_untethered(now_ns);
        self.log.set_connected(self.subscribers.any_tracked());
        let (producer, _) = self.sample_publisher();
        let unblock_ns = self.timeouts.unblock_ns;
        if !self.config.exclusive
            && self
                .log
                .check_blocked(self.consumer_position, producer, now_ns, unblock_ns)
        {
            events.push(Event::Unblocked);
        }
        if self
            .cool_down_until_ns
            .is_some_and(|until_ns| until_ns < now_ns)
        {
            self.cool_down_until_ns = None;
            events.push(Event::CoolDownOver);
        }
        events
    }

    fn tick_draining(&mut self, now_ns: i64) -> Vec<Event> {
        self.counters.position.set(self.log.producer_position());
        if let Some((_, max)) = self.subscribers.range() {
            self.on_consumed(max);
        }
        if self.is_drained() {
            self.state = State::Linger;
            return vec![Event::Ended { revoked: false }];
        }
        let mut events = self.tick_untethered(now_ns);
        if self.log.unblock(self.consumer_position) {
            events.push(Event::Unblocked);
        }
        events
    }

    fn tick_untethered(&mut self, now_ns: i64) -> Vec<Event> {
        let below = self.consumer_position - self.window + self.window / 4;
        let events = self
            .subscribers
            .tick(below, now_ns, &self.timeouts.untethered);
        events.into_iter().map(Event::Untethered).collect()
    }
}
