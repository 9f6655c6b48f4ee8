// SPDX-License-Identifier: Apache-2.0
//! The conductor's half of an image: subscribers and state (docs/spec/wire.md §5.10).
//!
//! ```text
//! INIT, ACTIVE ──ended, timed out, revoked or no subscribers──► DRAINING ──all read──► LINGER ──► DONE
//! ```
//!
//! Contract: `update` is called on each poll, `tick` once per timer interval; the caller handles the returned events.
//! The receiver's half inserts data until it is released.

use std::sync::Arc;

use taran_core::clock::Now;
use taran_core::counters::Counter;
use taran_core::memory::prefetch_value;
use taran_protocol::log::LogBuffers;
use taran_protocol::position::FRAME_ALIGNMENT;
use taran_protocol::uri::Untethered;

use super::super::log_files::{LogFile, LogFiles, ReservationOutcome, SpaceChange};
use super::super::subscribers::{Subscribers, UntetheredEvent};
use super::wake_conditions::ReceiverWakeCondition;
use crate::boundary::{EndpointId, ImageId, ImageShared, ImageState};
use crate::poll_schedule::{IdleUntil, Pollable};

#[cfg(test)]
mod tests;

/// Maximum bytes that are reserved before they are needed: tens of milliseconds of the fastest streams.
const RESERVATION_LEAD_MAX: i64 = 64 * 1024 * 1024;

/// Result of a tick. The caller notifies clients and receiver.
#[derive(Debug)]
pub(crate) enum ImageEvent {
    /// All data was read: subscribers lose the image, and the receiver is to release it.
    Ended,
    /// An untethered subscriber changed its state.
    Untethered(UntetheredEvent),
}

/// Counters of an image, without those of its subscribers.
#[derive(Debug)]
pub(crate) struct ImageCounters {
    pub(crate) high_water_mark: Counter,
    pub(crate) rebuild_position: Counter,
    pub(crate) naks_sent: Counter,
    /// Counters of the congestion control.
    pub(crate) congestion: Vec<Counter>,
}

impl ImageCounters {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Counter> {
        [
            &self.high_water_mark,
            &self.rebuild_position,
            &self.naks_sent,
        ]
        .into_iter()
        .chain(&self.congestion)
    }
}

/// Timeouts of an image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageTimeouts {
    pub(crate) status_message_ns: i64,
    pub(crate) liveness_ns: i64,
    pub(crate) untethered: Untethered,
}

/// A stream received from the network.
#[doc(alias = "PublicationImage")]
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) id: ImageId,
    pub(crate) endpoint: EndpointId,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) source_identity: String,
    pub(crate) rejoin: bool,
    /// True if its publication requests a response channel.
    pub(crate) wants_response: bool,
    pub(crate) subscribers: Subscribers,
    pub(crate) counters: ImageCounters,
    file: LogFile,
    buffers: LogBuffers,
    shared: Arc<ImageShared>,
    timeouts: ImageTimeouts,
    state: ImageState,
    since_ns: i64,
    free_position: i64,
    join_position: i64,
    window: i32,
    released: bool,
}

/// Parts of a new image.
#[derive(Debug)]
pub(crate) struct ImageParts {
    pub(crate) id: ImageId,
    pub(crate) endpoint: EndpointId,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) source_identity: String,
    pub(crate) rejoin: bool,
    pub(crate) wants_response: bool,
    pub(crate) subscribers: Subscribers,
    pub(crate) counters: ImageCounters,
    pub(crate) file: LogFile,
    pub(crate) buffers: LogBuffers,
    pub(crate) shared: Arc<ImageShared>,
    pub(crate) timeouts: ImageTimeouts,
    /// Maximum receiver window in bytes.
    pub(crate) window: i32,
}

impl Pollable for Image {
    type Wake = ReceiverWakeCondition;

    /// While nothing can be freed, nothing changes until the receiver schedules a status message or the stream ends.
    fn idle_until(&self, now_ns: i64) -> Option<IdleUntil<ReceiverWakeCondition>> {
        let status_position = self.shared.status_position();
        let demand_position = self.shared.demand_position();
        let is_quiet = self.state == ImageState::Active
            && self.required_position(demand_position).is_none()
            && self.free_position >= status_position - i64::from(self.buffers.term_length());
        let wake = is_quiet
            .then(|| ReceiverWakeCondition::new(&self.shared, status_position, demand_position));
        Some(IdleUntil::changed(wake?, now_ns))
    }

