// SPDX-License-Identifier: Apache-2.0
//! Several backends as one network: choice of a backend for each transport, and one poller for all.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "not all of it is used here")]
#[path = "ring_backend/network.rs"]
mod network;
#[allow(dead_code, reason = "not all of it is used here")]
#[path = "ring_backend/queue.rs"]
mod queue;
#[allow(dead_code, reason = "not all of it is used here")]
#[path = "ring_backend/transport.rs"]
mod transport;

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use network::{RingNetwork, Wire};
use taran_net::{
    AgentRole, Backends, BufferLimits, Interface, NetError, Network, PollSource, Poller,
    ReceiveBatch, SocketNetwork, SocketSpec, Transmit, Transport, conformance,
};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const LONG: Duration = Duration::from_secs(60);

fn settle() {
    thread::sleep(Duration::from_micros(50));
}

#[test]
fn first_of_several_backends_conforms() {
    let wire = Wire::default();
    let ring = |address| RingNetwork::new(&wire, address);
    let mut sockets_first = Backends::new(SocketNetwork::new()).with(ring(NEAR));
    conformance::run(&mut sockets_first, LOCALHOST, &mut settle);
    let mut ring_first = Backends::new(ring(FAR)).with(SocketNetwork::new());
    conformance::run(&mut ring_first, FAR, &mut settle);
    conformance::run(
        &mut Backends::new(SocketNetwork::new()),
        LOCALHOST,
        &mut settle,
    );
}

fn spec(address: IpAddr, backend: Option<&str>) -> SocketSpec {
    let spec = SocketSpec::bound(SocketAddr::new(address, 0)).used_by(AgentRole::Receiver);
    match backend {
        Some(backend) => spec.with_backend(backend),
        None => spec,
    }
}

#[test]
fn transport_is_opened_by_the_backend_that_its_specification_names() {
    let wire = Wire::default();
    let mut network = Backends::new(SocketNetwork::new()).with(RingNetwork::new(&wire, NEAR));
    assert_eq!(network.backend(), "sockets");
    for (address, backend, opened_by) in [
        (LOCALHOST, None, "sockets"),
        (LOCALHOST, Some("sockets"), "sockets"),
        (NEAR, Some("ring"), "ring"),
    ] {
        let transport = network.open(&spec(address, backend)).unwrap();
        assert_eq!(transport.capabilities().backend, opened_by);
    }
    let Err(refused) = network.open(&spec(LOCALHOST, Some("xdp"))) else {
        panic!("there is no such backend");
    };
    assert!(matches!(refused, NetError::Unavailable { .. }));
    assert!(refused.to_string().contains("sockets, ring"), "{refused}");
    let limits = SocketNetwork::new().buffer_limits().unwrap();
    assert_eq!(network.buffer_limits().unwrap(), limits);
    assert_eq!(network.buffer_limits_of("sockets").unwrap(), limits);
    let of_ring = network.buffer_limits_of("ring").unwrap();
    assert_eq!(of_ring.default, network::LENGTHS);
    network.buffer_limits_of("xdp").unwrap_err();
    let interfaces = network.interfaces().unwrap();
    let has = |address| interfaces.iter().any(|entry| entry.address == address);
    assert!(has(LOCALHOST) && has(NEAR), "{interfaces:?}");
}

/// An agent with transports of two backends, and senders to them.
struct Mixed {
    poller: Box<dyn Poller>,
    /// Ring, socket, ring, socket, ...
    transports: Vec<Box<dyn Transport>>,
    senders: Vec<Box<dyn Transport>>,
}

impl Mixed {
    fn new(pairs: usize) -> Self {
        let wire = Wire::default();
        let mut far = RingNetwork::new(&wire, FAR);
        let mut near = Backends::new(SocketNetwork::new()).with(RingNetwork::new(&wire, NEAR));
        let mut poller = near.poller(AgentRole::Receiver).unwrap();
        poller.start();
        let (mut transports, mut senders) = (Vec::new(), Vec::new());
        for _ in 0..pairs {
            let ring = near.open(&spec(NEAR, Some("ring"))).unwrap();
            let to_ring = spec(FAR, None).connected(ring.local_address());
            senders.push(far.open(&to_ring).unwrap());
            let socket = near.open(&spec(LOCALHOST, None)).unwrap();
            let to_socket = spec(LOCALHOST, None).connected(socket.local_address());
            senders.push(near.open(&to_socket).unwrap());
            transports.extend([ring, socket]);
        }
        let sources: Vec<_> = transports.iter().map(|each| each.poll_source()).collect();
        poller.set_sources(&sources);
        Self {
            poller,
            transports,
            senders,
        }
    }

    /// Polls once; returns the reported indices and those of them that received something.
    fn poll(&mut self) -> (Vec<usize>, Vec<usize>) {
        let mut batch = ReceiveBatch::new(4);
        let (mut reported, mut received) = (Vec::new(), Vec::new());
        let sum = self.poller.poll(&mut |index| {
            reported.push(index);
            let taken = self.transports[index].receive(&mut batch).unwrap();
            received.extend(vec![index; taken]);
            taken
        });
        assert_eq!(sum, received.len());
        (reported, received)
    }
}

