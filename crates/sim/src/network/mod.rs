//! A network in memory and virtual time, with faults from one seed.
//!
//! [`SimNetwork`] is the wire, [`SimHost`] a machine on it: a [`Network`](taran_net::Network) of its own addresses, plus
//! a loopback that nobody else sees. Every datagram that is sent either is lost by a fault, or is on its way until its
//! time of arrival, or lies in the queue of the socket it reached, which is bounded like a socket buffer.
//!
//! Input: the transports' `send`, the clock that moves, and the faults, which may change at any time. Output: the
//! transports' `receive`, and [`SimNetwork::next_arrival`] for a simulator that skips idle time. The same calls in the
//! same order with the same seed give the same result.

mod edge;
mod faults;
mod flight;
mod host;
mod ports;
mod socket;
mod stranger;
#[cfg(test)]
mod tests;
mod transport;
mod world;

pub use edge::{Edge, Exchanged, Kind, Seen, Told};
pub use faults::{Carried, LinkFaults, NetworkCounts};
pub use host::{HostId, SimHost};

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taran_core::clock::ManualClock;

use world::World;

/// A wire that joins hosts. Clones are the same wire.
#[derive(Clone, Debug)]
pub struct SimNetwork {
    world: Arc<Mutex<World>>,
}

impl SimNetwork {
    /// A wire without hosts and without faults, whose time is that of `clock`.
    #[must_use]
    pub fn new(seed: u64, clock: ManualClock) -> Self {
        Self {
            world: Arc::new(Mutex::new(World::new(seed, clock))),
        }
    }

    /// Attaches a machine that has `addresses`, and `127.0.0.0/8` and `::1` to talk to itself.
    #[must_use]
    pub fn host(&self, addresses: &[IpAddr]) -> SimHost {
        let id = self.lock().add_host(addresses);
        SimHost::new(self.clone(), id)
    }

    /// Gives a machine other addresses: whoever goes on sending to the old ones reaches nobody, and sockets that are bound
    /// to one of these cannot send any more.
    pub fn readdress(&self, host: HostId, addresses: &[IpAddr]) {
        self.lock().hosts[host.0] = addresses.to_vec();
    }

    /// The addresses of a machine at present.
    #[must_use]
    pub fn addresses(&self, host: HostId) -> Vec<IpAddr> {
        self.lock().hosts[host.0].clone()
    }

    /// Sets the faults of all links that have none of their own, those from a host to itself included.
    pub fn set_faults(&self, faults: LinkFaults) {
        self.lock().faults = faults;
    }

    /// Gives the link `from` one host `to` another (or itself) faults of its own; `None` takes them back.
    pub fn set_link_faults(&self, from: HostId, to: HostId, faults: Option<LinkFaults>) {
        self.lock().link(from, to).faults = faults;
    }

    /// Gives whatever goes to or comes from a port of a host faults of its own, before those of the link: two ports are
    /// two paths. `None` takes them back.
    pub fn set_port_faults(&self, host: HostId, port: u16, faults: Option<LinkFaults>) {
        let mut world = self.lock();
        world.ports.retain(|(key, _)| *key != (host, port));
        world
            .ports
            .extend(faults.map(|faults| ((host, port), faults)));
    }

    /// Cuts the link in one direction: nothing that is under way or sent from now on arrives.
    pub fn cut(&self, from: HostId, to: HostId) {
        self.lock().link(from, to).is_cut = true;
    }

    /// Cuts both directions.
    pub fn separate(&self, left: HostId, right: HostId) {
        self.cut(left, right);
        self.cut(right, left);
    }

    /// Mends the link in one direction.
    pub fn heal(&self, from: HostId, to: HostId) {
        self.lock().link(from, to).is_cut = false;
    }

    /// Mends all links.
    pub fn heal_all(&self) {
        self.lock().heal_all();
    }

    /// When the next datagram that is under way arrives, in nanoseconds of the clock.
    #[must_use]
    pub fn next_arrival(&self) -> Option<i64> {
        self.lock().next_arrival()
    }

    /// How many sockets of a host are open.
    #[must_use]
    pub fn open_sockets(&self, host: HostId) -> usize {
        let world = self.lock();
        let sockets = world.sockets.iter().flatten();
        sockets.filter(|socket| socket.host == host).count()
    }

    /// What the streams of a host have told until now is nothing to those that come.
    pub fn forget_streams(&self, host: HostId) {
        self.lock().edges[host.0].forget_streams();
    }

    /// What has passed the edge of a host.
    pub fn at_edge<R>(&self, host: HostId, look: impl FnOnce(&Edge) -> R) -> R {
        look(&self.lock().edges[host.0])
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> NetworkCounts {
        self.lock().counts
    }

    /// The state of the wire at the present time.
    fn lock(&self) -> MutexGuard<'_, World> {
        // A panic elsewhere is a failed test already; what it left is still a network.
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        // Before anything changes, what was to arrive by now has arrived.
        world.deliver_what_is_due();
        world
    }
}
