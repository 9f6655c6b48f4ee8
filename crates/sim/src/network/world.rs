//! The state of the wire: hosts, links, sockets, and what is under way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use taran_core::clock::ManualClock;

use super::edge::Edge;
use super::faults::{Carried, LinkFaults, NetworkCounts};
use super::flight::UnderWay;
use super::host::HostId;
use super::ports::EPHEMERAL;
use super::socket::Socket;

#[derive(Debug)]
pub(super) struct World {
    pub(super) clock: ManualClock,
    pub(super) random: fastrand::Rng,
    /// The addresses of each host.
    pub(super) hosts: Vec<Vec<IpAddr>>,
    /// Of links without faults of their own.
    pub(super) faults: LinkFaults,
    /// Ports with faults of their own.
    pub(super) ports: Vec<((HostId, u16), LinkFaults)>,
    /// By host and host.
    links: Vec<Vec<Link>>,
    /// By host.
    pub(super) edges: Vec<Edge>,
    pub(super) sockets: Vec<Option<Socket>>,
    pub(super) under_way: BinaryHeap<Reverse<UnderWay>>,
    pub(super) departures: u64,
    /// Buffers to use again.
    pub(super) spare: Vec<Vec<u8>>,
    pub(super) last_port: u16,
    pub(super) counts: NetworkCounts,
}

/// One direction between two hosts.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) faults: Option<LinkFaults>,
    pub(super) is_cut: bool,
    /// When the last datagram that was not reordered arrives.
    pub(super) last_arrival: i64,
    pub(super) carried: Carried,
}

impl World {
    pub(super) fn new(seed: u64, clock: ManualClock) -> Self {
        Self {
            clock,
            random: fastrand::Rng::with_seed(seed),
            hosts: Vec::new(),
            faults: LinkFaults::default(),
            ports: Vec::new(),
            links: Vec::new(),
            edges: Vec::new(),
            sockets: Vec::new(),
            under_way: BinaryHeap::new(),
            departures: 0,
            spare: Vec::new(),
            last_port: *EPHEMERAL.end(),
            counts: NetworkCounts::default(),
        }
    }

    pub(super) fn add_host(&mut self, addresses: &[IpAddr]) -> HostId {
        let link = Link {
            faults: None,
            is_cut: false,
            last_arrival: i64::MIN,
            carried: Carried::default(),
        };
        self.hosts.push(addresses.to_vec());
        self.links.push(Vec::new());
        self.edges.push(Edge::default());
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
        self.under_way.peek().map(|next| next.0.arrival)
    }

    pub(super) fn owns(&self, host: HostId, ip: IpAddr) -> bool {
        ip.is_loopback() || self.hosts[host.0].contains(&ip)
    }

    /// The host that has `ip`, as seen from `from`.
    pub(super) fn host_of(&self, from: HostId, ip: IpAddr) -> Option<HostId> {
        if self.owns(from, ip) {
            return Some(from);
        }
        self.hosts
            .iter()
            .position(|addresses| addresses.contains(&ip))
            .map(HostId)
    }

    /// The address that a datagram from `local` to `destination` says it comes from.
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

/// True if a socket at `local` can name `destination`: one of IPv6 can name both families.
pub(super) fn reaches(local: SocketAddr, destination: SocketAddr) -> bool {
    local.is_ipv6() || destination.is_ipv4()
}
