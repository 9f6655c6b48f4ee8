// SPDX-License-Identifier: Apache-2.0
//! Positions of the subscribers of an image.

use taran_core::counters::Counter;

use crate::boundary::SubscriberPosition;

/// Subscriber positions, read from the counters that client processes write. The values are not trusted: a subscriber
/// cannot be beyond what has arrived.
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

    /// Returns the minimum subscriber position, limited to `rebuild_position` and aligned down to the frame alignment;
    /// `None` without subscribers.
    pub(super) fn min_position(&self, rebuild_position: i64) -> Option<i64> {
        let slowest = self.positions.iter().map(Counter::get).min()?;
        Some(slowest.min(rebuild_position) & !31)
    }
}
