//! Networks: factories of transports.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};

use crate::{
    AgentRole, BufferLengths, Interface, NetError, Poller, Transport, UnconditionalPoller,
};

/// A network: opens transports, and reports the interfaces and limits of the machine.
///
/// Used when channels are opened and closed, never on the data path.
pub trait Network: Send + Debug {
    /// Opens a bound transport. Port zero selects a free port.
    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError>;

    /// Creates the poller of an agent, for transports that this network opens for it ([`SocketSpec::agent`]).
    fn poller(&mut self, agent: AgentRole) -> Result<Box<dyn Poller>, NetError> {
        let _ = agent;
        Ok(Box::new(UnconditionalPoller::default()))
    }

    /// Returns the buffer lengths of a new socket, and the largest lengths that the system grants.
    fn buffer_limits(&mut self) -> Result<BufferLimits, NetError>;

    /// Returns one entry for each address of each interface.
    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError>;
}

impl<N: Network + ?Sized> Network for Box<N> {
    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError> {
        (**self).open(spec)
    }

    fn poller(&mut self, agent: AgentRole) -> Result<Box<dyn Poller>, NetError> {
        (**self).poller(agent)
    }

    fn buffer_limits(&mut self) -> Result<BufferLimits, NetError> {
        (**self).buffer_limits()
    }

    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError> {
        (**self).interfaces()
    }
}

/// Parameters of a transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketSpec {
    /// The agent that uses the transport.
    pub agent: AgentRole,
    /// The local address. Its family is the family of the transport.
    pub bind: SocketAddr,
    /// The peer to connect to: sends are cheaper, and datagrams from other sources are discarded.
    pub connect: Option<SocketAddr>,
    /// The multicast role, if any.
    pub multicast: Option<MulticastSpec>,
    /// `SO_SNDBUF` in bytes; `None` leaves the system's default.
    pub send_buffer: Option<usize>,
    /// `SO_RCVBUF` in bytes; `None` leaves the system's default.
    pub receive_buffer: Option<usize>,
    /// `SO_REUSEADDR`: several sockets may share the address (multicast receivers).
    pub reuse_address: bool,
    /// Use segmentation and coalescing where the system has them.
    pub offload: bool,
    /// Ask for the time at which each datagram arrived.
    pub receive_timestamps: bool,
}

impl SocketSpec {
    /// An unconnected unicast transport of the conductor at `bind` with the system's default buffers, and offload where available.
    #[must_use]
    pub fn bound(bind: SocketAddr) -> Self {
        Self {
            agent: AgentRole::Conductor,
            bind,
            connect: None,
            multicast: None,
            send_buffer: None,
            receive_buffer: None,
            reuse_address: false,
            offload: true,
            receive_timestamps: false,
        }
    }

    /// The same, for another agent.
    #[must_use]
    pub fn used_by(self, agent: AgentRole) -> Self {
        Self { agent, ..self }
    }

    /// The same, connected to `peer`.
    #[must_use]
    pub fn connected(self, peer: SocketAddr) -> Self {
        Self {
            connect: Some(peer),
            ..self
        }
    }
}

/// The multicast role of a transport (docs/spec/wire.md §2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastSpec {
    /// The group to join; `None` for a transport that only sends.
    pub join: Option<IpAddr>,
    /// The address of the interface to join and send on.
    pub interface: IpAddr,
    /// The index of that interface, by which IPv6 selects it; zero leaves the choice to the system.
    pub interface_index: u32,
    /// The hop limit of sent datagrams; `None` leaves the system's default.
    pub ttl: Option<u8>,
}

/// Limits of socket buffers on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLimits {
    /// The lengths of a socket for which nothing was requested.
    pub default: BufferLengths,
    /// The lengths that the system grants when the largest possible value is requested.
    pub max: BufferLengths,
}
