//! Hosts with rings, on a wire in memory.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;

use taran_net::{
    AgentRole, Arrivals, BufferLengths, BufferLimits, Capabilities, Interface, NetError, Network,
    PollSource, Poller, ReceiveBatch, Received, SocketSpec, Transmit, Transport,
    UnconditionalPoller,
};

use crate::queue::{Descriptor, FRAME_LENGTH, MAILBOX, Queue};

/// Bytes of a frame that headers take.
const HEADERS: usize = 42;

const LENGTHS: BufferLengths = BufferLengths {
    send: 4 << 20,
    receive: 4 << 20,
};

/// All hosts. Clones are the same wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wire(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    hosts: Vec<Host>,
    transmissions: usize,
}

#[derive(Debug)]
struct Host {
    address: IpAddr,
    /// One for each agent.
    queues: [Queue; 3],
    sockets: Vec<Option<Socket>>,
    next_port: u16,
}

#[derive(Debug)]
struct Socket {
    role: usize,
    local: SocketAddr,
    peer: Option<SocketAddr>,
    mailbox: VecDeque<Descriptor>,
    overflowed: u32,
}

fn role(agent: AgentRole) -> usize {
    match agent {
        AgentRole::Conductor => 0,
        AgentRole::Sender => 1,
        AgentRole::Receiver => 2,
    }
}

impl Wire {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Returns the number of times that a transmit ring was started.
    pub(crate) fn transmissions(&self) -> usize {
        self.lock().transmissions
    }

    /// Returns true if no frame is in use, after sorting what is in the rings.
    pub(crate) fn is_clean(&self) -> bool {
        let mut state = self.lock();
        for host in &mut state.hosts {
            (0..host.queues.len()).for_each(|queue| host.sort(queue));
        }
        let mut queues = state.hosts.iter().flat_map(|host| &host.queues);
        queues.all(Queue::is_clean)
    }
}

impl State {
    /// Moves the frames of a transmit ring to their destinations.
    fn transmit(&mut self, host: usize, queue: usize) {
        if self.hosts[host].queues[queue].transmit_ring.is_empty() {
            return;
        }
        self.transmissions += 1;
        let mut datagram = [0; FRAME_LENGTH];
        while let Some(sent) = self.hosts[host].queues[queue].transmit_ring.pop_front() {
            let frames = &mut self.hosts[host].queues[queue].transmit;
            datagram[..sent.length].copy_from_slice(frames.bytes(&sent));
            frames.release(sent.frame);
            let to = sent.destination;
            if let Some(host) = self.hosts.iter_mut().find(|host| host.address == to.ip())
                && let Some(role) = host.role_of(to)
            {
                host.queues[role].arrive(&datagram[..sent.length], sent.source, to);
            }
        }
    }
}

impl Host {
    /// Returns the queue of the socket at an address.
    fn role_of(&self, local: SocketAddr) -> Option<usize> {
        let mut sockets = self.sockets.iter().flatten();
        let socket = sockets.find(|socket| socket.local == local)?;
        Some(socket.role)
    }

    /// Sorts a receive ring into mailboxes.
    fn sort(&mut self, queue: usize) {
        let queue = &mut self.queues[queue];
        while let Some(datagram) = queue.receive_ring.pop_front() {
            let mut sockets = self.sockets.iter_mut().flatten();
            let to = sockets.find(|socket| socket.local == datagram.destination);
            match to {
                Some(socket) if socket.peer.is_some_and(|peer| peer != datagram.source) => {
                    queue.receive.release(datagram.frame);
                }
                Some(socket) if socket.mailbox.len() < MAILBOX => {
                    socket.mailbox.push_back(datagram);
                }
                Some(socket) => {
                    socket.overflowed += 1;
                    queue.receive.release(datagram.frame);
                }
                None => queue.receive.release(datagram.frame),
            }
        }
    }

    /// Returns a socket, with the queue that it shares. Its mailbox is filled if it was empty.
    fn receiving(&mut self, id: usize) -> (&mut Socket, &mut Queue) {
        let role = self.sockets[id].as_ref().unwrap().role;
        if self.sockets[id].as_ref().unwrap().mailbox.is_empty() {
            self.sort(role);
        }
        (self.sockets[id].as_mut().unwrap(), &mut self.queues[role])
    }
}

/// A host.
#[derive(Debug)]
pub(crate) struct RingNetwork {
    wire: Wire,
    host: usize,
    address: IpAddr,
}

