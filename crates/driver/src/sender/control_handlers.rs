// SPDX-License-Identifier: Apache-2.0
//! Control-frame handlers of a publication.

use std::net::SocketAddr;

use taran_core::clock::Now;
use taran_protocol::log;

use super::flow_control::StatusReport;
use super::publication::{PublicationContext, SenderPublication, stamp, transmit};
use super::retransmit::{NakOutcome, RetransmitOutcome, StreamRange};
use super::send_plan::{Bounds, SendPlan};

/// Upper bound of the receiver window that retransmission limits are derived from (docs/spec/wire.md §3.8).
const RETRANSMIT_WINDOW_MAX: i64 = 131_072;

impl SenderPublication {
    /// Handles a request for a SETUP.
    pub(super) fn on_setup_request(&mut self, group_tag: Option<i64>, source: SocketAddr) {
        if !self.spec.shared.is_end_of_stream() {
            self.peer = Some(source);
            self.is_setup_elicited = true;
            self.needs_setup = true;
            self.flow_control.on_setup_requested(group_tag);
        }
    }

    /// Returns true if a consumption position is plausible: at most half a term beyond the sender position, and at most
    /// half a term behind the highest position that was advertised to receivers. Padding may take the sender position
    /// much further than that: the status messages of a receiver in front of it would be rejected, and the publication
    /// would count as not connected (docs/spec/wire.md §4.2).
    pub(super) fn is_plausible(&self, position: i64) -> bool {
        let half = i64::from(self.geometry.term_length() / 2);
        (self.max_advertised_position - half..=self.position + half).contains(&position)
    }

    /// Handles a plausible status message.
    pub(super) fn on_status(
        &mut self,
        report: &StatusReport,
        context: &mut PublicationContext<'_>,
    ) {
        let (id, now) = (report.receiver_id, context.now);
        if report.is_end_of_stream {
            self.receivers.remove(|&known| known == id);
            if !self.spec.is_group {
                self.spec.shared.sender_unicast_end_of_stream(true);
            }
        } else {
            if self
                .receivers
                .refresh(now.nanos, |&known| known == id)
                .is_none()
            {
                self.receivers.insert(id, now.nanos, |_| {});
            }
            // The end of stream of a receiver that left does not hold for its successor.
            if self.spec.shared.is_unicast_end_of_stream_received() {
                self.spec.shared.sender_unicast_end_of_stream(false);
            }
        }
        let limit = self.flow_control.on_status(report, self.limit, now.nanos);
        self.set_limit(limit);
        if self.receivers.take_rejected() | self.flow_control.take_rejected() {
            context
                .reporter
                .report_too_many_receivers(now, context.transport.channel());
        }
        self.receivers_changed();
        if !self.has_initial_connection {
            self.has_initial_connection = true;
            self.needs_setup = self.is_setup_elicited;
        }
    }

    /// Returns true if `FlowControl::on_idle` is due.
    pub(super) fn is_flow_control_due(&self, now_ns: i64) -> bool {
        self.flow_control.next_deadline_ns() <= now_ns
    }

    /// Returns true if a receiver is live.
    pub(super) fn has_receiver(&self, id: i64) -> bool {
        self.receivers.iter().any(|receiver| *receiver == id)
    }

    /// Handles an error of a receiver. Returns true if it was a receiver of this publication until now.
    pub(super) fn on_error(&mut self, receiver_id: i64, group_tag: Option<i64>, now: Now) -> bool {
        self.flow_control
            .on_error(receiver_id, group_tag, now.nanos);
        let was_known = self.receivers.remove(|&known| known == receiver_id);
        if was_known {
            self.receivers_changed();
        }
        was_known
    }

    /// Counts a NAK, valid or not (docs/spec/wire.md §3.8).
    pub(super) fn count_nak(&self) {
        self.spec.naks_received.increment();
    }

