//! What comes in on an endpoint, frame by frame: to its image, or to where images come from.

use std::net::SocketAddr;

use taran_net::Train;
use taran_protocol::frame::{DataFrame, Frame, IntoBytes, Rttm, Setup};

use super::ReceiveContext;
use super::direct_receive::is_long;
use super::dispatcher::{DataAction, SetupAction};
use super::endpoint::ReceiveEndpoint;
use super::image_connections::FrameOrigin;
use super::segment_run::{self, SegmentRun};
use crate::boundary::{ConductorEvent, CreateImage};
use crate::rounds::Seat;

/// Nothing is as far away as that: an image is gone by then.
const ROUND_TRIP_MAX_NS: i64 = 10_000_000_000;

impl ReceiveEndpoint {
    /// Several datagrams of one stream go into its image in one pass where that is possible.
    pub(super) fn on_train(
        &mut self,
        transport: usize,
        train: &Train<'_>,
        context: &mut ReceiveContext<'_>,
    ) {
        let (mut whole, mut is_mixed) = (None, false);
        for run in segment_run::runs(train) {
            let is_fast = run.count() > 1 || is_long(train);
            let placed = is_fast
                .then(|| self.on_run(transport, &run, train.source, context))
                .flatten();
            if placed.is_none() {
                for datagram in run.datagrams() {
                    self.on_datagram(transport, datagram, train.source, context);
                }
            }
            is_mixed = run.bytes.len() < train.payload.len();
            whole = placed.filter(|_| !is_mixed);
        }
        if let Some(transport) = &mut self.transports[transport] {
            transport
                .predictor
                .record(whole, is_long(train) && !is_mixed);
        }
    }

    /// Into the log in one piece, and of which image.
    fn on_run(
        &mut self,
        slot: usize,
        run: &SegmentRun<'_>,
        source: SocketAddr,
        context: &ReceiveContext<'_>,
    ) -> Option<Seat> {
        let Ok(Frame::Data(frame)) = Frame::parse(run.bytes) else {
            return None;
        };
        let seat = Seat(
            self.dispatcher
                .image(frame.session_id(), frame.stream_id())?,
        );
        let image = self.images.wake(seat, context.now.nanos)?;
        let transport = self.transports[slot].as_mut()?;
        let origin = transport.frame_origin(slot, source, context.now);
        let is_placed = image.on_segment_run(&frame, run.stride, &origin);
        is_placed.then(|| {
            transport.last_received_ns = context.now.nanos;
            seat
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
            // These belong to send endpoints or resolvers.
            Ok(
                Frame::Nak(_)
                | Frame::StatusMessage(_)
                | Frame::Error(_)
                | Frame::Resolution(_)
                | Frame::ResponseSetup(_),
            ) => {}
            Err(_) => {
                context.counters.invalid_packets.increment();
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
                let seat = Seat(slot);
                // A heartbeat that brings no news makes nobody busy.
                let image = if frame.is_heartbeat() {
                    self.images.get_mut(seat)
                } else {
                    self.images.wake(seat, context.now.nanos)
                };
                if let Some(image) = image {
                    image.on_packet(frame, &origin, context.counters);
                    if image.needs_poll() {
                        self.images.rouse(seat);
                    }
                }
            }
            DataAction::ElicitSetup => {
                self.elicit_setup(transport, session_id, stream_id, source, context)
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
        let terms = setup
            .active_term_id
            .get()
            .wrapping_sub(setup.initial_term_id.get());
        if terms < 0 {
            context.counters.invalid_packets.increment();
            return;
        }
        let Some(origin) = self.on_received(slot, source, context) else {
            return;
        };
        let (session_id, stream_id) = (setup.session_id.get(), setup.stream_id.get());
        match self.dispatcher.on_setup(session_id, stream_id) {
            SetupAction::Image(image) => {
                if let Some(image) = self.images.get_mut(Seat(image)) {
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
                // When the queue is full the next SETUP asks again.
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
                // When the queue is full the next SETUP says so again.
                let _ = context.events.offer(event);
            }
            SetupAction::Drop => {}
        }
    }

    /// A round-trip measurement: the sender's, to be answered, or the answer to ours (docs/spec/wire.md §5.1).
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
        let Some(image) = slot.and_then(|slot| self.images.rouse(Seat(slot))) else {
            return;
        };
        if receiver_id != 0 && receiver_id != self.identity.receiver_id {
            return;
        }
        if rttm.asks_for_reply() {
            if !image.round_trip_answers.take(context.now.nanos) {
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
                context.faults,
            );
        } else {
            let answer = (rttm.echo_timestamp.get(), rttm.reception_delta.get());
            if let Some(round_trip_ns) = round_trip_ns(answer, context.now.nanos) {
                image.on_round_trip(round_trip_ns, context.now);
            }
        }
    }

    /// Something came in on a transport: what an image is told of it.
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

/// What an answer of (time asked, time held) says, unless nobody can have asked for it: it would end all measuring.
fn round_trip_ns((asked_ns, held_ns): (i64, i64), now_ns: i64) -> Option<i64> {
    let waited_ns = now_ns.checked_sub(asked_ns)?;
    ((0..=ROUND_TRIP_MAX_NS).contains(&waited_ns) && (0..=waited_ns).contains(&held_ns))
        .then(|| waited_ns - held_ns)
}
