// SPDX-License-Identifier: Apache-2.0
//! Direct receive: from the socket into the term buffer.
//!
//! On a fast stream one GRO batch follows another. After several consecutive batches of one image the next one is
//! received where it belongs if it continues the stream: all but its first header, for which readers wait. The kernel's
//! copy is then the only one, and each cache line is touched once. If the prediction was wrong, the bytes are copied to
//! the receive batch and handled normally; what remains in the term lies where no reader looks until it is overwritten.

use taran_net::{DatagramRun, ReceiveBatch, Received};
use taran_protocol::frame::{DataHeader, FromBytes};

use super::ReceiveContext;
use super::endpoint::ReceiveEndpoint;
use super::image::ReceiverImage;
use crate::poll_schedule::Slot;

/// Consecutive long runs of one image after which the next one is predicted. A misprediction costs one copy.
const MIN_LONG_RUNS: u32 = 4;
/// Consecutive short runs after which nothing is predicted: short ones are better received several per call.
const MAX_SHORT_RUNS: u32 = 2;
/// Minimum length of a long run of several datagrams.
const LONG_RUN: usize = 8 * 1024;
/// Minimum length of a long run of a single datagram.
const LONG_SINGLE: usize = 32 * 1024;

const HEADER: usize = size_of::<DataHeader>();

/// Returns true if a GRO batch is long enough to deserve a receive call of its own.
pub(super) fn is_long(gro_batch: &DatagramRun<'_>) -> bool {
    is_long_run(gro_batch.payload.len(), gro_batch.stride)
}

fn is_long_run(length: usize, stride: usize) -> bool {
    let least = if stride < length {
        LONG_RUN
    } else {
        LONG_SINGLE
    };
    length >= least
}

/// Predicts the image of the next run on a transport from the last long ones.
#[derive(Debug, Default)]
pub(super) struct StreamPredictor {
    slot: Option<Slot>,
    long: u32,
    /// Short runs, and batches of several runs, since the last long one.
    short: u32,
    /// Set while a mispredicted run has not been recorded.
    mispredicted: bool,
    /// Set if more than one run was received in the last poll.
    expects_more: bool,
}

impl StreamPredictor {
    /// Records a received GRO batch; `to` is the image that took all of it.
    pub(super) fn record(&mut self, to: Option<Slot>, is_long: bool) {
        let mispredicted = std::mem::take(&mut self.mispredicted);
        if !is_long {
            // A burst ends with a short run; heartbeats and other streams occur in between.
            self.short = self.short.saturating_add(1);
            // If they outnumber the long runs, the stream has to qualify again.
            if mispredicted && self.short >= MAX_SHORT_RUNS {
                self.long = 0;
            }
            return;
        }
        let is_same = to == self.slot && !mispredicted;
        self.long = if is_same { self.long } else { 0 };
        self.long = self.long.saturating_add(u32::from(to.is_some()));
        self.slot = to;
        self.short = 0;
    }

    /// Records the number of runs received in a poll, which ended with an empty socket. An empty receive call costs as
    /// much as a successful one, so a second one is made only where it is likely to succeed.
    pub(super) fn on_poll_end(&mut self, count: usize) {
        self.expects_more = count > usize::from(self.expects_more);
    }

    /// Returns the slot of the image for which the next run is predicted.
    fn predicted(&self) -> Option<Slot> {
        self.slot
            .filter(|_| self.long >= MIN_LONG_RUNS && self.short < MAX_SHORT_RUNS)
    }
}

/// Result of a direct receive.
pub(super) enum DirectReceive {
    /// There is no prediction: receive normally.
    NotPredicted,
    Empty,
    /// The prediction was wrong: the datagrams are in the batch.
    Mispredicted,
    Received {
        bytes: usize,
        may_be_more: bool,
    },
}

impl ReceiveEndpoint {
    /// Receives one run into the log of the predicted image.
    pub(super) fn receive_direct(
        &mut self,
        slot: usize,
        batch: &mut ReceiveBatch,
        context: &mut ReceiveContext<'_>,
    ) -> DirectReceive {
        let Some(transport) = &mut self.transports[slot] else {
            return DirectReceive::NotPredicted;
        };
        let may_be_more = transport.predictor.expects_more;
        let Some(image_slot) = transport.predictor.predicted() else {
            return DirectReceive::NotPredicted;
        };
        if !transport.receives_parts || self.timestamps.is_some() {
            return DirectReceive::NotPredicted;
        }
        let mut head = [0; HEADER];
        let received = {
            let image = self.images.get_mut(image_slot);
            let Some(mut buffer) = image.and_then(ReceiverImage::next_run_buffer) else {
                return DirectReceive::NotPredicted;
            };
            transport.transport.receive_parts(&mut head, &mut buffer)
        };
        let received = match received {
            Ok(None) => return DirectReceive::Empty,
            Ok(Some(received)) => received,
            Err(error) => {
                transport.predictor = StreamPredictor::default();
                context
                    .reporter
                    .report(context.now, transport.channel(), &error);
                return DirectReceive::Empty;
            }
        };
        if self.commit_direct(slot, image_slot, &head, &received, context) {
            return DirectReceive::Received {
                bytes: received.length,
                may_be_more,
            };
        }
        self.move_to_batch(slot, image_slot, &head, received, batch);
        DirectReceive::Mispredicted
    }

    fn commit_direct(
        &mut self,
        slot: usize,
        image_slot: Slot,
        head: &[u8; HEADER],
        received: &Received,
        context: &ReceiveContext<'_>,
    ) -> bool {
        let Ok(header) = DataHeader::ref_from_bytes(head) else {
            return false;
        };
        let owner = self
            .dispatcher
            .image(header.session_id.get(), header.stream_id.get());
        let (Some(transport), Some(image)) =
            (&mut self.transports[slot], self.images.get_mut(image_slot))
        else {
            return false;
        };
        let origin = transport.frame_origin(slot, received.source, context.now);
        let is_committed = owner == Some(image_slot.0)
            && image.on_direct_run(header, received.length, received.stride, &origin);
        if is_committed {
            self.images.mark_active(image_slot, context.now.nanos);
            transport.last_received_ns = context.now.nanos;
            let is_long = is_long_run(received.length, received.stride);
            transport.predictor.record(Some(image_slot), is_long);
        }
        is_committed
    }

    /// Copies the received bytes to the batch, as if they had been received there.
    fn move_to_batch(
        &mut self,
        slot: usize,
        image_slot: Slot,
        head: &[u8; HEADER],
        received: Received,
        batch: &mut ReceiveBatch,
    ) {
        if let Some(transport) = &mut self.transports[slot] {
            transport.predictor.mispredicted = true;
        }
        let Some(image) = self.images.get_mut(image_slot) else {
            return;
        };
        let head = &head[..received.length.min(HEADER)];
        let is_taken = batch.push_parts(received, [head, image.direct_bytes(received.length)]);
        debug_assert!(is_taken, "nothing else is in the batch");
    }
}
