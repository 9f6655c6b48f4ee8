// SPDX-License-Identifier: Apache-2.0
//! Limit of a replay.

use taran::CountersReader;
use taran_core::counters::{Counter, CounterState};

/// A counter that limits a replay: the recorded position of an active recording, or any counter of a bounded replay.
#[derive(Debug)]
pub(crate) struct LimitCounter {
    counters: CountersReader,
    counter: Counter,
    registration_id: i64,
}

impl LimitCounter {
    /// Returns the counter with an id, if it is allocated.
    pub(crate) fn new(counters: &CountersReader, id: i32) -> Option<Self> {
        let counter = counters.counter(id)?;
        Some(Self {
            counters: counters.clone(),
            registration_id: counter.registration_id(),
            counter,
        })
    }

    /// Returns the value; `None` if the counter belongs to another one by now.
    pub(crate) fn value(&self) -> Option<i64> {
        let value = self.counter.get();
        (self.counter.registration_id() == self.registration_id).then_some(value)
    }

    /// Returns true if the counter is not in use any more: its value is final.
    pub(crate) fn is_closed(&self) -> bool {
        self.counters.state(self.counter.id()) != CounterState::Allocated
            || self.counter.registration_id() != self.registration_id
    }
}

/// The end of the data that a replay may read, and the end of the replay.
///
/// Contract: [`refresh`](Self::refresh) is called when the replay has reached [`available`](Self::available).
#[derive(Debug)]
pub(crate) struct ReplayLimit {
    /// Position at which the replay ends.
    end: i64,
    /// Position up to which there is data, as known.
    available: i64,
    /// Moves `available`; `None` if it is final.
    counter: Option<LimitCounter>,
}

impl ReplayLimit {
    /// A limit at `end`, with data up to `available`, which a counter moves.
    pub(crate) fn new(end: i64, available: i64, counter: Option<LimitCounter>) -> Self {
        Self {
            end,
            available,
            counter,
        }
    }

    pub(crate) fn end(&self) -> i64 {
        self.end
    }

    pub(crate) fn available(&self) -> i64 {
        self.available
    }

    /// Returns true if the replay is over at a position, for good.
    pub(crate) fn is_reached(&self, position: i64) -> bool {
        position >= self.end || (self.counter.is_none() && position >= self.available)
    }

    /// Reads the counter. Returns true if there is more data.
    pub(crate) fn refresh(&mut self) -> bool {
        let Some(counter) = &self.counter else {
            return false;
        };
        // In this order: a counter that is closed after the value was read had its final value before.
        let is_closed = counter.is_closed();
        let value = counter.value();
        if is_closed {
            self.counter = None;
        }
        let before = self.available;
        self.available = value.map_or(before, |value| value.max(before));
        self.available > before
    }
}
