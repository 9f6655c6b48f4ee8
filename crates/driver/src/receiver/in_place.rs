//! Receiving straight into the log.
//!
//! Of a fast stream, train follows train. Where several of one image came in a row, the next one is received at the place
//! where it belongs if it follows: all but its first header, which readers wait for. It is then copied once, by the
//! kernel, and memory is met once. If something else came, it is taken out of there again; what it leaves behind lies
//! where nobody looks before it is overwritten.

use taran_net::{ReceiveBatch, Received, Train};
use taran_protocol::frame::{DataHeader, FromBytes};

use super::Desk;
use super::endpoint::ReceiveEndpoint;
use super::image::ReceiverImage;
use crate::rounds::Seat;

/// After so many long trains in a row the next one is expected to be of the same image. One that is not costs a copy more.
const ROW: u32 = 4;
/// After so many short ones in a row nothing is expected: they are better received several at a time.
const SHORT_ROW: u32 = 2;
/// What is shorter is short …
const LONG: usize = 8 * 1024;
/// … and so is a lone datagram that is shorter than this.
const LONE_LONG: usize = 32 * 1024;

const HEADER: usize = size_of::<DataHeader>();

/// Whether a train is worth being received by a call of its own.
pub(super) fn is_long(train: &Train<'_>) -> bool {
    is_long_train(train.payload.len(), train.stride)
}

fn is_long_train(length: usize, stride: usize) -> bool {
    let least = if stride < length { LONG } else { LONE_LONG };
    length >= least
}

/// Whose the last long trains on a transport were.
#[derive(Debug, Default)]
pub(super) struct Streak {
    of: Option<Seat>,
    long: u32,
    /// Short ones, and those that are no single run, since the last long one.
    short: u32,
    /// The one that is about to be noted was taken for the next of a row, and was not.
    strayed: bool,
    /// Another one came behind the first one of the last look.
    is_dense: bool,
}

impl Streak {
    /// A train came in, and went to this image as a whole, or not.
    pub(super) fn note(&mut self, to: Option<Seat>, is_long: bool) {
        let strayed = std::mem::take(&mut self.strayed);
        if !is_long {
            // A burst ends with one, and signs of life and other streams come in between.
            self.short = self.short.saturating_add(1);
            // Where they are more than those of a row, these have to show again that they are one.
            if strayed && self.short >= SHORT_ROW {
                self.long = 0;
            }
            return;
        }
        let goes_on = to == self.of && !strayed;
        self.long = if goes_on { self.long } else { 0 };
        self.long = self.long.saturating_add(u32::from(to.is_some()));
        self.of = to;
        self.short = 0;
    }

    /// How many came in one look, nothing behind the last of them. A look at what is not there costs as much as one
    /// that brings something, so that the second one is taken only where it is likely.
    pub(super) fn looked(&mut self, count: usize) {
        self.is_dense = count > usize::from(self.is_dense);
    }

    /// Whose the next one will be, if the row is long enough.
    fn expects(&self) -> Option<Seat> {
        self.of
            .filter(|_| self.long >= ROW && self.short < SHORT_ROW)
    }
}

/// What came of receiving in place.
pub(super) enum InPlace {
    /// No train is expected: receive as ever.
    Unexpected,
    Nothing,
    /// It is in the batch: it turned out to be something else.
    Astray,
    Placed {
        bytes: usize,
        may_be_more: bool,
    },
}

impl ReceiveEndpoint {
    /// Receives one train into the log of the image that expects it.
    pub(super) fn receive_in_place(
        &mut self,
        slot: usize,
        batch: &mut ReceiveBatch,
        desk: &mut Desk<'_>,
    ) -> InPlace {
        let Some(transport) = &mut self.transports[slot] else {
            return InPlace::Unexpected;
        };
        let may_be_more = transport.streak.is_dense;
        let Some(seat) = transport.streak.expects() else {
            return InPlace::Unexpected;
        };
        if !transport.receives_parts || self.timestamps.is_some() {
            return InPlace::Unexpected;
        }
        let mut head = [0; HEADER];
        let received = {
            let image = self.images.get_mut(seat);
            let Some(mut place) = image.and_then(ReceiverImage::place_of_next) else {
                return InPlace::Unexpected;
            };
            transport.transport.receive_parts(&mut head, &mut place)
        };
        let received = match received {
            Ok(None) => return InPlace::Nothing,
            Ok(Some(received)) => received,
            Err(error) => {
                transport.streak = Streak::default();
                desk.faults.report(desk.now, transport.channel(), &error);
                return InPlace::Nothing;
            }
        };
        if self.keep_in_place(slot, seat, &head, &received, desk) {
            return InPlace::Placed {
                bytes: received.length,
                may_be_more,
            };
        }
        self.take_out(slot, seat, &head, received, batch);
        InPlace::Astray
    }

    fn keep_in_place(
        &mut self,
        slot: usize,
        seat: Seat,
        head: &[u8; HEADER],
        received: &Received,
        desk: &Desk<'_>,
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
        let arrival = transport.arrival(slot, received.source, desk.now);
        let is_kept = owner == Some(seat.0)
            && image.on_train_in_place(header, received.length, received.stride, &arrival);
        if is_kept {
            self.images.wake(seat, desk.now.nanos);
            transport.heard_ns = desk.now.nanos;
            let is_long = is_long_train(received.length, received.stride);
            transport.streak.note(Some(seat), is_long);
        }
        is_kept
    }

    /// Into the batch, as if it had been received there.
    fn take_out(
        &mut self,
        slot: usize,
        seat: Seat,
        head: &[u8; HEADER],
        received: Received,
        batch: &mut ReceiveBatch,
    ) {
        if let Some(transport) = &mut self.transports[slot] {
            transport.streak.strayed = true;
        }
        let Some(image) = self.images.get_mut(seat) else {
            return;
        };
        let head = &head[..received.length.min(HEADER)];
        let is_taken = batch.push_parts(received, [head, image.received_in_place(received.length)]);
        debug_assert!(is_taken, "nothing else is in the batch");
    }
}