    /// Handles a NAK whose range was checked against the term. The data is sent in the next poll, so that a burst of
    /// NAKs does not exceed the share of a cycle.
    pub(super) fn on_nak(
        &mut self,
        term_id: i32,
        term_offset: i32,
        length: i32,
        context: &PublicationContext<'_>,
    ) {
        let position = self.geometry.position(term_id, term_offset);
        let term_length = i64::from(self.geometry.term_length());
        let oldest = self.oldest_retransmittable();
        let multiple = i64::from(self.flow_control.retransmit_window_multiple());
        let asked = i64::from(length)
            .min(multiple * RETRANSMIT_WINDOW_MAX.min(term_length / 2))
            .min(self.position - position);
        if asked <= 0 || position < oldest || position < 0 {
            return;
        }
        if !self.is_frame(position) {
            return;
        }
        let asked = StreamRange {
            position,
            length: asked,
        };
        if self.retransmits.on_nak(asked, context.now.nanos) == NakOutcome::Overflow {
            context.counters.retransmit_overflow.increment();
        }
    }

    /// Returns true if a sent frame of this stream begins at `position`. A missing range begins with one. A range that
    /// begins within a frame would send invalid frames, or cut off the ranges of other receivers.
    fn is_frame(&self, position: i64) -> bool {
        let (geometry, stream) = (&self.geometry, &self.spec.log);
        let offset = geometry.term_offset(position);
        let Ok(Some(frame)) = log::frame_at(stream.term_at(position), offset) else {
            return false;
        };
        let header = frame.header();
        header.term_offset.get() == offset
            && header.term_id.get() == geometry.term_id(position)
            && (header.session_id.get(), header.stream_id.get()) == self.key()
    }

    /// Returns the lowest position that is retransmitted: what lies before may be overwritten (docs/spec/wire.md §3.8),
    /// or lies before the start of the stream, where no pages are reserved.
    fn oldest_retransmittable(&self) -> i64 {
        let oldest = self.position
            - i64::from(self.geometry.term_length() / 2)
            - i64::from(self.geometry.max_message_length());
        oldest.max(self.spec.start_position)
    }

    pub(super) fn resend(&mut self, context: &mut PublicationContext<'_>) {
        let oldest = self.oldest_retransmittable();
        let overwritten = self.position - i64::from(self.geometry.term_length());
        let longest = i64::from(self.geometry.max_message_length());
        let (geometry, stream, bounds) = (self.geometry, &self.spec.log, self.bounds);
        let timestamp = self.spec.send_timestamp.as_ref();
        let events = &self.spec.log_events;
        self.retransmits.poll(context.now.nanos, |rest, is_start| {
            // The position may have advanced since the NAK was accepted.
            if rest.position < overwritten {
                return RetransmitOutcome::Blocked(0);
            }
            let is_too_old = rest.position < oldest;
            let term = stream.term_at(rest.position);
            let bounds = Bounds {
                window: if is_too_old {
                    oldest - rest.position + longest
                } else {
                    rest.length
                },
                ..bounds
            };
            let Ok(plan) = SendPlan::scan(term, geometry.term_offset(rest.position), bounds) else {
                return RetransmitOutcome::Blocked(0);
            };
            if plan.is_empty() {
                return RetransmitOutcome::Blocked(0);
            }
            if is_too_old {
                // The range may include data that other receivers miss.
                return RetransmitOutcome::Expired(plan.advance(plan.bytes()));
            }
            stamp(timestamp, &plan, term);
            context.flush_coalescer();
            let accepted = transmit(&plan, term, context);
            if accepted == 0 {
                context.counters.short_sends.increment();
                return RetransmitOutcome::Blocked(0);
            }
            if is_start {
                context.counters.retransmits_sent.increment();
                let position = rest.position;
                let (term_id, offset) =
                    (geometry.term_id(position), geometry.term_offset(position));
                events.resend(term_id, offset, rest.length);
            }
            let advanced = plan.advance(accepted);
            context.counters.retransmitted_bytes.add(advanced);
            if accepted < plan.bytes() {
                context.counters.short_sends.increment();
                return RetransmitOutcome::Blocked(advanced);
            }
            RetransmitOutcome::Sent(advanced)
        });
    }
}
