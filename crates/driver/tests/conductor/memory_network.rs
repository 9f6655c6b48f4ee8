// SPDX-License-Identifier: Apache-2.0
//! In-memory network: sockets of one host with immediate and lossless delivery.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use taran_net::{
    BufferLengths, BufferLimits, Capabilities, Interface, LayerCapabilities, NetError, Network,
    ReceiveBatch, SocketSpec, Transmit, Transport,
};

/// Name of a second backend, which differs from the first one in its longer buffers.
pub(crate) const LARGE: &str = "large";

/// Refuses backends that are not there.
fn check_backend(spec: &SocketSpec) -> Result<(), NetError> {
    match spec.backend.as_deref() {
        Some(LARGE) => Ok(()),
        _ => spec.check_backend(Capabilities::PLAIN.backend),
    }
}

/// Open socket.
#[derive(Debug)]
struct Open {
    id: usize,
    port: u16,
    group: Option<IpAddr>,
    shares_port: bool,
    inbox: VecDeque<(SocketAddr, Vec<u8>)>,
}

/// All sockets of the host. Clones share the network.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryNetwork {
    sockets: Arc<Mutex<Vec<Open>>>,
    opened: Arc<Mutex<Vec<SocketSpec>>>,
    attempts: Arc<AtomicUsize>,
    /// Bytes that a layer adds to each datagram of sockets opened from now on.
    expansion: Arc<AtomicUsize>,
    /// Path MTU of connected sockets; zero if it is not known.
    path_mtu: Arc<AtomicUsize>,
    /// Number of times that the conductor called the timer.
    timer_calls: Arc<AtomicUsize>,
    /// Number of sockets that can be opened before one fails.
    left: Arc<Mutex<Option<i64>>>,
}

impl MemoryNetwork {
    /// Sockets opened from now on have a layer that adds this many bytes to each datagram.
    pub(crate) fn set_expansion(&self, bytes: usize) {
        self.expansion.store(bytes, Ordering::Relaxed);
    }

    /// Sets the path MTU of all connected sockets.
    pub(crate) fn set_path_mtu(&self, bytes: usize) {
        self.path_mtu.store(bytes, Ordering::Relaxed);
    }

    /// Returns the number of times that the conductor called the timer.
    pub(crate) fn timer_calls(&self) -> usize {
        self.timer_calls.load(Ordering::Relaxed)
    }

    /// Lets the opening of a socket fail with "too many open files", after this many successes.
    pub(crate) fn fail_after(&self, sockets: i64) {
        *self.left.lock().unwrap() = Some(sockets);
    }

    /// Returns true if the failure has occurred.
    pub(crate) fn has_failed(&self) -> bool {
        self.left.lock().unwrap().is_some_and(|left| left < 0)
    }

    /// Returns true if the socket being opened has to fail.
    fn fails(&self) -> bool {
        let mut left = self.left.lock().unwrap();
        let before = *left;
        *left = before.map(|left| left - 1);
        before == Some(0)
    }

    /// Returns the open ports in ascending order.
    pub(crate) fn open_ports(&self) -> Vec<u16> {
        let sockets = self.sockets.lock().unwrap();
        let mut ports: Vec<u16> = sockets.iter().map(|socket| socket.port).collect();
        ports.sort_unstable();
        ports
    }

    /// Returns the number of attempts to open a socket, including failed ones.
    pub(crate) fn attempts(&self) -> usize {
        self.attempts.load(Ordering::Relaxed)
    }

    /// Returns the specifications of all opened sockets, oldest first.
    pub(crate) fn opened(&self) -> Vec<SocketSpec> {
        self.opened.lock().unwrap().clone()
    }

    /// Clears the recorded specifications.
    pub(crate) fn clear_opened(&self) {
        *self.opened.lock().unwrap() = Vec::new();
    }

    /// Puts a datagram into the inbox of a port.
    pub(crate) fn deliver(&self, from: SocketAddr, port: u16, datagram: &[u8]) {
        self.carry(
            from,
            SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            datagram,
        );
    }

    /// Delivers to all members of a multicast group, or to the first socket of the port that is in no group.
    pub(crate) fn carry(&self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        let mut sockets = self.sockets.lock().unwrap();
        let group = to.ip().is_multicast().then_some(to.ip());
        let mut receivers = sockets
            .iter_mut()
            .filter(|socket| socket.port == to.port() && socket.group == group);
        let take = if group.is_some() { usize::MAX } else { 1 };
        for socket in receivers.by_ref().take(take) {
            socket.inbox.push_back((from, datagram.to_vec()));
        }
    }
}

