//! The receiver's half of an image: what is known of one stream from one source.
//!
//! Driven by its endpoint: [`ReceiverImage::start`] once, then packets (`insertion`), and [`ReceiverImage::turn`]
//! whenever it has one (`rounds`), which finds gaps (`repair`) and answers the sender (`feedback`). Output goes to the log,
//! the counters, the shared atomics and, through the context, to the sender.

use taran_core::clock::Now;
use taran_core::loss_report::LossReport;
use taran_protocol::position::TermGeometry;

use super::gap_repair::LossRecord;
use super::identity::Identity;
use super::image_connections::{FrameOrigin, ImageConnections};
use super::loss_detector::{LossDetector, UNANSWERED_LIMIT};
use super::nak_delay::NakDelay;
use super::response_setup::ResponseSetupSchedule;
use super::setup_reply_budget::SetupReplyBudget;
use super::status_schedule::StatusMessageSchedule;
use super::subscribers::Subscribers;
use super::transport::ReceiveTransport;
use super::window_throttle::WindowThrottle;
use crate::allowance::{Allowance, round_trip_answers};
use crate::boundary::{
    EndpointId, ImageId, ImageState, ReceiverCounters, ReceiverImageSpec, SubscriberPosition,
    TransportId,
};
use crate::faults::Faults;
use crate::rounds::{Guest, Rest};
use crate::signs::Ticket;

/// The receiver's half of an image: built by the conductor, owned by the receiver.
#[doc(alias = "PublicationImage")]
#[derive(Debug)]
pub struct ReceiverImage {
    // What every packet touches.
    pub(super) geometry: TermGeometry,
    /// End of the highest frame that arrived.
    pub(super) high_water_mark: i64,
    /// Everything before it arrived.
    pub(super) rebuild_position: i64,
    /// Nothing beyond it is taken.
    pub(super) overrun_threshold: i64,
    /// Nothing at or beyond it may be written, as far as was looked.
    pub(super) reuse_limit: i64,
    /// From `rebuild_position` up to it, where frames may begin there is one or nothing, and at it nothing. Further on lies what
    /// was there three terms ago, or was received there and turned out to belong elsewhere (`in_place`).
    pub(super) cleared_to: i64,
    pub(super) last_activity_ns: i64,
    /// How often something was asked for since data came last.
    pub(super) unanswered_naks: u32,
    pub(super) setup_reply_budget: SetupReplyBudget,
    /// Something arrived out of order since the last scan.
    pub(super) needs_scan: bool,
    // What every turn touches.
    /// What the conductor was told of `rebuild_position`.
    published_position: i64,
    pub(super) status_schedule: StatusMessageSchedule,
    /// Of its last status message, if that was collected.
    pub(super) queued_status: Option<Ticket>,
    pub(super) loss_detector: LossDetector,
    pub(super) subscribers: Subscribers,
    state: ReceiveState,
    // What changes once or twice in the life of an image.
    pub(super) connections: ImageConnections,
    pub(super) has_ended: bool,
    pub(super) is_revoked: bool,
    is_complete: bool,
    is_abandoned: bool,
    pub(super) rejection: Option<Box<str>>,
    pub(super) response_setup: ResponseSetupSchedule,
    pub(super) loss_record: LossRecord,
    pub(super) round_trip_answers: Allowance,
    pub(super) spec: ReceiverImageSpec,
}

/// How the image behaves towards the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceiveState {
    /// Follows the stream.
    Active,
    /// Wants nothing more: repeats its last status message with EOS.
    EndOfStream,
    /// Says nothing more: timed out, or another image has taken over.
    Closed,
}

/// What the endpoint lends to an image for a turn.
pub(super) struct ImageContext<'a> {
    pub(super) now: Now,
    pub(super) identity: &'a Identity,
    pub(super) transports: &'a mut [Option<ReceiveTransport>],
    /// Transports come and go: those that have fallen silent are not spoken to.
    pub(super) is_multi_destination: bool,
    pub(super) window_throttle: &'a mut WindowThrottle,
    pub(super) counters: &'a ReceiverCounters,
    pub(super) faults: &'a mut Faults,
    pub(super) losses: &'a mut LossReport,
}

/// What came of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PollOutcome {
    Worked(usize),
    /// Nothing was heard for too long. The session cools down, unless its stream had ended.
    TimedOut {
        cool_down: bool,
    },
}

/// Where a sender must stop that was told a position: half a term on, or where positions end.
pub(super) fn overrun_threshold(geometry: &TermGeometry, advertised_position: i64) -> i64 {
    (advertised_position + i64::from(geometry.term_length() / 2)).min(geometry.max_position())
}