#[test]
fn poll_reports_ready_transports_of_all_backends_in_order() {
    let mut agent = Mixed::new(8);
    for targets in [&[3][..], &[2], &[0, 1, 14, 15], &[7, 4, 2, 9], &[]] {
        for &target in targets {
            agent.senders[target]
                .send(&[Transmit::connected(b"frame")])
                .unwrap();
        }
        let mut expected = targets.to_vec();
        expected.sort_unstable();
        // With eight sockets, the poller asks the kernel which of them are readable.
        let (reported, received) = agent.poll();
        assert_eq!(reported, expected);
        assert_eq!(received, expected);
    }
}

#[test]
fn wait_ends_when_a_transport_of_any_backend_receives() {
    for target in [0, 1] {
        let mut agent = Mixed::new(1);
        let mut sender = agent.senders.swap_remove(target);
        let start = Instant::now();
        thread::scope(|scope| {
            scope.spawn(move || sender.send(&[Transmit::connected(b"frame")]).unwrap());
            while agent.poll().1.is_empty() {
                assert!(start.elapsed() < LONG);
                agent.poller.wait(LONG);
            }
        });
        assert!(start.elapsed() < LONG);
    }
}

#[test]
fn wait_for_sockets_alone_is_not_cut_into_short_ones() {
    let mut agent = Mixed::new(1);
    let of_socket = agent.transports[1].poll_source();
    agent.poller.set_sources(&[of_socket]);
    let start = Instant::now();
    let max = Duration::from_millis(20);
    agent.poller.wait(max);
    assert!(start.elapsed() >= max, "{:?}", start.elapsed());
    agent.poller.waker().wake();
    agent.poller.wait(LONG);
    assert!(start.elapsed() < LONG, "the waker ends the wait");
}

/// A ring whose poller has a descriptor, which a test makes readable.
#[derive(Debug)]
struct WithDescriptor {
    ring: RingNetwork,
    readable: Arc<UnixStream>,
}

impl Network for WithDescriptor {
    fn backend(&self) -> &'static str {
        self.ring.backend()
    }

    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError> {
        self.ring.open(spec)
    }

    fn poller(&mut self, agent: AgentRole) -> Result<Box<dyn Poller>, NetError> {
        Ok(Box::new(PollerWithDescriptor {
            poller: self.ring.poller(agent)?,
            readable: Arc::clone(&self.readable),
        }))
    }

    fn buffer_limits(&mut self) -> Result<BufferLimits, NetError> {
        self.ring.buffer_limits()
    }

    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError> {
        self.ring.interfaces()
    }
}

#[derive(Debug)]
struct PollerWithDescriptor {
    poller: Box<dyn Poller>,
    readable: Arc<UnixStream>,
}

impl Poller for PollerWithDescriptor {
    fn set_sources(&mut self, sources: &[PollSource]) {
        self.poller.set_sources(sources);
    }

    fn poll(&mut self, receive: &mut dyn FnMut(usize) -> usize) -> usize {
        self.poller.poll(receive)
    }

    fn wait(&mut self, max: Duration) {
        self.poller.wait(max);
    }

    fn waker(&self) -> Waker {
        self.poller.waker()
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.readable.as_raw_fd())
    }
}

#[test]
fn wait_covers_the_descriptor_of_a_backend() {
    let (readable, mut signal) = UnixStream::pair().unwrap();
    let with_descriptor = WithDescriptor {
        ring: RingNetwork::new(&Wire::default(), NEAR),
        readable: Arc::new(readable),
    };
    let mut network = Backends::new(SocketNetwork::new()).with(with_descriptor);
    let transport = network.open(&spec(NEAR, Some("ring"))).unwrap();
    let mut poller = network.poller(AgentRole::Receiver).unwrap();
    poller.start();
    poller.set_sources(&[transport.poll_source()]);
    let start = Instant::now();
    let max = Duration::from_millis(20);
    poller.wait(max);
    assert!(
        start.elapsed() >= max,
        "the wait is not cut into short ones"
    );
    signal.write_all(b"x").unwrap();
    poller.wait(LONG);
    assert!(start.elapsed() < LONG, "the descriptor ends the wait");
}

#[test]
fn transport_that_no_backend_knows_is_reported_by_each_poll() {
    let mut agent = Mixed::new(8);
    let mut sources: Vec<_> = agent
        .transports
        .iter()
        .map(|each| each.poll_source())
        .collect();
    sources[5] = PollSource::UNKNOWN;
    agent.poller.set_sources(&sources);
    assert_eq!(agent.poll().0, [5]);
    let start = Instant::now();
    agent.poller.wait(LONG);
    assert!(start.elapsed() < LONG, "the wait cannot see it");
}
