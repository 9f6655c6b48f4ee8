//! A network in memory: sockets of one machine, which deliver at once and lose nothing.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use taran_net::{
    BufferLengths, BufferLimits, Capabilities, Interface, NetError, Network, ReceiveBatch,
    SocketSpec, Transmit, Transport,
};

type Inbox = VecDeque<(SocketAddr, Vec<u8>)>;

/// All sockets there are, by their ports. Clones are the same network.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wires {
    sockets: Arc<Mutex<BTreeMap<u16, Inbox>>>,
}

impl Wires {
    /// Ports that are open.
    pub(crate) fn open_ports(&self) -> Vec<u16> {
        self.sockets.lock().unwrap().keys().copied().collect()
    }

    /// Puts a datagram into the inbox of a port.
    pub(crate) fn deliver(&self, from: SocketAddr, port: u16, datagram: &[u8]) {
        if let Some(inbox) = self.sockets.lock().unwrap().get_mut(&port) {
            inbox.push_back((from, datagram.to_vec()));
        }
    }
}

impl Network for Wires {
    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError> {
        let mut sockets = self.sockets.lock().unwrap();
        let port = match spec.bind.port() {
            0 => (50_000..).find(|port| !sockets.contains_key(port)).unwrap(),
            port => port,
        };
        if sockets.contains_key(&port) {
            return Err(NetError::Bind {
                address: spec.bind,
                source: io::ErrorKind::AddrInUse.into(),
            });
        }
        sockets.insert(port, Inbox::new());
        let ip = if spec.bind.ip().is_unspecified() && spec.connect.is_some() {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        } else {
            spec.bind.ip()
        };
        Ok(Box::new(Wire {
            local: SocketAddr::new(ip, port),
            peer: spec.connect,
            wires: self.clone(),
        }))
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

    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError> {
        Ok(vec![Interface {
            name: "lo".to_owned(),
            index: 1,
            address: Ipv4Addr::LOCALHOST.into(),
            prefix: 8,
            up: true,
            multicast: false,
            loopback: true,
        }])
    }
}

#[derive(Debug)]
struct Wire {
    local: SocketAddr,
    peer: Option<SocketAddr>,
    wires: Wires,
}

impl Transport for Wire {
    fn send(&mut self, batch: &[Transmit<'_>]) -> Result<usize, NetError> {
        let mut sent = 0;
        for transmit in batch {
            let to = transmit.destination.or(self.peer).unwrap();
            for datagram in transmit.datagrams() {
                self.wires.deliver(self.local, to.port(), datagram);
                sent += datagram.len();
            }
        }
        Ok(sent)
    }

    fn receive(&mut self, batch: &mut ReceiveBatch) -> Result<usize, NetError> {
        batch.clear();
        let mut sockets = self.wires.sockets.lock().unwrap();
        let inbox = sockets.get_mut(&self.local.port()).unwrap();
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

    fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::PLAIN
    }

    fn buffer_lengths(&self) -> BufferLengths {
        BufferLengths {
            send: 212_992,
            receive: 212_992,
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.wires
            .sockets
            .lock()
            .unwrap()
            .remove(&self.local.port());
    }
}
