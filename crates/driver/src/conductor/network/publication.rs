//! The conductor's half of one network publication: limit, cleaning and life (docs/spec/wire.md §3.9, §3.10).
//!
//! `update_limit` is called in each of its turns, `tick` once per timer interval; what they return is for the owner to do.
//! The sender's half goes on sending in every state until it is taken back.

mod life;

use std::sync::Arc;

use taran_core::counters::Counter;
use taran_core::memory::prefetch_value;

use super::super::log_files::LogFile;
use super::super::motion::Motion;
use super::super::publication_log::PublicationLog;
use super::super::publication_terms::PublicationTerms;
use super::super::subscribers::{Subscriber, Subscribers, TetherEvent};
use super::watch::SenderWatch;
use crate::boundary::{EndpointId, PublicationId, PublicationShared};
use crate::rounds::{Guest, Rest};

/// Where a publication stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Active,
    Draining,
    Linger,
    /// The sender has been asked to give it back.
    Done,
}

/// What a tick found out. The owner tells clients and sender.
#[derive(Debug)]
pub(crate) enum Event {
    /// Every spy has to be told that the stream is gone. `revoked` if that is why.
    Ended { revoked: bool },
    /// An unfinished frame was padded over.
    Unblocked,
    /// An untethered spy moved on.
    Tether(TetherEvent),
    /// Take it from the sender.
    Done,
}

/// All counters of a network publication.
#[derive(Debug)]
pub(crate) struct PublicationCounters {
    pub(crate) publisher_position: Counter,
    pub(crate) publisher_limit: Counter,
    pub(crate) sender_position: Counter,
    pub(crate) sender_limit: Counter,
    pub(crate) back_pressure_events: Counter,
    pub(crate) naks_received: Counter,
    /// Where flow control counts receivers.
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

/// A publication that is sent to the network.
#[derive(Debug)]
pub(crate) struct NetworkPublication {
    pub(crate) id: PublicationId,
    pub(crate) endpoint: EndpointId,
    pub(crate) terms: PublicationTerms,
    pub(crate) log: PublicationLog,
    pub(crate) counters: PublicationCounters,
    /// Who reads it here, without the network.
    pub(crate) spies: Subscribers,
    shared: Arc<PublicationShared>,
    unblock_timeout_ns: i64,
    state: State,
    references: usize,
    window: i64,
    limit: i64,
    linger_since_ns: i64,
    /// Nobody receives, and the publisher has come to its limit: its log need not be looked at, but once per timer
    /// interval, for who was just about to publish.
    is_shut: bool,
}

impl Guest for NetworkPublication {
    type Watch = SenderWatch;

    /// Where spies have read what was sent, the limit stays as it is until the sender goes on.
    fn rest(&self, now_ns: i64) -> Option<Rest<SenderWatch>> {
        // What changes from here on is seen by who watches.
        let watch = SenderWatch::new(&self.shared);
        let position = watch.position();
        let is_quiet = self.state == State::Active
            && self.references > 0
            && self.has_subscribers()
            && self.limit >= position.saturating_add(self.window)
            && self.spies.range().is_none_or(|(min, _)| min >= position);
        is_quiet.then(|| Rest::for_now(watch, now_ns))
    }

    fn fetch_ahead(&self) {
        prefetch_value(&*self.shared);
        self.log.fetch_ahead();
    }
}

impl NetworkPublication {
    pub(crate) fn new(
        endpoint: EndpointId,
        terms: PublicationTerms,
        log: PublicationLog,
        counters: PublicationCounters,
        shared: Arc<PublicationShared>,
        unblock_timeout_ns: i64,
        start_position: i64,
    ) -> Self {
        Self {
            id: PublicationId(terms.registration_id),
            endpoint,
            window: terms.window(),
            limit: start_position,
            terms,
            log,
            counters,
            spies: Subscribers::default(),
            shared,
            unblock_timeout_ns,
            state: State::Active,
            references: 1,
            linger_since_ns: 0,
            is_shut: false,
        }
    }

    /// Whether an add command on this endpoint and stream may get it instead of a new one.
    pub(crate) fn is_shareable(&self) -> bool {
        self.state == State::Active
            && !self.terms.exclusive
            && self.references > 0
            && !self.log.is_revoked()
    }

    pub(crate) fn add_reference(&mut self) {
        self.references += 1;
    }

