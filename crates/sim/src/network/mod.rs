// SPDX-License-Identifier: Apache-2.0
//! A network in memory and virtual time, with faults from one seed.
//!
//! [`SimNetwork`] is the network and [`SimHost`] a host on it: a [`Network`](taran_net::Network) with its own addresses
//! and a private loopback interface. A datagram that is sent is lost by a fault, in flight until its arrival time,
//! or in the queue of the destination socket, whose length is bounded like a socket buffer.
//!
//! Input: the transports' `send`, the clock, and the faults, which may change at any time. Output: the transports'
//! `receive`, and [`SimNetwork::next_arrival`] for a simulator that skips idle time. The same calls in the same order
//! with the same seed give the same result.

mod faults;
mod forge;
mod host;
mod host_traffic;
mod in_flight;
mod ports;
mod socket;
mod state;
#[cfg(test)]
mod tests;
mod transport;

pub use faults::{DatagramCounts, LinkFaults, NetworkCounts};
pub use forge::Recorded;
pub use host::{HostId, SimHost};
pub use host_traffic::{FrameCounts, FrameKind, HostTraffic, ObservedStream, TrafficCounts};

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taran_core::clock::ManualClock;
use taran_net::AgentRole;

use state::NetworkState;

/// A network that connects hosts. Clones refer to the same network.
#[derive(Clone, Debug)]
pub struct SimNetwork {
    state: Arc<Mutex<NetworkState>>,
    /// Number of datagrams sent and arrived.
    activity: Arc<AtomicU64>,
}

impl SimNetwork {
    /// Creates a network without hosts and without faults that runs on the time of `clock`.
    #[must_use]
    pub fn new(seed: u64, clock: ManualClock) -> Self {
        let state = NetworkState::new(seed, clock);
        Self {
            activity: Arc::clone(&state.activity),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Attaches a host with `addresses`. It also has `127.0.0.0/8` and `::1` as a private loopback.
    #[must_use]
    pub fn host(&self, addresses: &[IpAddr]) -> SimHost {
        let id = self.lock().add_host(addresses);
        SimHost::new(self.clone(), id)
    }

    /// Replaces the addresses of a host. Datagrams to the old addresses become unreachable, and sockets bound to one of
    /// them cannot send.
    pub fn set_addresses(&self, host: HostId, addresses: &[IpAddr]) {
        self.lock().hosts[host.0] = addresses.to_vec();
    }

    /// Returns the current addresses of a host.
    #[must_use]
    pub fn addresses(&self, host: HostId) -> Vec<IpAddr> {
        self.lock().hosts[host.0].clone()
    }

    /// Sets the faults of all links that have none of their own, including those from a host to itself.
    pub fn set_faults(&self, faults: LinkFaults) {
        self.lock().faults = faults;
    }

    /// Sets the faults of the link from one host to another (or to itself). `None` restores the default faults.
    pub fn set_link_faults(&self, from: HostId, to: HostId, faults: Option<LinkFaults>) {
        self.lock().link(from, to).faults = faults;
    }

    /// Sets faults for the traffic from and to a port of a host; they take precedence over those of the link, so two
    /// ports act as two paths. `None` removes them.
    pub fn set_port_faults(&self, host: HostId, port: u16, faults: Option<LinkFaults>) {
        let mut state = self.lock();
        state.ports.retain(|(key, _)| *key != (host, port));
        state
            .ports
            .extend(faults.map(|faults| ((host, port), faults)));
    }

    /// Cuts the link in one direction: datagrams in flight and those sent later are lost.
    pub fn cut(&self, from: HostId, to: HostId) {
        self.lock().link(from, to).is_cut = true;
    }

    /// Cuts both directions.
    pub fn separate(&self, left: HostId, right: HostId) {
        self.cut(left, right);
        self.cut(right, left);
    }

    /// Restores the link in one direction.
    pub fn heal(&self, from: HostId, to: HostId) {
        self.lock().link(from, to).is_cut = false;
    }

    /// Restores all links.
    pub fn heal_all(&self) {
        self.lock().heal_all();
    }

    /// Returns the arrival time of the next datagram in flight, in nanoseconds of the clock.
    #[must_use]
    pub fn next_arrival(&self) -> Option<i64> {
        self.lock().next_arrival()
    }

    /// Returns the number of open sockets of a host.
    #[must_use]
    pub fn open_sockets(&self, host: HostId) -> usize {
        let state = self.lock();
        let sockets = state.sockets.iter().flatten();
        sockets.filter(|socket| socket.host == host).count()
    }

    /// Returns true if a datagram waits in a socket that an agent of a host uses.
    pub(crate) fn has_arrivals(&self, host: HostId, agent: AgentRole) -> bool {
        let state = self.lock();
        let mut sockets = state.sockets.iter().flatten();
        sockets.any(|socket| socket.host == host && socket.agent == agent && socket.has_arrivals())
    }

    /// Forgets the streams observed on a host, because a new driver starts there.
    pub fn forget_streams(&self, host: HostId) {
        self.lock().traffic[host.0].forget_streams();
    }

    /// Passes the traffic record of a host to `inspect`.
    pub fn with_traffic<R>(&self, host: HostId, inspect: impl FnOnce(&HostTraffic) -> R) -> R {
        inspect(&self.lock().traffic[host.0])
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn counts(&self) -> NetworkCounts {
        self.lock().counts
    }

    /// Delivers all due datagrams, as each other call does.
    pub(crate) fn deliver(&self) {
        drop(self.lock());
    }

    /// Returns a number that changes when a datagram is sent, arrives, or is received: an agent that drops it may still tell another one
    /// of it.
    pub(crate) fn activity(&self) -> u64 {
        // Relaxed: a world runs in one thread.
        self.activity.load(Ordering::Relaxed)
    }

    /// Locks the network state after delivering all due datagrams.
    fn lock(&self) -> MutexGuard<'_, NetworkState> {
        // A poisoned lock means that a test has failed elsewhere; the state is still usable.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Datagrams that are due must arrive before the state changes.
        state.deliver_due();
        state
    }
}
