// SPDX-License-Identifier: Apache-2.0
//! Opening of sockets for channels.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use taran_net::{AgentRole, BufferLimits, MulticastSpec, NetError, Network, SocketSpec, Transport};
use taran_protocol::log::SocketBufferLengths;

use super::super::publication_config::LogSocketBuffers;
use super::addresses::ResolvedChannel;
use super::endpoints::RequestedBuffers;
use super::ports::{OpenError, PortRange, open_error};
use crate::context::SocketSettings;

/// Sockets of a send endpoint.
#[derive(Debug)]
pub(crate) struct SenderSockets {
    /// Sends all frames; receives control frames unless `control` is set.
    pub(crate) data: Box<dyn Transport>,
    /// Receives the control frames of a multicast group.
    pub(crate) control: Option<Box<dyn Transport>>,
}

impl SenderSockets {
    /// Returns the address at which control frames are received.
    pub(crate) fn bound(&self) -> SocketAddr {
        self.control.as_ref().unwrap_or(&self.data).local_address()
    }
}

/// Opens sockets and determines the lengths of their buffers.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub(crate) network: Box<dyn Network>,
    /// Backend of channels that name none.
    pub(crate) backend: Box<str>,
    /// Limits of that backend.
    limits: BufferLimits,
    /// Buffer lengths from options, used where channels set none.
    defaults: RequestedBuffers,
    pub(crate) connect: bool,
    receive_buffers_grow: bool,
    /// Multicast TTL where channels set none; `None`: the system default.
    multicast_ttl: Option<u8>,
    sender_ports: PortRange,
    receiver_ports: PortRange,
}

impl Sockets {
    pub(crate) fn new(
        network: Box<dyn Network>,
        limits: BufferLimits,
        settings: &SocketSettings,
    ) -> Self {
        let backend = settings.backend.clone();
        Self {
            backend: backend.unwrap_or_else(|| network.backend().into()),
            network,
            limits,
            defaults: RequestedBuffers {
                send: settings.send_buffer,
                receive: settings.receive_buffer,
                arrival_times: false,
                limits: None,
            },
            receive_buffers_grow: settings.receive_buffers_grow,
            connect: settings.connect,
            multicast_ttl: settings.multicast_ttl,
            sender_ports: PortRange::new(settings.sender_ports.clone()),
            receiver_ports: PortRange::new(settings.receiver_ports.clone()),
        }
    }

    /// Returns the buffer lengths to request for a new endpoint.
    pub(crate) fn requested_buffers(&mut self, resolved: &ResolvedChannel) -> RequestedBuffers {
        let other_backend = Some(&resolved.backend).filter(|backend| **backend != self.backend);
        RequestedBuffers {
            send: self.send_length(resolved),
            receive: self.receive_length(resolved),
            arrival_times: resolved.channel.media_receive_timestamp.is_some(),
            // A backend that cannot be asked does not open a socket either, and says why.
            limits: other_backend.and_then(|backend| self.network.buffer_limits_of(backend).ok()),
        }
    }

    fn send_length(&self, resolved: &ResolvedChannel) -> Option<usize> {
        resolved.channel.send_buffer.or(self.defaults.send)
    }

    fn receive_length(&self, resolved: &ResolvedChannel) -> Option<usize> {
        resolved.channel.receive_buffer.or(self.defaults.receive)
    }

    fn limits_of(&self, requested: RequestedBuffers) -> BufferLimits {
        requested.limits.unwrap_or(self.limits)
    }

    /// Returns the guaranteed length of a send buffer.
    pub(crate) fn send_buffer(&self, requested: RequestedBuffers) -> usize {
        let limits = self.limits_of(requested);
        requested.send.unwrap_or(limits.default.send)
    }

    /// Returns the guaranteed length of a receive buffer.
    pub(crate) fn receive_buffer(&self, requested: RequestedBuffers) -> usize {
        let limits = self.limits_of(requested);
        requested.receive.unwrap_or(limits.default.receive)
    }

    /// Returns true if the receive buffer of a channel may grow beyond its initial length.
    pub(crate) fn grows(&self, resolved: &ResolvedChannel) -> bool {
        self.receive_buffers_grow && resolved.channel.receive_buffer.is_none()
    }

    /// Returns the buffer lengths for the metadata of a log; `None` for IPC.
    pub(crate) fn log_buffers(&self, requested: Option<RequestedBuffers>) -> LogSocketBuffers {
        let requested = requested.unwrap_or_default();
        let lengths = |socket: Option<usize>, default: usize, max: usize| SocketBufferLengths {
            socket: saturated(socket.unwrap_or(0)),
            default: saturated(default),
            max: saturated(max),
        };
        let BufferLimits { default, max } = self.limits_of(requested);
        LogSocketBuffers {
            send: lengths(requested.send, default.send, max.send),
            receive: lengths(requested.receive, default.receive, max.receive),
        }
    }

