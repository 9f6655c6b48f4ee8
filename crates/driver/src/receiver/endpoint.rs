//! A receive endpoint: one channel's sockets, the subscriptions on it and the images they get.

use std::os::fd::RawFd;
use std::sync::Arc;

use taran_net::ReceiveBatch;

use super::BATCH;
use super::Desk;
use super::dispatcher::Dispatcher;
use super::identity::Identity;
use super::image::{Link, ReceiverImage, Turned};
use super::in_place::InPlace;
use super::roll::Roll;
use super::squeeze::Squeeze;
use super::transport::ReceiveTransport;
use crate::boundary::{EndpointId, ReceiveEndpointSpec};
use crate::rounds::{Pace, Rounds};
use crate::timestamps::ReceiveTimestamps;

/// Most batches taken in one look at a socket (of one train, where they are received in place), as long as they are full
/// and …
const BATCHES: usize = 4;
/// … hold no more than this together: a crowd of little datagrams does not hold up the stream behind it, and a fast stream
/// is read while it is in the cache, before more of it is taken. What is not taken waits in the socket, and is met only
/// once all the same.
const LOOK_BYTES: usize = 128 * 1024;

/// A receive endpoint: built by the conductor, owned by the receiver.
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
    pub(super) roll: Roll,
    /// How much may be under way to all images together.
    pub(super) under_way: usize,
    squeeze: Squeeze,
}

/// What was taken from a socket in one go.
struct Taken {
    bytes: usize,
    may_be_more: bool,
    in_place: bool,
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
            roll: Roll::default(),
            under_way: 0,
            squeeze: Squeeze::default(),
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
            bytes += self.look(index, batch, desk);
        }
        if bytes > 0 {
            desk.counters.bytes_received.add_exclusive(bytes as i64);
            if self.squeeze.is_look_due(desk.now.nanos) {
                self.look_for_losses(desk.now.nanos);
            }
        }
        bytes
    }

    /// Windows are narrowed while a socket loses something.
    fn look_for_losses(&mut self, now_ns: i64) {
        let streams = self.images.busy().max(1);
        let (mut has_lost, mut room) = (false, usize::MAX);
        for transport in self.transports.iter_mut().flatten() {
            has_lost |= transport.has_overflowed();
            room = room.min(transport.fair_room());
        }
        self.squeeze.looked(has_lost, room / streams, now_ns);
    }

    /// One look at one socket.
    fn look(&mut self, index: usize, batch: &mut ReceiveBatch, desk: &mut Desk<'_>) -> usize {
        let (mut looked, mut batches, mut trains) = (0, 0, 0);
        loop {
            let taken = self.take(index, batch, desk);
            looked += taken.bytes;
            if taken.in_place {
                trains += 1;
            } else {
                batches += 1;
            }
            let is_enough = looked + taken.bytes > LOOK_BYTES;
            if !taken.may_be_more || is_enough || batches == BATCHES || trains == BATCH {
                break;
            }
        }
        if let Some(transport) = &mut self.transports[index] {
            transport.streak.looked(trains);
        }
        looked
    }

    /// One batch of what has arrived, or one train of whom it was expected from.
    fn take(&mut self, index: usize, batch: &mut ReceiveBatch, desk: &mut Desk<'_>) -> Taken {
        batch.clear_to(1);
        match self.receive_in_place(index, batch, desk) {
            InPlace::Placed { bytes, may_be_more } => {
                return Taken {
                    bytes,
                    may_be_more,
                    in_place: true,
                };
            }
            InPlace::Nothing | InPlace::Astray => {}
            InPlace::Unexpected => self.receive(index, batch, desk),
        }
        let mut taken = Taken {
            bytes: 0,
            may_be_more: batch.is_full(),
            in_place: false,
        };
        for train in batch.trains() {
            taken.bytes += train.payload.len();
            self.on_train(index, &train, desk);
        }
        taken
    }

    fn receive(&mut self, index: usize, batch: &mut ReceiveBatch, desk: &mut Desk<'_>) {
        let Some(transport) = &mut self.transports[index] else {
            return;
        };
        batch.clear_to(transport.slots);
        match transport.transport.receive(batch) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                desk.faults.report(desk.now, transport.channel(), &error);
                return;
            }
        }
        // What comes next is likely to be as long. It is found out by and by: sixteen trains would be too much.
        let most = BATCH.min(2 * transport.slots);
        let fitting = LOOK_BYTES * batch.trains().len() / batch.bytes().max(1);
        transport.slots = fitting.clamp(1, most);
        if let Some(timestamps) = &self.timestamps {
            timestamps.write(batch);
        }
    }

    /// A turn for each image that receives, and for some that do not, and what the endpoint itself does by time. Returns
    /// how much was done.
    pub(super) fn turn(&mut self, pace: Pace, desk: &mut Desk<'_>) -> usize {
        for transport in self.transports.iter_mut().flatten() {
            transport.signs.shared_by(self.images.len());
        }
        let mut link = Link {
            now: desk.now,
            identity: &self.identity,
            transports: &mut self.transports,
            among_several: self.has_destinations,
            squeeze: &mut self.squeeze,
            counters: desk.counters,
            faults: desk.faults,
            losses: desk.losses,
        };
        let mut work = 0;
        let dispatcher = &mut self.dispatcher;
        self.images.turn(desk.now.nanos, pace, |seat, image, _| {
            let before = image.progress();
            let done = match image.turn(&mut link) {
                Turned::Worked(done) => done,
                Turned::TimedOut { cool_down } => {
                    let (session_id, stream_id) = image.key();
                    dispatcher.remove_image(session_id, stream_id, seat.0, cool_down);
                    1
                }
            };
            work += done;
            // Status messages that only repeat themselves are no progress, but what is missing has its own times.
            image.progress() != before || image.misses_something()
        });
        for transport in self.transports.iter_mut().flatten() {
            if transport.signs.are_due(pace == Pace::AtRest, desk.now) {
                transport.send_signs(desk.now, desk.counters, desk.faults);
            }
        }
        self.dispatcher.expire(desk.now.nanos);
        self.look_after_transports(desk);
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
