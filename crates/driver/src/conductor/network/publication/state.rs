// SPDX-License-Identifier: Apache-2.0
//! State machine of a network publication.

use super::{Event, NetworkPublication, State};

impl NetworkPublication {
    /// Advances the state. Called once per timer interval.
    pub(crate) fn tick(&mut self, now_ns: i64) -> Vec<Event> {
        match self.state {
            State::Active if self.log.is_revoked() => {
                let end = self.log.producer_position();
                self.counters.publisher_position.set(end);
                self.set_limit(end);
                self.log.end_at(end);
                self.log.set_connected(false);
                self.shared.conductor_revoke();
                self.linger(now_ns);
                vec![Event::Ended { revoked: true }]
            }
            State::Active => self.tick_active(now_ns),
            State::Draining => self.tick_draining(now_ns),
            State::Linger if self.references == 0 && self.has_lingered(now_ns) => {
                self.state = State::Done;
                vec![Event::Done]
            }
            State::Linger | State::Done => Vec::new(),
        }
    }

    fn tick_active(&mut self, now_ns: i64) -> Vec<Event> {
        let mut events = self.tick_untethered(now_ns);
        let (producer, _) = self.sample_publisher();
        let sender = self.sender_position();
        if !self.config.exclusive
            && self
                .log
                .check_blocked(sender, producer, now_ns, self.unblock_timeout_ns)
        {
            events.push(Event::Unblocked);
        }
        events
    }

    fn tick_draining(&mut self, now_ns: i64) -> Vec<Event> {
        let producer = self.log.producer_position();
        self.counters.publisher_position.set(producer);
        let sender = self.sender_position();
        if producer > sender {
            if self.log.unblock(sender) {
                return vec![Event::Unblocked];
            }
            if self.shared.has_receivers() {
                return self.tick_untethered(now_ns);
            }
        } else {
            self.shared.conductor_end_of_stream();
        }
        if !self.spies.all_reached(producer) {
            return self.tick_untethered(now_ns);
        }
        self.log.set_connected(false);
        self.linger(now_ns);
        vec![Event::Ended { revoked: false }]
    }

    /// Drops untethered spies that limit the publisher for too long (docs/spec/wire.md §5.9).
    fn tick_untethered(&mut self, now_ns: i64) -> Vec<Event> {
        let below = self.sender_position() - self.window + self.window / 4;
        let events = self
            .spies
            .tick(below, now_ns, &self.config.params.untethered);
        events.into_iter().map(Event::Untethered).collect()
    }

    fn linger(&mut self, now_ns: i64) {
        self.state = State::Linger;
        self.linger_since_ns = now_ns;
    }

    fn has_lingered(&self, now_ns: i64) -> bool {
        self.shared.is_unicast_end_of_stream_received()
            || now_ns.saturating_sub(self.linger_since_ns) > self.config.params.linger_ns
    }
}
