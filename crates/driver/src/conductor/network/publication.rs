// SPDX-License-Identifier: Apache-2.0
//! The conductor's half of a network publication: limit, cleaning and state (docs/spec/wire.md §3.9, §3.10).
//!
//! Contract: `update_limit` is called on each poll, `tick` once per timer interval; the caller handles the returned
//! events. The sender's half sends in every state until it is released.

mod state;

use std::sync::Arc;

use taran_core::counters::Counter;
use taran_core::memory::prefetch_value;

use super::super::limit_update::LimitUpdate;
use super::super::log_files::LogFile;
use super::super::publication_config::PublicationConfig;
use super::super::publication_log::PublicationLog;
use super::super::subscribers::{Subscriber, Subscribers, UntetheredEvent};
use super::wake_conditions::SenderWakeCondition;
use crate::boundary::{EndpointId, PublicationId, PublicationShared};
use crate::poll_schedule::{IdleUntil, Pollable};

/// State of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Active,
    Draining,
    Linger,
    /// The sender has been requested to release it.
    Done,
}

/// Result of a tick. The caller notifies clients and sender.
#[derive(Debug)]
pub(crate) enum Event {
    /// The image has ended for all spies; `revoked` if the publication was revoked.
    Ended { revoked: bool },
    /// An unfinished frame was padded over.
    Unblocked,
    /// An untethered spy changed its state.
    Untethered(UntetheredEvent),
    /// The publication is to be removed from the sender.
    Done,
}

/// Counters of a network publication, without those of its spies.
#[derive(Debug)]
pub(crate) struct PublicationCounters {
    pub(crate) publisher_position: Counter,
    pub(crate) publisher_limit: Counter,
    pub(crate) sender_position: Counter,
    pub(crate) sender_limit: Counter,
    pub(crate) back_pressure_events: Counter,
    pub(crate) naks_received: Counter,
    /// `fc-receivers`, if flow control counts receivers.
    pub(crate) receivers: Option<Counter>,
}

impl PublicationCounters {
    fn all(self) -> Vec<Counter> {
        let mut all = vec![
            self.publisher_position,
            self.publisher_limit,
            self.sender_position,
            self.sender_limit,
            self.back_pressure_events,
            self.naks_received,
        ];
        all.extend(self.receivers);
        all
    }
}

/// A publication sent to the network.
#[derive(Debug)]
pub(crate) struct NetworkPublication {
    pub(crate) id: PublicationId,
    pub(crate) endpoint: EndpointId,
    pub(crate) config: PublicationConfig,
    pub(crate) log: PublicationLog,
    pub(crate) counters: PublicationCounters,
    /// Local subscribers.
    pub(crate) spies: Subscribers,
    shared: Arc<PublicationShared>,
    unblock_timeout_ns: i64,
    state: State,
    references: usize,
    window: i64,
    limit: i64,
    linger_since_ns: i64,
    /// True if there are no receivers and the publisher has reached its limit. The log is then sampled only once per
    /// timer interval, for a publisher that was just about to publish.
    is_limit_closed: bool,
}

impl Pollable for NetworkPublication {
    type Wake = SenderWakeCondition;

    /// While spies have consumed what was sent, the limit stays as it is until the sender advances.
    fn idle_until(&self, now_ns: i64) -> Option<IdleUntil<SenderWakeCondition>> {
        // The snapshot comes first: later changes are detected by the wake condition.
        let wake = SenderWakeCondition::new(&self.shared);
        let position = wake.position();
        let is_quiet = self.state == State::Active
            && self.references > 0
            && self.has_subscribers()
            && self.limit >= position.saturating_add(self.window)
            && self.spies.range().is_none_or(|(min, _)| min >= position);
        is_quiet.then(|| IdleUntil::changed(wake, now_ns))
    }

    fn next_deadline_ns(&self) -> i64 {
        self.log.next_deadline_ns()
    }

    fn prefetch(&self) {
        prefetch_value(&*self.shared);
        self.log.prefetch();
    }
}

impl NetworkPublication {
    pub(crate) fn new(
        endpoint: EndpointId,
        config: PublicationConfig,
        log: PublicationLog,
        counters: PublicationCounters,
        shared: Arc<PublicationShared>,
        unblock_timeout_ns: i64,
        start_position: i64,
    ) -> Self {
        Self {
            id: PublicationId(config.registration_id),
            endpoint,
            window: config.window(),
            limit: start_position,
            config,
            log,
            counters,
            spies: Subscribers::default(),
            shared,
            unblock_timeout_ns,
            state: State::Active,
            references: 1,
            linger_since_ns: 0,
            is_limit_closed: false,
        }
    }

