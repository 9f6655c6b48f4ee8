// SPDX-License-Identifier: Apache-2.0
//! Hosts with rings, on a wire in memory.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::task::Waker;
use std::time::Duration;

use taran_net::{
    AgentRole, Arrivals, BufferLengths, BufferLimits, Interface, NetError, Network, PollSource,
    Poller, SocketSpec, Transport, UnconditionalPoller,
};

use crate::queue::{
    AgentRings, FRAMES, Frame, Mailbox, Packet, Queue, SharedRings, Socket, shared_frames,
};
use crate::transport::RingTransport;

/// Name of this backend.
pub(crate) const BACKEND: &str = "ring";

pub(crate) const LENGTHS: BufferLengths = BufferLengths {
    send: 4 << 20,
    receive: 4 << 20,
};

/// All hosts. Clones are the same wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wire(Arc<State>);

#[derive(Debug, Default)]
struct State {
    hosts: RwLock<Vec<Arc<Host>>>,
    transmissions: AtomicUsize,
    holds_completions: AtomicBool,
}

/// A host: one card, and one queue for each agent.
#[derive(Debug)]
pub(crate) struct Host {
    address: IpAddr,
    queues: [Queue; 3],
    pub(crate) shared: Mutex<SharedRings>,
    /// Frames that the card has not completed yet.
    sent: Mutex<Vec<Frame>>,
    next_port: AtomicU16,
}

impl Wire {
    /// Returns the number of times that a transmit ring was started.
    pub(crate) fn transmissions(&self) -> usize {
        self.0.transmissions.load(Ordering::Relaxed)
    }

    /// Makes the cards keep the frames that they transmit, or complete them again.
    pub(crate) fn hold_completions(&self, hold: bool) {
        self.0.holds_completions.store(hold, Ordering::Relaxed);
    }

    /// Returns true if no frame is lost or in use, after sorting what is in the rings.
    pub(crate) fn is_clean(&self) -> bool {
        let hosts = self.0.hosts.read().unwrap();
        hosts.iter().all(|host| {
            for queue in &host.queues {
                queue.sort(&mut queue.agent(), &host.shared);
            }
            let of_agents: usize = host.queues.iter().map(Queue::free_frames).sum();
            let sent = host.sent.lock().unwrap().len();
            of_agents + sent + shared_frames(&host.shared) == 2 * FRAMES
        })
    }

    /// Transmits the datagrams of a transmit ring. Their frames come back through the completion ring by the next
    /// transmission, which need not have any.
    pub(crate) fn transmit(&self, host: &Host, agent: &mut AgentRings) {
        if !self.0.holds_completions.load(Ordering::Relaxed) {
            let mut sent = host.sent.lock().unwrap();
            host.shared.lock().unwrap().completion.append(&mut sent);
        }
        if agent.transmit.is_empty() {
            return;
        }
        self.0.transmissions.fetch_add(1, Ordering::Relaxed);
        for packet in agent.transmit.drain(..) {
            self.deliver(&packet);
            host.sent.lock().unwrap().push(packet.frame);
        }
    }

    /// Copies a datagram into a frame of its destination.
    fn deliver(&self, packet: &Packet) {
        let hosts = self.0.hosts.read().unwrap();
        let to = packet.destination;
        let Some(host) = hosts.iter().find(|host| host.address == to.ip()) else {
            return;
        };
        let Some(queue) = host.queues.iter().find(|queue| owns(queue, to)) else {
            return;
        };
        let Some(mut frame) = host.shared.lock().unwrap().fill.pop() else {
            queue.drop_arrival();
            return;
        };
        frame.memory(packet.length).copy_from_slice(packet.bytes());
        queue.arrive(Packet { frame, ..*packet });
    }
}

/// Returns true if a socket of the queue has this address.
fn owns(queue: &Queue, local: SocketAddr) -> bool {
    let sockets = queue.sockets.lock().unwrap();
    sockets.iter().flatten().any(|socket| socket.local == local)
}

