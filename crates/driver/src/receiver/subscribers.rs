//! How far the subscribers of an image are.

use taran_core::counters::Counter;

use crate::boundary::SubscriberPosition;

/// The positions, read straight from the counters that client processes write. Nothing read here is believed: a
/// subscriber cannot be further than what has arrived.
#[derive(Debug)]
pub(super) struct Subscribers {
    positions: Vec<Counter>,
}

impl Subscribers {
    pub(super) fn new(subscribers: Vec<SubscriberPosition>) -> Self {
        Self {
            positions: subscribers
                .into_iter()
                .map(|subscriber| subscriber.position)
                .collect(),
        }
    }

    pub(super) fn add(&mut self, subscriber: SubscriberPosition) {
        self.positions.push(subscriber.position);
    }

    pub(super) fn remove(&mut self, counter_id: i32) {
        self.positions
            .retain(|position| position.id() != counter_id);
    }

    /// The slowest subscriber's position, not beyond `arrived` and a multiple of the frame alignment; `None` without
    /// subscribers.
    pub(super) fn min_position(&self, rebuild_position: i64) -> Option<i64> {
        let slowest = self.positions.iter().map(Counter::get).min()?;
        Some(slowest.min(rebuild_position) & !31)
    }
}
