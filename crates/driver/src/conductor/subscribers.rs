//! Where the subscribers of one log are: IPC publications, network publications for their spies, and images each hold
//! one such list.
//!
//! A position is a counter that its client writes, so what is read here may be anything; users of the minimum and
//! maximum clamp them to what the log can hold.
//!
//! Untethered subscribers (`tether=false`, docs/spec/shared-memory.md §9.6, docs/spec/wire.md §5.9) that stay behind the limit are told that the
//! image is unavailable, linger, rest, and then join again. `tick` moves them through these states and returns what
//! has to be done about it; tethered subscribers are never touched.

mod tether;

use taran_core::counters::Counter;
use taran_protocol::position::FRAME_ALIGNMENT;
use taran_protocol::uri::Untethered;

pub(crate) use tether::{Subscriber, TetherEvent};

/// The subscribers of one log.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    list: Vec<Subscriber>,
    /// Subscriptions that lagged and said that they do not come back.
    dropped: Vec<i64>,
}

impl Subscribers {
    pub(crate) fn add(&mut self, subscriber: Subscriber) {
        self.list.push(subscriber);
    }

    /// Takes a subscription out. Its counter is for the caller to free.
    pub(crate) fn remove(&mut self, subscription_id: i64) -> Option<Subscriber> {
        self.dropped.retain(|dropped| *dropped != subscription_id);
        let index = self
            .list
            .iter()
            .position(|s| s.subscription_id == subscription_id)?;
        Some(self.list.swap_remove(index))
    }

    /// Takes all out, for the end of the log.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Subscriber> + '_ {
        self.list.drain(..)
    }

    /// Subscriptions that believe the image is available.
    pub(crate) fn with_image(&self) -> impl Iterator<Item = i64> + '_ {
        self.list
            .iter()
            .filter(|s| s.has_image())
            .map(|s| s.subscription_id)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Subscriber> + '_ {
        self.list.iter()
    }

    /// Subscription and counter id of each.
    pub(crate) fn positions(&self) -> impl Iterator<Item = (i64, i32)> + '_ {
        self.list
            .iter()
            .map(|s| (s.subscription_id, s.position.id()))
    }

    /// Nobody is attached, not even a resting subscriber.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether a subscription was dropped for good.
    pub(crate) fn has_dropped(&self, subscription_id: i64) -> bool {
        self.dropped.contains(&subscription_id)
    }

    /// Whether any position counts for the limit.
    pub(crate) fn any_counts(&self) -> bool {
        self.list.iter().any(Subscriber::counts)
    }

    /// Lowest and highest position that counts; `None` without subscribers.
    pub(crate) fn range(&self) -> Option<(i64, i64)> {
        let mut range: Option<(i64, i64)> = None;
        for subscriber in self.list.iter().filter(|s| s.counts()) {
            let position = subscriber.position.get();
            range = Some(match range {
                None => (position, position),
                Some((min, max)) => (min.min(position), max.max(position)),
            });
        }
        range
    }

    /// Where a new subscriber joins: not ahead of anybody, nor of `end`, nor in what is free already.
    pub(crate) fn join_position(&self, free: i64, end: i64) -> i64 {
        let slowest = self.range().map_or(end, |(min, _)| min);
        slowest.min(end).max(free) & !i64::from(FRAME_ALIGNMENT - 1)
    }

    /// Where one that was told that the image is gone joins again: where a new one would, but not behind where it has read up
    /// to itself.
    pub(crate) fn rejoin_position(join: i64, position: &Counter, end: i64) -> i64 {
        join.max(Self::believable(position.get(), end))
    }

    /// What of a claim can be true: clients write positions, and nobody can have read what lies behind `end`, nor a part of a
    /// frame.
    pub(crate) fn believable(claimed: i64, end: i64) -> i64 {
        claimed.min(end) & !i64::from(FRAME_ALIGNMENT - 1)
    }

    /// Whether every subscriber has consumed up to `position`. One that was told that the image is gone reads no more.
    pub(crate) fn all_reached(&self, position: i64) -> bool {
        self.list
            .iter()
            .filter(|s| s.has_image())
            .all(|s| s.position.get() >= position)
    }

    /// A rested subscriber, whose position has been set, counts again.
    pub(crate) fn rejoin(&mut self, subscription_id: i64, now_ns: i64) {
        let mut list = self.list.iter_mut();
        if let Some(subscriber) = list.find(|s| s.subscription_id == subscription_id) {
            subscriber.rejoin(now_ns);
        }
    }

    /// Moves untethered subscribers on. `limit` is the position below or at which one counts as left behind.
    pub(crate) fn tick(
        &mut self,
        limit: i64,
        now_ns: i64,
        timeouts: &Untethered,
    ) -> Vec<TetherEvent> {
        let mut events = Vec::new();
        self.list.retain_mut(|subscriber| {
            let event = subscriber.tick(limit, now_ns, timeouts);
            let stays = !matches!(event, Some(TetherEvent::Dropped { .. }));
            if !stays {
                self.dropped.push(subscriber.subscription_id);
            }
            events.extend(event);
            stays
        });
        events
    }
}
