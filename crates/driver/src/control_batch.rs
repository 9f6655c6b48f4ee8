// SPDX-License-Identifier: Apache-2.0
//! Batch of control frames of many streams (heartbeats, repeated status messages), sent with one system call.
//!
//! Thousands of idle streams send ten heartbeats or five status messages per second each. One call per frame would take
//! more time than a busy stream on the same agent has. Each frame remains a datagram of its own: the batch is one send
//! with segmentation offload.
//!
//! Contract: [`ControlFrameBatch::add`] a frame if the batch [`accepts`](ControlFrameBatch::accepts) it; when the batch
//! [`is_due`](ControlFrameBatch::is_due), send [`transmit`](ControlFrameBatch::transmit) and report the bytes taken
//! with [`on_sent`](ControlFrameBatch::on_sent). A stream that has newer information to send first flushes the batch if
//! that still [`contains`](ControlFrameBatch::contains) its frame. Frames that the socket did not take are lost like
//! any datagram: they are repeated soon.

use std::net::SocketAddr;

use taran_core::clock::Now;
use taran_net::Transmit;

/// Maximum number of frames in a batch: the number of segments that kernels split one send into.
const MAX_FRAMES: usize = 64;
/// Length in bytes of the longest frame: a status message with a group tag.
const MAX_FRAME_LENGTH: usize = 44;
/// Longest delay of a frame, unless duty cycles are longer.
const MAX_DELAY_NS: i64 = 1_000_000;
/// Fewest streams on a socket for which frames are batched. With fewer, each frame is sent at once.
const MIN_STREAMS: usize = 9;

/// Identity of a batch: frames that are sent together have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchId(u64);

/// Frames of one length to one address that are sent next.
#[derive(Debug)]
pub(crate) struct ControlFrameBatch {
    bytes: Vec<u8>,
    frame_length: usize,
    to: Option<SocketAddr>,
    id: BatchId,
    /// Time at which the first frame was added.
    since_ns: i64,
    is_enabled: bool,
}

