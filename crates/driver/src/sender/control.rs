// SPDX-License-Identifier: Apache-2.0
//! Dispatch of control frames of a send endpoint, by session and stream (docs/spec/wire.md §3.6).

use std::net::SocketAddr;

use taran_protocol::frame::{ErrorFrame, Frame, IntoBytes, Nak, ResponseSetup, Rttm, StatusFrame};

use super::SendContext;
use super::endpoint::SendEndpoint;
use super::flow_control::StatusReport;
use super::publication::PublicationContext;
use crate::boundary::{ConductorEvent, PublicationError};

pub(super) fn on_datagram(
    endpoint: &mut SendEndpoint,
    datagram: &[u8],
    source: SocketAddr,
    context: &mut SendContext<'_>,
) {
    match Frame::parse(datagram) {
        Ok(Frame::StatusMessage(status)) => on_status(endpoint, &status, source, context),
        Ok(Frame::Nak(nak)) => on_nak(endpoint, nak, context),
        Ok(Frame::Error(error)) => on_error(endpoint, &error, source, context),
        Ok(Frame::Rttm(rttm)) => on_rttm(endpoint, rttm, source, context),
        Ok(Frame::ResponseSetup(setup)) => on_response_setup(endpoint, setup, context),
        // These belong to receive endpoints and resolvers.
        Ok(Frame::Data(_) | Frame::Setup(_) | Frame::Resolution(_)) => {}
        Err(_) => {
            context.counters.invalid_packets.increment();
            let (now, channel) = (context.now, endpoint.transport().channel());
            context
                .reporter
                .report_if_secured(now, channel, source, datagram);
        }
    }
}

fn on_status(
    endpoint: &mut SendEndpoint,
    status: &StatusFrame<'_>,
    source: SocketAddr,
    context: &mut SendContext<'_>,
) {
    let (counters, now_ns) = (context.counters, context.now.nanos);
    let message = status.message;
    let slot = endpoint.slot_of(message.session_id.get(), message.stream_id.get());
    let target = slot.and_then(|slot| endpoint.at_slot(slot, context));
    let term_length = target
        .as_ref()
        .map(|(publication, _)| publication.term_length());
    if message.check(term_length).is_err() {
        counters.invalid_packets.increment();
        return;
    }
    counters.status_messages_received.increment();
    let has_target = target.is_some();
    let mut has_changed = false;
    if let Some((publication, mut publication_context)) = target {
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
            publication.on_status(&report, &mut publication_context);
            has_changed = publication.limit != limit;
        }
        // A status message that only repeats the last one does not schedule the publication.
        has_changed |= publication.needs_setup || publication.is_flow_control_due(now_ns);
    }
    if let Some(slot) = slot.filter(|_| has_changed) {
        endpoint.schedule_once(slot);
    }
    // Any status message adds its source to dynamic destinations, whatever stream it is for.
    endpoint.on_status(message.receiver_id.get(), source, has_target, context);
}

fn on_nak(endpoint: &mut SendEndpoint, nak: &Nak, context: &mut SendContext<'_>) {
    context.counters.naks_received.increment();
    let target = endpoint.route(nak.session_id.get(), nak.stream_id.get(), context);
    if let Some((publication, publication_context)) = target {
        publication.count_nak();
        if nak.check(publication.term_length()).is_err() {
            publication_context.counters.invalid_packets.increment();
            return;
        }
        publication.on_nak(
            nak.term_id.get(),
            nak.term_offset.get(),
            nak.length.get(),
            &publication_context,
        );
    }
}

/// Reports an error of a receiver to the conductor once: a repeated frame finds the receiver removed (docs/spec/wire.md
/// §3.7).
fn on_error(
    endpoint: &mut SendEndpoint,
    error: &ErrorFrame<'_>,
    source: SocketAddr,
    context: &mut SendContext<'_>,
) {
    let now = context.now;
    context.counters.error_frames_received.increment();
    let (header, group_tag) = (error.header, error.group_tag());
    let (session_id, stream_id) = (header.session_id.get(), header.stream_id.get());
    let receiver_id = header.receiver_id.get();
    let destination_id = endpoint.transport().destination_id(receiver_id, source);
    let may_report = endpoint.error_frames().available(now.nanos) > 0;
    let Some((publication, _)) = endpoint.route(session_id, stream_id, context) else {
        return;
    };
    if !may_report && publication.has_receiver(receiver_id) {
        // The receiver is kept, and will repeat the error.
        return;
    }
    let id = publication.id();
    if publication.on_error(receiver_id, group_tag, now) {
        endpoint.error_frames().consume(1);
        // Lost when the queue is full, so that a forger of frames cannot fill memory.
        let _ = context
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

/// Forwards the response session of a receiver to the conductor (docs/spec/wire.md §2.10).
fn on_response_setup(
    endpoint: &mut SendEndpoint,
    setup: &ResponseSetup,
    context: &mut SendContext<'_>,
) {
    let (session_id, stream_id) = (setup.session_id.get(), setup.stream_id.get());
    let asked = endpoint
        .route(session_id, stream_id, context)
        .and_then(|(publication, _)| publication.wants_response().then(|| publication.id()));
    if let Some(publication) = asked
        && endpoint.response_setups().try_take(context.now.nanos)
    {
        // When the queue is full the receiver repeats it.
        let _ = context.events.offer(ConductorEvent::ResponseSetup {
            publication,
            session_id: setup.response_session_id.get(),
        });
    }
}

/// Answers an RTT measurement of a receiver. The reply is sent to that receiver, as data is.
fn on_rttm(
    endpoint: &mut SendEndpoint,
    rttm: &Rttm,
    source: SocketAddr,
    context: &mut SendContext<'_>,
) {
    if !rttm.asks_for_reply() {
        return;
    }
    let now = context.now;
    let (session_id, stream_id) = (rttm.session_id.get(), rttm.stream_id.get());
    let Some((publication, publication_context)) = endpoint.route(session_id, stream_id, context)
    else {
        return;
    };
    if !publication.rtt_replies.try_take(now.nanos) {
        return;
    }
    let reply = rttm.reply(rttm.receiver_id.get());
    let frame = reply.as_bytes();
    let PublicationContext {
        transport,
        reporter,
        counters,
        ..
    } = publication_context;
    let counts = transport.reply_to(frame, rttm.receiver_id.get(), source, now, reporter);
    counters.short_sends.add(counts.short);
    // `try_take` consumed the first.
    let more = (counts.datagrams - 1).max(0);
    publication.rtt_replies.consume(more);
}