    /// A client let go of it. The last one ends the stream where the publisher stands.
    pub(crate) fn remove_reference(&mut self) {
        self.references = self.references.saturating_sub(1);
        if self.references > 0 || self.state != State::Active {
            return;
        }
        let end = self.log.producer_position();
        self.set_limit(end);
        self.counters.publisher_position.set(end);
        self.log.end_at(end);
        // A revoked one goes straight to LINGER with the next tick.
        if !self.log.is_revoked() {
            if self.sender_position() >= end {
                self.shared.conductor_end_of_stream();
            }
            self.state = State::Draining;
        }
    }

    /// Whether a spy may join now: one that comes after the last spy has read everything would find nothing.
    pub(crate) fn accepts_spies(&self) -> bool {
        match self.state {
            State::Active => true,
            State::Draining => {
                !self.spies.is_empty() && self.log.producer_position() > self.sender_position()
            }
            State::Linger | State::Done => false,
        }
    }

    /// Where a new spy starts to read: what was sent before is not for it.
    pub(crate) fn join_position(&self) -> i64 {
        self.sender_position()
    }

    pub(crate) fn add_spy(&mut self, spy: Subscriber) {
        self.spies.add(spy);
    }

    /// A rested spy comes back, where a new one would start.
    pub(crate) fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64) {
        position.set(self.join_position());
        self.spies.rejoin(subscription_id, now_ns);
    }

    /// Takes a spy out; its position counter is for the caller to free.
    pub(crate) fn remove_spy(&mut self, subscription_id: i64) -> Option<Counter> {
        Some(self.spies.remove(subscription_id)?.position)
    }

    /// Samples the publisher's position and moves its limit. Cheap when nothing changed.
    pub(crate) fn update_limit(&mut self) -> Motion {
        if self.state == State::Draining && self.sender_position() >= self.log.producer_position() {
            // Said at once, so that the receiver need not wait for the next tick to learn that it has everything.
            self.shared.conductor_end_of_stream();
        }
        if self.state != State::Active || self.references == 0 {
            return Motion::Still;
        }
        let has_subscribers = self.has_subscribers();
        if self.is_shut && !has_subscribers {
            return Motion::Still;
        }
        let (producer, has_published) = self.sample_publisher();
        let has_moved = self.move_limit(producer, has_subscribers);
        self.is_shut = !has_subscribers && !has_published && !has_moved;
        Motion::of(has_published, has_moved)
    }

    /// Where the publisher is, and whether it has moved since the last look.
    fn sample_publisher(&mut self) -> (i64, bool) {
        let producer = self.log.producer_position();
        let has_published = self.counters.publisher_position.get_plain() != producer;
        if has_published {
            self.counters.publisher_position.set(producer);
        }
        (producer, has_published)
    }

    fn move_limit(&mut self, producer: i64, has_subscribers: bool) -> bool {
        let sender = self.sender_position().min(producer);
        let slowest_spy = self.spies.range().map_or(sender, |(min, _)| min);
        // Clients write where their spies are.
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
        let limit = consumed.saturating_add(self.window);
        let is_raised = limit > self.limit
            && self.log.clean_to(consumed - one_term)
            && self.has_clean_room(limit);
        if is_raised {
            self.set_limit(limit);
        }
        // The limit first, so that whoever sees the connection can publish at once.
        self.log.set_connected(true);
        is_raised
    }

    /// Whether everything that publishers reach with this limit is clean: at most two terms on from what was cleaned,
    /// and that only from within a term (docs/spec/shared-memory.md §7.8).
    fn has_clean_room(&self, limit: i64) -> bool {
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

    /// Whether it is open and nobody has received it yet.
    pub(crate) fn awaits_receiver(&self) -> bool {
        self.state == State::Active && !self.log.is_revoked() && !self.shared.has_receivers()
    }

    fn has_subscribers(&self) -> bool {
        self.shared.is_received()
            || (self.terms.params.spies_simulate_connection && self.spies.any_counts())
    }

    /// At the end of its life: the log, and all counters that go with it.
    pub(crate) fn into_parts(mut self) -> (LogFile, Vec<Counter>) {
        let mut counters = self.counters.all();
        counters.extend(self.spies.drain().map(|spy| spy.position));
        (self.log.into_file(), counters)
    }
}
