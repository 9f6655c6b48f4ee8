// SPDX-License-Identifier: Apache-2.0
//! Receive endpoint: the sockets of one channel, its subscriptions and their images.

use std::sync::Arc;

use taran_net::ReceiveBatch;

use super::BATCH;
use super::ReceiveContext;
use super::direct_receive::DirectReceive;
use super::dispatcher::Dispatcher;
use super::identity::Identity;
use super::image::{ImageContext, PollOutcome, ReceiverImage};
use super::image_index::ImageIndex;
use super::transport::ReceiveTransport;
use super::window_throttle::WindowThrottle;
use crate::boundary::{EndpointId, ReceiveEndpointSpec};
use crate::poll_schedule::{AgentLoad, PollSchedule};
use crate::timestamps::ReceiveTimestamps;

/// Maximum batches received per poll of a socket, as long as they are full; for direct receive [`BATCH`] applies.
const MAX_BATCHES_PER_POLL: usize = 4;
/// Soft limit of bytes received per poll of a socket. Many small datagrams do not delay a stream behind them by more
/// than this, and a fast stream is delivered to subscribers while it is in the cache. The remainder waits in the socket
/// buffer, where it costs no additional cache misses.
const MAX_BYTES_PER_POLL: usize = 128 * 1024;

/// Receive endpoint. Built by the conductor, owned by the receiver.
#[doc(alias = "ReceiveChannelEndpoint")]
#[doc(alias = "MultiRcvDestination")]
#[derive(Debug)]
pub(crate) struct ReceiveEndpoint {
    pub(super) id: EndpointId,
    pub(super) identity: Identity,
    /// A transport keeps its slot for its lifetime.
    pub(super) transports: Vec<Option<ReceiveTransport>>,
    /// Transports are added and removed (`control-mode=manual`).
    has_destinations: bool,
    pub(super) timestamps: Option<ReceiveTimestamps>,
    pub(super) dispatcher: Dispatcher,
    /// The slot of an image is the one of this schedule.
    pub(super) images: PollSchedule<ReceiverImage>,
    pub(super) image_index: ImageIndex,
    /// Sum of the windows of all images: the maximum number of bytes in flight.
    pub(super) total_window: usize,
    window_throttle: WindowThrottle,
}

/// Result of one receive call.
struct ReceiveResult {
    bytes: usize,
    may_be_more: bool,
    is_direct: bool,
}

impl ReceiveEndpoint {
    /// Sends what the layers of the sockets have left to send, before they are closed.
    pub(crate) fn send_last(&mut self) {
        for transport in self.transports.iter_mut().flatten() {
            transport.send_last();
        }
    }

