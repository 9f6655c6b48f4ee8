// SPDX-License-Identifier: Apache-2.0
//! Routes: the next hop of a destination, and the MTU of its path.

use std::collections::HashMap;
use std::net::IpAddr;

use thiserror::Error;

/// Time for which a smaller MTU of a path is kept (RFC 1191, section 6.3, and RFC 8201, section 4).
const PATH_MTU_NS: i64 = 600 * 1_000_000_000;
/// Lowest MTU that a path gets over IPv4, which each host accepts (RFC 791): a forged error cannot ask for less.
const LEAST_MTU_V4: u32 = 576;
/// Each link of IPv6 takes packets of this length (RFC 8200, section 5).
const LEAST_MTU_V6: u32 = 1280;

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// Creates a prefix from one of its addresses; none if the length exceeds that of the address.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let most = if address.is_ipv4() { 32 } else { 128 };
        (length <= most).then(|| Self {
            address: masked(address, length),
            length,
        })
    }

    /// Number of bits.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Returns true if an address begins with these bits.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.length) == self.address
    }
}

fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destinations.
    pub destinations: Prefix,
    /// Router; none if the destinations are on the link.
    pub gateway: Option<IpAddr>,
    /// Index of the interface.
    pub interface: u32,
    /// Source address of packets.
    pub source: IpAddr,
    /// MTU of the interface or route.
    pub mtu: u32,
    /// Routes with lower values go first among those of one prefix length.
    pub metric: u32,
}

/// The way to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Neighbour to which packets go: the router, or the destination itself.
    pub next: IpAddr,
    /// Index of the interface.
    pub interface: u32,
    /// Source address of packets.
    pub source: IpAddr,
    /// Longest packet that the path takes.
    pub mtu: u32,
}

/// Reason why a route is not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RouteError {
    /// The table is full.
    #[error("the table has its {most} routes already")]
    Full {
        /// Capacity.
        most: usize,
    },
    /// Destinations, gateway and source are not of one IP version.
    #[error("destinations, gateway and source of a route are of different IP versions")]
    Versions,
}

/// Table of routes and of smaller MTUs of paths.
///
/// Contract: [`add`](Self::add) and [`remove`](Self::remove) follow the routes of the machine or the options;
/// [`packet_too_big`](Self::packet_too_big) takes the MTU of an ICMP error that quotes a datagram which was sent, which the
/// caller has checked. [`hop`](Self::hop) answers for a destination; the answer holds until
/// [`generation`](Self::generation) changes or [`next_deadline_ns`](Self::next_deadline_ns) has come, when
/// [`expire`](Self::expire) is called.
///
/// Both tables have a fixed capacity. A further MTU displaces the one that ends first, which costs packets that are too long, never
/// a route.
#[derive(Debug)]
pub struct RouteTable {
    /// Longest prefixes first, then lowest metrics.
    routes: Vec<Route>,
    most_routes: usize,
    path_mtus: HashMap<IpAddr, PathMtu>,
    most_paths: usize,
    generation: u64,
}

#[derive(Clone, Copy, Debug)]
struct PathMtu {
    mtu: u32,
    end_ns: i64,
}

impl RouteTable {
    /// Creates a table for so many routes and paths with a smaller MTU.
    pub fn new(most_routes: usize, most_paths: usize) -> Self {
        Self {
            routes: Vec::new(),
            most_routes,
            path_mtus: HashMap::new(),
            most_paths,
            generation: 0,
        }
    }

    /// Changes whenever an answer of `hop` may change.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Adds a route. One with the same destinations, interface and metric is replaced.
    ///
    /// # Errors
    /// If the table is full or the route mixes IP versions; the table is unchanged then.
    pub fn add(&mut self, route: Route) -> Result<(), RouteError> {
        let is_v4 = route.source.is_ipv4();
        let is_mixed = |address: IpAddr| address.is_ipv4() != is_v4;
        if is_mixed(route.destinations.address) || route.gateway.is_some_and(is_mixed) {
            return Err(RouteError::Versions);
        }
        let key = |route: &Route| (route.destinations, route.interface, route.metric);
        if let Some(same) = self.routes.iter_mut().find(|same| key(same) == key(&route)) {
            *same = route;
        } else {
            if self.routes.len() >= self.most_routes {
                let most = self.most_routes;
                return Err(RouteError::Full { most });
            }
            let rank = |route: &Route| (u8::MAX - route.destinations.length, route.metric);
            let place = self
                .routes
                .partition_point(|other| rank(other) <= rank(&route));
            self.routes.insert(place, route);
        }
        self.generation += 1;
        Ok(())
    }

    /// Removes the routes with these destinations on an interface. Returns true if there was one.
    pub fn remove(&mut self, destinations: Prefix, interface: u32) -> bool {
        let before = self.routes.len();
        let is_kept =
            |route: &Route| route.destinations != destinations || route.interface != interface;
        self.routes.retain(is_kept);
        let is_removed = self.routes.len() < before;
        self.generation += u64::from(is_removed);
        is_removed
    }

    /// Returns the way to a unicast destination; none if there is no route.
    pub fn hop(&self, destination: IpAddr) -> Option<Hop> {
        let mut routes = self.routes.iter();
        let route = routes.find(|route| route.destinations.contains(destination))?;
        let path = self.path_mtus.get(&destination);
        Some(Hop {
            next: route.gateway.unwrap_or(destination),
            interface: route.interface,
            source: route.source,
            mtu: path.map_or(route.mtu, |path| path.mtu.min(route.mtu)),
        })
    }

    /// Takes the MTU of an ICMP error. Returns true if the MTU of the path becomes smaller. Values below what each path takes are
    /// raised to that over IPv4, and ignored over IPv6 (RFC 8201, section 4).
    pub fn packet_too_big(&mut self, destination: IpAddr, mtu: u32, now_ns: i64) -> bool {
        let mtu = match destination {
            IpAddr::V4(_) => mtu.max(LEAST_MTU_V4),
            IpAddr::V6(_) if mtu < LEAST_MTU_V6 => return false,
            IpAddr::V6(_) => mtu,
        };
        let is_smaller = self.hop(destination).is_some_and(|hop| mtu < hop.mtu);
        if !is_smaller || self.most_paths == 0 {
            return false;
        }
        if !self.path_mtus.contains_key(&destination) && self.path_mtus.len() >= self.most_paths {
            let paths = self.path_mtus.iter();
            let first = paths.min_by_key(|(_, path)| path.end_ns);
            if let Some(first) = first.map(|(destination, _)| *destination) {
                self.path_mtus.remove(&first);
            }
        }
        let end_ns = now_ns.saturating_add(PATH_MTU_NS);
        self.path_mtus.insert(destination, PathMtu { mtu, end_ns });
        self.generation += 1;
        true
    }

    /// Returns the time at which the first MTU of a path ends.
    pub fn next_deadline_ns(&self) -> Option<i64> {
        self.path_mtus.values().map(|path| path.end_ns).min()
    }

    /// Forgets the MTUs of paths whose time is over, so that longer packets are tried again.
    pub fn expire(&mut self, now_ns: i64) {
        let before = self.path_mtus.len();
        self.path_mtus.retain(|_, path| path.end_ns > now_ns);
        self.generation += u64::from(self.path_mtus.len() < before);
    }
}
