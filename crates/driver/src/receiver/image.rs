// SPDX-License-Identifier: Apache-2.0
//! Receiver's half of an image: the state of one stream from one source.
//!
//! The endpoint calls [`ReceiverImage::start`] once, then passes it packets (`term_rebuilder`), and calls
//! [`ReceiverImage::poll`] when the poll schedule selects it. A poll scans for gaps (`gap_repair`) and sends feedback
//! (`feedback`). Output goes to the log, the counters, the shared atomics and, through the context, to the sender.

use taran_core::clock::Now;
use taran_core::loss_report::LossReport;
use taran_protocol::position::{FRAME_ALIGNMENT, TermGeometry};

use super::gap_repair::LossRecord;
use super::identity::Identity;
use super::image_connections::{FrameOrigin, ImageConnections};
use super::loss_detector::{Gap, LossDetector, UNANSWERED_LIMIT};
use super::nak_delay::NakDelay;
use super::response_setup::ResponseSetupSchedule;
use super::setup_reply_budget::SetupReplyBudget;
use super::status_schedule::StatusMessageSchedule;
use super::subscribers::Subscribers;
use super::transport::ReceiveTransport;
use super::window_throttle::WindowThrottle;
use crate::boundary::{
    EndpointId, ImageId, ImageState, ReceiverCounters, ReceiverImageSpec, SubscriberPosition,
    TransportId,
};
use crate::control_batch::BatchId;
use crate::error_reporter::ErrorReporter;
use crate::poll_schedule::{IdleUntil, Pollable};
use crate::token_bucket::{TokenBucket, rtt_replies};

/// Receiver's half of an image. Built by the conductor, owned by the receiver.
#[doc(alias = "PublicationImage")]
#[derive(Debug)]
pub(crate) struct ReceiverImage {
    // Fields used for every packet.
    pub(super) geometry: TermGeometry,
    /// End of the highest frame that has arrived or was announced by a heartbeat.
    pub(super) high_water_mark: i64,
    /// Position up to which all frames have arrived.
    pub(super) rebuild_position: i64,
    /// Packets that end beyond this position are dropped as over-runs.
    pub(super) overrun_threshold: i64,
    /// End of the highest data beyond the over-run threshold, and within a term of it, that was dropped.
    pub(super) dropped_to: i64,
    /// Cached upper bound for writes, exclusive; refreshed from the conductor's free position when it is reached.
    pub(super) reuse_limit: i64,
    /// In `rebuild_position..cleared_to` there is a frame or zero wherever a frame may begin, and zero at `cleared_to`.
    /// Beyond it lie stale bytes of the previous use of this memory, or of a mispredicted direct receive
    /// (`direct_receive`).
    pub(super) cleared_to: i64,
    pub(super) last_activity_ns: i64,
    /// True once a frame or a heartbeat was accepted.
    pub(super) has_received: bool,
    /// NAKs sent (or gaps filled) since data last arrived.
    pub(super) unanswered_naks: u32,
    pub(super) setup_reply_budget: SetupReplyBudget,
    /// Set when a packet arrived out of order since the last scan.
    pub(super) needs_scan: bool,
    // Fields used in every poll.
    /// Rebuild position last published to the conductor.
    published_position: i64,
    /// Position up to which pages were requested for padding that was dropped because they are not reserved; 0 before.
    requested_end: i64,
    /// Range of the last NAK since pages were requested.
    pub(super) naked: Option<Gap>,
    /// True once all pages of the log are reserved.
    is_reserved: bool,
    pub(super) status_schedule: StatusMessageSchedule,
    /// Batch of the last status message, if it was queued instead of sent.
    pub(super) queued_status: Option<BatchId>,
    pub(super) loss_detector: LossDetector,
    pub(super) subscribers: Subscribers,
    state: ReceiveState,
    // Fields that change once or twice in the lifetime of an image.
    pub(super) connections: ImageConnections,
    pub(super) has_ended: bool,
    pub(super) is_revoked: bool,
    is_complete: bool,
    is_abandoned: bool,
    pub(super) rejection: Option<Box<str>>,
    pub(super) response_setup: ResponseSetupSchedule,
    pub(super) loss_record: LossRecord,
    pub(super) round_trip_answers: TokenBucket,
    pub(super) spec: ReceiverImageSpec,
}

/// State of the image towards its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceiveState {
    /// Follows the stream: sends NAKs and status messages.
    Active,
    /// The stream is finished or unwanted: repeats its last status message with EOS.
    EndOfStream,
    /// Sends nothing: the image timed out or was superseded by another one.
    Closed,
}