impl ReceiverImage {
    /// An image that has received nothing yet.
    #[must_use]
    pub fn new(mut spec: ReceiverImageSpec) -> Self {
        let geometry = spec.log.geometry();
        let join_position = spec.join_position;
        Self {
            geometry,
            high_water_mark: join_position,
            rebuild_position: join_position,
            overrun_threshold: overrun_threshold(&geometry, join_position),
            reuse_limit: reuse_limit(&spec),
            cleared_to: join_position,
            last_activity_ns: 0,
            unanswered_naks: UNANSWERED_LIMIT,
            needs_scan: false,
            published_position: join_position,
            status_schedule: StatusMessageSchedule::new(
                join_position,
                spec.shared.window(),
                // At most 65,504.
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
            round_trip_answers: round_trip_answers(),
            setup_reply_budget: SetupReplyBudget::new(),
            spec,
        }
    }

    /// Whether a frame may end at `end`: what was there three terms ago is not needed any more, and neither is the slot
    /// behind it.
    pub(super) fn is_reusable(&mut self, end: i64) -> bool {
        if end >= self.reuse_limit {
            self.reuse_limit = reuse_limit(&self.spec);
        }
        end < self.reuse_limit
    }

    /// Identity.
    #[must_use]
    pub fn id(&self) -> ImageId {
        self.spec.id
    }

    /// The endpoint it belongs to.
    #[must_use]
    pub fn endpoint(&self) -> EndpointId {
        self.spec.endpoint
    }

    /// Session and stream.
    pub(super) fn key(&self) -> (i32, i32) {
        (self.spec.session_id, self.spec.stream_id)
    }

    /// How much may be under way to it.
    pub(super) fn window(&self) -> usize {
        usize::try_from(self.spec.window).unwrap_or(0)
    }

    /// The receiver has it now. The first status message leaves in the first turn.
    /// `slot` is that of the transport its SETUP came in on, if that is still there, and `slots` how many there are.
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

    /// The transport its SETUP came in on.
    pub(super) fn transport(&self) -> TransportId {
        self.spec.transport
    }

    /// One duty cycle.
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
        self.check_end_of_stream();
        let is_active = self.state == ReceiveState::Active;
        let repaired = if is_active {
            self.act_on_gap(context)
        } else {
            0
        };
        PollOutcome::Worked(repaired + self.send_feedback(is_active, context))
    }

    /// Once per turn, for whoever joins, and to tell when everything was read.
    fn publish_rebuild_position(&mut self) {
        if self.rebuild_position != self.published_position {
            self.published_position = self.rebuild_position;
            self.spec.shared.receiver_rebuilt(self.rebuild_position);
        }
    }

    fn is_timed_out(&self, now: Now) -> bool {
        now.nanos - self.last_activity_ns > self.spec.liveness_timeout_ns
    }

    /// A stream that has ended and wholly arrived, or that nobody reads, is left (docs/spec/wire.md §5.10).
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

    /// How far it is, as the conductor and the sender know.
    pub(super) fn progress(&self) -> (i64, i64) {
        (self.published_position, self.status_schedule.position())
    }

    /// Whether what came in is to be looked at in the next turn.
    pub(super) fn needs_poll(&self) -> bool {
        self.needs_scan || (self.has_ended && self.state == ReceiveState::Active)
    }

    /// Whether something is to be asked for, or filled, when it is time.
    pub(super) fn has_open_gap(&self) -> bool {
        let repairs =
            self.state == ReceiveState::Active && self.rejection.is_none() && !self.is_revoked;
        repairs && self.loss_detector.is_tracking()
    }

    /// Whether nothing but a packet, the conductor or the time for the next status message gives it something to do:
    /// everything that was heard of is there, read and told.
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

    /// Nobody wants the stream any more.
    pub(super) fn abandon(&mut self) {
        self.is_abandoned = true;
    }

    /// A newer image of the same session speaks from now on, unless this one still follows the stream.
    pub(super) fn yield_to_newer_image(&mut self) {
        if self.state == ReceiveState::EndOfStream {
            self.state = ReceiveState::Closed;
        }
    }

    /// Error frames instead of status messages from now on.
    pub(super) fn reject(&mut self, reason: Box<str>) {
        self.rejection = Some(reason);
    }

    /// The sender shall know under which session its requests are answered, or no longer be told.
    pub(super) fn announce_response(&mut self, session_id: Option<i32>) {
        self.response_setup.set(session_id);
    }

    pub(super) fn add_subscriber(&mut self, subscriber: SubscriberPosition) {
        self.subscribers.add(subscriber);
    }

    pub(super) fn remove_subscriber(&mut self, counter_id: i32) {
        self.subscribers.remove(counter_id);
    }

    /// A SETUP of the stream came in again.
    pub(super) fn on_setup(&mut self, origin: &FrameOrigin) {
        self.setup_reply_budget.on_setup();
        self.connections.on_setup(origin);
    }

    pub(super) fn on_round_trip(&mut self, round_trip_ns: i64, now: Now) {
        self.spec
            .congestion_control
            .on_round_trip(round_trip_ns, now.nanos);
    }
}

impl Guest for ReceiverImage {
    type Watch = ();

    fn rest(&self, _now_ns: i64) -> Option<Rest<()>> {
        if !self.is_idle() {
            return None;
        }
        let timed_out_ns = self
            .last_activity_ns
            .saturating_add(self.spec.liveness_timeout_ns);
        Some(Rest {
            until_ns: self.status_schedule.next_deadline_ns().min(timed_out_ns),
            watch: (),
        })
    }
}

/// A log length behind what nobody needs any more.
fn reuse_limit(spec: &ReceiverImageSpec) -> i64 {
    spec.shared.free_position() + 3 * i64::from(spec.log.term_length())
}