impl RingNetwork {
    pub(crate) fn new(wire: &Wire, address: IpAddr) -> Self {
        let mut state = wire.lock();
        state.hosts.push(Host {
            address,
            queues: Default::default(),
            sockets: Vec::new(),
            next_port: 50_000,
        });
        Self {
            wire: wire.clone(),
            host: state.hosts.len() - 1,
            address,
        }
    }
}

impl Network for RingNetwork {
    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError> {
        let refused = |kind: io::ErrorKind| NetError::Bind {
            address: spec.bind,
            source: kind.into(),
        };
        if spec.bind.ip() != self.address {
            return Err(refused(io::ErrorKind::AddrNotAvailable));
        }
        let mut state = self.wire.lock();
        let host = &mut state.hosts[self.host];
        let mut local = spec.bind;
        if local.port() == 0 {
            local.set_port(host.next_port);
            host.next_port += 1;
        }
        if host.role_of(local).is_some() {
            return Err(refused(io::ErrorKind::AddrInUse));
        }
        host.sockets.push(Some(Socket {
            role: role(spec.agent),
            local,
            peer: spec.connect,
            mailbox: VecDeque::with_capacity(MAILBOX),
            overflowed: 0,
        }));
        Ok(Box::new(RingTransport {
            wire: self.wire.clone(),
            host: self.host,
            id: host.sockets.len() - 1,
            role: role(spec.agent),
            local,
            peer: spec.connect,
        }))
    }

    fn poller(&mut self, agent: AgentRole) -> Result<Box<dyn Poller>, NetError> {
        let thread = UnconditionalPoller::default();
        let queue = &mut self.wire.lock().hosts[self.host].queues[role(agent)];
        queue.waker = Some(thread.waker());
        Ok(Box::new(RingPoller {
            wire: self.wire.clone(),
            host: self.host,
            role: role(agent),
            sources: Vec::new(),
            ready: Vec::new(),
            thread,
        }))
    }

    fn buffer_limits(&mut self) -> Result<BufferLimits, NetError> {
        Ok(BufferLimits {
            default: LENGTHS,
            max: LENGTHS,
        })
    }

    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError> {
        Ok(vec![Interface {
            name: "ring0".to_owned(),
            index: 1,
            address: self.address,
            prefix: 24,
            up: true,
            multicast: false,
            loopback: false,
        }])
    }
}

/// Poller of one queue.
#[derive(Debug)]
struct RingPoller {
    wire: Wire,
    host: usize,
    role: usize,
    sources: Vec<PollSource>,
    ready: Vec<usize>,
    thread: UnconditionalPoller,
}

impl Poller for RingPoller {
    fn start(&mut self) {
        self.thread.start();
    }

    fn set_sources(&mut self, sources: &[PollSource]) {
        self.sources = sources.to_vec();
        self.ready = Vec::with_capacity(sources.len());
    }

    fn poll(&mut self, receive: &mut dyn FnMut(usize) -> usize) -> usize {
        self.ready.clear();
        {
            let mut state = self.wire.lock();
            state.transmit(self.host, self.role);
            let host = &mut state.hosts[self.host];
            host.sort(self.role);
            for (index, source) in self.sources.iter().enumerate() {
                let has_mail = match source.arrivals {
                    Arrivals::Queue(id) => {
                        let socket = host.sockets.get(id).and_then(Option::as_ref);
                        socket.is_some_and(|socket| !socket.mailbox.is_empty())
                    }
                    Arrivals::Unknown | Arrivals::Descriptor(_) => true,
                };
                if has_mail || source.is_always_ready {
                    self.ready.push(index);
                }
            }
        }
        self.ready.iter().map(|&index| receive(index)).sum()
    }

    fn flush(&mut self) {
        self.wire.lock().transmit(self.host, self.role);
    }

    fn wait(&mut self, max: Duration) {
        {
            let mut state = self.wire.lock();
            state.transmit(self.host, self.role);
            if !state.hosts[self.host].queues[self.role]
                .receive_ring
                .is_empty()
            {
                return;
            }
        }
        self.thread.wait(max);
    }

    fn waker(&self) -> Waker {
        self.thread.waker()
    }
}

/// A socket of a host.
#[derive(Debug)]
struct RingTransport {
    wire: Wire,
    host: usize,
    id: usize,
    role: usize,
    local: SocketAddr,
    peer: Option<SocketAddr>,
}

