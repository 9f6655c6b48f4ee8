// SPDX-License-Identifier: Apache-2.0
//! A host attached to the simulated network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use taran_net::{BufferLimits, Interface, NetError, Network, SocketSpec, Transport};

use super::SimNetwork;
use super::socket::LIMITS;
use super::transport::SimTransport;
use crate::process::Lease;

/// Name of this backend.
pub(super) const BACKEND: &str = "simulated";

/// Id of a host on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub(super) usize);

/// A host that opens transports on its own addresses. Clones refer to the same host.
#[derive(Clone, Debug)]
pub struct SimHost {
    network: SimNetwork,
    id: HostId,
    /// The process that the sockets belong to.
    lease: Lease,
}

impl SimHost {
    pub(super) fn new(network: SimNetwork, id: HostId) -> Self {
        Self {
            network,
            id,
            lease: Lease::new(),
        }
    }

    /// Returns the same host for the process with this lease.
    pub(crate) fn with_lease(&self, lease: Lease) -> Self {
        Self {
            lease,
            ..self.clone()
        }
    }

    /// Closes all sockets of a process.
    pub(crate) fn close_sockets_of(&self, lease: &Lease) {
        self.network.lock().close_all_of(lease);
    }

    /// Returns the id of the host, which selects its links.
    #[must_use]
    pub fn id(&self) -> HostId {
        self.id
    }
}

impl Network for SimHost {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError> {
        spec.check_backend(BACKEND)?;
        let socket = self.network.lock().open(self.id, spec, &self.lease)?;
        let lease = self.lease.clone();
        let mut transport = SimTransport::new(self.network.clone(), socket, spec, lease);
        if let Some(peer) = spec.connect {
            transport.connect(peer)?;
        }
        Ok(Box::new(transport))
    }

    fn buffer_limits(&mut self) -> Result<BufferLimits, NetError> {
        Ok(LIMITS)
    }

    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError> {
        let loopbacks = [
            IpAddr::from(Ipv4Addr::LOCALHOST),
            IpAddr::from(Ipv6Addr::LOCALHOST),
        ];
        let state = self.network.lock();
        let addresses = loopbacks.iter().chain(&state.hosts[self.id.0]);
        Ok(addresses.map(|address| interface(*address)).collect())
    }
}

fn interface(address: IpAddr) -> Interface {
    let loopback = address.is_loopback();
    Interface {
        name: if loopback { "lo" } else { "eth0" }.to_owned(),
        index: if loopback { 1 } else { 2 },
        address,
        prefix: match (address, loopback) {
            (IpAddr::V4(_), true) => 8,
            (IpAddr::V4(_), false) => 24,
            (IpAddr::V6(_), true) => 128,
            (IpAddr::V6(_), false) => 64,
        },
        up: true,
        multicast: !loopback,
        loopback,
    }
}