    /// Returns true if an add command on this endpoint and stream may share this publication.
    pub(crate) fn is_shareable(&self) -> bool {
        self.state == State::Active
            && !self.config.exclusive
            && self.references > 0
            && !self.log.is_revoked()
    }

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
        self.set_limit(end);
        self.counters.publisher_position.set(end);
        self.log.end_at(end);
        // A revoked publication enters LINGER with the next tick.
        if !self.log.is_revoked() {
            if self.sender_position() >= end {
                self.shared.conductor_end_of_stream();
            }
            self.state = State::Draining;
        }
    }

    /// Returns true if a spy can join now. While draining, only if other spies are attached and unsent data is left.
    pub(crate) fn accepts_spies(&self) -> bool {
        match self.state {
            State::Active => true,
            State::Draining => {
                !self.spies.is_empty() && self.log.producer_position() > self.sender_position()
            }
            State::Linger | State::Done => false,
        }
    }

    /// Returns the join position of a new spy: data sent earlier is not available to it.
    pub(crate) fn join_position(&self) -> i64 {
        self.sender_position()
    }

    pub(crate) fn add_spy(&mut self, spy: Subscriber) {
        self.spies.add(spy);
    }

    /// Rejoins a rested spy at the join position of a new one.
    pub(crate) fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64) {
        position.set(self.join_position());
        self.spies.rejoin(subscription_id, now_ns);
    }

    /// Removes a spy. The caller frees its position counter.
    pub(crate) fn remove_spy(&mut self, subscription_id: i64) -> Option<Counter> {
        Some(self.spies.remove(subscription_id)?.position)
    }

    /// Samples the producer position and updates the limit. Cheap when nothing changed.
    pub(crate) fn update_limit(&mut self) -> LimitUpdate {
        if self.state == State::Draining && self.sender_position() >= self.log.producer_position() {
            // Set here, so that the receiver learns of the end before the next timer tick.
            self.shared.conductor_end_of_stream();
        }
        if self.state != State::Active || self.references == 0 {
            return LimitUpdate::Idle;
        }
        let has_subscribers = self.has_subscribers();
        if self.is_limit_closed && !has_subscribers {
            return LimitUpdate::Idle;
        }
        let (producer, has_advanced) = self.sample_publisher();
        let has_moved = self.move_limit(producer, has_subscribers);
        self.is_limit_closed = !has_subscribers && !has_advanced && !has_moved;
        LimitUpdate::new(has_advanced, has_moved)
    }

    /// Samples the producer position. Returns it, and true if it has changed.
    fn sample_publisher(&mut self) -> (i64, bool) {
        let producer = self.log.producer_position();
        let has_advanced = self.counters.publisher_position.get_plain() != producer;
        if has_advanced {
            self.counters.publisher_position.set(producer);
        }
        (producer, has_advanced)
    }

    fn move_limit(&mut self, producer: i64, has_subscribers: bool) -> bool {
        let sender = self.sender_position().min(producer);
        let slowest_spy = self.spies.range().map_or(sender, |(min, _)| min);
        // Clients write the positions of their spies.
        let consumed = sender.min(slowest_spy).max(0);
        let one_term = i64::from(self.log.geometry().term_length());
        if !has_subscribers {
            self.log.set_connected(false);
            if self.limit <= sender {
                return false;
            }
            self.set_limit(sender);
            self.log.clean_to(consumed - one_term);
            return true;
        }
        let limit = self
            .log
            .reserved_limit(consumed.saturating_add(self.window));
        let is_raised = limit > self.limit
            && self.log.clean_to(consumed - one_term)
            && self.is_clean_up_to(limit);
        if is_raised {
            self.set_limit(limit);
        }
        // The limit is set first, so that a publisher that sees the connection can publish at once.
        self.log.set_connected(true);
        is_raised
    }

    /// Returns true if the log is clean up to this limit: at most two terms beyond the clean position, and two only if
    /// the clean position is inside a term (docs/spec/shared-memory.md §7.8).
    fn is_clean_up_to(&self, limit: i64) -> bool {
        let geometry = self.log.geometry();
        let clean = self.log.clean_position();
        let gap = (limit >> geometry.bits()) - (clean >> geometry.bits());
        gap < 2 || (gap == 2 && geometry.term_offset(clean) != 0)
    }

    fn set_limit(&mut self, limit: i64) {
        self.limit = limit;
        self.counters.publisher_limit.set(limit);
    }

    fn sender_position(&self) -> i64 {
        self.shared.position()
    }

    /// Returns true if it is open and has had no receiver yet.
    pub(crate) fn awaits_receiver(&self) -> bool {
        self.state == State::Active && !self.log.is_revoked() && !self.shared.has_receivers()
    }

    fn has_subscribers(&self) -> bool {
        self.shared.is_connected()
            || (self.config.params.spies_simulate_connection && self.spies.any_tracked())
    }

    /// Returns the log and all counters to be freed.
    pub(crate) fn into_parts(mut self) -> (LogFile, Vec<Counter>) {
        let mut counters = self.counters.all();
        counters.extend(self.spies.drain().map(|spy| spy.position));
        (self.log.into_file(), counters)
    }
}