impl Transport for RingTransport {
    fn send(&mut self, batch: &[Transmit<'_>]) -> Result<usize, NetError> {
        let max = self.capabilities().max_datagram;
        let mut state = self.wire.lock();
        let mut accepted = 0;
        'batch: for transmit in batch {
            for datagram in transmit.datagrams() {
                let error = match transmit.destination.or(self.peer) {
                    None => Some(NetError::NoDestination { local: self.local }),
                    Some(destination) if datagram.len() > max => Some(NetError::Send {
                        local: self.local,
                        destination,
                        length: datagram.len(),
                        source: io::ErrorKind::InvalidInput.into(),
                    }),
                    Some(destination) => {
                        let queue = &mut state.hosts[self.host].queues[self.role];
                        if !queue.transmit.has_free() {
                            state.transmit(self.host, self.role);
                        }
                        let queue = &mut state.hosts[self.host].queues[self.role];
                        let Some(frame) = queue.transmit.fill(datagram) else {
                            return Ok(accepted);
                        };
                        queue.transmit_ring.push_back(Descriptor {
                            frame,
                            length: datagram.len(),
                            source: self.local,
                            destination,
                        });
                        accepted += datagram.len();
                        None
                    }
                };
                match error {
                    Some(error) if accepted == 0 => return Err(error),
                    // The accepted datagrams leave as below.
                    Some(_) => break 'batch,
                    None => {}
                }
            }
        }
        // Nothing else starts the transmission for an agent without a poller.
        if state.hosts[self.host].queues[self.role].waker.is_none() {
            state.transmit(self.host, self.role);
        }
        Ok(accepted)
    }

    fn receive(&mut self, batch: &mut ReceiveBatch) -> Result<usize, NetError> {
        batch.clear();
        let mut state = self.wire.lock();
        let (socket, queue) = state.hosts[self.host].receiving(self.id);
        while let Some(datagram) = socket.mailbox.front() {
            if !batch.push_coalesced(datagram.source, None, queue.receive.bytes(datagram)) {
                break;
            }
            queue.receive.release(datagram.frame);
            socket.mailbox.pop_front();
        }
        Ok(batch.datagram_count())
    }

    /// Joins datagrams of one source that have the same length: one copy, from the frames to where they belong.
    fn receive_parts(
        &mut self,
        head: &mut [u8],
        rest: &mut [u8],
    ) -> Result<Option<Received>, NetError> {
        let mut state = self.wire.lock();
        let (socket, queue) = state.hosts[self.host].receiving(self.id);
        let Some(first) = socket.mailbox.front().copied() else {
            return Ok(None);
        };
        let capacity = head.len() + rest.len();
        let mut length = 0;
        while let Some(next) = socket.mailbox.front().copied()
            && next.source == first.source
            && next.length <= first.length
            && length % first.length.max(1) == 0
            && length + next.length <= capacity
        {
            let bytes = queue.receive.bytes(&next);
            let in_head = bytes.len().min(head.len().saturating_sub(length));
            let at = length.min(head.len());
            head[at..at + in_head].copy_from_slice(&bytes[..in_head]);
            let behind = (length + in_head).saturating_sub(head.len());
            rest[behind..][..bytes.len() - in_head].copy_from_slice(&bytes[in_head..]);
            length += bytes.len();
            queue.receive.release(next.frame);
            socket.mailbox.pop_front();
        }
        Ok(Some(Received {
            source: first.source,
            length,
            stride: first.length,
            timestamp_ns: None,
        }))
    }

    fn connect(&mut self, peer: SocketAddr) -> Result<(), NetError> {
        self.peer = Some(peer);
        let mut state = self.wire.lock();
        state.hosts[self.host].sockets[self.id]
            .as_mut()
            .unwrap()
            .peer = Some(peer);
        Ok(())
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn poll_source(&self) -> PollSource {
        PollSource::new(Arrivals::Queue(self.id))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            coalesces: true,
            receives_parts: true,
            max_datagram: FRAME_LENGTH - HEADERS,
            ..Capabilities::PLAIN
        }
    }

    fn buffer_lengths(&self) -> BufferLengths {
        LENGTHS
    }

    fn overflowed(&self) -> Option<u32> {
        let state = self.wire.lock();
        let host = &state.hosts[self.host];
        let socket = host.sockets[self.id].as_ref().unwrap();
        Some(socket.overflowed + host.queues[self.role].dropped)
    }
}

impl Drop for RingTransport {
    fn drop(&mut self) {
        let mut state = self.wire.lock();
        let host = &mut state.hosts[self.host];
        let Some(socket) = host.sockets[self.id].take() else {
            return;
        };
        for datagram in socket.mailbox {
            host.queues[socket.role].receive.release(datagram.frame);
        }
    }
}
