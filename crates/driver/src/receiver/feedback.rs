// SPDX-License-Identifier: Apache-2.0
//! Feedback of an image to its sender: status messages, error frames, RTT requests (docs/spec/wire.md §5.6).

use taran_protocol::error_code::ErrorCode;
use taran_protocol::frame::{
    ERROR_FRAME_LENGTH_MAX, ErrorFrame, IntoBytes, ResponseSetup, Rttm, StatusMessage,
};
use taran_protocol::position::FRAME_ALIGNMENT;

use super::identity::StatusFields;
use super::image::{ImageContext, ReceiverImage, overrun_threshold};
use super::transport::SendResult;
use super::window_throttle::WindowThrottle;
use crate::congestion::{ReceiverProgress, WindowUpdate};

impl ReceiverImage {
    /// Sends the feedback that is due. Returns the number of frames sent.
    pub(super) fn send_feedback(
        &mut self,
        is_active: bool,
        context: &mut ImageContext<'_>,
    ) -> usize {
        if self.rejection.is_some() {
            return self.send_rejection(context);
        }
        if is_active {
            self.update_status_schedule(context.window_throttle, context.now.nanos);
        }
        self.measure_round_trip(context) + self.send_status_message(is_active, context)
    }

    /// Returns the next time at which [`send_feedback`](Self::send_feedback) has an effect, if no subscriber advances and
    /// nothing arrives before.
    pub(super) fn feedback_deadline_ns(&self) -> i64 {
        let status_ns = self.status_schedule.next_deadline_ns().saturating_add(1);
        if self.rejection.is_some() {
            return status_ns;
        }
        if !self.response_setup.is_idle() {
            return i64::MIN;
        }
        let status_ns = if self.setup_reply_budget.is_exhausted() {
            i64::MAX
        } else {
            status_ns
        };
        status_ns.min(self.spec.congestion_control.next_deadline_ns())
    }

    /// Schedules a status message when the subscribers have advanced far enough. The position is limited so that the
    /// sender cannot write into memory that is not free: it may send up to half a term beyond it, and that must be less
    /// than a log length (three terms) beyond the free position. The end of the window stays within the pages that are
    /// reserved: where it has reached their end, the window becomes shorter as the position advances, down to 0.
    fn update_status_schedule(&mut self, window_throttle: &mut WindowThrottle, now_ns: i64) {
        let Some(consumed) = self.subscribers.min_position(self.rebuild_position) else {
            return;
        };
        let progress = ReceiverProgress {
            consumed,
            last_sent_position: self.status_schedule.last_sent_position(),
            has_loss: self.loss_detector.take_new_loss(),
        };
        let half_term = self.geometry.term_length() / 2;
        let update = self
            .spec
            .congestion_control
            .update_window(&progress, now_ns);
        let window = window_throttle.apply(
            update.window.clamp(0, half_term),
            self.status_schedule.mtu(),
        );
        let reserved = self.reserved_position() - i64::from(FRAME_ALIGNMENT);
        let room = (reserved - self.status_schedule.position()).max(0);
        let update = WindowUpdate {
            window: i32::try_from(room).map_or(window, |room| window.min(room)),
            ..update
        };
        if consumed <= self.status_schedule.position()
            && update.window == self.status_schedule.window()
            && !update.is_urgent
        {
            return;
        }
        let free = self.spec.shared.free_position() + 5 * i64::from(half_term)
            - i64::from(FRAME_ALIGNMENT);
        let limit = free.min(reserved - i64::from(update.window));
        // A periodic status message carries the current position. Otherwise a slow subscriber's small step, which
        // schedules no message, could stall a sender that waits for it.
        let is_urgent = update.is_urgent || self.status_schedule.is_overdue(now_ns);
        if self
            .status_schedule
            .advance(consumed.min(limit), update.window, is_urgent)
        {
            self.spec.shared.receiver_status(
                self.status_schedule.position(),
                self.status_schedule.window(),
            );
        }
    }

    fn send_status_message(&mut self, is_active: bool, context: &mut ImageContext<'_>) -> usize {
        if self
            .response_setup
            .is_due(self.status_schedule.is_overdue(context.now.nanos))
        {
            self.send_response_setup(context);
        }
        if !self.status_schedule.is_due(context.now.nanos) {
            return 0;
        }
        if self.setup_reply_budget.is_exhausted() {
            // Still due: it is sent when the next SETUP arrives. The count for clients is updated regardless.
            self.update_active_transport_count(context.now.nanos);
            return 0;
        }
        let position = self.status_schedule.position();
        let status = StatusFields {
            flags: if is_active { 0 } else { StatusMessage::EOS },
            session_id: self.spec.session_id,
            stream_id: self.spec.stream_id,
            term_id: self.geometry.term_id(position),
            term_offset: self.geometry.term_offset(position),
            window: self.status_schedule.window(),
        };
        let datagram = context.identity.status_message(&status);
        if self.is_repetition(is_active) && self.enqueue_repetition(datagram.bytes(), context) {
            self.status_schedule.on_sent(context.now.nanos);
            self.overrun_threshold = overrun_threshold(&self.geometry, position);
            self.update_active_transport_count(context.now.nanos);
            return 0;
        }
        if self.send_to_all(datagram.bytes(), context) == SendResult::SocketFull {
            // Still due: the sender may be waiting for it.
            return 0;
        }
        context.counters.status_messages_sent.increment();
        self.status_schedule.on_sent(context.now.nanos);
        self.setup_reply_budget.consume();
        self.overrun_threshold = overrun_threshold(&self.geometry, position);
        self.update_active_transport_count(context.now.nanos);
        1
    }

