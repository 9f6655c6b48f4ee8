// SPDX-License-Identifier: Apache-2.0
//! A send endpoint: one channel's socket and the publications that use it.

use std::net::SocketAddr;

use taran_core::clock::Now;
use taran_net::{PollSource, ReceiveBatch, Transport};

use super::coalescer::SendOutcome;
use super::control;
use super::publication::{CoalesceContext, PublicationContext, SenderPublication};
use super::send_transport::SendTransport;
use super::setup_heartbeat::send_control_batch;
use super::{CONTROL_BATCH, CONTROL_BATCHES, SendContext};
use crate::boundary::{ConductorEvent, EndpointId, PublicationId, SendEndpointSpec};
use crate::control_batch::ControlFrameBatch;
use crate::ids::{IdHash, IdMap};
use crate::poll_schedule::{Activity, AgentLoad, PollSchedule, Slot};
use crate::token_bucket::{TokenBucket, error_frames, response_setups};

/// A send endpoint: built by the conductor, owned by the sender.
#[derive(Debug)]
#[doc(alias = "SendChannelEndpoint")]
pub(crate) struct SendEndpoint {
    id: EndpointId,
    transport: SendTransport,
    pub(super) control_batch: ControlFrameBatch,
    control: Option<Box<dyn Transport>>,
    publications: PollSchedule<SenderPublication>,
    /// False if a layer of the socket may use one key for a whole transmit, or if the backend joins sends itself.
    may_coalesce: bool,
    /// Publications with a single datagram in the last duty cycle.
    singles: usize,
    slots: IdMap<PublicationId, Slot>,
    /// Publication that gets the control frames of a session and stream: the oldest of those that have both.
    routes: IdMap<(i32, i32), PublicationId>,
    last_status_ns: i64,
    re_resolution_timeout_ns: Option<i64>,
    error_frames: TokenBucket,
    response_setups: TokenBucket,
}

impl SendEndpoint {
    /// Returns an endpoint without publications.
    #[must_use]
    pub(crate) fn new(spec: SendEndpointSpec) -> Self {
        let capabilities = spec.data.capabilities();
        Self {
            id: spec.id,
            may_coalesce: !capabilities.transforms && !capabilities.queues_sends,
            transport: SendTransport::new(spec.data, spec.destination, spec.channel),
            control_batch: ControlFrameBatch::new(),
            control: spec.control,
            publications: PollSchedule::default(),
            singles: 0,
            slots: IdMap::with_hasher(IdHash::new(spec.seed)),
            routes: IdMap::with_hasher(IdHash::new(spec.seed)),
            last_status_ns: 0,
            re_resolution_timeout_ns: spec.re_resolution_timeout_ns,
            error_frames: error_frames(),
            response_setups: response_setups(),
        }
    }

    /// Returns the id.
    #[must_use]
    pub(crate) fn id(&self) -> EndpointId {
        self.id
    }

    /// Called when the sender takes the endpoint over.
    pub(super) fn start(&mut self, now: Now) {
        self.last_status_ns = now.nanos;
    }

