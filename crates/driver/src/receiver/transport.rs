//! One socket of a receive endpoint: its only one, or that of a destination.

use std::net::SocketAddr;
use std::sync::Arc;

use taran_core::clock::Now;
use taran_net::{Transmit, Transport};

use super::BATCH;
use super::direct_receive::StreamPredictor;
use super::image_connections::FrameOrigin;
use crate::boundary::{ReceiveTransportSpec, ReceiverCounters, TransportId};
use crate::faults::Faults;
use crate::signs::{Signs, Ticket};

/// Bytes of a receive buffer for each byte that may be under way. The kernel charges more than the bytes of a datagram, by
/// half for one as long as an Ethernet frame, several times as much for short ones, and reckons with as much again.
const BUFFER_FACTOR: usize = 2;

/// A socket, and where what is said about the streams on it goes. Built by the conductor, owned by the receiver.
#[doc(alias = "ReceiveDestinationTransport")]
#[derive(Debug)]
pub struct ReceiveTransport {
    pub(super) id: TransportId,
    pub(super) transport: Box<dyn Transport>,
    control_group: Option<SocketAddr>,
    pub(super) explicit_control: Option<SocketAddr>,
    /// When a SETUP was last requested_length for at the explicit control address.
    pub(super) last_elicited_ns: i64,
    /// After which silence the explicit control address is to be looked up again.
    pub(super) silence_timeout_ns: Option<i64>,
    /// When anything from a sender last came in.
    pub(super) last_received_ns: i64,
    /// Whether trains can be received into memory of ours.
    pub(super) receives_parts: bool,
    pub(super) predictor: StreamPredictor,
    /// Length of the receive buffer that was requested_length for, where it grows.
    requested_length: Option<usize>,
    /// Slots for the next batch.
    pub(super) batch_slots: usize,
    /// Datagrams that had found no room when this was last looked at.
    drops: u32,
    /// Status messages that only repeat themselves.
    pub(super) control_batch: Signs,
    channel: Arc<str>,
}

/// What came of sending a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendResult {
    Sent,
    /// The socket is full: it can be tried again in the next turn.
    SocketFull,
    /// An error, recorded. Trying again at once would not help.
    Failed,
}

impl ReceiveTransport {
    /// A transport on which nothing has come in yet. `channel` is the text for errors.
    #[must_use]
    pub fn new(spec: ReceiveTransportSpec, channel: Arc<str>) -> Self {
        Self {
            id: spec.id,
            receives_parts: spec.transport.capabilities().receives_parts,
            transport: spec.transport,
            predictor: StreamPredictor::default(),
            batch_slots: BATCH,
            drops: 0,
            requested_length: spec.grows.then_some(0),
            control_group: spec.control_group,
            explicit_control: spec.explicit_control,
            silence_timeout_ns: spec.unheard_timeout_ns,
            last_elicited_ns: 0,
            last_received_ns: 0,
            control_batch: Signs::new(),
            channel,
        }
    }

    /// Which one.
    #[must_use]
    pub fn id(&self) -> TransportId {
        self.id
    }

    /// Where a question or an answer to what came from `source` goes (docs/spec/wire.md §5.1).
    pub(super) fn reply_address(&self, source: SocketAddr) -> SocketAddr {
        self.control_group.unwrap_or(source)
    }

    /// Where the sender of a stream that comes from `source` is told how far its receivers are. An explicit control
    /// address follows its sender when that moves (docs/spec/wire.md §5.2).
    pub(super) fn control_address(&self, source: SocketAddr) -> SocketAddr {
        self.known_control_address().unwrap_or(source)
    }

    /// The same where it is known before anything comes in.
    pub(super) fn known_control_address(&self) -> Option<SocketAddr> {
        self.control_group.or(self.explicit_control)
    }

    pub(super) fn frame_origin(&self, slot: usize, source: SocketAddr, now: Now) -> FrameOrigin {
        FrameOrigin {
            slot,
            control: self.control_address(source),
            now_ns: now.nanos,
        }
    }

    /// So much may be under way at a time. Room for it is requested_length for in few steps: streams come by the thousand.
    pub(super) fn grow_receive_buffer(&mut self, window: usize, now: Now, faults: &mut Faults) {
        let wanted = BUFFER_FACTOR * window;
        let Some(requested_length) = self
            .requested_length
            .filter(|&requested_length| requested_length < wanted)
        else {
            return;
        };
        let length = wanted.max(2 * requested_length);
        self.requested_length = Some(length);
        if let Err(error) = self.transport.grow_receive_buffer(length) {
            faults.report(now, &self.channel, &error);
        }
    }

    /// Whether datagrams were lost here since this was last requested_length.
    pub(super) fn has_new_drops(&mut self) -> bool {
        let Some(drops) = self.transport.overflowed() else {
            return false;
        };
        std::mem::replace(&mut self.drops, drops) != drops
    }

    /// What may be under way at a time and finds room, unless datagrams are so short that the kernel charges more than four
    /// times as much for each: half of what was requested_length for, of which the kernel reports twice as much.
    pub(super) fn window_capacity(&self) -> usize {
        self.transport.buffer_lengths().receive / (2 * BUFFER_FACTOR)
    }

    /// Sends one frame in a datagram of its own.
    pub(super) fn send(
        &mut self,
        to: SocketAddr,
        frame: &[u8],
        now: Now,
        counters: &ReceiverCounters,
        faults: &mut Faults,
    ) -> SendResult {
        match self.transport.send(&[Transmit::to(to, frame)]) {
            Ok(sent) if sent == frame.len() => SendResult::Sent,
            Ok(_) => {
                counters.short_sends.increment();
                SendResult::SocketFull
            }
            Err(error) => {
                counters.short_sends.increment();
                faults.report(now, &self.channel, &error);
                SendResult::Failed
            }
        }
    }

    /// Keeps a status message that repeats the last one, to be sent with others soon. None if it has to go now.
    pub(super) fn enqueue_status(
        &mut self,
        to: SocketAddr,
        frame: &[u8],
        now: Now,
        counters: &ReceiverCounters,
        faults: &mut Faults,
    ) -> Option<Ticket> {
        if self.control_batch.are_in_the_way(frame.len(), Some(to)) {
            self.send_control_batch(now, counters, faults);
        }
        let is_accepted = self.control_batch.accept(frame.len(), Some(to));
        is_accepted.then(|| self.control_batch.add(frame, Some(to), now))
    }

    /// Sends what was collected, each in a datagram of its own.
    pub(super) fn send_control_batch(
        &mut self,
        now: Now,
        counters: &ReceiverCounters,
        faults: &mut Faults,
    ) {
        let transmit = self.control_batch.transmit();
        let length = transmit.payload.len();
        let sent = self.transport.send(&[transmit]).unwrap_or_else(|error| {
            faults.report(now, &self.channel, &error);
            0
        });
        if sent < length {
            counters.short_sends.increment();
        }
        let tried = self.control_batch.went(sent);
        counters.status_messages_sent.add(tried as i64);
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }
}