impl Network for MemoryNetwork {
    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        check_backend(spec)?;
        if self.fails() {
            const TOO_MANY_OPEN_FILES: i32 = 24;
            return Err(NetError::Open {
                bind: spec.bind,
                source: io::Error::from_raw_os_error(TOO_MANY_OPEN_FILES),
            });
        }
        let mut sockets = self.sockets.lock().unwrap();
        let is_open = |port: u16| sockets.iter().any(|socket| socket.port == port);
        let port = match spec.bind.port() {
            0 => (50_000..).find(|port| !is_open(*port)).unwrap(),
            port => port,
        };
        let mut taken = sockets.iter().filter(|socket| socket.port == port);
        if taken.any(|socket| !(socket.shares_port && spec.reuse_address)) {
            return Err(NetError::Bind {
                address: spec.bind,
                source: io::ErrorKind::AddrInUse.into(),
            });
        }
        let mut opened = self.opened.lock().unwrap();
        opened.push(spec.clone());
        let multicast = spec.multicast.as_ref();
        sockets.push(Open {
            id: self.attempts(),
            port,
            group: multicast.and_then(|multicast| multicast.join),
            shares_port: spec.reuse_address,
            inbox: VecDeque::new(),
        });
        let ip = if spec.bind.ip().is_unspecified() && spec.connect.is_some() {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        } else {
            spec.bind.ip()
        };
        Ok(Box::new(MemoryTransport {
            id: self.attempts(),
            local: SocketAddr::new(ip, port),
            peer: spec.connect,
            multicast_ttl: multicast.map_or(0, |multicast| multicast.ttl.unwrap_or(1)),
            expansion: self.expansion.load(Ordering::Relaxed),
            network: self.clone(),
        }))
    }

    fn on_timer(&mut self, _now_ns: i64) {
        self.timer_calls.fetch_add(1, Ordering::Relaxed);
    }

    fn buffer_limits(&mut self) -> Result<BufferLimits, NetError> {
        let lengths = |length| BufferLengths {
            send: length,
            receive: length,
        };
        Ok(BufferLimits {
            default: lengths(212_992),
            max: lengths(425_984),
        })
    }

    fn buffer_limits_of(&mut self, backend: &str) -> Result<BufferLimits, NetError> {
        if backend == self.backend() {
            return self.buffer_limits();
        }
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        check_backend(&SocketSpec::bound(any).with_backend(backend))?;
        let lengths = BufferLengths {
            send: 1 << 20,
            receive: 1 << 20,
        };
        Ok(BufferLimits {
            default: lengths,
            max: lengths,
        })
    }

    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError> {
        let interface = |name: &str, index, address: &str, prefix| Interface {
            name: name.to_owned(),
            index,
            address: address.parse().unwrap(),
            prefix,
            up: true,
            multicast: name != "lo",
            loopback: name == "lo",
        };
        Ok(vec![
            interface("lo", 1, "127.0.0.1", 8),
            interface("eth0", 2, "10.1.2.3", 16),
            interface("eth1", 3, "10.1.9.9", 24),
            interface("eth1", 3, "fd00::9", 64),
            interface("lo", 1, "::1", 128),
        ])
    }
}

#[derive(Debug)]
struct MemoryTransport {
    id: usize,
    local: SocketAddr,
    peer: Option<SocketAddr>,
    multicast_ttl: u8,
    expansion: usize,
    network: MemoryNetwork,
}

impl Transport for MemoryTransport {
    fn send(&mut self, batch: &[Transmit<'_>]) -> Result<usize, NetError> {
        let mut sent = 0;
        for transmit in batch {
            let to = transmit.destination.or(self.peer).unwrap();
            for datagram in transmit.datagrams() {
                self.network.carry(self.local, to, datagram);
                sent += datagram.len();
            }
        }
        Ok(sent)
    }

    fn receive(&mut self, batch: &mut ReceiveBatch) -> Result<usize, NetError> {
        batch.clear();
        let mut sockets = self.network.sockets.lock().unwrap();
        let mut open = sockets.iter_mut();
        let inbox = &mut open.find(|socket| socket.id == self.id).unwrap().inbox;
        while !batch.is_full() {
            let Some((from, datagram)) = inbox.pop_front() else {
                break;
            };
            batch.push(from, None, &datagram);
        }
        Ok(batch.datagram_count())
    }

    fn connect(&mut self, peer: SocketAddr) -> Result<(), NetError> {
        self.peer = Some(peer);
        Ok(())
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    fn path_mtu(&self) -> Option<usize> {
        let known = self.network.path_mtu.load(Ordering::Relaxed);
        self.peer.map(|_| known).filter(|known| *known > 0)
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn multicast_ttl(&self) -> u8 {
        self.multicast_ttl
    }

    fn capabilities(&self) -> Capabilities {
        let mut layer = LayerCapabilities::default();
        layer.expansion = self.expansion;
        Capabilities::PLAIN.below(layer)
    }

    fn buffer_lengths(&self) -> BufferLengths {
        BufferLengths {
            send: 212_992,
            receive: 212_992,
        }
    }
}

impl Drop for MemoryTransport {
    fn drop(&mut self) {
        let mut sockets = self.network.sockets.lock().unwrap();
        sockets.retain(|socket| socket.id != self.id);
    }
}

/// Socket of a test.
#[derive(Debug)]
pub(crate) struct TestSocket {
    transport: Box<dyn Transport>,
    batch: ReceiveBatch,
}

impl TestSocket {
    pub(crate) fn open(network: &MemoryNetwork, spec: &SocketSpec) -> Self {
        Self {
            transport: network.clone().open(spec).unwrap(),
            batch: ReceiveBatch::new(16),
        }
    }

    /// Returns the datagrams received since the last call.
    pub(crate) fn take(&mut self) -> Vec<Vec<u8>> {
        let mut received = Vec::new();
        while self.transport.receive(&mut self.batch).unwrap() > 0 {
            received.extend(self.batch.datagram_runs().map(|run| run.payload.to_vec()));
        }
        received
    }
}
