// SPDX-License-Identifier: Apache-2.0
//! Forged datagrams, for attackers in tests, and per-link counts.

use std::net::SocketAddr;

use super::SimNetwork;
use super::faults::DatagramCounts;
use super::host::HostId;

/// Datagram that an observer recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Address of its source.
    pub source: SocketAddr,
    /// Address that it was sent to.
    pub destination: SocketAddr,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl SimNetwork {
    /// Records the next datagrams that hosts send, forged ones excepted, whether or not they arrive.
    pub fn record(&self, datagrams: usize) {
        self.lock().to_record = datagrams;
    }

    /// Returns what was recorded so far.
    #[must_use]
    pub fn recorded(&self) -> Vec<Recorded> {
        self.lock().recorded.clone()
    }

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