    /// Polls the publications that are due. Returns the bytes of data sent.
    pub(super) fn send(&mut self, load: AgentLoad, context: &mut SendContext<'_>) -> usize {
        let streams = self.publications.len();
        self.control_batch
            .set_stream_count(if self.transport.has_shared_destinations() {
                streams
            } else {
                0
            });
        let may_coalesce = self.may_coalesce && self.transport.has_single_destination();
        let coalesce = (streams > 1 && may_coalesce).then_some(CoalesceContext {
            coalescer: context.coalescer,
            singles: 0,
            singles_before: self.singles,
            slot: Slot(0),
        });
        let mut publication_context = PublicationContext {
            now: context.now,
            transport: &mut self.transport,
            counters: context.counters,
            reporter: context.reporter,
            control_batch: &mut self.control_batch,
            extra_batches: &mut context.extra_batches,
            coalesce,
        };
        let (mut sent, mut sending, mut is_flow_controlled) = (0, 0, false);
        let news = &mut context.news;
        self.publications
            .poll(context.now.nanos, load, |slot, publication, side| {
                if side == Activity::Idle {
                    publication_context.flush_coalescer();
                }
                if let Some(coalesce) = &mut publication_context.coalesce {
                    coalesce.slot = slot;
                }
                let before = publication.position;
                let bytes = publication.poll(&mut publication_context);
                sent += bytes;
                sending += usize::from(bytes > 0);
                *news += usize::from(publication.take_news());
                is_flow_controlled |= publication.is_flow_controlled;
                bytes > 0 || publication.position != before || publication.is_pending()
            });
        publication_context.flush_coalescer();
        if let Some(coalesce) = publication_context.coalesce.take() {
            self.singles = coalesce.singles;
            coalesce.coalescer.drain_results(|datagram| {
                if datagram.outcome != SendOutcome::Sent {
                    sent -= datagram.length;
                }
                if let Some(publication) = self.publications.get_mut(datagram.slot) {
                    publication.on_coalesced_result(datagram, &mut publication_context);
                }
            });
        }
        if publication_context
            .control_batch
            .is_due(load == AgentLoad::Idle, publication_context.now)
        {
            send_control_batch(&mut publication_context);
        }
        context.sending += sending;
        context.is_flow_controlled |= is_flow_controlled;
        sent
    }

    /// Returns the next time at which [`send`](Self::send) has an effect, if nothing comes from outside before. `None` if it
    /// is not known.
    pub(super) fn next_deadline_ns(&self) -> Option<i64> {
        if self.control_batch.has_frames() {
            return Some(i64::MIN);
        }
        self.publications.next_deadline_ns()
    }

    /// Receives control frames. Returns the number of datagrams.
    pub(super) fn poll_control(
        &mut self,
        batch: &mut ReceiveBatch,
        context: &mut SendContext<'_>,
    ) -> usize {
        let mut received = 0;
        let status_messages = &context.counters.status_messages_received;
        for _ in 0..CONTROL_BATCHES {
            let before = status_messages.get();
            let transport = self.control.as_mut().unwrap_or(&mut self.transport.socket);
            match transport.receive(batch) {
                Ok(0) => break,
                Ok(count) => {
                    for datagram in batch.datagrams() {
                        control::on_datagram(self, datagram.payload, datagram.source, context);
                    }
                    received += count;
                    // Only status messages are received in several batches: frames that ask for a reply, and invalid
                    // ones, wait for the next poll, so that a flood of them gets no larger share.
                    if count < CONTROL_BATCH || status_messages.get() - before < count as i64 {
                        break;
                    }
                }
                Err(error) => {
                    context
                        .reporter
                        .report(context.now, self.transport.channel(), &error);
                    break;
                }
            }
        }
        received
    }

    /// Asks the conductor to resolve the names of silent peers again: they may have moved (docs/spec/wire.md §2.14).
    pub(super) fn check_re_resolution(&mut self, context: &mut SendContext<'_>) {
        let (id, events) = (self.id, &mut *context.events);
        self.transport
            .silent_destinations(context.now, |destination| {
                // Lost when the queue is full: the next timeout asks again.
                let _ = events.offer(ConductorEvent::ReResolveDestination {
                    endpoint: id,
                    destination,
                });
            });
        if let Some(timeout_ns) = self.re_resolution_timeout_ns
            && context.now.nanos - self.last_status_ns > timeout_ns
        {
            self.last_status_ns = context.now.nanos;
            // Lost when the queue is full: the next timeout asks again.
            let _ = context
                .events
                .offer(ConductorEvent::ReResolveEndpoint(self.id));
        }
    }