    fn next_deadline_ns(&self) -> i64 {
        self.file.reservation().next_deadline_ns()
    }

    fn prefetch(&self) {
        prefetch_value(&*self.shared);
    }
}

impl Image {
    /// Creates an active image.
    pub(crate) fn new(parts: ImageParts, join_position: i64, now_ns: i64) -> Self {
        parts.shared.conductor_state(ImageState::Active);
        parts
            .shared
            .conductor_reserved_position(parts.file.reservation().position());
        Self {
            id: parts.id,
            endpoint: parts.endpoint,
            session_id: parts.session_id,
            stream_id: parts.stream_id,
            source_identity: parts.source_identity,
            rejoin: parts.rejoin,
            wants_response: parts.wants_response,
            subscribers: parts.subscribers,
            counters: parts.counters,
            file: parts.file,
            buffers: parts.buffers,
            shared: parts.shared,
            timeouts: parts.timeouts,
            state: ImageState::Active,
            since_ns: now_ns,
            free_position: join_position,
            join_position,
            window: parts.window,
            released: false,
        }
    }

    /// Returns the path of the log as sent to clients.
    pub(crate) fn log_name(&self) -> &str {
        self.file.name()
    }

    /// Returns true if a subscriber can join now.
    pub(crate) fn accepts_subscribers(&self) -> bool {
        let has_subscribers = !self.subscribers.is_empty();
        match self.state {
            ImageState::Init | ImageState::Active => has_subscribers,
            ImageState::Draining => has_subscribers && !self.is_drained(),
            ImageState::Linger | ImageState::Done => false,
        }
    }

    /// Returns true if it accepts data for a subscriber, so that its session needs no other image.
    pub(crate) fn is_receiving(&self) -> bool {
        self.state <= ImageState::Active && !self.subscribers.is_empty() && !self.shared.has_ended()
    }

    /// Returns the join position of a new subscriber.
    pub(crate) fn join_position(&self) -> i64 {
        self.subscribers
            .join_position(self.free_position, self.rebuild_position())
    }

