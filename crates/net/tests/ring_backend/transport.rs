// SPDX-License-Identifier: Apache-2.0
//! A socket of a host.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use taran_net::{
    AgentRole, Arrivals, BufferLengths, Capabilities, NetError, PollSource, ReceiveBatch, Received,
    Transmit, TransmitLayout, TransmitScratch, Transport,
};

use crate::network::{BACKEND, Host, LENGTHS, Wire};
use crate::queue::{AgentRings, FRAME_LENGTH, Mailbox, Packet, Queue};

/// Bytes of a frame that headers take.
const HEADERS: usize = 42;
const MAX_DATAGRAM: usize = FRAME_LENGTH - HEADERS;

#[derive(Debug)]
pub(crate) struct RingTransport {
    pub(crate) wire: Wire,
    pub(crate) host: Arc<Host>,
    pub(crate) agent: AgentRole,
    /// Index among the sockets of the queue.
    pub(crate) id: usize,
    pub(crate) local: SocketAddr,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) mailbox: Arc<Mutex<Mailbox>>,
}

impl RingTransport {
    fn queue(&self) -> &Queue {
        self.host.queue(self.agent)
    }

    /// Puts a datagram that `write` writes into the transmit ring. Returns false if no frame is free.
    fn queue_datagram(
        &self,
        agent: &mut AgentRings,
        destination: Option<SocketAddr>,
        length: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<bool, NetError> {
        let Some(destination) = destination.or(self.peer) else {
            return Err(NetError::NoDestination { local: self.local });
        };
        if length > MAX_DATAGRAM {
            return Err(NetError::TooLong {
                local: self.local,
                destination,
                length,
                max: MAX_DATAGRAM,
            });
        }
        let mut frame = agent.take_free(&self.host.shared);
        if frame.is_none() {
            // Starts the queued ones, and collects the frames of those before.
            for _ in 0..2 {
                self.wire.transmit(&self.host, agent);
            }
            frame = agent.take_free(&self.host.shared);
        }
        let Some(mut frame) = frame else {
            return Ok(false);
        };
        write(frame.memory(length));
        agent.transmit.push_back(Packet {
            frame,
            length,
            source: self.local,
            destination,
        });
        if agent.has_full_ring() {
            self.wire.transmit(&self.host, agent);
        }
        Ok(true)
    }

    /// Queues datagrams, given as (destination, length, how to write them), until one is refused.
    fn queue_all<W: FnOnce(&mut [u8])>(
        &self,
        datagrams: impl Iterator<Item = (Option<SocketAddr>, usize, W)>,
    ) -> Result<usize, NetError> {
        let mut agent = self.queue().agent();
        let (mut accepted, mut failure) = (0, None);
        for (destination, length, write) in datagrams {
            match self.queue_datagram(&mut agent, destination, length, write) {
                Ok(true) => accepted += length,
                Ok(false) => break,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        // Nothing else starts the transmission for an agent without a poller.
        if self.queue().waker.lock().unwrap().is_none() {
            self.wire.transmit(&self.host, &mut agent);
        }
        match failure {
            Some(error) if accepted == 0 => Err(error),
            _ => Ok(accepted),
        }
    }

    /// Sorts the receive ring if the mailbox is empty.
    fn look(&self, agent: &mut AgentRings) {
        let is_empty = self.mailbox.lock().unwrap().packets.is_empty();
        if is_empty {
            self.queue().sort(agent, &self.host.shared);
        }
    }
}

impl Transport for RingTransport {
    fn send(&mut self, batch: &[Transmit<'_>]) -> Result<usize, NetError> {
        self.queue_all(batch.iter().flat_map(|transmit| {
            transmit.datagrams().map(|datagram| {
                let write = |memory: &mut [u8]| memory.copy_from_slice(datagram);
                (transmit.destination, datagram.len(), write)
            })
        }))
    }

    /// Writes into the frames that are sent.
    fn send_with(
        &mut self,
        layout: TransmitLayout,
        _scratch: &mut TransmitScratch,
        write: &mut dyn FnMut(usize, &mut [u8]),
    ) -> Result<usize, NetError> {
        let write = &RefCell::new(write);
        self.queue_all(layout.lengths().enumerate().map(|(index, length)| {
            let write = move |memory: &mut [u8]| (write.borrow_mut())(index, memory);
            (layout.destination, length, write)
        }))
    }

    fn receive(&mut self, batch: &mut ReceiveBatch) -> Result<usize, NetError> {
        batch.clear();
        let mut agent = self.queue().agent();
        self.look(&mut agent);
        let mut mailbox = self.mailbox.lock().unwrap();
        while let Some(packet) = mailbox.packets.pop_front() {
            if !batch.push_coalesced(packet.source, None, packet.bytes()) {
                mailbox.packets.push_front(packet);
                break;
            }
            agent.release(packet.frame, &self.host.shared);
        }
        Ok(batch.datagram_count())
    }

    /// Joins datagrams of one source that have the same length: one copy, from the frames to where they belong.
    fn receive_parts(
        &mut self,
        head: &mut [u8],
        rest: &mut [u8],
    ) -> Result<Option<Received>, NetError> {
        let mut agent = self.queue().agent();
        self.look(&mut agent);
        let mut mailbox = self.mailbox.lock().unwrap();
        let Some(first) = mailbox.packets.front() else {
            return Ok(None);
        };
        let (source, stride) = (first.source, first.length);
        let capacity = head.len() + rest.len();
        let mut length = 0;
        while let Some(next) = mailbox.packets.pop_front_if(|next| {
            next.source == source
                && next.length <= stride
                && length % stride.max(1) == 0
                && length + next.length <= capacity
        }) {
            let bytes = next.bytes();
            let in_head = bytes.len().min(head.len().saturating_sub(length));
            let at = length.min(head.len());
            head[at..at + in_head].copy_from_slice(&bytes[..in_head]);
            let behind = (length + in_head).saturating_sub(head.len());
            rest[behind..][..bytes.len() - in_head].copy_from_slice(&bytes[in_head..]);
            length += bytes.len();
            agent.release(next.frame, &self.host.shared);
        }
        Ok(Some(Received {
            source,
            length,
            stride,
            timestamp_ns: None,
        }))
    }

    fn connect(&mut self, peer: SocketAddr) -> Result<(), NetError> {
        self.peer = Some(peer);
        self.mailbox.lock().unwrap().peer = Some(peer);
        Ok(())
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn poll_source(&self) -> PollSource {
        PollSource::new(BACKEND, Arrivals::Queue(self.id))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::PLAIN
            .with_backend(BACKEND)
            .with_queued_sends()
            .with_coalescing(true)
            .with_parts(true)
            .with_max_datagram(MAX_DATAGRAM)
    }

    fn buffer_lengths(&self) -> BufferLengths {
        LENGTHS
    }

    fn overflowed(&self) -> Option<u32> {
        let of_queue = self.queue().dropped.load(Ordering::Relaxed);
        Some(self.mailbox.lock().unwrap().overflowed + of_queue)
    }
}

impl Drop for RingTransport {
    fn drop(&mut self) {
        self.queue().sockets.lock().unwrap()[self.id] = None;
        let mut mailbox = self.mailbox.lock().unwrap();
        let frames = mailbox.packets.drain(..).map(|packet| packet.frame);
        self.host.shared.lock().unwrap().fill.extend(frames);
    }
}