/// State that the endpoint lends to an image for one poll.
pub(super) struct ImageContext<'a> {
    pub(super) now: Now,
    pub(super) identity: &'a Identity,
    pub(super) transports: &'a mut [Option<ReceiveTransport>],
    /// Transports are added and removed; those that are silent get no feedback.
    pub(super) is_multi_destination: bool,
    pub(super) window_throttle: &'a mut WindowThrottle,
    pub(super) counters: &'a ReceiverCounters,
    pub(super) reporter: &'a mut ErrorReporter,
    pub(super) losses: &'a mut LossReport,
}

/// Outcome of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PollOutcome {
    Worked(usize),
    /// No frame arrived within the liveness timeout. The session cools down unless the stream had ended.
    TimedOut {
        cool_down: bool,
    },
}

/// Returns the position beyond which packets are over-runs if `advertised_position` was the last status message: half a
/// term further, or the maximum position.
pub(super) fn overrun_threshold(geometry: &TermGeometry, advertised_position: i64) -> i64 {
    (advertised_position + i64::from(geometry.term_length() / 2)).min(geometry.max_position())
}

impl ReceiverImage {
    /// Creates an image that has received nothing.
    #[must_use]
    pub(crate) fn new(mut spec: ReceiverImageSpec) -> Self {
        let geometry = spec.log.geometry();
        let join_position = spec.join_position;
        Self {
            geometry,
            high_water_mark: join_position,
            rebuild_position: join_position,
            overrun_threshold: overrun_threshold(&geometry, join_position),
            dropped_to: join_position,
            reuse_limit: free_limit(&spec).min(spec.shared.reserved_position()),
            cleared_to: join_position,
            last_activity_ns: 0,
            has_received: false,
            unanswered_naks: UNANSWERED_LIMIT,
            needs_scan: false,
            published_position: join_position,
            requested_end: 0,
            naked: None,
            is_reserved: false,
            status_schedule: StatusMessageSchedule::new(
                join_position,
                spec.shared.window(),
                // The mtu is at most 65,504.
                spec.mtu as i32,
                spec.status_message_timeout_ns,
            ),
            queued_status: None,
            loss_detector: LossDetector::new(NakDelay::new(spec.nak_delay, spec.seed)),
            subscribers: Subscribers::new(std::mem::take(&mut spec.subscribers)),
            state: ReceiveState::Active,
            connections: ImageConnections::default(),
            has_ended: false,
            is_revoked: false,
            is_complete: false,
            is_abandoned: false,
            rejection: None,
            response_setup: ResponseSetupSchedule::default(),
            loss_record: LossRecord::new(join_position),
            round_trip_answers: rtt_replies(),
            setup_reply_budget: SetupReplyBudget::new(),
            spec,
        }
    }

    /// Returns true if a frame may end at `end`: the previous contents of that memory, one log length ago, are no
    /// longer needed, neither is the header slot behind the frame, and their pages are reserved.
    pub(super) fn is_reusable(&mut self, end: i64) -> bool {
        if end >= self.reuse_limit {
            self.refresh_reuse_limit();
        }
        end < self.reuse_limit
    }

    /// Returns true if the previous contents of the memory of a frame that ends at `end` are no longer needed, whether its
    /// pages are reserved or not.
    pub(super) fn is_free(&self, end: i64) -> bool {
        end < free_limit(&self.spec)
    }

    /// Returns the highest position up to which an image that fills gaps may announce frames: it writes up to there.
    pub(super) fn fillable_end(&self) -> i64 {
        self.reuse_limit - i64::from(FRAME_ALIGNMENT)
    }

    #[cold]
    fn refresh_reuse_limit(&mut self) {
        self.reuse_limit = free_limit(&self.spec).min(self.spec.shared.reserved_position());
    }

    /// Returns the end of the window of the status message that was scheduled last: how far the sender may send.
    fn window_end(&self) -> i64 {
        self.status_schedule.position() + i64::from(self.status_schedule.window())
    }