    /// Rejoins a rested subscriber.
    pub(crate) fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64) {
        let (join, end) = (self.join_position(), self.rebuild_position());
        position.set(Subscribers::rejoin_position(join, position, end));
        self.subscribers.rejoin(subscription_id, now_ns);
    }

    fn rebuild_position(&self) -> i64 {
        self.shared.rebuild_position()
    }

    fn is_drained(&self) -> bool {
        self.subscribers.all_reached(self.rebuild_position())
    }

    /// Advances the free position, and starts draining when the stream has ended. Returns true if something changed.
    /// Cheap when nothing changed.
    pub(crate) fn update(&mut self, now_ns: i64) -> bool {
        let mut work = false;
        if self.state == ImageState::Active && self.shared.has_ended() {
            self.set_state(ImageState::Draining, now_ns);
            work = true;
        }
        if let Some(position) = self.required_position(self.shared.demand_position()) {
            self.file.require(position);
        }
        work | self.free()
    }

    /// Returns the position up to which pages are to be reserved if the receiver needs more than there are.
    ///
    /// Needed are the pages from the join position to the end of the window beyond `demand_position`, or to the end of the
    /// term if padding within the window may reach that. A reservation takes time: as much again is reserved, at most 64
    /// MiB, as soon as half of that is used.
    fn required_position(&self, demand_position: i64) -> Option<i64> {
        let reserved = self.file.reservation().position();
        if reserved == i64::MAX || demand_position <= self.join_position {
            return None;
        }
        let window_end = demand_position + i64::from(self.window);
        let term_length = i64::from(self.buffers.term_length());
        // Bytes from the end of the window to the end of its term.
        let left = (term_length - window_end % term_length) % term_length;
        let may_be_padded = left <= i64::from(self.buffers.max_message_length());
        let end = window_end + if may_be_padded { left } else { 0 };
        let lead = (end - self.join_position).min(RESERVATION_LEAD_MAX);
        let is_short = end + lead / 2 > reserved;
        is_short.then_some(end + lead)
    }

    /// Starts to reserve pages that are required.
    pub(crate) fn extend(&mut self, logs: &mut LogFiles, now: Now) {
        logs.extend(&mut self.file, now);
    }

    /// Handles the outcome of a reservation.
    pub(crate) fn on_reserved(
        &mut self,
        outcome: &ReservationOutcome,
        now_ns: i64,
    ) -> Option<SpaceChange> {
        let change = self.file.on_reserved(outcome, now_ns);
        self.shared
            .conductor_reserved_position(self.file.reservation().position());
        change
    }

    /// Advances the free position to at most one term behind the last status message. The receiver takes a joining
    /// subscriber into account with a delay, so the slowest position is checked here as well.
    fn free(&mut self) -> bool {
        let term_length = i64::from(self.buffers.term_length());
        let position = self.shared.status_position() - term_length;
        if self.free_position >= position {
            return false;
        }
        let slowest = self.subscribers.range().map_or(i64::MAX, |(min, _)| min);
        // Clients write positions, which may lie within a frame.
        let position =
            position.min(slowest.saturating_sub(term_length)) & !i64::from(FRAME_ALIGNMENT - 1);
        let moved = position > self.free_position;
        if moved {
            self.free_position = position;
            self.shared.conductor_free_position(position);
        }
        moved
    }

    /// Returns true if its publication was revoked.
    pub(crate) fn is_revoked(&self) -> bool {
        self.shared.is_revoked()
    }

    /// Returns the end of the stream; `i64::MAX` while it is open.
    pub(crate) fn end_of_stream_position(&self) -> i64 {
        self.buffers.end_of_stream_position()
    }

    fn set_state(&mut self, state: ImageState, now_ns: i64) {
        self.state = state;
        self.since_ns = now_ns;
        self.shared.conductor_state(state);
    }

    /// Advances the state. Called once per timer interval.
    pub(crate) fn tick(&mut self, now_ns: i64) -> Vec<ImageEvent> {
        match self.state {
            ImageState::Init | ImageState::Active => {
                if self.subscribers.is_empty() || self.shared.has_ended() {
                    self.set_state(ImageState::Draining, now_ns);
                    return Vec::new();
                }
                self.tick_untethered(now_ns)
            }
            ImageState::Draining if self.can_linger(now_ns) => {
                self.set_state(ImageState::Linger, now_ns);
                vec![ImageEvent::Ended]
            }
            ImageState::Linger => {
                let waited_ns = now_ns.saturating_sub(self.since_ns);
                if self.subscribers.is_empty() || waited_ns > self.timeouts.liveness_ns {
                    self.set_state(ImageState::Done, now_ns);
                }
                Vec::new()
            }
            ImageState::Draining => self.tick_untethered(now_ns),
            ImageState::Done => Vec::new(),
        }
    }

    fn tick_untethered(&mut self, now_ns: i64) -> Vec<ImageEvent> {
        let window = i64::from(self.shared.window());
        let reached = self.subscribers.range().map_or(0, |(_, max)| max);
        let below = reached.saturating_sub(window).saturating_add(window / 4);
        let events = self
            .subscribers
            .tick(below, now_ns, &self.timeouts.untethered);
        events.into_iter().map(ImageEvent::Untethered).collect()
    }

    /// Returns true if all data was read, and the sender had time to learn that it was received.
    fn can_linger(&self, now_ns: i64) -> bool {
        let drained_ns = now_ns.saturating_sub(self.since_ns);
        self.shared.is_revoked()
            || (self.is_drained() && drained_ns > self.timeouts.status_message_ns.saturating_mul(5))
    }

    /// Records that the receiver has released the image.
    pub(crate) fn set_released(&mut self) {
        self.released = true;
    }

    /// Returns true if the image can be freed.
    pub(crate) fn is_done(&self) -> bool {
        self.released && self.state == ImageState::Done
    }

    /// Returns the log and all counters to be freed.
    pub(crate) fn into_parts(mut self) -> (LogFile, Vec<Counter>) {
        let counters = self.counters;
        let mut all = vec![
            counters.high_water_mark,
            counters.rebuild_position,
            counters.naks_sent,
        ];
        all.extend(counters.congestion);
        all.extend(self.subscribers.drain().map(|s| s.position));
        (self.file, all)
    }
}