impl ControlFrameBatch {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(MAX_FRAMES * MAX_FRAME_LENGTH),
            frame_length: 0,
            to: None,
            id: BatchId(0),
            since_ns: 0,
            is_enabled: false,
        }
    }

    /// Sets the number of streams that share the socket.
    pub(crate) fn set_stream_count(&mut self, streams: usize) {
        self.is_enabled = streams >= MIN_STREAMS;
    }

    /// Returns true if a frame of this length to this address may be added.
    pub(crate) fn accepts(&self, length: usize, to: Option<SocketAddr>) -> bool {
        let is_alike = self.bytes.is_empty() || (length, to) == (self.frame_length, self.to);
        self.is_enabled && is_alike && length <= MAX_FRAME_LENGTH && !self.is_full()
    }

    /// Returns true if the batch has to be sent before a frame of this length to this address can be added.
    pub(crate) fn must_flush_for(&self, length: usize, to: Option<SocketAddr>) -> bool {
        self.has_frames() && !self.accepts(length, to)
    }

    /// Adds a frame. `to` as for [`Transmit`].
    pub(crate) fn add(&mut self, frame: &[u8], to: Option<SocketAddr>, now: Now) -> BatchId {
        if self.bytes.is_empty() {
            (self.frame_length, self.to, self.since_ns) = (frame.len(), to, now.nanos);
        }
        self.bytes.extend_from_slice(frame);
        self.id
    }

    /// Returns true if the batch with this id was not sent yet.
    #[inline]
    pub(crate) fn contains(&self, id: Option<BatchId>) -> bool {
        id == Some(self.id)
    }

    pub(crate) fn has_frames(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Returns true if the batch should be sent: it is full or late, or the agent is idle.
    pub(crate) fn is_due(&self, is_agent_idle: bool, now: Now) -> bool {
        let is_late = || now.nanos.saturating_sub(self.since_ns) >= MAX_DELAY_NS;
        self.has_frames() && (is_agent_idle || self.is_full() || is_late())
    }

    /// Returns all frames, one per segment.
    pub(crate) fn transmit(&self) -> Transmit<'_> {
        Transmit {
            destination: self.to,
            ..Transmit::connected(&self.bytes).segmented(self.frame_length)
        }
    }

    /// Clears the batch after a send of which the socket took `bytes`. Returns the number of frames tried: those that
    /// were taken, and the one after them.
    pub(crate) fn on_sent(&mut self, bytes: usize) -> usize {
        let tried = self.bytes.len().min(bytes + self.frame_length);
        self.bytes.clear();
        self.id = BatchId(self.id.0.wrapping_add(1));
        tried / self.frame_length.max(1)
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= MAX_FRAMES * self.frame_length.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: [u8; 32] = [7; 32];

    fn enabled_batch() -> ControlFrameBatch {
        let mut batch = ControlFrameBatch::new();
        batch.set_stream_count(MIN_STREAMS);
        batch
    }

    fn at(nanos: i64) -> Now {
        Now {
            nanos,
            epoch_millis: 0,
        }
    }

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[test]
    fn batch_with_few_streams_accepts_nothing() {
        let mut batch = ControlFrameBatch::new();
        assert!(!batch.accepts(32, None));
        batch.set_stream_count(MIN_STREAMS - 1);
        assert!(!batch.accepts(32, None));
        batch.set_stream_count(MIN_STREAMS);
        assert!(batch.accepts(32, None));
    }

    #[test]
    fn accepts_only_frames_of_same_length_and_address() {
        let mut batch = enabled_batch();
        assert!(batch.accepts(44, Some(address(1))) && !batch.accepts(45, None));
        batch.add(&FRAME, Some(address(1)), at(0));
        assert!(batch.accepts(32, Some(address(1))));
        assert!(!batch.accepts(44, Some(address(1))));
        assert!(!batch.accepts(32, Some(address(2))));
        assert!(!batch.accepts(32, None));
        assert_eq!(batch.transmit().destination, Some(address(1)));
    }

    #[test]
    fn batch_is_due_after_1ms_or_when_agent_is_idle() {
        let mut batch = enabled_batch();
        assert!(!batch.is_due(true, at(0)), "empty");
        batch.add(&FRAME, None, at(100));
        batch.add(&FRAME, None, at(100 + MAX_DELAY_NS - 1));
        assert!(!batch.is_due(false, at(100 + MAX_DELAY_NS - 1)));
        assert!(batch.is_due(true, at(101)));
        assert!(batch.is_due(false, at(100 + MAX_DELAY_NS)));
        assert_eq!(batch.transmit().datagrams().count(), 2);
    }

    #[test]
    fn full_batch_is_due_at_once() {
        let mut batch = enabled_batch();
        for _ in 0..MAX_FRAMES {
            assert!(batch.accepts(32, None) && !batch.is_due(false, at(0)));
            batch.add(&FRAME, None, at(0));
        }
        assert!(!batch.accepts(32, None) && batch.is_due(false, at(0)));
    }

    #[test]
    fn contains_is_true_until_batch_is_sent() {
        let mut batch = enabled_batch();
        assert!(!batch.contains(None));
        let first = batch.add(&FRAME, None, at(0));
        assert!(batch.contains(Some(first)));
        assert_eq!(batch.on_sent(32), 1);
        assert!(!batch.contains(Some(first)) && !batch.is_due(true, at(i64::MAX)));
        let second = batch.add(&FRAME, None, at(5));
        assert!(batch.contains(Some(second)) && !batch.contains(Some(first)));
    }

    #[test]
    fn on_sent_after_short_send_drops_remaining_frames() {
        for (taken, tried) in [(0, 1), (1, 2), (3, 4), (4, 4)] {
            let mut batch = enabled_batch();
            for _ in 0..4 {
                batch.add(&FRAME, None, at(0));
            }
            assert_eq!(batch.on_sent(taken * FRAME.len()), tried);
            assert!(!batch.has_frames());
        }
    }
}
