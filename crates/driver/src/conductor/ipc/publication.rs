// SPDX-License-Identifier: Apache-2.0
//! An IPC publication: limit, subscribers and state (docs/spec/shared-memory.md §7.8 and §9.6).
//!
//! ```text
//! ACTIVE ──last reference removed──► DRAINING ──all read──► LINGER ──no references──► DONE
//!    └──────────────── revoked ────────────────────────────────┘
//! ```
//!
//! Contract: `update_limit` is called on each poll, `tick` once per timer interval; the caller handles the returned
//! events.

mod state;

use taran_core::counters::Counter;
use taran_protocol::log::TailSnapshot;
use taran_protocol::uri::Untethered;

use super::super::limit_update::LimitUpdate;
use super::super::log_files::LogFile;
use super::super::publication_config::PublicationConfig;
use super::super::publication_log::PublicationLog;
use super::super::subscribers::{Subscriber, Subscribers, UntetheredEvent};
use crate::poll_schedule::{IdleUntil, Pollable};

/// State of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Active,
    Draining,
    Linger,
    Done,
}

/// Result of a tick. The caller notifies the clients.
#[derive(Debug)]
pub(crate) enum Event {
    /// The image has ended for all subscribers; `revoked` if the publication was revoked.
    Ended { revoked: bool },
    /// An unfinished frame was padded over.
    Unblocked,
    /// The cool-down after a rejection is over: subscribers may join again.
    CoolDownOver,
    /// An untethered subscriber changed its state.
    Untethered(UntetheredEvent),
    /// The publication has no references: its log and counters can be freed.
    Done,
}

/// The `pub-pos` and `pub-lmt` counters.
#[derive(Debug)]
pub(crate) struct PublisherCounters {
    pub(crate) position: Counter,
    pub(crate) limit: Counter,
}

/// Timeouts of a publication.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    pub(crate) unblock_ns: i64,
    pub(crate) untethered: Untethered,
}

/// A publication between processes of one machine.
#[derive(Debug)]
pub(crate) struct IpcPublication {
    pub(crate) registration_id: i64,
    pub(crate) config: PublicationConfig,
    pub(crate) log: PublicationLog,
    pub(crate) counters: PublisherCounters,
    pub(crate) subscribers: Subscribers,
    timeouts: Timeouts,
    state: State,
    references: usize,
    cool_down_until_ns: Option<i64>,
    /// Position counters of subscribers that were detached by a rejection.
    detached_positions: Vec<Counter>,
    window: i64,
    /// The limit is raised only beyond this value, so that cleaning happens in steps of useful size.
    trip_limit: i64,
    /// Highest position reached by a subscriber.
    consumer_position: i64,
    /// True if there are no subscribers and the publisher has reached its limit. The log is then sampled only once per
    /// timer interval, for a publisher that was just about to publish.
    is_limit_closed: bool,
}

impl Pollable for IpcPublication {
    type Wake = TailSnapshot;

    /// While all subscribers have consumed everything, the limit stays as it is until the publisher advances.
    fn idle_until(&self, now_ns: i64) -> Option<IdleUntil<TailSnapshot>> {
        let (slowest, _) = self.subscribers.range()?;
        let is_quiet = self.state == State::Active
            && self.references > 0
            && self.trip_limit >= slowest.saturating_add(self.window);
        let wake = is_quiet.then(|| self.log.snapshot_if_drained(slowest))?;
        Some(IdleUntil::changed(wake?, now_ns))
    }

    fn next_deadline_ns(&self) -> i64 {
        self.log.next_deadline_ns()
    }

    fn prefetch(&self) {
        self.log.prefetch();
    }
}

impl IpcPublication {
    pub(crate) fn new(
        config: PublicationConfig,
        log: PublicationLog,
        counters: PublisherCounters,
        timeouts: Timeouts,
        start_position: i64,
    ) -> Self {
        Self {
            registration_id: config.registration_id,
            window: config.window(),
            config,
            log,
            counters,
            subscribers: Subscribers::default(),
            timeouts,
            state: State::Active,
            references: 1,
            cool_down_until_ns: None,
            detached_positions: Vec::new(),
            trip_limit: start_position,
            consumer_position: start_position,
            is_limit_closed: false,
        }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Returns true if an add command may share this publication.
    pub(crate) fn is_shareable(&self) -> bool {
        self.state == State::Active
            && !self.config.exclusive
            && self.references > 0
            && !self.log.is_revoked()
    }

    /// Adds a reference for another add command.
    pub(crate) fn add_reference(&mut self) {
        self.references += 1;
    }

    /// Removes a reference. The last one ends the stream at the producer position.
    pub(crate) fn remove_reference(&mut self) {
        self.references = self.references.saturating_sub(1);
        if self.references > 0 || self.state != State::Active {
            return;
        }
        let end = self.log.producer_position();
        self.counters.limit.set(end);
        self.log.end_at(end);
        // A revoked publication enters LINGER with the next tick.
        if !self.log.is_revoked() {
            self.state = State::Draining;
        }
    }

    /// Returns true if a subscriber can join now.
    pub(crate) fn accepts_subscribers(&self) -> bool {
        self.cool_down_until_ns.is_none()
            && match self.state {
                State::Active => true,
                State::Draining => !self.is_drained(),
                State::Linger | State::Done => false,
            }
    }

    /// Returns the join position of a new subscriber.
    pub(crate) fn join_position(&self) -> i64 {
        self.subscribers
            .join_position(self.log.clean_position(), self.consumer_position)
    }

    pub(crate) fn add_subscriber(&mut self, subscriber: Subscriber) {
        self.subscribers.add(subscriber);
        self.connect();
    }

    /// Rejoins a rested subscriber.
    pub(crate) fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64) {
        let (join, end) = (self.join_position(), self.log.producer_position());
        position.set(Subscribers::rejoin_position(join, position, end));
        self.subscribers.rejoin(subscription_id, now_ns);
        self.connect();
    }

