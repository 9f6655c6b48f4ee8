// SPDX-License-Identifier: Apache-2.0
//! One socket of a receive endpoint: its only one, or that of a destination.

use std::net::SocketAddr;
use std::sync::Arc;

use taran_core::clock::Now;
use taran_net::{Transmit, Transport};

use super::BATCH;
use super::direct_receive::StreamPredictor;
use super::image_connections::FrameOrigin;
use crate::boundary::{ReceiveTransportSpec, ReceiverCounters, TransportId};
use crate::control_batch::{BatchId, ControlFrameBatch};
use crate::error_reporter::ErrorReporter;

/// Receive buffer bytes requested per byte in flight. The kernel charges more than the length of a datagram (1.5 times
/// for an Ethernet-sized one, several times for short ones) and doubles the requested length.
const BUFFER_FACTOR: usize = 2;

/// Socket and control addresses of a receive endpoint or destination. Built by the conductor, owned by the receiver.
#[doc(alias = "ReceiveDestinationTransport")]
#[derive(Debug)]
pub(crate) struct ReceiveTransport {
    pub(super) id: TransportId,
    pub(super) transport: Box<dyn Transport>,
    control_group: Option<SocketAddr>,
    pub(super) explicit_control: Option<SocketAddr>,
    /// Time of the last SETUP request to the explicit control address.
    pub(super) last_elicited_ns: i64,
    /// Time without input after which the explicit control address is resolved again.
    pub(super) silence_timeout_ns: Option<i64>,
    /// Time at which a frame of a sender last arrived.
    pub(super) last_received_ns: i64,
    /// The socket supports scattered receive into the term buffer.
    pub(super) receives_parts: bool,
    pub(super) predictor: StreamPredictor,
    /// Receive buffer length last requested; `None` if the buffer does not grow.
    requested_length: Option<usize>,
    /// Slots of the next receive batch.
    pub(super) batch_slots: usize,
    /// Kernel drop counter at the last check.
    drops: u32,
    /// Queue of repeated status messages.
    pub(super) control_batch: ControlFrameBatch,
    channel: Arc<str>,
}

/// Result of sending a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendResult {
    Sent,
    /// The socket buffer is full; retry in the next duty cycle.
    SocketFull,
    /// An error, which was recorded. An immediate retry would not help.
    Failed,
}

impl ReceiveTransport {
    /// Sends what a layer of the socket has left to send, before it is closed.
    pub(crate) fn send_last(&mut self) {
        // Nothing of it is repeated: a peer that misses it notices the silence.
        let _ = self.transport.send(&[]);
    }

    /// Creates a transport on which nothing has arrived. `channel` is for error texts.
    #[must_use]
    pub(crate) fn new(spec: ReceiveTransportSpec, channel: Arc<str>) -> Self {
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
            silence_timeout_ns: spec.re_resolution_timeout_ns,
            last_elicited_ns: 0,
            last_received_ns: 0,
            control_batch: ControlFrameBatch::new(),
            channel,
        }
    }

    /// Returns the id.
    #[must_use]
    pub(crate) fn id(&self) -> TransportId {
        self.id
    }

    /// Returns the address for a reply or request to the sender at `source` (docs/spec/wire.md §5.1).
    pub(super) fn reply_address(&self, source: SocketAddr) -> SocketAddr {
        self.control_group.unwrap_or(source)
    }

    /// Returns the address for feedback to the sender at `source`. An explicit control address is resolved again when
    /// its sender moves (docs/spec/wire.md §5.2).
    pub(super) fn control_address(&self, source: SocketAddr) -> SocketAddr {
        self.known_control_address().unwrap_or(source)
    }

    /// Returns the feedback address if it is known before anything arrives.
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

    /// Grows the receive buffer for `window` bytes in flight. The length at least doubles, to limit the number of calls
    /// when thousands of streams are added.
    pub(super) fn grow_receive_buffer(
        &mut self,
        window: usize,
        now: Now,
        reporter: &mut ErrorReporter,
    ) {
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
            reporter.report(now, &self.channel, &error);
        }
    }

    /// Returns true if the kernel has dropped datagrams since the last call.
    pub(super) fn has_new_drops(&mut self) -> bool {
        let Some(drops) = self.transport.overflowed() else {
            return false;
        };
        std::mem::replace(&mut self.drops, drops) != drops
    }

    /// Returns the number of bytes in flight that fit into the receive buffer, unless datagrams are so short that the
    /// kernel charges more than four times their length. It is half of the requested length, of which the kernel
    /// reports the double.
    pub(super) fn window_capacity(&self) -> usize {
        self.transport.buffer_lengths().receive / (2 * BUFFER_FACTOR)
    }

    /// Sends one frame as a datagram.
    pub(super) fn send(
        &mut self,
        to: SocketAddr,
        frame: &[u8],
        now: Now,
        counters: &ReceiverCounters,
        reporter: &mut ErrorReporter,
    ) -> SendResult {
        match self.transport.send(&[Transmit::to(to, frame)]) {
            Ok(sent) if sent == frame.len() => SendResult::Sent,
            Ok(_) => {
                counters.short_sends.increment();
                SendResult::SocketFull
            }
            Err(error) => {
                counters.short_sends.increment();
                reporter.report(now, &self.channel, &error);
                SendResult::Failed
            }
        }
    }

    /// Queues a repeated status message for the next batch. Returns `None` if it has to be sent now.
    pub(super) fn enqueue_status(
        &mut self,
        to: SocketAddr,
        frame: &[u8],
        now: Now,
        counters: &ReceiverCounters,
        reporter: &mut ErrorReporter,
    ) -> Option<BatchId> {
        if self.control_batch.must_flush_for(frame.len(), Some(to)) {
            self.send_control_batch(now, counters, reporter);
        }
        let is_accepted = self.control_batch.accepts(frame.len(), Some(to));
        is_accepted.then(|| self.control_batch.add(frame, Some(to), now))
    }

    /// Sends the queued status messages, each as a datagram of its own.
    pub(super) fn send_control_batch(
        &mut self,
        now: Now,
        counters: &ReceiverCounters,
        reporter: &mut ErrorReporter,
    ) {
        let transmit = self.control_batch.transmit();
        let length = transmit.payload.len();
        let sent = self.transport.send(&[transmit]).unwrap_or_else(|error| {
            reporter.report(now, &self.channel, &error);
            0
        });
        if sent < length {
            counters.short_sends.increment();
        }
        let tried = self.control_batch.on_sent(sent);
        counters.status_messages_sent.add(tried as i64);
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }
}
