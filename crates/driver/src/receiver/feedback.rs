//! What an image tells its sender (docs/spec/wire.md §5.6).

use taran_protocol::error_code::ErrorCode;
use taran_protocol::frame::{
    ERROR_FRAME_LENGTH_MAX, ErrorFrame, IntoBytes, ResponseSetup, Rttm, StatusMessage,
};
use taran_protocol::position::FRAME_ALIGNMENT;

use super::identity::Status;
use super::image::{Link, ReceiverImage, overrun_threshold};
use super::squeeze::Squeeze;
use super::transport::Sent;
use crate::congestion::{Advice, Progress};

impl ReceiverImage {
    /// Answers the sender if there is something to say. Returns how much was said.
    pub(super) fn answer(&mut self, is_following: bool, link: &mut Link<'_>) -> usize {
        if self.rejection.is_some() {
            return self.send_rejection(link);
        }
        if is_following {
            self.look_at_subscribers(link.squeeze, link.now.nanos);
        }
        self.measure_round_trip(link) + self.send_status(is_following, link)
    }

    /// Schedules a status message when the subscribers have moved far enough, but never lets the sender into memory
    /// that is not free: what it may write, half a term ahead, must be less than a log length (three terms) ahead of
    /// the free position.
    fn look_at_subscribers(&mut self, squeeze: &mut Squeeze, now_ns: i64) {
        let Some(consumed) = self.subscribers.slowest(self.rebuilt) else {
            return;
        };
        let progress = Progress {
            consumed,
            told: self.status.told(),
            has_loss: self.loss.take_new(),
        };
        let half_term = self.geometry.term_length() / 2;
        let advice = self.spec.congestion_control.advise(&progress, now_ns);
        let advice = Advice {
            window: squeeze.narrow(advice.window.clamp(0, half_term), self.status.mtu()),
            ..advice
        };
        if consumed <= self.status.position()
            && advice.window == self.status.window()
            && !advice.is_urgent
        {
            return;
        }
        let free = self.spec.shared.free_position() + 5 * i64::from(half_term)
            - i64::from(FRAME_ALIGNMENT);
        // What goes out anyway says how far things are: without news the next step of a slow subscriber could wait for
        // ever for a sender that waits for it.
        let is_urgent = advice.is_urgent || self.status.is_overdue(now_ns);
        if self
            .status
            .advance(consumed.min(free), advice.window, is_urgent)
        {
            self.spec
                .shared
                .receiver_status(self.status.position(), self.status.window());
        }
    }

    fn send_status(&mut self, is_following: bool, link: &mut Link<'_>) -> usize {
        if self.response.is_due(self.status.is_overdue(link.now.nanos)) {
            self.send_response_setup(link);
        }
        if !self.status.is_due(link.now.nanos) {
            return 0;
        }
        if self.credit.is_used_up() {
            // Due still, for when it is worth an answer again. Clients are told all the same.
            self.count_transports(link.now.nanos);
            return 0;
        }
        let position = self.status.position();
        let status = Status {
            flags: if is_following { 0 } else { StatusMessage::EOS },
            session_id: self.spec.session_id,
            stream_id: self.spec.stream_id,
            term_id: self.geometry.term_id(position),
            term_offset: self.geometry.term_offset(position),
            window: self.status.window(),
        };
        let datagram = link.identity.status(&status);
        if self.is_repeated(is_following) && self.collect(datagram.bytes(), link) {
            self.status.sent(link.now.nanos);
            self.overrun_threshold = overrun_threshold(&self.geometry, position);
            self.count_transports(link.now.nanos);
            return 0;
        }
        if self.send_to_all(datagram.bytes(), link) == Sent::NoRoom {
            // Due still: the sender may be waiting for it.
            return 0;
        }
        link.counters.status_messages_sent.increment();
        self.status.sent(link.now.nanos);
        self.credit.status_went();
        self.overrun_threshold = overrun_threshold(&self.geometry, position);
        self.count_transports(link.now.nanos);
        1
    }

    /// Whether the status message that is due only says what the last one said. The first ones are an answer.
    fn is_repeated(&self, is_following: bool) -> bool {
        is_following && !self.status.is_news() && self.credit.is_unlimited()
    }

    /// Keeps it, to be sent with others. False if it has to go now: there is no crowd, or it has several ways.
    fn collect(&mut self, frame: &[u8], link: &mut Link<'_>) -> bool {
        if link.among_several {
            return false;
        }
        let mut targets = self.connections.targets(link.now.nanos, false);
        let (Some((slot, control)), None) = (targets.next(), targets.next()) else {
            return false;
        };
        let Some(Some(transport)) = link.transports.get_mut(slot) else {
            return false;
        };
        drop(targets);
        self.sign = transport.collect(control, frame, link.now, link.counters, link.faults);
        self.sign.is_some()
    }

    /// Repeated before each regular status message, as long as there is something to tell (docs/spec/wire.md §2.10).
    fn send_response_setup(&mut self, link: &mut Link<'_>) {
        let Some(response_session_id) = self.response.take() else {
            return;
        };
        let setup = ResponseSetup {
            header: ResponseSetup::header(),
            session_id: self.spec.session_id.into(),
            stream_id: self.spec.stream_id.into(),
            response_session_id: response_session_id.into(),
        };
        self.send_to_all(setup.as_bytes(), link);
    }

    fn send_rejection(&mut self, link: &mut Link<'_>) -> usize {
        let Some(reason) = &self.rejection else {
            return 0;
        };
        if !self.status.is_due(link.now.nanos) {
            return 0;
        }
        let mut buffer = [0; ERROR_FRAME_LENGTH_MAX];
        let frame = ErrorFrame::write(
            &mut buffer,
            self.spec.session_id,
            self.spec.stream_id,
            link.identity.receiver_id,
            link.identity.group_tag,
            ErrorCode::ImageRejected as i32,
            reason.as_bytes(),
        );
        self.send_to_all(frame, link);
        link.counters.error_frames_sent.increment();
        self.status.sent(link.now.nanos);
        1
    }

    fn measure_round_trip(&mut self, link: &mut Link<'_>) -> usize {
        if !self
            .spec
            .congestion_control
            .wants_round_trip(link.now.nanos)
        {
            return 0;
        }
        let request = Rttm {
            header: Rttm::header(Rttm::REPLY),
            session_id: self.spec.session_id.into(),
            stream_id: self.spec.stream_id.into(),
            echo_timestamp: link.now.nanos.into(),
            reception_delta: 0.into(),
            receiver_id: link.identity.receiver_id.into(),
        };
        self.send_to_all(request.as_bytes(), link);
        1
    }

    /// Sends a frame on every connection. The worst outcome counts.
    pub(super) fn send_to_all(&self, frame: &[u8], link: &mut Link<'_>) -> Sent {
        let mut outcome = Sent::Yes;
        let targets = self.connections.targets(link.now.nanos, link.among_several);
        for (slot, control) in targets {
            if let Some(Some(transport)) = link.transports.get_mut(slot) {
                if transport.signs.hold(self.sign) {
                    // What was said before comes first.
                    transport.send_signs(link.now, link.counters, link.faults);
                }
                let sent = transport.send(control, frame, link.now, link.counters, link.faults);
                if sent != Sent::Yes && outcome != Sent::NoRoom {
                    outcome = sent;
                }
            }
        }
        outcome
    }

    /// Tells the clients how many transports bring the stream.
    fn count_transports(&self, now_ns: i64) {
        let live = self.connections.live(now_ns, self.spec.liveness_timeout_ns);
        self.spec.log.set_active_transport_count(live as i32);
    }
}
