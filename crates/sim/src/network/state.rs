// SPDX-License-Identifier: Apache-2.0
//! State of the network: hosts, links, sockets, and datagrams in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use taran_core::clock::ManualClock;

use super::faults::{DatagramCounts, LinkFaults, NetworkCounts};
use super::forge::Recorded;
use super::host::HostId;
use super::host_traffic::HostTraffic;
use super::in_flight::InFlight;
use super::ports::EPHEMERAL;
use super::socket::Socket;

#[derive(Debug)]
pub(super) struct NetworkState {
    pub(super) clock: ManualClock,
    pub(super) random: fastrand::Rng,
    /// Addresses of each host.
    pub(super) hosts: Vec<Vec<IpAddr>>,
    /// Faults of links without their own.
    pub(super) faults: LinkFaults,
    /// Ports with their own faults.
    pub(super) ports: Vec<((HostId, u16), LinkFaults)>,
    /// Links by source and destination host.
    links: Vec<Vec<Link>>,
    /// Traffic records by host.
    pub(super) traffic: Vec<HostTraffic>,
    pub(super) sockets: Vec<Option<Socket>>,
    pub(super) in_flight: BinaryHeap<Reverse<InFlight>>,
    pub(super) sequence: u64,
    /// Buffers for reuse.
    pub(super) free_buffers: Vec<Vec<u8>>,
    pub(super) last_port: u16,
    pub(super) counts: NetworkCounts,
    /// Number of datagrams sent, arrived, and received.
    pub(super) activity: Arc<AtomicU64>,
    /// Datagrams sent since recording began, and the number of those that are still to be recorded.
    pub(super) recorded: Vec<Recorded>,
    pub(super) to_record: usize,
}

/// One direction between two hosts.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) faults: Option<LinkFaults>,
    pub(super) is_cut: bool,
    /// Arrival time of the last datagram that was not reordered.
    pub(super) last_arrival: i64,
    pub(super) counts: DatagramCounts,
}

impl NetworkState {
    pub(super) fn new(seed: u64, clock: ManualClock) -> Self {
        Self {
            clock,
            random: fastrand::Rng::with_seed(seed),
            hosts: Vec::new(),
            faults: LinkFaults::default(),
            ports: Vec::new(),
            links: Vec::new(),
            traffic: Vec::new(),
            sockets: Vec::new(),
            in_flight: BinaryHeap::new(),
            sequence: 0,
            free_buffers: Vec::new(),
            last_port: *EPHEMERAL.end(),
            counts: NetworkCounts::default(),
            activity: Arc::default(),
            recorded: Vec::new(),
            to_record: 0,
        }
    }

    pub(super) fn add_host(&mut self, addresses: &[IpAddr]) -> HostId {
        let link = Link {
            faults: None,
            is_cut: false,
            last_arrival: i64::MIN,
            counts: DatagramCounts::default(),
        };
        self.hosts.push(addresses.to_vec());
        self.links.push(Vec::new());
        self.traffic.push(HostTraffic::default());
        for links in &mut self.links {
            links.resize(self.hosts.len(), link.clone());
        }
        HostId(self.hosts.len() - 1)
    }

    pub(super) fn link(&mut self, from: HostId, to: HostId) -> &mut Link {
        &mut self.links[from.0][to.0]
    }

    pub(super) fn heal_all(&mut self) {
        for link in self.links.iter_mut().flatten() {
            link.is_cut = false;
        }
    }

    pub(super) fn next_arrival(&self) -> Option<i64> {
        self.in_flight.peek().map(|next| next.0.arrival)
    }

    pub(super) fn owns(&self, host: HostId, ip: IpAddr) -> bool {
        ip.is_loopback() || self.hosts[host.0].contains(&ip)
    }

    /// Returns the host that has `ip`, as seen from `from`.
    pub(super) fn host_with_address(&self, from: HostId, ip: IpAddr) -> Option<HostId> {
        if self.owns(from, ip) {
            return Some(from);
        }
        self.hosts
            .iter()
            .position(|addresses| addresses.contains(&ip))
            .map(HostId)
    }

    /// Returns the source address of a datagram from `local` to `destination`.
    pub(super) fn source_address(
        &self,
        host: HostId,
        local: SocketAddr,
        destination: SocketAddr,
    ) -> SocketAddr {
        if !local.ip().is_unspecified() {
            return local;
        }
        let loopback = || match destination.ip() {
            IpAddr::V4(_) => IpAddr::from(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::from(Ipv6Addr::LOCALHOST),
        };
        let ip = if destination.ip().is_loopback() {
            loopback()
        } else if self.owns(host, destination.ip()) {
            destination.ip()
        } else {
            let same_family = |ip: &&IpAddr| ip.is_ipv4() == destination.is_ipv4();
            self.hosts[host.0]
                .iter()
                .find(same_family)
                .copied()
                .unwrap_or_else(loopback)
        };
        SocketAddr::new(ip, local.port())
    }
}

/// Returns true if a socket at `local` can address `destination`: an IPv6 socket reaches both families.
pub(super) fn can_address(local: SocketAddr, destination: SocketAddr) -> bool {
    local.is_ipv6() || destination.is_ipv4()
}
