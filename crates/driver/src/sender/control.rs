//! What receivers say to a send endpoint (docs/spec/wire.md §3.6). Frames are routed by session and stream.

use std::net::SocketAddr;

use taran_protocol::frame::{ErrorFrame, Frame, IntoBytes, Nak, ResponseSetup, Rttm, StatusFrame};

use super::Desk;
use super::endpoint::SendEndpoint;
use super::flow_control::StatusReport;
use super::publication::Turn;
use crate::boundary::{ConductorEvent, PublicationError};

pub(super) fn on_datagram(
    endpoint: &mut SendEndpoint,
    datagram: &[u8],
    source: SocketAddr,
    desk: &mut Desk<'_>,
) {
    match Frame::parse(datagram) {
        Ok(Frame::StatusMessage(status)) => on_status(endpoint, &status, source, desk),
        Ok(Frame::Nak(nak)) => on_nak(endpoint, nak, desk),
        Ok(Frame::Error(error)) => on_error(endpoint, &error, source, desk),
        Ok(Frame::Rttm(rttm)) => on_rttm(endpoint, rttm, source, desk),
        Ok(Frame::ResponseSetup(setup)) => on_response_setup(endpoint, setup, desk),
        // These belong to receive endpoints and resolvers.
        Ok(Frame::Data(_) | Frame::Setup(_) | Frame::Resolution(_)) => {}
        Err(_) => {
            desk.counters.invalid_packets.increment();
        }
    }
}

fn on_status(
    endpoint: &mut SendEndpoint,
    status: &StatusFrame<'_>,
    source: SocketAddr,
    desk: &mut Desk<'_>,
) {
    let (counters, now_ns) = (desk.counters, desk.now.nanos);
    let message = status.message;
    let seat = endpoint.seat_of(message.session_id.get(), message.stream_id.get());
    let addressee = seat.and_then(|seat| endpoint.at(seat, desk));
    let term_length = addressee
        .as_ref()
        .map(|(publication, _)| publication.term_length());
    if message.check(term_length).is_err() {
        counters.invalid_packets.increment();
        return;
    }
    counters.status_messages_received.increment();
    let is_addressed = addressee.is_some();
    let mut has_news = false;
    if let Some((publication, mut turn)) = addressee {
        if message.asks_for_setup() {
            publication.on_setup_request(status.group_tag(), source);
        } else {
            let report = StatusReport {
                receiver_id: message.receiver_id.get(),
                group_tag: status.group_tag(),
                position: publication.position_of(
                    message.consumption_term_id.get(),
                    message.consumption_term_offset.get(),
                ),
                window: message.receiver_window.get(),
                is_end_of_stream: message.is_end_of_stream(),
            };
            if !publication.is_plausible(report.position) {
                counters.status_messages_rejected.increment();
                return;
            }
            let limit = publication.limit;
            publication.on_status(&report, &mut turn);
            has_news = publication.limit != limit;
        }
        // That its receivers are still there gives nobody a turn.
        has_news |= publication.needs_setup || publication.awaits_look(now_ns);
    }
    if let Some(seat) = seat.filter(|_| has_news) {
        endpoint.rouse(seat);
    }
    // Receivers announce themselves to a channel with several destinations by any status message.
    endpoint.on_status(message.receiver_id.get(), source, is_addressed, desk);
}

fn on_nak(endpoint: &mut SendEndpoint, nak: &Nak, desk: &mut Desk<'_>) {
    desk.counters.naks_received.increment();
    let addressee = endpoint.addressee(nak.session_id.get(), nak.stream_id.get(), desk);
    if let Some((publication, turn)) = addressee {
        publication.count_nak();
        if nak.check(publication.term_length()).is_err() {
            turn.counters.invalid_packets.increment();
            return;
        }
        publication.on_nak(
            nak.term_id.get(),
            nak.term_offset.get(),
            nak.length.get(),
            &turn,
        );
    }
}

/// Told to the conductor once for each receiver: a repeated frame finds the receiver gone (docs/spec/wire.md §3.7).
fn on_error(
    endpoint: &mut SendEndpoint,
    error: &ErrorFrame<'_>,
    source: SocketAddr,
    desk: &mut Desk<'_>,
) {
    let now = desk.now;
    desk.counters.error_frames_received.increment();
    let (header, group_tag) = (error.header, error.group_tag());
    let (session_id, stream_id) = (header.session_id.get(), header.stream_id.get());
    let receiver_id = header.receiver_id.get();
    let destination_id = endpoint.wire().destination_id(receiver_id, source);
    let may_tell = endpoint.error_frames().available(now.nanos) > 0;
    let Some((publication, _)) = endpoint.addressee(session_id, stream_id, desk) else {
        return;
    };
    if !may_tell && publication.has_receiver(receiver_id) {
        // It stays, and will say so again.
        return;
    }
    let id = publication.id();
    if publication.on_error(receiver_id, group_tag, now) {
        endpoint.error_frames().consume(1);
        // Lost when the queue is full, so that a forger of frames cannot fill memory.
        let _ = desk
            .events
            .offer(ConductorEvent::PublicationError(PublicationError {
                publication: id,
                destination_id,
                session_id,
                stream_id,
                receiver_id,
                group_tag,
                source,
                code: header.error_code.get(),
                text: String::from_utf8_lossy(error.text).into(),
            }));
    }
}

/// A receiver says under which session it answers (docs/spec/wire.md §2.10).
fn on_response_setup(endpoint: &mut SendEndpoint, setup: &ResponseSetup, desk: &mut Desk<'_>) {
    let (session_id, stream_id) = (setup.session_id.get(), setup.stream_id.get());
    let asked = endpoint
        .addressee(session_id, stream_id, desk)
        .and_then(|(publication, _)| publication.wants_response().then(|| publication.id()));
    if let Some(publication) = asked
        && endpoint.response_setups().try_take(desk.now.nanos)
    {
        // When the queue is full the receiver repeats it.
        let _ = desk.events.offer(ConductorEvent::ResponseSetup {
            publication,
            session_id: setup.response_session_id.get(),
        });
    }
}

/// A receiver measures the round trip: the answer goes the way of the data, to that receiver.
fn on_rttm(endpoint: &mut SendEndpoint, rttm: &Rttm, source: SocketAddr, desk: &mut Desk<'_>) {
    if !rttm.asks_for_reply() {
        return;
    }
    let now = desk.now;
    let (session_id, stream_id) = (rttm.session_id.get(), rttm.stream_id.get());
    let Some((publication, turn)) = endpoint.addressee(session_id, stream_id, desk) else {
        return;
    };
    if !publication.rtt_replies.try_take(now.nanos) {
        return;
    }
    let reply = rttm.reply(rttm.receiver_id.get());
    let frame = reply.as_bytes();
    let Turn {
        wire,
        reporter,
        counters,
        ..
    } = turn;
    let answered = wire.answer(frame, rttm.receiver_id.get(), source, now, reporter);
    counters.short_sends.add(answered.short);
    // The first is taken already.
    let more = (answered.datagrams - 1).max(0);
    publication.rtt_replies.consume(more);
}
