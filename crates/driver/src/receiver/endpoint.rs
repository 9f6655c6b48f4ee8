//! A receive endpoint: one channel's sockets, the subscriptions on it and the images they get.

use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

use taran_net::{ReceiveBatch, Train};
use taran_protocol::frame::{DataFrame, Frame, IntoBytes, Rttm, Setup};

use super::Desk;
use super::connections::Arrival;
use super::dispatcher::{Dispatcher, OnData, OnSetup};
use super::identity::Identity;
use super::image::{Link, ReceiverImage, Turned};
use super::train::{self, Run};
use super::transport::ReceiveTransport;
use crate::boundary::{ConductorEvent, CreateImage, EndpointId, ReceiveEndpointSpec};
use crate::timestamps::ReceiveTimestamps;

/// A receive endpoint: built by the conductor, owned by the receiver.
#[derive(Debug)]
pub struct ReceiveEndpoint {
    pub(super) id: EndpointId,
    pub(super) identity: Identity,
    /// Transports stay in their slot for life.
    pub(super) transports: Vec<Option<ReceiveTransport>>,
    /// Transports come and go (`control-mode=manual`).
    has_destinations: bool,
    timestamps: Option<ReceiveTimestamps>,
    pub(super) dispatcher: Dispatcher,
    /// Images stay in their slot for life.
    pub(super) images: Vec<Option<Box<ReceiverImage>>>,
}

impl ReceiveEndpoint {
    /// An endpoint without subscriptions.
    #[must_use]
    pub fn new(spec: ReceiveEndpointSpec) -> Self {
        let channel = spec.channel;
        let transports = spec.transports.into_iter();
        Self {
            id: spec.id,
            identity: Identity {
                receiver_id: spec.receiver_id,
                group_tag: spec.group_tag,
            },
            transports: transports
                .map(|spec| Some(ReceiveTransport::new(spec, Arc::clone(&channel))))
                .collect(),
            has_destinations: spec.has_destinations,
            timestamps: spec.timestamps,
            dispatcher: Dispatcher::new(spec.stream_session_limit, spec.seed),
            images: Vec::new(),
        }
    }

    /// Identity.
    #[must_use]
    pub fn id(&self) -> EndpointId {
        self.id
    }

    /// The receiver has it now.
    pub(super) fn start(&mut self, desk: &mut Desk<'_>) {
        for index in 0..self.transports.len() {
            self.start_transport(index, desk);
        }
    }

    /// Takes what has arrived. Returns the number of bytes.
    pub(super) fn poll(&mut self, batch: &mut ReceiveBatch, desk: &mut Desk<'_>) -> usize {
        let mut bytes = 0;
        for index in 0..self.transports.len() {
            let Some(transport) = &mut self.transports[index] else {
                continue;
            };
            match transport.transport.receive(batch) {
                Ok(0) => {}
                Ok(_) => {
                    if let Some(timestamps) = &self.timestamps {
                        timestamps.write(batch);
                    }
                    for train in batch.trains() {
                        bytes += train.payload.len();
                        self.on_train(index, &train, desk);
                    }
                }
                Err(error) => desk.faults.report(desk.now, transport.channel(), &error),
            }
        }
        if bytes > 0 {
            desk.counters.bytes_received.add_exclusive(bytes as i64);
        }
        bytes
    }

    /// A turn for each image, and what the endpoint itself does by time. Returns how much was done.
    pub(super) fn turn(&mut self, desk: &mut Desk<'_>) -> usize {
        let mut link = Link {
            now: desk.now,
            identity: &self.identity,
            transports: &mut self.transports,
            among_several: self.has_destinations,
            counters: desk.counters,
            faults: desk.faults,
            losses: desk.losses,
        };
        let mut work = 0;
        for (slot, image) in self.images.iter_mut().enumerate() {
            if let Some(image) = image {
                match image.turn(&mut link) {
                    Turned::Worked(done) => work += done,
                    Turned::TimedOut { cool_down } => {
                        let (session_id, stream_id) = image.key();
                        self.dispatcher
                            .remove_image(session_id, stream_id, slot, cool_down);
                        work += 1;
                    }
                }
            }
        }
        self.dispatcher.expire(desk.now.nanos);
        self.look_after_transports(desk);
        work
    }

    /// Several datagrams of one stream go into its image in one pass where that is possible.
    fn on_train(&mut self, transport: usize, train: &Train<'_>, desk: &mut Desk<'_>) {
        for run in train::runs(train) {
            if run.count() > 1 && self.on_run(transport, &run, train.source, desk) {
                continue;
            }
            for datagram in run.datagrams() {
                self.on_datagram(transport, datagram, train.source, desk);
            }
        }
    }

    fn on_run(&mut self, slot: usize, run: &Run<'_>, source: SocketAddr, desk: &Desk<'_>) -> bool {
        let Ok(Frame::Data(frame)) = Frame::parse(run.bytes) else {
            return false;
        };
        let image = self.dispatcher.image(frame.session_id(), frame.stream_id());
        let Some(image) = image.and_then(|image| self.images[image].as_mut()) else {
            return false;
        };
        let Some(transport) = &mut self.transports[slot] else {
            return false;
        };
        let arrival = transport.arrival(slot, source, desk.now);
        let is_placed = image.on_train(&frame, run.stride, &arrival);
        if is_placed {
            transport.heard_ns = desk.now.nanos;
        }
        is_placed
    }