    /// Sets the connection flag. The limit is updated first, so that a publisher that sees the flag can publish at
    /// once.
    fn connect(&mut self) {
        self.update_limit();
        self.log.set_connected(true);
    }

    /// Removes a subscription. The caller frees its position counter.
    pub(crate) fn remove_subscriber(&mut self, subscription_id: i64) -> Option<Counter> {
        let removed = self.subscribers.remove(subscription_id)?;
        self.on_consumed(removed.position.get());
        if !self.subscribers.any_tracked() {
            self.log.set_connected(false);
        }
        Some(removed.position)
    }

    /// Detaches all subscribers. Their clients read on until they are notified: the positions are kept, so that a
    /// subscriber that joins after the rejection gets no message twice.
    pub(crate) fn detach_subscribers(&mut self) {
        let positions = self
            .subscribers
            .drain()
            .map(|subscriber| subscriber.position);
        self.detached_positions.extend(positions);
        self.log.set_connected(false);
    }

    /// Takes the positions of detached subscribers into account and returns their counters to be freed.
    pub(crate) fn take_detached_positions(&mut self) -> Vec<Counter> {
        let positions = std::mem::take(&mut self.detached_positions);
        for position in &positions {
            self.on_consumed(position.get());
        }
        positions
    }

    /// Returns the log and all counters to be freed.
    pub(crate) fn into_parts(mut self) -> (LogFile, Vec<Counter>) {
        let mut counters = vec![self.counters.position.clone(), self.counters.limit.clone()];
        counters.extend(self.subscribers.drain().map(|s| s.position));
        counters.append(&mut self.detached_positions);
        (self.log.into_file(), counters)
    }

    /// Disconnects the publication until `until_ns` after a rejection. Returns true if the subscribers are to be
    /// detached.
    pub(crate) fn reject_until(&mut self, until_ns: i64) -> bool {
        let first = self.cool_down_until_ns.replace(until_ns).is_none();
        if first {
            self.log.set_connected(false);
        }
        first
    }

    /// Samples the producer position and updates the limit. Cheap when nothing changed.
    pub(crate) fn update_limit(&mut self) -> LimitUpdate {
        if self.state != State::Active || self.references == 0 {
            return LimitUpdate::Idle;
        }
        let range = self.subscribers.range();
        if range.is_none() && self.is_limit_closed {
            return LimitUpdate::Idle;
        }
        let (producer, has_advanced) = self.sample_publisher();
        let has_moved = match range {
            Some(range) => self.move_limit(range, producer),
            None => self.close_limit(),
        };
        self.is_limit_closed = range.is_none() && !has_advanced && !has_moved;
        LimitUpdate::new(has_advanced, has_moved)
    }

    /// Samples the producer position. Returns it, and true if it has changed.
    fn sample_publisher(&mut self) -> (i64, bool) {
        let producer = self.log.producer_position();
        let has_advanced = self.counters.position.get_plain() != producer;
        if has_advanced {
            self.counters.position.set(producer);
        }
        (producer, has_advanced)
    }

    /// With subscribers, the limit follows the slowest one, in steps.
    fn move_limit(&mut self, (min, max): (i64, i64), producer: i64) -> bool {
        self.on_consumed(max);
        let min = min.min(producer);
        let limit = self.log.reserved_limit(min.saturating_add(self.window));
        if limit <= self.trip_limit {
            return false;
        }
        if !self.log.clean_to(min) {
            return false;
        }
        self.counters.limit.set(limit);
        self.trip_limit = limit + self.window / 8;
        true
    }

    /// Without subscribers, publishing is stopped.
    fn close_limit(&mut self) -> bool {
        if self.counters.limit.get_plain() <= self.consumer_position {
            return false;
        }
        self.trip_limit = self.consumer_position;
        self.counters.limit.set(self.consumer_position);
        self.log.clean_to(self.consumer_position);
        true
    }

    /// Records a position reported by a subscriber.
    fn on_consumed(&mut self, position: i64) {
        let position = Subscribers::clamp_claimed(position, self.log.producer_position());
        self.consumer_position = self.consumer_position.max(position);
    }

    fn is_drained(&self) -> bool {
        self.subscribers.all_reached(self.log.producer_position())
    }
}
