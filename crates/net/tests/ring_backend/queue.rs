//! The queue of one agent: rings and frames that all its sockets share.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::task::Waker;

/// Bytes of a frame.
pub(crate) const FRAME_LENGTH: usize = 4_096;
/// Frames for each direction.
const FRAMES: usize = 2_048;
/// Most frames in the mailbox of one socket, so that a flooded socket leaves frames to the others.
pub(crate) const MAILBOX: usize = 1_024;

/// A datagram in a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    pub(crate) frame: usize,
    pub(crate) length: usize,
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
}

/// Frames of one direction.
#[derive(Debug)]
pub(crate) struct Frames {
    memory: Box<[u8]>,
    free: Vec<usize>,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            memory: vec![0; FRAMES * FRAME_LENGTH].into_boxed_slice(),
            free: (0..FRAMES).collect(),
        }
    }
}

impl Frames {
    /// Copies a datagram into a free frame, if there is one.
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> Option<usize> {
        let frame = self.free.pop()?;
        self.memory[frame * FRAME_LENGTH..][..bytes.len()].copy_from_slice(bytes);
        Some(frame)
    }

    pub(crate) fn bytes(&self, of: &Descriptor) -> &[u8] {
        &self.memory[of.frame * FRAME_LENGTH..][..of.length]
    }

    pub(crate) fn release(&mut self, frame: usize) {
        self.free.push(frame);
    }

    pub(crate) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    fn are_all_free(&self) -> bool {
        self.free.len() == FRAMES
    }
}

/// The queue of one agent.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) receive: Frames,
    pub(crate) receive_ring: VecDeque<Descriptor>,
    pub(crate) transmit: Frames,
    pub(crate) transmit_ring: VecDeque<Descriptor>,
    /// Set if the agent has a poller, which flushes.
    pub(crate) waker: Option<Waker>,
    /// Datagrams dropped because no frame was free.
    pub(crate) dropped: u32,
}

impl Queue {
    /// Receives a datagram from the wire.
    pub(crate) fn arrive(&mut self, bytes: &[u8], source: SocketAddr, destination: SocketAddr) {
        let Some(frame) = self.receive.fill(bytes) else {
            self.dropped += 1;
            return;
        };
        self.receive_ring.push_back(Descriptor {
            frame,
            length: bytes.len(),
            source,
            destination,
        });
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.receive.are_all_free() && self.transmit.are_all_free()
    }
}
