//! One IPC publication: its limit, its subscribers and its life (docs/spec/shared-memory.md §7.8 and §9.6).
//!
//! ```text
//! ACTIVE ──last reference gone──► DRAINING ──all read──► LINGER ──no reference──► done
//!    └────────────── revoked ─────────────────────────────┘
//! ```
//!
//! `update_limit` is called in each of its turns, `tick` once per timer interval; what they return is for the owner to do.

mod life;

use taran_core::counters::Counter;
use taran_protocol::log::TailSnapshot;
use taran_protocol::uri::Untethered;

use super::super::log_files::LogFile;
use super::super::motion::Motion;
use super::super::publication_log::PublicationLog;
use super::super::publication_terms::PublicationTerms;
use super::super::subscribers::{Subscriber, Subscribers, TetherEvent};
use crate::rounds::{Guest, Rest};

/// Where a publication stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Active,
    Draining,
    Linger,
    Done,
}

/// What a tick found out. The owner tells the clients.
#[derive(Debug)]
pub(crate) enum Event {
    /// Every subscriber has to be told that the image is gone. `revoked` if that is why.
    Ended { revoked: bool },
    /// An unfinished frame was padded over.
    Unblocked,
    /// The time without subscribers after a rejection is over: they may join again.
    CoolDownOver,
    /// An untethered subscriber moved on.
    Tether(TetherEvent),
    /// Nothing refers to the publication any more: give back log and counters.
    Done,
}

/// The `pub-pos` and `pub-lmt` counters.
#[derive(Debug)]
pub(crate) struct PublisherCounters {
    pub(crate) position: Counter,
    pub(crate) limit: Counter,
}

/// How long things take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    pub(crate) unblock_ns: i64,
    pub(crate) untethered: Untethered,
}

/// A publication between processes of this machine.
#[derive(Debug)]
pub(crate) struct IpcPublication {
    pub(crate) registration_id: i64,
    pub(crate) terms: PublicationTerms,
    pub(crate) log: PublicationLog,
    pub(crate) counters: PublisherCounters,
    pub(crate) subscribers: Subscribers,
    timeouts: Timeouts,
    state: State,
    references: usize,
    cool_down_until_ns: Option<i64>,
    /// Positions of those who were taken out by a rejection.
    set_aside: Vec<Counter>,
    window: i64,
    /// The limit is raised only when it would pass this, so that cleaning comes in useful portions.
    trip_limit: i64,
    /// Highest position any subscriber has reached.
    consumer_position: i64,
    /// Nobody reads, and the publisher has come to its limit: its log need not be looked at, but once per timer interval,
    /// for who was just about to publish.
    is_shut: bool,
}

impl Guest for IpcPublication {
    type Watch = TailSnapshot;

    /// Where everybody has read everything the limit stays as it is until the publisher goes on.
    fn rest(&self, now_ns: i64) -> Option<Rest<TailSnapshot>> {
        let (slowest, _) = self.subscribers.range()?;
        let is_quiet = self.state == State::Active
            && self.references > 0
            && self.trip_limit >= slowest.saturating_add(self.window);
        let watch = is_quiet.then(|| self.log.stands_at(slowest))?;
        Some(Rest::for_now(watch?, now_ns))
    }

    fn fetch_ahead(&self) {
        self.log.fetch_ahead();
    }
}

impl IpcPublication {
    pub(crate) fn new(
        terms: PublicationTerms,
        log: PublicationLog,
        counters: PublisherCounters,
        timeouts: Timeouts,
        start_position: i64,
    ) -> Self {
        Self {
            registration_id: terms.registration_id,
            window: terms.window(),
            terms,
            log,
            counters,
            subscribers: Subscribers::default(),
            timeouts,
            state: State::Active,
            references: 1,
            cool_down_until_ns: None,
            set_aside: Vec::new(),
            trip_limit: start_position,
            consumer_position: start_position,
            is_shut: false,
        }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Whether an add command may get it instead of a new one.
    pub(crate) fn is_shareable(&self) -> bool {
        self.state == State::Active
            && !self.terms.exclusive
            && self.references > 0
            && !self.log.is_revoked()
    }

    /// Another add command got this publication.
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
        self.counters.limit.set(end);
        self.log.end_at(end);
        // A revoked one goes straight to LINGER with the next tick.
        if !self.log.is_revoked() {
            self.state = State::Draining;
        }
    }

    /// Whether a subscriber may join now.
    pub(crate) fn accepts_subscribers(&self) -> bool {
        self.cool_down_until_ns.is_none()
            && match self.state {
                State::Active => true,
                State::Draining => !self.is_drained(),
                State::Linger | State::Done => false,
            }
    }

