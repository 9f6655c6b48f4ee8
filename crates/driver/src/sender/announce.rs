//! What a stream says of itself: SETUP and heartbeats.

use taran_net::Transmit;
use taran_protocol::frame::{DataHeader, I32, IntoBytes, Setup};

use super::publication::{ANNOUNCE_INTERVAL_NS, SenderPublication, Turn};

impl SenderPublication {
    /// Describes the stream at the sender's position (docs/spec/wire.md §3.3).
    pub(super) fn setup(&mut self, turn: &mut Turn<'_>) {
        if turn.now.nanos - self.setup_sent_ns <= ANNOUNCE_INTERVAL_NS {
            return;
        }
        self.setup_sent_ns = turn.now.nanos;
        if self.is_setup_elicited {
            self.flow_control
                .on_requested_setup(self.limit, turn.now.nanos);
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
        send_frame(setup.as_bytes(), turn);
        if self.is_setup_elicited && self.has_receivers {
            self.is_setup_elicited = false;
        }
        self.needs_setup = !self.has_initial_connection || self.is_setup_elicited;
    }

    /// Says where the stream is when there is nothing to say, and whether it ended there (docs/spec/wire.md §3.5).
    pub(super) fn heartbeat(&mut self, turn: &mut Turn<'_>) {
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
        self.sent_ns = turn.now.nanos;
        // The end of a stream does not wait for others.
        let may_wait = flags == DataHeader::UNFRAGMENTED;
        let makes_room = may_wait && turn.control_batch.must_flush_for(bytes.len(), None);
        if makes_room || turn.control_batch.contains(self.queued_heartbeat) {
            send_control_batch(turn);
        }
        if may_wait && turn.control_batch.accepts(bytes.len(), None) {
            self.queued_heartbeat = Some(turn.control_batch.add(bytes, None, turn.now));
            return;
        }
        let sent = send_frame(bytes, turn);
        turn.counters.bytes_sent.add_exclusive(sent as i64);
        turn.counters.heartbeats_sent.increment();
    }
}

/// Sends the signs of life that were collected, each in a datagram of its own.
pub(super) fn send_control_batch(turn: &mut Turn<'_>) {
    let transmit = turn.control_batch.transmit();
    let length = transmit.payload.len();
    let sent = turn.wire.send(&mut [transmit], turn.now, turn.reporter);
    if sent < length {
        turn.counters.short_sends.increment();
    }
    turn.counters.bytes_sent.add_exclusive(sent as i64);
    let tried = turn.control_batch.on_sent(sent);
    turn.counters.heartbeats_sent.add(tried as i64);
}

/// Sends one frame in a datagram of its own. Returns the bytes sent: all or none.
fn send_frame(frame: &[u8], turn: &mut Turn<'_>) -> usize {
    let sent = turn
        .wire
        .send(&mut [Transmit::connected(frame)], turn.now, turn.reporter);
    if sent < frame.len() {
        turn.counters.short_sends.increment();
    }
    sent
}
