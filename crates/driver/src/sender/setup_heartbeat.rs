// SPDX-License-Identifier: Apache-2.0
//! SETUP frames and heartbeats of a publication.

use taran_net::Transmit;
use taran_protocol::frame::{DataHeader, I32, IntoBytes, Setup};

use super::publication::{PublicationContext, SETUP_HEARTBEAT_INTERVAL_NS, SenderPublication};

impl SenderPublication {
    /// Sends a SETUP with the sender's position, unless one was sent within the interval (docs/spec/wire.md §3.3).
    pub(super) fn send_setup(&mut self, context: &mut PublicationContext<'_>) {
        if context.now.nanos - self.setup_sent_ns <= SETUP_HEARTBEAT_INTERVAL_NS {
            return;
        }
        self.setup_sent_ns = context.now.nanos;
        if self.is_setup_elicited {
            self.flow_control
                .on_requested_setup(self.limit, context.now.nanos);
        }
        let group = if self.spec.is_group { Setup::GROUP } else { 0 };
        let response = if self.spec.wants_response {
            Setup::SEND_RESPONSE_SETUP
        } else {
            0
        };
        let setup = Setup {
            header: Setup::header(group | response),
            term_offset: self.geometry.term_offset(self.position).into(),
            session_id: self.spec.session_id.into(),
            stream_id: self.spec.stream_id.into(),
            initial_term_id: self.geometry.initial_term_id().into(),
            active_term_id: self.geometry.term_id(self.position).into(),
            term_length: self.geometry.term_length().into(),
            mtu: I32::new(self.bounds.mtu),
            ttl: self.spec.ttl.into(),
        };
        send_frame(setup.as_bytes(), context);
        if self.is_setup_elicited && self.has_receivers {
            self.is_setup_elicited = false;
        }
        self.needs_setup = !self.has_initial_connection || self.is_setup_elicited;
    }

    /// Sends or queues a heartbeat with the sender's position and, if the stream has ended there, the end-of-stream
    /// flag (docs/spec/wire.md §3.5).
    pub(super) fn send_heartbeat(&mut self, context: &mut PublicationContext<'_>) {
        let shared = &self.spec.shared;
        let flags = if shared.is_revoked() {
            DataHeader::UNFRAGMENTED | DataHeader::EOS | DataHeader::REVOKED
        } else if shared.is_end_of_stream() && self.spec.signals_end_of_stream {
            DataHeader::UNFRAGMENTED | DataHeader::EOS
        } else {
            DataHeader::UNFRAGMENTED
        };
        let heartbeat = DataHeader::heartbeat(
            flags,
            self.spec.session_id,
            self.spec.stream_id,
            self.geometry.term_id(self.position),
            self.geometry.term_offset(self.position),
        );
        let bytes = heartbeat.as_bytes();
        self.sent_ns = context.now.nanos;
        // The end of a stream is sent at once.
        let may_queue = flags == DataHeader::UNFRAGMENTED;
        let must_flush = may_queue && context.control_batch.must_flush_for(bytes.len(), None);
        if must_flush || context.control_batch.contains(self.queued_heartbeat) {
            send_control_batch(context);
        }
        if may_queue && context.control_batch.accepts(bytes.len(), None) {
            self.queued_heartbeat = Some(context.control_batch.add(bytes, None, context.now));
            return;
        }
        let sent = send_frame(bytes, context);
        context.counters.bytes_sent.add_exclusive(sent as i64);
        context.counters.heartbeats_sent.increment();
    }
}

/// Sends the queued heartbeats, each in a datagram of its own.
pub(super) fn send_control_batch(context: &mut PublicationContext<'_>) {
    let transmit = context.control_batch.transmit();
    let length = transmit.payload.len();
    let sent = context
        .transport
        .send(&mut [transmit], context.now, context.reporter);
    if sent < length {
        context.counters.short_sends.increment();
    }
    context.counters.bytes_sent.add_exclusive(sent as i64);
    let tried = context.control_batch.on_sent(sent);
    context.counters.heartbeats_sent.add(tried as i64);
}

/// Sends a frame in a datagram of its own. Returns the bytes sent: all or none.
fn send_frame(frame: &[u8], context: &mut PublicationContext<'_>) -> usize {
    let sent = context.transport.send(
        &mut [Transmit::connected(frame)],
        context.now,
        context.reporter,
    );
    if sent < frame.len() {
        context.counters.short_sends.increment();
    }
    sent
}