    /// Where a new subscriber starts to read.
    pub(crate) fn join_position(&self) -> i64 {
        self.subscribers
            .join_position(self.log.clean_position(), self.consumer_position)
    }

    pub(crate) fn add_subscriber(&mut self, subscriber: Subscriber) {
        self.subscribers.add(subscriber);
        self.connect();
    }

    /// A rested subscriber comes back.
    pub(crate) fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64) {
        let (join, end) = (self.join_position(), self.log.producer_position());
        position.set(Subscribers::rejoin_position(join, position, end));
        self.subscribers.rejoin(subscription_id, now_ns);
        self.connect();
    }

    /// The limit first, so that whoever sees the connection can publish at once.
    fn connect(&mut self) {
        self.update_limit();
        self.log.set_connected(true);
    }

    /// Takes a subscription out; its position counter is for the caller to free.
    pub(crate) fn remove_subscriber(&mut self, subscription_id: i64) -> Option<Counter> {
        let removed = self.subscribers.remove(subscription_id)?;
        self.consumed(removed.position.get());
        if !self.subscribers.any_counts() {
            self.log.set_connected(false);
        }
        Some(removed.position)
    }

    /// Takes all subscribers out. Until their clients hear of it they read on: their positions are kept, so that who joins
    /// after the rejection gets nothing twice.
    pub(crate) fn set_subscribers_aside(&mut self) {
        let positions = self
            .subscribers
            .drain()
            .map(|subscriber| subscriber.position);
        self.set_aside.extend(positions);
        self.log.set_connected(false);
    }

    /// Takes in how far those have read who were set aside, and hands their counters over to be freed.
    pub(crate) fn release_set_aside(&mut self) -> Vec<Counter> {
        let positions = std::mem::take(&mut self.set_aside);
        for position in &positions {
            self.consumed(position.get());
        }
        positions
    }

    /// At the end of its life: the log, and all counters that go with it.
    pub(crate) fn into_parts(mut self) -> (LogFile, Vec<Counter>) {
        let mut counters = vec![self.counters.position.clone(), self.counters.limit.clone()];
        counters.extend(self.subscribers.drain().map(|s| s.position));
        counters.append(&mut self.set_aside);
        (self.log.into_file(), counters)
    }

    /// A subscriber rejected the stream: nobody is connected until `until_ns`. True if subscribers have to be unlinked.
    pub(crate) fn reject_until(&mut self, until_ns: i64) -> bool {
        let first = self.cool_down_until_ns.replace(until_ns).is_none();
        if first {
            self.log.set_connected(false);
        }
        first
    }

    /// Samples the publisher's position and moves its limit. Cheap when nothing changed.
    pub(crate) fn update_limit(&mut self) -> Motion {
        if self.state != State::Active || self.references == 0 {
            return Motion::Still;
        }
        let range = self.subscribers.range();
        if range.is_none() && self.is_shut {
            return Motion::Still;
        }
        let (producer, has_published) = self.sample_publisher();
        let has_moved = match range {
            Some(range) => self.move_limit(range, producer),
            None => self.close_limit(),
        };
        self.is_shut = range.is_none() && !has_published && !has_moved;
        Motion::of(has_published, has_moved)
    }

    /// Where the publisher is, and whether it has moved since the last look.
    fn sample_publisher(&mut self) -> (i64, bool) {
        let producer = self.log.producer_position();
        let has_published = self.counters.position.get_plain() != producer;
        if has_published {
            self.counters.position.set(producer);
        }
        (producer, has_published)
    }

    /// With subscribers the limit follows the slowest, in steps.
    fn move_limit(&mut self, (min, max): (i64, i64), producer: i64) -> bool {
        self.consumed(max);
        let min = min.min(producer);
        let limit = min.saturating_add(self.window);
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

    /// Without subscribers nothing may be published.
    fn close_limit(&mut self) -> bool {
        if self.counters.limit.get_plain() <= self.consumer_position {
            return false;
        }
        self.trip_limit = self.consumer_position;
        self.counters.limit.set(self.consumer_position);
        self.log.clean_to(self.consumer_position);
        true
    }

    /// Notes how far a subscriber says that it came.
    fn consumed(&mut self, position: i64) {
        let position = Subscribers::believable(position, self.log.producer_position());
        self.consumer_position = self.consumer_position.max(position);
    }

    fn is_drained(&self) -> bool {
        self.subscribers.all_reached(self.log.producer_position())
    }
}
