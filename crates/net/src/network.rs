// SPDX-License-Identifier: Apache-2.0
//! Networks: factories of transports.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};

use crate::{
    AgentRole, BufferLengths, Capabilities, Interface, NetError, Poller, Transport,
    UnconditionalPoller,
};

/// A network: opens transports, and reports the interfaces and limits of the machine.
///
/// Used when channels are opened and closed, never on the data path.
pub trait Network: Send + Debug {
    /// Returns the name of the backend that opens a transport whose specification names none.
    fn backend(&self) -> &'static str {
        Capabilities::PLAIN.backend
    }

    /// Opens a bound transport. Port zero selects a free port. Fails with [`NetError::Unavailable`] if the specification
    /// names a backend that this network does not have ([`SocketSpec::check_backend`]).
    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError>;

    /// Creates the poller of an agent, for transports that this network opens for it ([`SocketSpec::agent`]).
    fn poller(&mut self, agent: AgentRole) -> Result<Box<dyn Poller>, NetError> {
        let _ = agent;
        Ok(Box::new(UnconditionalPoller::default()))
    }

    /// Called about once per second, by the conductor: for backends that follow changes of routes, neighbors and links.
    /// Neither waits nor does more than a bounded part of the work.
    fn on_timer(&mut self, now_ns: i64) {
        let _ = now_ns;
    }

    /// Returns the buffer lengths of a new transport, and the largest lengths that the system grants.
    fn buffer_limits(&mut self) -> Result<BufferLimits, NetError>;

    /// Returns the [`buffer_limits`](Self::buffer_limits) of the backend of this name. Fails with
    /// [`NetError::Unavailable`] if this network does not have it. The default is for networks of one backend.
    fn buffer_limits_of(&mut self, backend: &str) -> Result<BufferLimits, NetError> {
        if backend != self.backend() {
            return Err(unavailable(backend, self.backend()));
        }
        self.buffer_limits()
    }

    /// Returns one entry for each address of each interface.
    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError>;
}

impl<N: Network + ?Sized> Network for Box<N> {
    fn backend(&self) -> &'static str {
        (**self).backend()
    }

    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError> {
        (**self).open(spec)
    }

    fn poller(&mut self, agent: AgentRole) -> Result<Box<dyn Poller>, NetError> {
        (**self).poller(agent)
    }

    fn on_timer(&mut self, now_ns: i64) {
        (**self).on_timer(now_ns);
    }

    fn buffer_limits(&mut self) -> Result<BufferLimits, NetError> {
        (**self).buffer_limits()
    }

    fn buffer_limits_of(&mut self, backend: &str) -> Result<BufferLimits, NetError> {
        (**self).buffer_limits_of(backend)
    }

    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError> {
        (**self).interfaces()
    }
}

/// Parameters of a transport.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketSpec {
    /// Name of the backend, if the channel chooses one.
    pub backend: Option<Box<str>>,
    /// Number by which layers recognise what the transport is opened for: the driver passes the registration id of the
    /// publication, subscription or destination. Has no meaning for backends.
    pub tag: i64,
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
            backend: None,
            tag: 0,
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

    /// Sets the agent that uses the transport.
    #[must_use]
    pub fn used_by(self, agent: AgentRole) -> Self {
        Self { agent, ..self }
    }

    /// For backends: refuses a specification that names another backend than `own`.
    pub fn check_backend(&self, own: &str) -> Result<(), NetError> {
        match &self.backend {
            Some(backend) if **backend != *own => Err(unavailable(backend, own)),
            _ => Ok(()),
        }
    }

    /// Sets the number by which layers recognise what the transport is opened for.
    #[must_use]
    pub fn tagged(self, tag: i64) -> Self {
        Self { tag, ..self }
    }

    /// Connects the transport to `peer`.
    #[must_use]
    pub fn connected(self, peer: SocketAddr) -> Self {
        Self {
            connect: Some(peer),
            ..self
        }
    }

    /// Sets the local address.
    #[must_use]
    pub fn with_bind(self, bind: SocketAddr) -> Self {
        Self { bind, ..self }
    }

    /// Chooses the backend.
    #[must_use]
    pub fn with_backend(self, backend: impl Into<Box<str>>) -> Self {
        Self {
            backend: Some(backend.into()),
            ..self
        }
    }

    /// Sets the multicast role, and shares the address with other sockets if `is_shared` is true.
    #[must_use]
    pub fn with_multicast(self, role: MulticastSpec, is_shared: bool) -> Self {
        Self {
            multicast: Some(role),
            reuse_address: is_shared,
            ..self
        }
    }

    /// Sets the lengths of the socket buffers in bytes; `None` leaves the system's default.
    #[must_use]
    pub fn with_buffers(self, send: Option<usize>, receive: Option<usize>) -> Self {
        Self {
            send_buffer: send,
            receive_buffer: receive,
            ..self
        }
    }

    /// Sets whether segmentation and coalescing are used where the system has them.
    #[must_use]
    pub fn with_offload(self, offload: bool) -> Self {
        Self { offload, ..self }
    }

    /// Sets whether the transport reports the time at which each datagram arrived.
    #[must_use]
    pub fn with_receive_timestamps(self, receive_timestamps: bool) -> Self {
        Self {
            receive_timestamps,
            ..self
        }
    }
}

/// Returns the error for a backend that is not among the `present` ones.
pub(crate) fn unavailable(backend: &str, present: &str) -> NetError {
    NetError::Unavailable {
        backend: backend.into(),
        reason: format!("this driver has {present}").into(),
        remedy: "name one of these, or none".into(),
    }
}

/// The multicast role of a transport (docs/spec/wire.md §2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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

impl MulticastSpec {
    /// The role of a transport that only sends, on the interface with this address.
    #[must_use]
    pub fn sending(interface: IpAddr) -> Self {
        Self {
            join: None,
            interface,
            interface_index: 0,
            ttl: None,
        }
    }

    /// Joins a group.
    #[must_use]
    pub fn joining(self, group: IpAddr) -> Self {
        Self {
            join: Some(group),
            ..self
        }
    }

    /// Sets the index of the interface.
    #[must_use]
    pub fn with_interface_index(self, interface_index: u32) -> Self {
        Self {
            interface_index,
            ..self
        }
    }

    /// Sets the hop limit of sent datagrams; `None` leaves the system's default.
    #[must_use]
    pub fn with_ttl(self, ttl: Option<u8>) -> Self {
        Self { ttl, ..self }
    }
}

/// Limits of socket buffers on this machine. Exhaustive, because a backend states both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLimits {
    /// The lengths of a socket for which nothing was requested.
    pub default: BufferLengths,
    /// The lengths that the system grants when the largest possible value is requested.
    pub max: BufferLengths,
}
