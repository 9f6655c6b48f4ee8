//! One socket of a receive endpoint: its only one, or that of a destination.

use std::net::SocketAddr;
use std::sync::Arc;

use taran_core::clock::Now;
use taran_net::{Transmit, Transport};

use super::BATCH;
use super::connections::Arrival;
use super::in_place::Streak;
use crate::boundary::{ReceiveTransportSpec, ReceiverCounters, TransportId};
use crate::faults::Faults;
use crate::signs::{Signs, Ticket};

/// Bytes of a receive buffer for each byte that may be under way. The kernel charges more than the bytes of a datagram, by
/// half for one as long as an Ethernet frame, several times as much for short ones, and reckons with as much again.
const ROOM: usize = 2;

/// A socket, and where what is said about the streams on it goes. Built by the conductor, owned by the receiver.
#[derive(Debug)]
pub struct ReceiveTransport {
    pub(super) id: TransportId,
    pub(super) transport: Box<dyn Transport>,
    control_group: Option<SocketAddr>,
    pub(super) explicit_control: Option<SocketAddr>,
    /// When a SETUP was last asked for at the explicit control address.
    pub(super) elicited_ns: i64,
    /// After which silence the explicit control address is to be looked up again.
    pub(super) unheard_timeout_ns: Option<i64>,
    /// When anything from a sender last came in.
    pub(super) heard_ns: i64,
    /// Whether trains can be received into memory of ours.
    pub(super) receives_parts: bool,
    pub(super) streak: Streak,
    /// Length of the receive buffer that was asked for, where it grows.
    asked: Option<usize>,
    /// Slots for the next batch.
    pub(super) slots: usize,
    /// Datagrams that had found no room when this was last looked at.
    overflowed: u32,
    /// Status messages that only repeat themselves.
    pub(super) signs: Signs,
    channel: Arc<str>,
}

/// What came of sending a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Yes,
    /// The socket is full: it can be tried again in the next turn.
    NoRoom,
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
            streak: Streak::default(),
            slots: BATCH,
            overflowed: 0,
            asked: spec.grows.then_some(0),
            control_group: spec.control_group,
            explicit_control: spec.explicit_control,
            unheard_timeout_ns: spec.unheard_timeout_ns,
            elicited_ns: 0,
            heard_ns: 0,
            signs: Signs::new(),
            channel,
        }
    }

    /// Which one.
    #[must_use]
    pub fn id(&self) -> TransportId {
        self.id
    }

    /// Where a question or an answer to what came from `source` goes (docs/spec/wire.md §5.1).
    pub(super) fn answers_to(&self, source: SocketAddr) -> SocketAddr {
        self.control_group.unwrap_or(source)
    }

    /// Where the sender of a stream that comes from `source` is told how far its receivers are. An explicit control
    /// address follows its sender when that moves (docs/spec/wire.md §5.2).
    pub(super) fn control(&self, source: SocketAddr) -> SocketAddr {
        self.known_control().unwrap_or(source)
    }

    /// The same where it is known before anything comes in.
    pub(super) fn known_control(&self) -> Option<SocketAddr> {
        self.control_group.or(self.explicit_control)
    }

    pub(super) fn arrival(&self, slot: usize, source: SocketAddr, now: Now) -> Arrival {
        Arrival {
            slot,
            control: self.control(source),
            now_ns: now.nanos,
        }
    }

    /// So much may be under way at a time. Room for it is asked for in few steps: streams come by the thousand.
    pub(super) fn make_room(&mut self, under_way: usize, now: Now, faults: &mut Faults) {
        let wanted = ROOM * under_way;
        let Some(asked) = self.asked.filter(|&asked| asked < wanted) else {
            return;
        };
        let length = wanted.max(2 * asked);
        self.asked = Some(length);
        if let Err(error) = self.transport.grow_receive_buffer(length) {
            faults.report(now, &self.channel, &error);
        }
    }

    /// Whether datagrams were lost here since this was last asked.
    pub(super) fn has_overflowed(&mut self) -> bool {
        let Some(overflowed) = self.transport.overflowed() else {
            return false;
        };
        std::mem::replace(&mut self.overflowed, overflowed) != overflowed
    }

    /// What may be under way at a time and finds room, unless datagrams are so short that the kernel charges more than four
    /// times as much for each: half of what was asked for, of which the kernel reports twice as much.
    pub(super) fn fair_room(&self) -> usize {
        self.transport.buffer_lengths().receive / (2 * ROOM)
    }

    /// Sends one frame in a datagram of its own.
    pub(super) fn send(
        &mut self,
        to: SocketAddr,
        frame: &[u8],
        now: Now,
        counters: &ReceiverCounters,
        faults: &mut Faults,
    ) -> Sent {
        match self.transport.send(&[Transmit::to(to, frame)]) {
            Ok(sent) if sent == frame.len() => Sent::Yes,
            Ok(_) => {
                counters.short_sends.increment();
                Sent::NoRoom
            }
            Err(error) => {
                counters.short_sends.increment();
                faults.report(now, &self.channel, &error);
                Sent::Failed
            }
        }
    }

    /// Keeps a status message that repeats the last one, to be sent with others soon. None if it has to go now.
    pub(super) fn collect(
        &mut self,
        to: SocketAddr,
        frame: &[u8],
        now: Now,
        counters: &ReceiverCounters,
        faults: &mut Faults,
    ) -> Option<Ticket> {
        if self.signs.are_in_the_way(frame.len(), Some(to)) {
            self.send_signs(now, counters, faults);
        }
        let is_accepted = self.signs.accept(frame.len(), Some(to));
        is_accepted.then(|| self.signs.add(frame, Some(to), now))
    }

    /// Sends what was collected, each in a datagram of its own.
    pub(super) fn send_signs(
        &mut self,
        now: Now,
        counters: &ReceiverCounters,
        faults: &mut Faults,
    ) {
        let transmit = self.signs.transmit();
        let length = transmit.payload.len();
        let sent = self.transport.send(&[transmit]).unwrap_or_else(|error| {
            faults.report(now, &self.channel, &error);
            0
        });
        if sent < length {
            counters.short_sends.increment();
        }
        let tried = self.signs.went(sent);
        counters.status_messages_sent.add(tried as i64);
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }
}
