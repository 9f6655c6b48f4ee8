//! What somebody on the network can do who keeps to no rules, and what it costs the others.

use std::net::SocketAddr;

use super::SimNetwork;
use super::faults::Carried;
use super::host::HostId;

impl SimNetwork {
    /// Sends a datagram from a host in the name of `source`, which may be anybody: nothing on the way looks at it.
    /// Whoever is answered is answered there, and it needs no socket.
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
        let has_gone = self.lock().forge(from, source, destination, datagram);
        assert!(has_gone, "nobody has the address of {destination}");
    }

    /// What the link has been given so far, whether it arrived or not.
    #[must_use]
    pub fn carried(&self, from: HostId, to: HostId) -> Carried {
        self.lock().link(from, to).carried
    }
}
