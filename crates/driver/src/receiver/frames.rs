// SPDX-License-Identifier: Apache-2.0
//! Frame handlers of an endpoint: data goes to its image, SETUPs lead to new images.

use std::net::SocketAddr;

use taran_net::DatagramRun;
use taran_protocol::frame::{DataFrame, Frame, IntoBytes, Rttm, Setup};

use super::ReceiveContext;
use super::direct_receive::is_long;
use super::dispatcher::{DataAction, SetupAction};
use super::endpoint::ReceiveEndpoint;
use super::image_connections::FrameOrigin;
use super::segment_run::{self, SegmentRun};
use crate::boundary::{ConductorEvent, CreateImage};
use crate::poll_schedule::Slot;

/// Maximum plausible round-trip time; an image has timed out by then.
const ROUND_TRIP_MAX_NS: i64 = 10_000_000_000;

impl ReceiveEndpoint {
    /// Handles a GRO batch. Several datagrams of one stream are inserted in one pass where possible.
    pub(super) fn on_gro_batch(
        &mut self,
        transport: usize,
        gro_batch: &DatagramRun<'_>,
        context: &mut ReceiveContext<'_>,
    ) {
        let (mut sole_target, mut is_mixed) = (None, false);
        for run in segment_run::runs(gro_batch) {
            let use_fast_path = run.count() > 1 || is_long(gro_batch);
            let inserted = use_fast_path
                .then(|| self.insert_run(transport, &run, gro_batch.source, context))
                .flatten();
            if inserted.is_none() {
                for datagram in run.datagrams() {
                    self.on_datagram(transport, datagram, gro_batch.source, context);
                }
            }
            is_mixed = run.bytes.len() < gro_batch.payload.len();
            sole_target = inserted.filter(|_| !is_mixed);
        }
        if let Some(transport) = &mut self.transports[transport] {
            transport
                .predictor
                .record(sole_target, is_long(gro_batch) && !is_mixed);
        }
    }

    /// Inserts a segment run in one pass. Returns the slot of its image, or `None` if that is not possible.
    fn insert_run(
        &mut self,
        slot: usize,
        run: &SegmentRun<'_>,
        source: SocketAddr,
        context: &ReceiveContext<'_>,
    ) -> Option<Slot> {
        let Ok(Frame::Data(frame)) = Frame::parse(run.bytes) else {
            return None;
        };
        let image_slot = Slot(
            self.dispatcher
                .image(frame.session_id(), frame.stream_id())?,
        );
        let image = self.images.mark_active(image_slot, context.now.nanos)?;
        let transport = self.transports[slot].as_mut()?;
        let origin = transport.frame_origin(slot, source, context.now);
        let is_inserted = image.on_segment_run(&frame, run.stride, &origin);
        is_inserted.then(|| {
            transport.last_received_ns = context.now.nanos;
            image_slot
        })
    }

    fn on_datagram(
        &mut self,
        transport: usize,
        datagram: &[u8],
        source: SocketAddr,
        context: &mut ReceiveContext<'_>,
    ) {
        match Frame::parse(datagram) {
            Ok(Frame::Data(frame)) => self.on_data(transport, &frame, source, context),
            Ok(Frame::Setup(setup)) => self.on_setup(transport, setup, source, context),
            Ok(Frame::Rttm(rttm)) => self.on_rttm(transport, rttm, source, context),
            // These frames are for send endpoints or name resolvers.
            Ok(
                Frame::Nak(_)
                | Frame::StatusMessage(_)
                | Frame::Error(_)
                | Frame::Resolution(_)
                | Frame::ResponseSetup(_),
            ) => {}
            Err(_) => {
                context.counters.invalid_packets.increment();
                if let Some(transport) = &self.transports[transport] {
                    let (now, channel) = (context.now, transport.channel());
                    context
                        .reporter
                        .report_if_secured(now, channel, source, datagram);
                }
            }
        }
    }

    fn on_data(
        &mut self,
        transport: usize,
        frame: &DataFrame<'_>,
        source: SocketAddr,
        context: &mut ReceiveContext<'_>,
    ) {
        let Some(origin) = self.on_received(transport, source, context) else {
            return;
        };
        let (session_id, stream_id) = (frame.session_id(), frame.stream_id());
        match self.dispatcher.on_data(
            session_id,
            stream_id,
            frame.is_end_of_stream(),
            context.now.nanos,
        ) {
            DataAction::Image(slot) => {
                let image_slot = Slot(slot);
                // A heartbeat without new information does not make an image active.
                let image = if frame.is_heartbeat() {
                    self.images.get_mut(image_slot)
                } else {
                    self.images.mark_active(image_slot, context.now.nanos)
                };
                if let Some(image) = image {
                    image.on_packet(frame, &origin, context.counters);
                    if image.needs_poll() {
                        self.images.schedule_once(image_slot);
                    }
                }
            }
            DataAction::ElicitSetup => {
                self.elicit_setup(transport, session_id, stream_id, source, context);
            }
            DataAction::Drop => {}
        }
    }