    /// Returns the publication that a control frame is for, with its context, and schedules it.
    pub(super) fn route<'a>(
        &'a mut self,
        session_id: i32,
        stream_id: i32,
        context: &'a mut SendContext<'_>,
    ) -> Option<(&'a mut SenderPublication, PublicationContext<'a>)> {
        let slot = self.slot_of(session_id, stream_id)?;
        self.schedule_once(slot);
        self.at_slot(slot, context)
    }

    /// Returns the slot of the publication that a control frame is for.
    pub(super) fn slot_of(&self, session_id: i32, stream_id: i32) -> Option<Slot> {
        let id = self.routes.get(&(session_id, stream_id))?;
        self.slots.get(id).copied()
    }

    /// Schedules the publication in a slot for the next cycle.
    pub(super) fn schedule_once(&mut self, slot: Slot) {
        self.publications.schedule_once(slot);
    }

    /// Returns the publication in a slot, with its context.
    pub(super) fn at_slot<'a>(
        &'a mut self,
        slot: Slot,
        context: &'a mut SendContext<'_>,
    ) -> Option<(&'a mut SenderPublication, PublicationContext<'a>)> {
        let publication = self.publications.get_mut(slot)?;
        let publication_context = PublicationContext {
            now: context.now,
            transport: &mut self.transport,
            counters: context.counters,
            reporter: context.reporter,
            control_batch: &mut self.control_batch,
            extra_batches: &mut context.extra_batches,
            coalesce: None,
        };
        Some((publication, publication_context))
    }

    /// Returns the limit of error frames that are reported to the conductor.
    pub(super) fn error_frames(&mut self) -> &mut TokenBucket {
        &mut self.error_frames
    }

    /// Sends what a layer of the sockets has left to send, before they are closed.
    pub(crate) fn send_last(&mut self) {
        let control = self.control.as_mut();
        // Nothing of it is repeated: a peer that misses it notices the silence.
        let _ = control.unwrap_or(&mut self.transport.socket).send(&[]);
    }

    /// Returns the limit of response setups that are forwarded to the conductor.
    pub(super) fn response_setups(&mut self) -> &mut TokenBucket {
        &mut self.response_setups
    }

    pub(super) fn transport(&mut self) -> &mut SendTransport {
        &mut self.transport
    }

    /// Handles an accepted status message. Only one for a publication of this endpoint shows that its peer is still
    /// there.
    pub(super) fn on_status(
        &mut self,
        receiver_id: i64,
        source: SocketAddr,
        has_target: bool,
        context: &mut SendContext<'_>,
    ) {
        if has_target {
            self.last_status_ns = context.now.nanos;
        }
        self.transport
            .on_status(receiver_id, source, context.now, context.reporter);
    }

    pub(super) fn add(&mut self, mut publication: Box<SenderPublication>, now: Now) {
        publication.start(now);
        let (id, key) = (publication.id(), publication.key());
        self.routes.entry(key).or_insert(id);
        self.slots.insert(id, self.publications.insert(publication));
    }

    pub(super) fn remove(&mut self, id: PublicationId) -> Option<Box<SenderPublication>> {
        let removed = self.publications.remove(self.slots.remove(&id)?)?;
        self.reassign_route(id, removed.key());
        Some(removed)
    }

    /// Removes an arbitrary publication; called repeatedly when the endpoint is removed.
    pub(super) fn remove_any(&mut self) -> Option<Box<SenderPublication>> {
        let id = self.publications.any()?.id();
        self.remove(id)
    }

    /// Routes the control frames of a removed publication to the oldest remaining one with the same key.
    fn reassign_route(&mut self, id: PublicationId, key: (i32, i32)) {
        if self.routes.get(&key) != Some(&id) {
            return;
        }
        self.routes.remove(&key);
        // If there are as many routes as publications, no two of these share a key.
        if self.routes.len() < self.publications.len() {
            let candidates = self
                .publications
                .iter()
                .filter(|candidate| candidate.key() == key);
            if let Some(candidate) = candidates.map(SenderPublication::id).min() {
                self.routes.insert(key, candidate);
            }
        }
    }

    /// Returns a publication that is about to be changed, and schedules it.
    pub(super) fn publication(&mut self, id: PublicationId) -> Option<&mut SenderPublication> {
        self.publications.schedule_once(*self.slots.get(&id)?)
    }

    /// Returns the socket on which control frames arrive, for the poller.
    pub(super) fn control_source(&self) -> PollSource {
        self.control
            .as_ref()
            .unwrap_or(&self.transport.socket)
            .poll_source()
    }
}