    /// Opens the sockets of a publication. `in_use` returns the ports of open endpoints.
    pub(crate) fn open_sender(
        &mut self,
        resolved: &ResolvedChannel,
        registration_id: i64,
        in_use: impl FnOnce() -> BTreeSet<u16>,
    ) -> Result<SenderSockets, OpenError> {
        if resolved.roles.multicast && !resolved.has_destinations() {
            return self.open_group_sender(resolved, registration_id);
        }
        let data = self.open_unicast_sender(resolved, registration_id, in_use)?;
        Ok(SenderSockets {
            data,
            control: None,
        })
    }

    /// Opens a socket that sends to the data group and one that listens to the control group (docs/spec/wire.md §2.5).
    fn open_group_sender(
        &mut self,
        resolved: &ResolvedChannel,
        registration_id: i64,
    ) -> Result<SenderSockets, OpenError> {
        let roles = &resolved.roles;
        let open_error = |error: NetError| open_error(&error, resolved.text());
        let control = self
            .group_spec(resolved, Some(roles.remote_control.ip()))
            .used_by(AgentRole::Sender)
            .tagged(registration_id);
        let mut data = self
            .group_spec(resolved, None)
            .with_bind(scoped(roles.local, resolved.interface_index))
            .used_by(AgentRole::Sender)
            .tagged(registration_id);
        data.connect = self.connect.then_some(roles.remote_data);
        data.reuse_address = false;
        Ok(SenderSockets {
            control: Some(self.network.open(&control).map_err(open_error)?),
            data: self.network.open(&data).map_err(open_error)?,
        })
    }

    /// Returns the TTL set by the channel or the option.
    pub(crate) fn multicast_ttl(&self, resolved: &ResolvedChannel) -> Option<u8> {
        resolved
            .channel
            .ttl
            .filter(|ttl| *ttl > 0)
            .or(self.multicast_ttl)
    }

    fn open_unicast_sender(
        &mut self,
        resolved: &ResolvedChannel,
        registration_id: i64,
        in_use: impl FnOnce() -> BTreeSet<u16>,
    ) -> Result<Box<dyn Transport>, OpenError> {
        let mut spec = self
            .spec(resolved, resolved.roles.local)
            .used_by(AgentRole::Sender)
            .tagged(registration_id);
        if self.connect && !resolved.has_destinations() && !resolved.is_response() {
            spec.connect = Some(resolved.roles.remote_data);
        }
        match resolved.control {
            // Only a sender with a control address, which receivers must find, gets a port of the range.
            Some(_) => {
                let (ports, network) = (&mut self.sender_ports, self.network.as_mut());
                ports.open(network, &spec, resolved.text(), in_use)
            }
            None => self
                .network
                .open(&spec)
                .map_err(|error| open_error(&error, resolved.text())),
        }
    }

    /// Opens the socket of a subscription. `in_use` returns the ports of open endpoints.
    pub(crate) fn open_receiver(
        &mut self,
        resolved: &ResolvedChannel,
        registration_id: i64,
        in_use: impl FnOnce() -> BTreeSet<u16>,
    ) -> Result<Box<dyn Transport>, OpenError> {
        let requested = self.requested_buffers(resolved);
        self.open_receive_destination(resolved, registration_id, requested, in_use)
    }

    /// Opens the socket of a destination of a subscription, with the buffer lengths of the subscription.
    pub(crate) fn open_receive_destination(
        &mut self,
        resolved: &ResolvedChannel,
        registration_id: i64,
        requested: RequestedBuffers,
        in_use: impl FnOnce() -> BTreeSet<u16>,
    ) -> Result<Box<dyn Transport>, OpenError> {
        let data = resolved.roles.remote_data;
        let spec = if resolved.roles.multicast {
            self.group_spec(resolved, Some(data.ip()))
        } else {
            self.spec(resolved, data)
        };
        let spec = spec
            .used_by(AgentRole::Receiver)
            .tagged(registration_id)
            .with_buffers(requested.send, requested.receive)
            .with_receive_timestamps(requested.arrival_times);
        let (ports, network) = (&mut self.receiver_ports, self.network.as_mut());
        ports.open(network, &spec, resolved.text(), in_use)
    }

    /// Returns the specification of a socket on a group's port, which other sockets may share (docs/spec/wire.md §2.5).
    fn group_spec(&self, resolved: &ResolvedChannel, join: Option<IpAddr>) -> SocketSpec {
        let roles = &resolved.roles;
        let any = match roles.remote_data.ip() {
            IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let mut role = MulticastSpec::sending(roles.local.ip())
            .with_interface_index(resolved.interface_index)
            .with_ttl(self.multicast_ttl(resolved));
        role.join = join;
        self.spec(resolved, SocketAddr::new(any, roles.remote_data.port()))
            .with_multicast(role, true)
    }

    fn spec(&self, resolved: &ResolvedChannel, bind: SocketAddr) -> SocketSpec {
        SocketSpec::bound(bind)
            .with_backend(resolved.backend.clone())
            .with_buffers(self.send_length(resolved), self.receive_length(resolved))
    }
}

/// Sets the scope id of a link-local address.
fn scoped(address: SocketAddr, interface_index: u32) -> SocketAddr {
    match address {
        SocketAddr::V6(mut v6) if v6.ip().is_unicast_link_local() => {
            v6.set_scope_id(interface_index);
            v6.into()
        }
        other => other,
    }
}

fn saturated(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}