    /// Requests pages for padding from `position` to `end` that was dropped because they are not reserved, if a NAK asked
    /// for it and the sender was allowed to send it: its `wire_length` bytes lie within the window, although it extends
    /// beyond. Each NAK requests at most the longest message more, after what was requested before is reserved: longer
    /// padding is requested bit by bit, each time that it is retransmitted. An image that has received nothing else
    /// requests none: its source and its stream have a budget for the pages that it was created with.
    pub(super) fn request_pages(&mut self, position: i64, end: i64, wire_length: i64) {
        let window_end = self.window_end();
        let is_asked_for = self.naked.is_some_and(|gap| {
            (gap.position..gap.position + i64::from(gap.length)).contains(&position)
        });
        if !is_asked_for
            || !self.has_received
            || self.reserved_position() < self.requested_end
            || position + wire_length > window_end
        {
            return;
        }
        self.naked = None;
        let longest = i64::from(self.spec.log.max_message_length());
        let limit = self.requested_end.max(window_end) + longest;
        self.requested_end = self.requested_end.max(end.min(limit));
    }

    /// Returns the reserved position; `i64::MAX` if all pages of the log are reserved.
    pub(super) fn reserved_position(&self) -> i64 {
        if self.is_reserved {
            i64::MAX
        } else {
            self.spec.shared.reserved_position()
        }
    }

    /// Returns the id.
    #[must_use]
    pub(crate) fn id(&self) -> ImageId {
        self.spec.id
    }

    /// Returns the endpoint that the image belongs to.
    #[must_use]
    pub(crate) fn endpoint(&self) -> EndpointId {
        self.spec.endpoint
    }

    /// Returns (session id, stream id).
    pub(super) fn key(&self) -> (i32, i32) {
        (self.spec.session_id, self.spec.stream_id)
    }

    /// Returns the maximum number of bytes in flight to this image.
    pub(super) fn window(&self) -> usize {
        usize::try_from(self.spec.window).unwrap_or(0)
    }

    /// Called once when the receiver takes ownership; the first status message is due in the first poll. `slot` is that
    /// of the transport on which the SETUP arrived, if the transport still exists; `slots` is the number of transport
    /// slots.
    pub(super) fn start(&mut self, slot: Option<usize>, slots: usize, now: Now) {
        self.last_activity_ns = now.nanos;
        self.status_schedule.start(now.nanos);
        self.spec.congestion_control.start(now.nanos);
        self.connections.reserve(slots);
        if let Some(slot) = slot {
            self.connections.on_frame(&FrameOrigin {
                slot,
                control: self.spec.control,
                now_ns: now.nanos,
            });
        }
    }

    /// Returns the transport on which the SETUP arrived.
    pub(super) fn transport(&self) -> TransportId {
        self.spec.transport
    }

    /// Does the periodic work: gap scan, repair and feedback.
    pub(super) fn poll(&mut self, context: &mut ImageContext<'_>) -> PollOutcome {
        if self.state == ReceiveState::Closed {
            return PollOutcome::Worked(0);
        }
        if self.is_timed_out(context.now) {
            self.state = ReceiveState::Closed;
            self.spec.shared.receiver_timed_out();
            return PollOutcome::TimedOut {
                cool_down: !self.has_ended,
            };
        }
        self.scan_gaps(context);
        self.publish_rebuild_position();
        self.publish_demand();
        self.check_end_of_stream();
        let is_active = self.state == ReceiveState::Active;
        let repaired = if is_active {
            self.act_on_gap(context)
        } else {
            0
        };
        PollOutcome::Worked(repaired + self.send_feedback(is_active, context))
    }

    /// Publishes the rebuild position to the conductor once per poll: it is the join position of new subscribers and
    /// decides whether an image has been drained.
    fn publish_rebuild_position(&mut self) {
        if self.rebuild_position != self.published_position {
            self.published_position = self.rebuild_position;
            self.spec.shared.receiver_rebuilt(self.rebuild_position);
        }
    }

    /// Publishes which positions the stream has reached, until all pages are reserved: the end of the data within the
    /// window, so that frames with forged positions request no pages.
    fn publish_demand(&mut self) {
        if self.is_reserved {
            return;
        }
        self.is_reserved = self.spec.shared.reserved_position() == i64::MAX;
        let received = self.cleared_to.min(self.window_end());
        let demand = received.max(self.requested_end);
        if demand > self.spec.shared.demand_position() {
            self.spec.shared.receiver_demand(demand);
        }
    }

    fn is_timed_out(&self, now: Now) -> bool {
        now.nanos - self.last_activity_ns > self.spec.liveness_timeout_ns
    }