impl Host {
    pub(crate) fn queue(&self, agent: AgentRole) -> &Queue {
        &self.queues[match agent {
            AgentRole::Conductor => 0,
            AgentRole::Sender => 1,
            AgentRole::Receiver => 2,
        }]
    }
}

/// The network of a host. Clones are the same host.
#[derive(Clone, Debug)]
pub(crate) struct RingNetwork {
    wire: Wire,
    host: Arc<Host>,
}

impl RingNetwork {
    pub(crate) fn new(wire: &Wire, address: IpAddr) -> Self {
        let host = Arc::new(Host {
            address,
            queues: Default::default(),
            shared: Mutex::default(),
            sent: Mutex::new(Vec::with_capacity(FRAMES)),
            next_port: AtomicU16::new(50_000),
        });
        wire.0.hosts.write().unwrap().push(Arc::clone(&host));
        Self {
            wire: wire.clone(),
            host,
        }
    }

    /// Returns the addresses of the frames in the transmit ring of an agent.
    pub(crate) fn queued_frames(&self, agent: AgentRole) -> Vec<usize> {
        let agent = self.host.queue(agent).agent();
        let packets = agent.transmit.iter();
        packets
            .map(|packet| packet.bytes().as_ptr().addr())
            .collect()
    }
}

impl Network for RingNetwork {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError> {
        spec.check_backend(BACKEND)?;
        let refused = |kind: io::ErrorKind| NetError::Bind {
            address: spec.bind,
            source: kind.into(),
        };
        let mut local = spec.bind;
        if local.ip().is_unspecified() {
            local.set_ip(self.host.address);
        }
        if local.ip() != self.host.address {
            return Err(refused(io::ErrorKind::AddrNotAvailable));
        }
        if local.port() == 0 {
            local.set_port(self.host.next_port.fetch_add(1, Ordering::Relaxed));
        }
        if self.host.queues.iter().any(|queue| owns(queue, local)) {
            return Err(refused(io::ErrorKind::AddrInUse));
        }
        let mailbox = Arc::new(Mutex::new(Mailbox::new(spec.connect)));
        let mut sockets = self.host.queue(spec.agent).sockets.lock().unwrap();
        sockets.push(Some(Socket {
            local,
            mailbox: Arc::clone(&mailbox),
        }));
        Ok(Box::new(RingTransport {
            wire: self.wire.clone(),
            host: Arc::clone(&self.host),
            agent: spec.agent,
            id: sockets.len() - 1,
            local,
            peer: spec.connect,
            mailbox,
        }))
    }

    fn poller(&mut self, agent: AgentRole) -> Result<Box<dyn Poller>, NetError> {
        let thread = UnconditionalPoller::default();
        *self.host.queue(agent).waker.lock().unwrap() = Some(thread.waker());
        Ok(Box::new(RingPoller {
            wire: self.wire.clone(),
            host: Arc::clone(&self.host),
            agent,
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
            address: self.host.address,
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
    host: Arc<Host>,
    agent: AgentRole,
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
            let queue = self.host.queue(self.agent);
            let mut agent = queue.agent();
            self.wire.transmit(&self.host, &mut agent);
            queue.sort(&mut agent, &self.host.shared);
            let sockets = queue.sockets.lock().unwrap();
            for (index, source) in self.sources.iter().enumerate() {
                let has_mail = match source.arrivals {
                    Arrivals::Queue(id) => {
                        let socket = sockets.get(id).and_then(Option::as_ref);
                        socket.is_some_and(|it| !it.mailbox.lock().unwrap().packets.is_empty())
                    }
                    _ => true,
                };
                if has_mail || source.is_always_ready {
                    self.ready.push(index);
                }
            }
        }
        self.ready.iter().map(|&index| receive(index)).sum()
    }

    fn flush(&mut self) {
        let mut agent = self.host.queue(self.agent).agent();
        self.wire.transmit(&self.host, &mut agent);
    }

    fn wait(&mut self, max: Duration) {
        self.flush();
        if !self.host.queue(self.agent).has_arrivals() {
            self.thread.wait(max);
        }
    }

    fn waker(&self) -> Waker {
        self.thread.waker()
    }
}