    /// Creates an endpoint without subscriptions.
    #[must_use]
    pub(crate) fn new(spec: ReceiveEndpointSpec) -> Self {
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
            images: PollSchedule::default(),
            image_index: ImageIndex::default(),
            total_window: 0,
            window_throttle: WindowThrottle::default(),
        }
    }

    /// Returns the id.
    #[must_use]
    pub(crate) fn id(&self) -> EndpointId {
        self.id
    }

    /// Called once when the receiver takes ownership.
    pub(super) fn start(&mut self, context: &mut ReceiveContext<'_>) {
        for index in 0..self.transports.len() {
            self.start_transport(index, context);
        }
    }

    /// Receives what has arrived on one socket. Returns the number of bytes.
    pub(super) fn poll(
        &mut self,
        index: usize,
        batch: &mut ReceiveBatch,
        context: &mut ReceiveContext<'_>,
    ) -> usize {
        let bytes = self.poll_transport(index, batch, context);
        if bytes > 0 {
            context.counters.bytes_received.add_exclusive(bytes as i64);
            if self.window_throttle.is_check_due(context.now.nanos) {
                self.check_drops(context.now.nanos);
            }
        }
        bytes
    }

    /// Reduces windows while a socket drops datagrams.
    fn check_drops(&mut self, now_ns: i64) {
        let streams = self.images.active_len().max(1);
        let (mut has_drops, mut capacity) = (false, usize::MAX);
        for transport in self.transports.iter_mut().flatten() {
            has_drops |= transport.has_new_drops();
            capacity = capacity.min(transport.window_capacity());
        }
        self.window_throttle
            .update(has_drops, capacity / streams, now_ns);
    }

    /// Polls one socket. Returns the number of bytes.
    fn poll_transport(
        &mut self,
        index: usize,
        batch: &mut ReceiveBatch,
        context: &mut ReceiveContext<'_>,
    ) -> usize {
        let (mut bytes, mut batches, mut runs) = (0, 0, 0);
        loop {
            let received = self.receive_once(index, batch, context);
            bytes += received.bytes;
            if received.is_direct {
                runs += 1;
            } else {
                batches += 1;
            }
            let is_enough = bytes + received.bytes > MAX_BYTES_PER_POLL;
            if !received.may_be_more
                || is_enough
                || batches == MAX_BATCHES_PER_POLL
                || runs == BATCH
            {
                break;
            }
        }
        if let Some(transport) = &mut self.transports[index] {
            transport.predictor.on_poll_end(runs);
        }
        bytes
    }

    /// Receives one batch, or one segment run directly into the log of the image for which it is predicted.
    fn receive_once(
        &mut self,
        index: usize,
        batch: &mut ReceiveBatch,
        context: &mut ReceiveContext<'_>,
    ) -> ReceiveResult {
        batch.clear_to(1);
        match self.receive_direct(index, batch, context) {
            DirectReceive::Received { bytes, may_be_more } => {
                return ReceiveResult {
                    bytes,
                    may_be_more,
                    is_direct: true,
                };
            }
            DirectReceive::Empty | DirectReceive::Mispredicted => {}
            DirectReceive::NotPredicted => self.receive(index, batch, context),
        }
        let mut received = ReceiveResult {
            bytes: 0,
            may_be_more: batch.is_full(),
            is_direct: false,
        };
        for gro_batch in batch.datagram_runs() {
            received.bytes += gro_batch.payload.len();
            self.on_gro_batch(index, &gro_batch, context);
        }
        received
    }

    fn receive(
        &mut self,
        index: usize,
        batch: &mut ReceiveBatch,
        context: &mut ReceiveContext<'_>,
    ) {
        let Some(transport) = &mut self.transports[index] else {
            return;
        };
        batch.clear_to(transport.batch_slots);
        match transport.transport.receive(batch) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                context
                    .reporter
                    .report(context.now, transport.channel(), &error);
                return;
            }
        }
        // The next GRO batches are likely to be as long. The slot count adapts in steps: 16 full GRO batches would be
        // too much.
        let most = BATCH.min(2 * transport.batch_slots);
        let fitting = MAX_BYTES_PER_POLL * batch.datagram_runs().len() / batch.bytes().max(1);
        transport.batch_slots = fitting.clamp(1, most);
        if let Some(timestamps) = &self.timestamps {
            timestamps.write(batch);
        }
    }

    /// Polls the images that the schedule selects and does the periodic work of the endpoint. Returns the amount of
    /// work.
    pub(super) fn poll_images(
        &mut self,
        load: AgentLoad,
        context: &mut ReceiveContext<'_>,
    ) -> usize {
        for transport in self.transports.iter_mut().flatten() {
            transport.control_batch.set_stream_count(self.images.len());
        }
        let mut image_context = ImageContext {
            now: context.now,
            identity: &self.identity,
            transports: &mut self.transports,
            is_multi_destination: self.has_destinations,
            window_throttle: &mut self.window_throttle,
            counters: context.counters,
            reporter: context.reporter,
            losses: context.losses,
        };
        let mut work = 0;
        let dispatcher = &mut self.dispatcher;
        self.images
            .poll(context.now.nanos, load, |image_slot, image, _| {
                let before = image.progress();
                let done = match image.poll(&mut image_context) {
                    PollOutcome::Worked(done) => done,
                    PollOutcome::TimedOut { cool_down } => {
                        let (session_id, stream_id) = image.key();
                        dispatcher.remove_image(session_id, stream_id, image_slot.0, cool_down);
                        1
                    }
                };
                work += done;
                // A repeated status message is no progress; an open gap has deadlines of its own.
                image.progress() != before || image.has_open_gap()
            });
        for transport in self.transports.iter_mut().flatten() {
            if transport
                .control_batch
                .is_due(load == AgentLoad::Idle, context.now)
            {
                transport.send_control_batch(context.now, context.counters, context.reporter);
            }
        }
        self.dispatcher.expire(context.now.nanos);
        self.elicit_periodic_setups(context);
        work
    }

    /// Returns the next time at which [`poll_images`](Self::poll_images) has an effect, if nothing comes from outside before.
    /// `None` if it is not known.
    pub(super) fn next_deadline_ns(&self) -> Option<i64> {
        let mut transports = self.transports.iter().flatten();
        if transports.any(|transport| transport.control_batch.has_frames()) {
            return Some(i64::MIN);
        }
        let images_ns = self.images.next_deadline_ns()?;
        let others_ns = (self.dispatcher.next_deadline_ns()).min(self.next_elicitation_ns());
        Some(images_ns.min(others_ns))
    }

    /// Returns the sockets with their slots.
    pub(super) fn transports(&self) -> impl Iterator<Item = (usize, &ReceiveTransport)> {
        let slots = self.transports.iter().enumerate();
        slots.filter_map(|(slot, transport)| Some((slot, transport.as_ref()?)))
    }
}
