//! Forged datagrams, for attackers in tests, and per-link counts.

use std::net::SocketAddr;

use super::SimNetwork;
use super::faults::DatagramCounts;
use super::host::HostId;

impl SimNetwork {
    /// Sends a datagram from a host with an arbitrary `source` address, which is not validated on the path. Replies go
    /// to that address; the sender needs no socket.
    ///
    /// # Panics
    /// If no host has the address of the destination.
    pub fn forge(
        &self,
        from: HostId,
        source: SocketAddr,
        destination: SocketAddr,
        datagram: &[u8],
    ) {
        let is_sent = self.lock().forge(from, source, destination, datagram);
        assert!(is_sent, "no host has the address of {destination}");
    }

    /// Returns what was sent on a link so far, whether it arrived or not.
    #[must_use]
    pub fn link_counts(&self, from: HostId, to: HostId) -> DatagramCounts {
        self.lock().link(from, to).counts
    }
}