    fn on_setup(
        &mut self,
        slot: usize,
        setup: &Setup,
        source: SocketAddr,
        context: &mut ReceiveContext<'_>,
    ) {
        let term_count = setup
            .active_term_id
            .get()
            .wrapping_sub(setup.initial_term_id.get());
        if term_count < 0 {
            context.counters.invalid_packets.increment();
            return;
        }
        let Some(origin) = self.on_received(slot, source, context) else {
            return;
        };
        let (session_id, stream_id) = (setup.session_id.get(), setup.stream_id.get());
        match self.dispatcher.on_setup(session_id, stream_id) {
            SetupAction::Image(image) => {
                if let Some(image) = self.images.get_mut(Slot(image)) {
                    image.on_setup(&origin);
                }
            }
            SetupAction::CreateImage => {
                let Some(transport) = &self.transports[slot] else {
                    return;
                };
                let flags = setup.header.flags;
                let event = ConductorEvent::CreateImage(CreateImage {
                    endpoint: self.id,
                    transport: transport.id,
                    session_id,
                    stream_id,
                    initial_term_id: setup.initial_term_id.get(),
                    active_term_id: setup.active_term_id.get(),
                    term_offset: setup.term_offset.get(),
                    term_length: setup.term_length.get(),
                    mtu: setup.mtu.get(),
                    ttl: setup.ttl.get(),
                    own_ttl: transport.transport.multicast_ttl(),
                    is_group: flags & Setup::GROUP != 0,
                    wants_response: flags & Setup::SEND_RESPONSE_SETUP != 0,
                    source,
                    control: origin.control,
                });
                // If the queue is full, the next SETUP retries.
                if context.events.offer(event) {
                    self.dispatcher.on_image_requested(session_id, stream_id);
                }
            }
            SetupAction::LimitReached => {
                let event = ConductorEvent::SessionLimitReached {
                    endpoint: self.id,
                    session_id,
                    stream_id,
                };
                // If the queue is full, the next SETUP reports it.
                let _ = context.events.offer(event);
            }
            SetupAction::Drop => {}
        }
    }

    /// Handles an RTT measurement: replies to a request of the sender, or takes the reply to a request of this receiver
    /// (docs/spec/wire.md §5.1).
    fn on_rttm(
        &mut self,
        transport: usize,
        rttm: &Rttm,
        source: SocketAddr,
        context: &mut ReceiveContext<'_>,
    ) {
        let receiver_id = rttm.receiver_id.get();
        let slot = self
            .dispatcher
            .image(rttm.session_id.get(), rttm.stream_id.get());
        let Some(image) = slot.and_then(|slot| self.images.schedule_once(Slot(slot))) else {
            return;
        };
        if receiver_id != 0 && receiver_id != self.identity.receiver_id {
            return;
        }
        if rttm.asks_for_reply() {
            if !image.round_trip_answers.try_take(context.now.nanos) {
                return;
            }
            let reply = rttm.reply(self.identity.receiver_id);
            let Some(transport) = &mut self.transports[transport] else {
                return;
            };
            transport.send(
                transport.reply_address(source),
                reply.as_bytes(),
                context.now,
                context.counters,
                context.reporter,
            );
        } else {
            let reply = (rttm.echo_timestamp.get(), rttm.reception_delta.get());
            if let Some(round_trip_ns) = round_trip_ns(reply, context.now.nanos) {
                image.on_rtt_measurement(round_trip_ns, context.now);
            }
        }
    }

    /// Records activity on a transport. Returns the origin for images.
    fn on_received(
        &mut self,
        slot: usize,
        source: SocketAddr,
        context: &ReceiveContext<'_>,
    ) -> Option<FrameOrigin> {
        let transport = self.transports[slot].as_mut()?;
        transport.last_received_ns = context.now.nanos;
        Some(transport.frame_origin(slot, source, context.now))
    }
}

/// Returns the round-trip time from a reply's (request time, time held by the peer), or `None` if no request can have
/// had these values: an implausible round-trip time would disable further measurements.
fn round_trip_ns((requested_ns, held_ns): (i64, i64), now_ns: i64) -> Option<i64> {
    let elapsed_ns = now_ns.checked_sub(requested_ns)?;
    ((0..=ROUND_TRIP_MAX_NS).contains(&elapsed_ns) && (0..=elapsed_ns).contains(&held_ns))
        .then(|| elapsed_ns - held_ns)
}
