//! Receiving straight into the log.
//!
//! Of a fast stream, train follows train. Where several of one image came in a row, the next one is received at the place
//! where it belongs if it follows: all but its first header, which readers wait for. It is then copied once, by the
//! kernel, and memory is met once. If something else came, it is taken out of there again; what it leaves behind lies
//! where nobody looks before it is overwritten.

use taran_net::{ReceiveBatch, Received, Train};
use taran_protocol::frame::{DataHeader, FromBytes};

use super::ReceiveContext;
use super::endpoint::ReceiveEndpoint;
use super::image::ReceiverImage;
use crate::rounds::Seat;

/// After so many long trains in a row the next one is expected to be of the same image. One that is not costs a copy more.
const MIN_LONG_RUNS: u32 = 4;
/// After so many short ones in a row nothing is expected: they are better received several at a time.
const MAX_SHORT_RUNS: u32 = 2;
/// What is shorter is short …
const LONG_RUN: usize = 8 * 1024;
/// … and so is a lone datagram that is shorter than this.
const LONG_SINGLE: usize = 32 * 1024;

const HEADER: usize = size_of::<DataHeader>();

/// Whether a train is worth being received by a call of its own.
pub(super) fn is_long(train: &Train<'_>) -> bool {
    is_long_run(train.payload.len(), train.stride)
}

fn is_long_run(length: usize, stride: usize) -> bool {
    let least = if stride < length {
        LONG_RUN
    } else {
        LONG_SINGLE
    };
    length >= least
}

/// Whose the last long trains on a transport were.
#[derive(Debug, Default)]
pub(super) struct StreamPredictor {
    slot: Option<Seat>,
    long: u32,
    /// Short ones, and those that are no single run, since the last long one.
    short: u32,
    /// The one that is about to be noted was taken for the next of a row, and was not.
    mispredicted: bool,
    /// Another one came behind the first one of the last look.
    expects_more: bool,
}

impl StreamPredictor {
    /// A train came in, and went to this image as a whole, or not.
    pub(super) fn record(&mut self, to: Option<Seat>, is_long: bool) {
        let mispredicted = std::mem::take(&mut self.mispredicted);
        if !is_long {
            // A burst ends with one, and signs of life and other streams come in between.
            self.short = self.short.saturating_add(1);
            // Where they are more than those of a row, these have to show again that they are one.
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

    /// How many came in one look, nothing behind the last of them. A look at what is not there costs as much as one
    /// that brings something, so that the second one is taken only where it is likely.
    pub(super) fn on_poll_end(&mut self, count: usize) {
        self.expects_more = count > usize::from(self.expects_more);
    }

    /// Whose the next one will be, if the row is long enough.
    fn predicted(&self) -> Option<Seat> {
        self.slot
            .filter(|_| self.long >= MIN_LONG_RUNS && self.short < MAX_SHORT_RUNS)
    }
}

/// What came of receiving in place.
pub(super) enum DirectReceive {
    /// No train is expected: receive as ever.
    NotPredicted,
    Empty,
    /// It is in the batch: it turned out to be something else.
    Mispredicted,
    Received {
        bytes: usize,
        may_be_more: bool,
    },
}

impl ReceiveEndpoint {
    /// Receives one train into the log of the image that expects it.
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
        let Some(seat) = transport.predictor.predicted() else {
            return DirectReceive::NotPredicted;
        };
        if !transport.receives_parts || self.timestamps.is_some() {
            return DirectReceive::NotPredicted;
        }
        let mut head = [0; HEADER];
        let received = {
            let image = self.images.get_mut(seat);
            let Some(mut place) = image.and_then(ReceiverImage::next_run_buffer) else {
                return DirectReceive::NotPredicted;
            };
            transport.transport.receive_parts(&mut head, &mut place)
        };
        let received = match received {
            Ok(None) => return DirectReceive::Empty,
            Ok(Some(received)) => received,
            Err(error) => {
                transport.predictor = StreamPredictor::default();
                context
                    .faults
                    .report(context.now, transport.channel(), &error);
                return DirectReceive::Empty;
            }
        };
        if self.commit_direct(slot, seat, &head, &received, context) {
            return DirectReceive::Received {
                bytes: received.length,
                may_be_more,
            };
        }
        self.move_to_batch(slot, seat, &head, received, batch);
        DirectReceive::Mispredicted
    }

    fn commit_direct(
        &mut self,
        slot: usize,
        seat: Seat,
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
            (&mut self.transports[slot], self.images.get_mut(seat))
        else {
            return false;
        };
        let origin = transport.frame_origin(slot, received.source, context.now);
        let is_committed = owner == Some(seat.0)
            && image.on_direct_run(header, received.length, received.stride, &origin);
        if is_committed {
            self.images.wake(seat, context.now.nanos);
            transport.last_received_ns = context.now.nanos;
            let is_long = is_long_run(received.length, received.stride);
            transport.predictor.record(Some(seat), is_long);
        }
        is_committed
    }

    /// Into the batch, as if it had been received there.
    fn move_to_batch(
        &mut self,
        slot: usize,
        seat: Seat,
        head: &[u8; HEADER],
        received: Received,
        batch: &mut ReceiveBatch,
    ) {
        if let Some(transport) = &mut self.transports[slot] {
            transport.predictor.mispredicted = true;
        }
        let Some(image) = self.images.get_mut(seat) else {
            return;
        };
        let head = &head[..received.length.min(HEADER)];
        let is_taken = batch.push_parts(received, [head, image.direct_bytes(received.length)]);
        debug_assert!(is_taken, "nothing else is in the batch");
    }
}
