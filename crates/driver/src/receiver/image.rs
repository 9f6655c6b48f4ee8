//! The receiver's half of an image: what is known of one stream from one source.
//!
//! Driven by its endpoint: [`ReceiverImage::start`] once, then packets (`insertion`), and [`ReceiverImage::turn`]
//! whenever it has one (`rounds`), which finds gaps (`repair`) and answers the sender (`feedback`). Output goes to the log,
//! the counters, the shared atomics and, through the link, to the sender.

use taran_core::clock::Now;
use taran_core::loss_report::LossReport;
use taran_protocol::position::TermGeometry;

use super::connections::{Arrival, Connections};
use super::credit::Credit;
use super::identity::Identity;
use super::loss::{Loss, PATIENCE};
use super::nak_delay::NakDelay;
use super::repair::LossRecord;
use super::response::ResponseNotice;
use super::squeeze::Squeeze;
use super::status::StatusMessages;
use super::subscribers::Subscribers;
use super::transport::ReceiveTransport;
use crate::allowance::{Allowance, round_trip_answers};
use crate::boundary::{
    EndpointId, ImageId, ImageState, ReceiverCounters, ReceiverImageSpec, SubscriberPosition,
    TransportId,
};
use crate::faults::Faults;
use crate::rounds::{Guest, Rest};
use crate::signs::Ticket;

/// The receiver's half of an image: built by the conductor, owned by the receiver.
#[derive(Debug)]
pub struct ReceiverImage {
    // What every packet touches.
    pub(super) geometry: TermGeometry,
    /// End of the highest frame that arrived.
    pub(super) high_water: i64,
    /// Everything before it arrived.
    pub(super) rebuilt: i64,
    /// Nothing beyond it is taken.
    pub(super) overrun_threshold: i64,
    /// Nothing at or beyond it may be written, as far as was looked.
    pub(super) free_end: i64,
    /// From `rebuilt` up to it, where frames may begin there is one or nothing, and at it nothing. Further on lies what
    /// was there three terms ago, or was received there and turned out to belong elsewhere (`in_place`).
    pub(super) vacant: i64,
    pub(super) heard_ns: i64,
    /// How often something was asked for since data came last.
    pub(super) unanswered: u32,
    pub(super) credit: Credit,
    /// Something arrived out of order since the last scan.
    pub(super) needs_scan: bool,
    // What every turn touches.
    /// What the conductor was told of `rebuilt`.
    published: i64,
    pub(super) status: StatusMessages,
    /// Of its last status message, if that was collected.
    pub(super) sign: Option<Ticket>,
    pub(super) loss: Loss,
    pub(super) subscribers: Subscribers,
    phase: Phase,
    // What changes once or twice in the life of an image.
    pub(super) connections: Connections,
    pub(super) has_ended: bool,
    pub(super) is_revoked: bool,
    is_complete: bool,
    is_abandoned: bool,
    pub(super) rejection: Option<Box<str>>,
    pub(super) response: ResponseNotice,
    pub(super) loss_record: LossRecord,
    pub(super) round_trip_answers: Allowance,
    pub(super) spec: ReceiverImageSpec,
}

/// How the image behaves towards the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Follows the stream.
    Following,
    /// Wants nothing more: repeats its last status message with EOS.
    Leaving,
    /// Says nothing more: timed out, or another image has taken over.
    Silent,
}

/// What the endpoint lends to an image for a turn.
pub(super) struct Link<'a> {
    pub(super) now: Now,
    pub(super) identity: &'a Identity,
    pub(super) transports: &'a mut [Option<ReceiveTransport>],
    /// Transports come and go: those that have fallen silent are not spoken to.
    pub(super) among_several: bool,
    pub(super) squeeze: &'a mut Squeeze,
    pub(super) counters: &'a ReceiverCounters,
    pub(super) faults: &'a mut Faults,
    pub(super) losses: &'a mut LossReport,
}

/// What came of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turned {
    Worked(usize),
    /// Nothing was heard for too long. The session cools down, unless its stream had ended.
    TimedOut {
        cool_down: bool,
    },
}

/// Where a sender must stop that was told a position: half a term on, or where positions end.
pub(super) fn overrun_threshold(geometry: &TermGeometry, told: i64) -> i64 {
    (told + i64::from(geometry.term_length() / 2)).min(geometry.max_position())
}

impl ReceiverImage {
    /// An image that has received nothing yet.
    #[must_use]
    pub fn new(mut spec: ReceiverImageSpec) -> Self {
        let geometry = spec.log.geometry();
        let join_position = spec.join_position;
        Self {
            geometry,
            high_water: join_position,
            rebuilt: join_position,
            overrun_threshold: overrun_threshold(&geometry, join_position),
            free_end: free_end(&spec),
            vacant: join_position,
            heard_ns: 0,
            unanswered: PATIENCE,
            needs_scan: false,
            published: join_position,
            status: StatusMessages::new(
                join_position,
                spec.shared.window(),
                // At most 65,504.
                spec.mtu as i32,
                spec.status_message_timeout_ns,
            ),
            sign: None,
            loss: Loss::new(NakDelay::new(spec.nak_delay, spec.seed)),
            subscribers: Subscribers::new(std::mem::take(&mut spec.subscribers)),
            phase: Phase::Following,
            connections: Connections::default(),
            has_ended: false,
            is_revoked: false,
            is_complete: false,
            is_abandoned: false,
            rejection: None,
            response: ResponseNotice::default(),
            loss_record: LossRecord::new(join_position),
            round_trip_answers: round_trip_answers(),
            credit: Credit::new(),
            spec,
        }
    }

