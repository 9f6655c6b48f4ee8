// SPDX-License-Identifier: Apache-2.0
//! Rings and frames of a host.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

/// Bytes of a frame.
pub(crate) const FRAME_LENGTH: usize = 4_096;
/// Frames of a host for each direction.
pub(crate) const FRAMES: usize = 2_048;
/// Frames that an agent takes from, or gives to, the rings that all agents of the host share, at once.
const BATCH: usize = 64;
/// Entries of a transmit ring. A full ring starts the transmission.
const TRANSMIT_RING: usize = 512;
/// Maximum number of frames in the mailbox of one socket, so that a flooded socket leaves frames to the others.
const MAILBOX: usize = 1_024;

/// Memory for a datagram. Moves from ring to ring, so that it has one owner at a time.
#[derive(Debug)]
pub(crate) struct Frame(Box<[u8; FRAME_LENGTH]>);

impl Frame {
    fn stock() -> Vec<Self> {
        (0..FRAMES)
            .map(|_| Self(Box::new([0; FRAME_LENGTH])))
            .collect()
    }

    pub(crate) fn memory(&mut self, length: usize) -> &mut [u8] {
        &mut self.0[..length]
    }
}

/// A datagram in a frame: an entry of a receive or transmit ring.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) frame: Frame,
    pub(crate) length: usize,
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
}

impl Packet {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.frame.0[..self.length]
    }
}

/// Rings that the agents of a host share with each other and with the card. An agent locks them for a batch of frames,
/// not for each.
#[derive(Debug)]
pub(crate) struct SharedRings {
    /// Fill ring: frames for the card to receive into.
    pub(crate) fill: Vec<Frame>,
    /// Frames that the card has transmitted, whichever agent sent them. An agent without free frames takes them.
    pub(crate) completion: Vec<Frame>,
    /// Frames to send from.
    free: Vec<Frame>,
}

impl Default for SharedRings {
    fn default() -> Self {
        Self {
            fill: Frame::stock(),
            completion: Vec::with_capacity(FRAMES),
            free: Frame::stock(),
        }
    }
}

impl SharedRings {
    fn frames(&self) -> usize {
        self.fill.len() + self.completion.len() + self.free.len()
    }
}

/// The part of a queue that its agent owns.
#[derive(Debug)]
pub(crate) struct AgentRings {
    pub(crate) transmit: VecDeque<Packet>,
    /// Free frames to send from.
    free: Vec<Frame>,
    /// Frames whose datagrams were received, for the fill ring.
    received: Vec<Frame>,
}

impl Default for AgentRings {
    fn default() -> Self {
        Self {
            transmit: VecDeque::with_capacity(TRANSMIT_RING),
            free: Vec::with_capacity(BATCH),
            received: Vec::with_capacity(BATCH + 1),
        }
    }
}

impl AgentRings {
    /// Returns a free frame to send from; `None` if all frames of the host are on their way.
    pub(crate) fn take_free(&mut self, shared: &Mutex<SharedRings>) -> Option<Frame> {
        if self.free.is_empty() {
            let mut shared = shared.lock().unwrap();
            let SharedRings {
                completion, free, ..
            } = &mut *shared;
            free.append(completion);
            let rest = free.len().saturating_sub(BATCH);
            self.free.extend(free.drain(rest..));
        }
        self.free.pop()
    }

    /// Gives back the frame of a received datagram.
    pub(crate) fn release(&mut self, frame: Frame, shared: &Mutex<SharedRings>) {
        self.received.push(frame);
        if self.received.len() >= BATCH {
            self.refill(shared);
        }
    }

    /// Moves the frames of received datagrams to the fill ring.
    pub(crate) fn refill(&mut self, shared: &Mutex<SharedRings>) {
        if !self.received.is_empty() {
            shared.lock().unwrap().fill.append(&mut self.received);
        }
    }

    pub(crate) fn has_full_ring(&self) -> bool {
        self.transmit.len() >= TRANSMIT_RING
    }
}

/// Received datagrams of one socket.
#[derive(Debug)]
pub(crate) struct Mailbox {
    pub(crate) packets: VecDeque<Packet>,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) overflowed: u32,
}

impl Mailbox {
    pub(crate) fn new(peer: Option<SocketAddr>) -> Self {
        Self {
            packets: VecDeque::with_capacity(MAILBOX),
            peer,
            overflowed: 0,
        }
    }

    /// Takes a datagram, or returns the frame of one that is dropped.
    fn put(&mut self, packet: Packet) -> Option<Frame> {
        if self.peer.is_some_and(|peer| peer != packet.source) {
            return Some(packet.frame);
        }
        if self.packets.len() >= MAILBOX {
            self.overflowed += 1;
            return Some(packet.frame);
        }
        self.packets.push_back(packet);
        None
    }
}

/// A socket of a queue.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) local: SocketAddr,
    pub(crate) mailbox: Arc<Mutex<Mailbox>>,
}

/// The queue of one agent.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    agent: Mutex<AgentRings>,
    /// Receive ring: from the card to the agent.
    arrivals: Mutex<VecDeque<Packet>>,
    /// Changed when a socket is opened or closed.
    pub(crate) sockets: Mutex<Vec<Option<Socket>>>,
    /// Set if the agent has a poller, which flushes.
    pub(crate) waker: Mutex<Option<Waker>>,
    /// Datagrams dropped because the fill ring was empty.
    pub(crate) dropped: AtomicU32,
}

impl Queue {
    /// Returns the part of the agent. Fails if another thread uses it: the agents of a host share no queue.
    pub(crate) fn agent(&self) -> MutexGuard<'_, AgentRings> {
        self.agent.try_lock().expect("a queue belongs to one agent")
    }

    /// Puts a datagram into the receive ring.
    pub(crate) fn arrive(&self, packet: Packet) {
        self.arrivals.lock().unwrap().push_back(packet);
        if let Some(waker) = &*self.waker.lock().unwrap() {
            waker.wake_by_ref();
        }
    }

    pub(crate) fn drop_arrival(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn has_arrivals(&self) -> bool {
        !self.arrivals.lock().unwrap().is_empty()
    }

    fn next_arrival(&self) -> Option<Packet> {
        self.arrivals.lock().unwrap().pop_front()
    }

    /// Sorts the receive ring into mailboxes.
    pub(crate) fn sort(&self, agent: &mut AgentRings, shared: &Mutex<SharedRings>) {
        let sockets = self.sockets.lock().unwrap();
        while let Some(packet) = self.next_arrival() {
            let mut open = sockets.iter().flatten();
            let dropped = match open.find(|socket| socket.local == packet.destination) {
                Some(socket) => socket.mailbox.lock().unwrap().put(packet),
                None => Some(packet.frame),
            };
            if let Some(frame) = dropped {
                agent.release(frame, shared);
            }
        }
        agent.refill(shared);
    }

    /// Returns the number of frames that the agent has and that hold no datagram.
    pub(crate) fn free_frames(&self) -> usize {
        let agent = self.agent();
        agent.free.len() + agent.received.len()
    }
}

/// Returns the number of frames in the shared rings.
pub(crate) fn shared_frames(shared: &Mutex<SharedRings>) -> usize {
    shared.lock().unwrap().frames()
}