    /// Returns true if the status message that is due only repeats the last one. Replies to SETUPs do not count as
    /// repetitions.
    fn is_repetition(&self, is_active: bool) -> bool {
        is_active && !self.status_schedule.has_changed() && self.setup_reply_budget.is_unlimited()
    }

    /// Queues a repeated status message for a batch. Returns false if it has to be sent now: too few images share the
    /// socket, or there are several connections.
    fn enqueue_repetition(&mut self, frame: &[u8], context: &mut ImageContext<'_>) -> bool {
        if context.is_multi_destination {
            return false;
        }
        let mut targets = self.connections.targets(context.now.nanos, false);
        let (Some((slot, control)), None) = (targets.next(), targets.next()) else {
            return false;
        };
        let Some(Some(transport)) = context.transports.get_mut(slot) else {
            return false;
        };
        drop(targets);
        self.queued_status = transport.enqueue_status(
            control,
            frame,
            context.now,
            context.counters,
            context.reporter,
        );
        self.queued_status.is_some()
    }

    /// Sends a RESPONSE_SETUP; it is repeated before each periodic status message (docs/spec/wire.md §2.10).
    fn send_response_setup(&mut self, context: &mut ImageContext<'_>) {
        let Some(response_session_id) = self.response_setup.take() else {
            return;
        };
        let setup = ResponseSetup {
            header: ResponseSetup::header(),
            session_id: self.spec.session_id.into(),
            stream_id: self.spec.stream_id.into(),
            response_session_id: response_session_id.into(),
        };
        self.send_to_all(setup.as_bytes(), context);
    }

    fn send_rejection(&mut self, context: &mut ImageContext<'_>) -> usize {
        let Some(reason) = &self.rejection else {
            return 0;
        };
        if !self.status_schedule.is_due(context.now.nanos) {
            return 0;
        }
        let mut buffer = [0; ERROR_FRAME_LENGTH_MAX];
        let frame = ErrorFrame::write(
            &mut buffer,
            self.spec.session_id,
            self.spec.stream_id,
            context.identity.receiver_id,
            context.identity.group_tag,
            ErrorCode::ImageRejected as i32,
            reason.as_bytes(),
        );
        self.send_to_all(frame, context);
        context.counters.error_frames_sent.increment();
        self.status_schedule.on_sent(context.now.nanos);
        1
    }

    fn measure_round_trip(&mut self, context: &mut ImageContext<'_>) -> usize {
        if !self
            .spec
            .congestion_control
            .should_measure_rtt(context.now.nanos)
        {
            return 0;
        }
        let request = Rttm {
            header: Rttm::header(Rttm::REPLY),
            session_id: self.spec.session_id.into(),
            stream_id: self.spec.stream_id.into(),
            echo_timestamp: context.now.nanos.into(),
            reception_delta: 0.into(),
            receiver_id: context.identity.receiver_id.into(),
        };
        self.send_to_all(request.as_bytes(), context);
        1
    }

    /// Sends a frame on every connection. Returns the worst result.
    pub(super) fn send_to_all(&self, frame: &[u8], context: &mut ImageContext<'_>) -> SendResult {
        let mut outcome = SendResult::Sent;
        let targets = self
            .connections
            .targets(context.now.nanos, context.is_multi_destination);
        for (slot, control) in targets {
            if let Some(Some(transport)) = context.transports.get_mut(slot) {
                if transport.control_batch.contains(self.queued_status) {
                    // Keep the order: the queued status message is older.
                    transport.send_control_batch(context.now, context.counters, context.reporter);
                }
                let sent = transport.send(
                    control,
                    frame,
                    context.now,
                    context.counters,
                    context.reporter,
                );
                if sent != SendResult::Sent && outcome != SendResult::SocketFull {
                    outcome = sent;
                }
            }
        }
        outcome
    }

    /// Publishes to clients the number of transports on which the stream arrives.
    fn update_active_transport_count(&self, now_ns: i64) {
        let live = self
            .connections
            .live_count(now_ns, self.spec.liveness_timeout_ns);
        self.spec.log.set_active_transport_count(live as i32);
    }
}
