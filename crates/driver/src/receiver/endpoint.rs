//! A receive endpoint: one channel's sockets, the subscriptions on it and the images they get.

use std::os::fd::RawFd;
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
use crate::rounds::{Pace, Rounds};
use crate::timestamps::ReceiveTimestamps;

/// Most batches received in one look at a socket (of one train, where they are received in place), as long as they are full
/// and …
const MAX_BATCHES_PER_POLL: usize = 4;
/// … hold no more than this together: a crowd of little datagrams does not hold up the stream behind it, and a fast stream
/// is read while it is in the cache, before more of it is received. What is not received waits in the socket, and is met only
/// once all the same.
const MAX_BYTES_PER_POLL: usize = 128 * 1024;

/// A receive endpoint: built by the conductor, owned by the receiver.
#[doc(alias = "ReceiveChannelEndpoint")]
#[doc(alias = "MultiRcvDestination")]
#[derive(Debug)]
pub struct ReceiveEndpoint {
    pub(super) id: EndpointId,
    pub(super) identity: Identity,
    /// Transports stay in their slot for life.
    pub(super) transports: Vec<Option<ReceiveTransport>>,
    /// Transports come and go (`control-mode=manual`).
    has_destinations: bool,
    pub(super) timestamps: Option<ReceiveTimestamps>,
    pub(super) dispatcher: Dispatcher,
    /// An image's slot is its seat.
    pub(super) images: Rounds<ReceiverImage>,
    pub(super) image_index: ImageIndex,
    /// How much may be under way to all images together.
    pub(super) total_window: usize,
    window_throttle: WindowThrottle,
}

/// What was received from a socket in one go.
struct ReceiveResult {
    bytes: usize,
    may_be_more: bool,
    is_direct: bool,
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
            images: Rounds::default(),
            image_index: ImageIndex::default(),
            total_window: 0,
            window_throttle: WindowThrottle::default(),
        }
    }

    /// Identity.
    #[must_use]
    pub fn id(&self) -> EndpointId {
        self.id
    }

    /// The receiver has it now.
    pub(super) fn start(&mut self, context: &mut ReceiveContext<'_>) {
        for index in 0..self.transports.len() {
            self.start_transport(index, context);
        }
    }

    /// Takes what has arrived. Returns the number of bytes.
    pub(super) fn poll(
        &mut self,
        batch: &mut ReceiveBatch,
        context: &mut ReceiveContext<'_>,
    ) -> usize {
        let mut bytes = 0;
        for index in 0..self.transports.len() {
            bytes += self.poll_transport(index, batch, context);
        }
        if bytes > 0 {
            context.counters.bytes_received.add_exclusive(bytes as i64);
            if self.window_throttle.is_check_due(context.now.nanos) {
                self.check_drops(context.now.nanos);
            }
        }
        bytes
    }

    /// Windows are narrowed while a socket loses something.
    fn check_drops(&mut self, now_ns: i64) {
        let streams = self.images.busy().max(1);
        let (mut has_drops, mut capacity) = (false, usize::MAX);
        for transport in self.transports.iter_mut().flatten() {
            has_drops |= transport.has_new_drops();
            capacity = capacity.min(transport.window_capacity());
        }
        self.window_throttle
            .update(has_drops, capacity / streams, now_ns);
    }

    /// One look at one socket.
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

    /// One batch of what has arrived, or one train of whom it was expected from.
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
        for train in batch.trains() {
            received.bytes += train.payload.len();
            self.on_train(index, &train, context);
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
                    .faults
                    .report(context.now, transport.channel(), &error);
                return;
            }
        }
        // What comes next is likely to be as long. It is found out by and by: sixteen trains would be too much.
        let most = BATCH.min(2 * transport.batch_slots);
        let fitting = MAX_BYTES_PER_POLL * batch.trains().len() / batch.bytes().max(1);
        transport.batch_slots = fitting.clamp(1, most);
        if let Some(timestamps) = &self.timestamps {
            timestamps.write(batch);
        }
    }

    /// A turn for each image that receives, and for some that do not, and what the endpoint itself does by time. Returns
    /// how much was done.
    pub(super) fn poll_images(&mut self, pace: Pace, context: &mut ReceiveContext<'_>) -> usize {
        for transport in self.transports.iter_mut().flatten() {
            transport.control_batch.shared_by(self.images.len());
        }
        let mut image_context = ImageContext {
            now: context.now,
            identity: &self.identity,
            transports: &mut self.transports,
            is_multi_destination: self.has_destinations,
            window_throttle: &mut self.window_throttle,
            counters: context.counters,
            faults: context.faults,
            losses: context.losses,
        };
        let mut work = 0;
        let dispatcher = &mut self.dispatcher;
        self.images.turn(context.now.nanos, pace, |seat, image, _| {
            let before = image.progress();
            let done = match image.poll(&mut image_context) {
                PollOutcome::Worked(done) => done,
                PollOutcome::TimedOut { cool_down } => {
                    let (session_id, stream_id) = image.key();
                    dispatcher.remove_image(session_id, stream_id, seat.0, cool_down);
                    1
                }
            };
            work += done;
            // Status messages that only repeat themselves are no progress, but what is missing has its own times.
            image.progress() != before || image.has_open_gap()
        });
        for transport in self.transports.iter_mut().flatten() {
            if transport
                .control_batch
                .are_due(pace == Pace::AtRest, context.now)
            {
                transport.send_control_batch(context.now, context.counters, context.faults);
            }
        }
        self.dispatcher.expire(context.now.nanos);
        self.elicit_periodic_setups(context);
        work
    }

    pub(super) fn fds(&self) -> impl Iterator<Item = RawFd> {
        self.transports()
            .filter_map(|transport| transport.transport.raw_fd())
    }

    pub(super) fn transports(&self) -> impl Iterator<Item = &ReceiveTransport> {
        self.transports.iter().flatten()
    }
}