    /// Stops following a stream that has ended and arrived completely, or that has no subscriber (docs/spec/wire.md
    /// §5.10).
    fn check_end_of_stream(&mut self) {
        if self.has_ended && !self.is_complete && self.rebuild_position >= self.high_water_mark {
            self.is_complete = true;
            self.spec.shared.receiver_complete();
        }
        let is_finished = self.is_complete
            || self.is_abandoned
            || self.spec.shared.state() >= ImageState::Draining;
        if is_finished && self.state == ReceiveState::Active {
            self.state = ReceiveState::EndOfStream;
            self.status_schedule.schedule_now();
        }
    }

    /// Returns (rebuild position published to the conductor, position of the next status message).
    pub(super) fn progress(&self) -> (i64, i64) {
        (self.published_position, self.status_schedule.position())
    }

    /// Returns true if received frames require a poll in the next duty cycle.
    pub(super) fn needs_poll(&self) -> bool {
        self.needs_scan || (self.has_ended && self.state == ReceiveState::Active)
    }

    /// Returns true if a gap is waiting for its deadline to be NAKed or filled.
    pub(super) fn has_open_gap(&self) -> bool {
        let repairs =
            self.state == ReceiveState::Active && self.rejection.is_none() && !self.is_revoked;
        repairs && self.loss_detector.is_tracking()
    }

    /// Returns true if only a packet, a command or the status message deadline can cause work: everything announced has
    /// arrived, has been consumed and has been acknowledged.
    fn is_idle(&self) -> bool {
        self.state == ReceiveState::Active
            && !self.needs_poll()
            && !self.loss_detector.is_tracking()
            && self.rejection.is_none()
            && self.response_setup.is_idle()
            && self.spec.congestion_control.is_constant()
            && self.rebuild_position == self.high_water_mark
            && self.rebuild_position == self.status_schedule.position()
            && self.subscribers.min_position(self.rebuild_position) == Some(self.rebuild_position)
    }

    /// Marks the image as unwanted: its last subscription was removed.
    pub(super) fn abandon(&mut self) {
        self.is_abandoned = true;
    }

    /// Stops sending in favour of a newer image of the same session, unless this image is still active.
    pub(super) fn yield_to_newer_image(&mut self) {
        if self.state == ReceiveState::EndOfStream {
            self.state = ReceiveState::Closed;
        }
    }

    /// Sends error frames instead of status messages from now on.
    pub(super) fn reject(&mut self, reason: Box<str>) {
        self.rejection = Some(reason);
    }

    /// Starts to announce to the sender the session of the response stream, or stops to (`None`).
    pub(super) fn announce_response(&mut self, session_id: Option<i32>) {
        self.response_setup.set(session_id);
    }

    pub(super) fn add_subscriber(&mut self, subscriber: SubscriberPosition) {
        self.subscribers.add(subscriber);
    }

    pub(super) fn remove_subscriber(&mut self, counter_id: i32) {
        self.subscribers.remove(counter_id);
    }

    /// Handles a repeated SETUP of the stream.
    pub(super) fn on_setup(&mut self, origin: &FrameOrigin) {
        self.setup_reply_budget.on_setup();
        self.connections.on_setup(origin);
    }

    pub(super) fn on_rtt_measurement(&mut self, round_trip_ns: i64, now: Now) {
        self.spec
            .congestion_control
            .on_rtt_measurement(round_trip_ns, now.nanos);
    }
}

impl Pollable for ReceiverImage {
    type Wake = ();

    fn idle_until(&self, _now_ns: i64) -> Option<IdleUntil<()>> {
        if !self.is_idle() {
            return None;
        }
        let timed_out_ns = self
            .last_activity_ns
            .saturating_add(self.spec.liveness_timeout_ns);
        Some(IdleUntil {
            deadline_ns: self.status_schedule.next_deadline_ns().min(timed_out_ns),
            wake: (),
        })
    }

    fn next_deadline_ns(&self) -> i64 {
        if self.state == ReceiveState::Closed {
            return i64::MAX;
        }
        if self.needs_scan {
            return i64::MIN;
        }
        let repair_ns = if self.has_open_gap() {
            self.loss_detector.next_deadline_ns()
        } else {
            i64::MAX
        };
        let timed_out_ns = (self.last_activity_ns)
            .saturating_add(self.spec.liveness_timeout_ns)
            .saturating_add(1);
        timed_out_ns.min(repair_ns).min(self.feedback_deadline_ns())
    }
}

/// One log length (three terms) beyond the free position.
fn free_limit(spec: &ReceiverImageSpec) -> i64 {
    spec.shared.free_position() + 3 * i64::from(spec.log.term_length())
}