    /// Whether a frame may end at `end`: what was there three terms ago is not needed any more, and neither is the slot
    /// behind it.
    pub(super) fn is_free_at(&mut self, end: i64) -> bool {
        if end >= self.free_end {
            self.free_end = free_end(&self.spec);
        }
        end < self.free_end
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
        self.heard_ns = now.nanos;
        self.status.start(now.nanos);
        self.spec.congestion_control.start(now.nanos);
        self.connections.reserve(slots);
        if let Some(slot) = slot {
            self.connections.heard(&Arrival {
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
    pub(super) fn turn(&mut self, link: &mut Link<'_>) -> Turned {
        if self.phase == Phase::Silent {
            return Turned::Worked(0);
        }
        if self.is_timed_out(link.now) {
            self.phase = Phase::Silent;
            self.spec.shared.receiver_timed_out();
            return Turned::TimedOut {
                cool_down: !self.has_ended,
            };
        }
        self.rebuild(link);
        self.publish_rebuilt();
        self.check_leaving();
        let is_following = self.phase == Phase::Following;
        let repaired = if is_following { self.repair(link) } else { 0 };
        Turned::Worked(repaired + self.answer(is_following, link))
    }

    /// Once per turn, for whoever joins, and to tell when everything was read.
    fn publish_rebuilt(&mut self) {
        if self.rebuilt != self.published {
            self.published = self.rebuilt;
            self.spec.shared.receiver_rebuilt(self.rebuilt);
        }
    }

    fn is_timed_out(&self, now: Now) -> bool {
        now.nanos - self.heard_ns > self.spec.liveness_timeout_ns
    }

    /// A stream that has ended and wholly arrived, or that nobody reads, is left (docs/spec/wire.md §5.10).
    fn check_leaving(&mut self) {
        if self.has_ended && !self.is_complete && self.rebuilt >= self.high_water {
            self.is_complete = true;
            self.spec.shared.receiver_complete();
        }
        let is_leaving = self.is_complete
            || self.is_abandoned
            || self.spec.shared.state() >= ImageState::Draining;
        if is_leaving && self.phase == Phase::Following {
            self.phase = Phase::Leaving;
            self.status.hurry();
        }
    }

    /// How far it is, as the conductor and the sender know.
    pub(super) fn progress(&self) -> (i64, i64) {
        (self.published, self.status.position())
    }

    /// Whether what came in is to be looked at in the next turn.
    pub(super) fn has_news(&self) -> bool {
        self.needs_scan || (self.has_ended && self.phase == Phase::Following)
    }

    /// Whether something is to be asked for, or filled, when it is time.
    pub(super) fn misses_something(&self) -> bool {
        let repairs =
            self.phase == Phase::Following && self.rejection.is_none() && !self.is_revoked;
        repairs && self.loss.is_tracking()
    }

    /// Whether nothing but a packet, the conductor or the time for the next status message gives it something to do:
    /// everything that was heard of is there, read and told.
    fn is_settled(&self) -> bool {
        self.phase == Phase::Following
            && !self.has_news()
            && !self.loss.is_tracking()
            && self.rejection.is_none()
            && self.response.is_settled()
            && self.spec.congestion_control.is_constant()
            && self.rebuilt == self.high_water
            && self.rebuilt == self.status.position()
            && self.subscribers.slowest(self.rebuilt) == Some(self.rebuilt)
    }

    /// Nobody wants the stream any more.
    pub(super) fn abandon(&mut self) {
        self.is_abandoned = true;
    }

    /// A newer image of the same session speaks from now on, unless this one still follows the stream.
    pub(super) fn yield_to_newer(&mut self) {
        if self.phase == Phase::Leaving {
            self.phase = Phase::Silent;
        }
    }

    /// Error frames instead of status messages from now on.
    pub(super) fn reject(&mut self, reason: Box<str>) {
        self.rejection = Some(reason);
    }

    /// The sender shall know under which session its requests are answered, or no longer be told.
    pub(super) fn announce_response(&mut self, session_id: Option<i32>) {
        self.response.set(session_id);
    }

    pub(super) fn add_subscriber(&mut self, subscriber: SubscriberPosition) {
        self.subscribers.add(subscriber);
    }

    pub(super) fn remove_subscriber(&mut self, counter_id: i32) {
        self.subscribers.remove(counter_id);
    }

    /// A SETUP of the stream came in again.
    pub(super) fn on_setup(&mut self, arrival: &Arrival) {
        self.credit.setup_came();
        self.connections.active(arrival);
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
        if !self.is_settled() {
            return None;
        }
        let timed_out_ns = self.heard_ns.saturating_add(self.spec.liveness_timeout_ns);
        Some(Rest {
            until_ns: self.status.due_ns().min(timed_out_ns),
            watch: (),
        })
    }
}

/// A log length behind what nobody needs any more.
fn free_end(spec: &ReceiverImageSpec) -> i64 {
    spec.shared.free_position() + 3 * i64::from(spec.log.term_length())
}
