// SPDX-License-Identifier: Apache-2.0
//! Subscribers of a log. IPC publications, network publications (for their spies) and images each have one list.
//!
//! A position is a counter that a client writes and may hold any value; users of the minimum and maximum clamp them to
//! the range of the log.
//!
//! Untethered subscribers (`tether=false`, docs/spec/shared-memory.md §9.6, docs/spec/wire.md §5.9) that stay behind
//! the limit get the image reported as unavailable, linger, rest, and then rejoin. `tick` advances these states and
//! returns the events to handle; tethered subscribers are not affected.

mod untethered;

use taran_core::counters::Counter;
use taran_protocol::position::FRAME_ALIGNMENT;
use taran_protocol::uri::Untethered;

pub(crate) use untethered::{Subscriber, UntetheredEvent};

/// The subscribers of one log.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    list: Vec<Subscriber>,
    /// Subscriptions that were dropped for lagging and do not rejoin.
    dropped: Vec<i64>,
}

impl Subscribers {
    pub(crate) fn add(&mut self, subscriber: Subscriber) {
        self.list.push(subscriber);
    }

    /// Removes a subscription. The caller frees its counter.
    pub(crate) fn remove(&mut self, subscription_id: i64) -> Option<Subscriber> {
        self.dropped.retain(|dropped| *dropped != subscription_id);
        let index = self
            .list
            .iter()
            .position(|s| s.subscription_id == subscription_id)?;
        Some(self.list.swap_remove(index))
    }

    /// Removes all subscribers at the end of the log.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Subscriber> + '_ {
        self.list.drain(..)
    }

    /// Returns the subscriptions to which the image is reported as available.
    pub(crate) fn with_image(&self) -> impl Iterator<Item = i64> + '_ {
        self.list
            .iter()
            .filter(|s| s.has_image())
            .map(|s| s.subscription_id)
    }

    /// Returns all subscribers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Subscriber> + '_ {
        self.list.iter()
    }

    /// Returns the subscription id and the counter id of each subscriber.
    pub(crate) fn positions(&self) -> impl Iterator<Item = (i64, i32)> + '_ {
        self.list
            .iter()
            .map(|s| (s.subscription_id, s.position.id()))
    }

    /// Returns true if there is no subscriber, not even a resting one.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns true if the subscription was dropped and does not rejoin.
    pub(crate) fn has_dropped(&self, subscription_id: i64) -> bool {
        self.dropped.contains(&subscription_id)
    }

    /// Returns true if a position is tracked for the limit.
    pub(crate) fn any_tracked(&self) -> bool {
        self.list.iter().any(Subscriber::is_tracked)
    }

    /// Returns the lowest and the highest tracked position; `None` if there is none.
    pub(crate) fn range(&self) -> Option<(i64, i64)> {
        let mut range: Option<(i64, i64)> = None;
        for subscriber in self.list.iter().filter(|s| s.is_tracked()) {
            let position = subscriber.position.get();
            range = Some(match range {
                None => (position, position),
                Some((min, max)) => (min.min(position), max.max(position)),
            });
        }
        range
    }

    /// Returns the join position of a new subscriber: at most that of the slowest subscriber and `end`, at least
    /// `free`.
    pub(crate) fn join_position(&self, free: i64, end: i64) -> i64 {
        let slowest = self.range().map_or(end, |(min, _)| min);
        slowest.min(end).max(free) & !i64::from(FRAME_ALIGNMENT - 1)
    }

    /// Returns the position at which a rested subscriber rejoins: that of a new subscriber, but not before the position
    /// that it has read up to.
    pub(crate) fn rejoin_position(join: i64, position: &Counter, end: i64) -> i64 {
        join.max(Self::clamp_claimed(position.get(), end))
    }

    /// Clamps a position written by a client to `end` and to a frame boundary.
    pub(crate) fn clamp_claimed(claimed: i64, end: i64) -> i64 {
        claimed.min(end) & !i64::from(FRAME_ALIGNMENT - 1)
    }

    /// Returns true if all subscribers with the image have consumed it up to `position`.
    pub(crate) fn all_reached(&self, position: i64) -> bool {
        self.list
            .iter()
            .filter(|s| s.has_image())
            .all(|s| s.position.get() >= position)
    }

    /// Tracks a rested subscriber again. The caller has set its position.
    pub(crate) fn rejoin(&mut self, subscription_id: i64, now_ns: i64) {
        let mut list = self.list.iter_mut();
        if let Some(subscriber) = list.find(|s| s.subscription_id == subscription_id) {
            subscriber.rejoin(now_ns);
        }
    }

    /// Advances the states of untethered subscribers. A subscriber at or below `limit` is lagging.
    pub(crate) fn tick(
        &mut self,
        limit: i64,
        now_ns: i64,
        timeouts: &Untethered,
    ) -> Vec<UntetheredEvent> {
        let mut events = Vec::new();
        self.list.retain_mut(|subscriber| {
            let event = subscriber.tick(limit, now_ns, timeouts);
            let stays = !matches!(event, Some(UntetheredEvent::Dropped { .. }));
            if !stays {
                self.dropped.push(subscriber.subscription_id);
            }
            events.extend(event);
            stays
        });
        events
    }
}