    fn on_datagram(
        &mut self,
        transport: usize,
        datagram: &[u8],
        source: SocketAddr,
        desk: &mut Desk<'_>,
    ) {
        match Frame::parse(datagram) {
            Ok(Frame::Data(frame)) => self.on_data(transport, &frame, source, desk),
            Ok(Frame::Setup(setup)) => self.on_setup(transport, setup, source, desk),
            Ok(Frame::Rttm(rttm)) => self.on_rttm(transport, rttm, source, desk),
            // These belong to send endpoints or resolvers.
            Ok(
                Frame::Nak(_)
                | Frame::StatusMessage(_)
                | Frame::Error(_)
                | Frame::Resolution(_)
                | Frame::ResponseSetup(_),
            ) => {}
            Err(_) => {
                desk.counters.invalid_packets.increment();
            }
        }
    }

    fn on_data(
        &mut self,
        transport: usize,
        frame: &DataFrame<'_>,
        source: SocketAddr,
        desk: &mut Desk<'_>,
    ) {
        let Some(arrival) = self.heard(transport, source, desk) else {
            return;
        };
        let (session_id, stream_id) = (frame.session_id(), frame.stream_id());
        match self.dispatcher.on_data(
            session_id,
            stream_id,
            frame.is_end_of_stream(),
            desk.now.nanos,
        ) {
            OnData::Image(slot) => {
                if let Some(image) = &mut self.images[slot] {
                    image.on_packet(frame, &arrival, desk.counters);
                }
            }
            OnData::Elicit => self.elicit(transport, session_id, stream_id, source, desk),
            OnData::Drop => {}
        }
    }

    fn on_setup(&mut self, slot: usize, setup: &Setup, source: SocketAddr, desk: &mut Desk<'_>) {
        let terms = setup
            .active_term_id
            .get()
            .wrapping_sub(setup.initial_term_id.get());
        if terms < 0 {
            desk.counters.invalid_packets.increment();
            return;
        }
        let Some(arrival) = self.heard(slot, source, desk) else {
            return;
        };
        let (session_id, stream_id) = (setup.session_id.get(), setup.stream_id.get());
        match self.dispatcher.on_setup(session_id, stream_id) {
            OnSetup::Image(image) => {
                if let Some(image) = &mut self.images[image] {
                    image.on_setup(&arrival);
                }
            }
            OnSetup::Create => {
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
                    control: arrival.control,
                });
                // When the queue is full the next SETUP asks again.
                if desk.events.offer(event) {
                    self.dispatcher.creating(session_id, stream_id);
                }
            }
            OnSetup::LimitReached => {
                let event = ConductorEvent::SessionLimitReached {
                    endpoint: self.id,
                    session_id,
                    stream_id,
                };
                // When the queue is full the next SETUP says so again.
                let _ = desk.events.offer(event);
            }
            OnSetup::Drop => {}
        }
    }

    /// A round-trip measurement: the sender's, to be answered, or the answer to ours (spec/02 §5.1).
    fn on_rttm(&mut self, transport: usize, rttm: &Rttm, source: SocketAddr, desk: &mut Desk<'_>) {
        let receiver_id = rttm.receiver_id.get();
        let slot = self
            .dispatcher
            .image(rttm.session_id.get(), rttm.stream_id.get());
        let Some(image) = slot.and_then(|slot| self.images[slot].as_mut()) else {
            return;
        };
        if receiver_id != 0 && receiver_id != self.identity.receiver_id {
            return;
        }
        if rttm.asks_for_reply() {
            let reply = rttm.reply(self.identity.receiver_id);
            let Some(transport) = &mut self.transports[transport] else {
                return;
            };
            transport.send(
                transport.answers_to(source),
                reply.as_bytes(),
                desk.now,
                desk.counters,
                desk.faults,
            );
        } else {
            let waited_ns = desk.now.nanos.wrapping_sub(rttm.echo_timestamp.get());
            image.on_round_trip(
                waited_ns.wrapping_sub(rttm.reception_delta.get()).max(0),
                desk.now,
            );
        }
    }

    /// Something came in on a transport: what an image is told of it.
    fn heard(&mut self, slot: usize, source: SocketAddr, desk: &Desk<'_>) -> Option<Arrival> {
        let transport = self.transports[slot].as_mut()?;
        transport.heard_ns = desk.now.nanos;
        Some(transport.arrival(slot, source, desk.now))
    }

    pub(super) fn fds(&self) -> impl Iterator<Item = RawFd> {
        self.transports()
            .filter_map(|transport| transport.transport.raw_fd())
    }

    pub(super) fn transports(&self) -> impl Iterator<Item = &ReceiveTransport> {
        self.transports.iter().flatten()
    }
}
