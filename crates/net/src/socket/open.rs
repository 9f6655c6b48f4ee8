// SPDX-License-Identifier: Apache-2.0
//! Opening a bound socket from a [`SocketSpec`].

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use super::option::{self, SocketOption};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::segment_limiter::SegmentLimiter;
use super::send::SocketAddresses;
use super::transport::SocketTransport;
use crate::{BufferLengths, MulticastSpec, NetError, SocketSpec, Transport};

pub(super) fn open(spec: &SocketSpec, offload: bool) -> Result<SocketTransport, NetError> {
    let socket = new_socket(spec.bind)?;
    if spec.reuse_address {
        set(&socket, spec.bind, option::REUSE_ADDRESS, 1)?;
    }
    request_buffers(&socket, spec.bind, spec.send_buffer, spec.receive_buffer)?;
    if spec.receive_timestamps {
        set(&socket, spec.bind, option::TIMESTAMPS, 1)?;
    }
    // A kernel without these options returns an error here, and the transport works without offload.
    let coalesces = offload && option::set(&socket, option::COALESCE, 1).is_ok();
    let segments = offload && option::get(&socket, option::SEGMENT).is_ok();
    if spec.multicast.is_some() {
        // Sockets that share a port receive only the groups that they joined. Kernels without the option ignore it.
        let option = by_family(
            spec.bind,
            option::MULTICAST_ALL_V4,
            option::MULTICAST_ALL_V6,
        );
        let _ = option::set(&socket, option, 0);
    }
    bind(&socket, spec.bind)?;
    let multicast_ttl = match &spec.multicast {
        Some(multicast) => configure_multicast(&socket, spec.bind, multicast)?,
        None => 0,
    };
    let mut transport = SocketTransport {
        bind: spec.bind,
        addresses: SocketAddresses {
            local: bound_address(&socket)?,
            peer: None,
        },
        limiter: if segments {
            SegmentLimiter::FULL
        } else {
            SegmentLimiter::DISABLED
        },
        coalesces,
        timestamps: spec.receive_timestamps,
        receive_vector_next: false,
        buffer_lengths: buffer_lengths(&socket)?,
        multicast_ttl,
        socket,
    };
    if let Some(peer) = spec.connect {
        transport.connect(peer)?;
    }
    Ok(transport)
}

/// Creates a non-blocking socket of the family of `bind`.
pub(super) fn new_socket(bind: SocketAddr) -> Result<UdpSocket, NetError> {
    let family = if bind.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, None);
    let socket = socket.map_err(|error| NetError::Open {
        bind,
        source: error.into(),
    })?;
    Ok(UdpSocket::from(socket))
}

pub(super) fn bind(socket: &UdpSocket, address: SocketAddr) -> Result<(), NetError> {
    rustix::net::bind(socket, &address).map_err(|error| NetError::Bind {
        address,
        source: error.into(),
    })
}

/// Dissolves the association that `connect` made.
pub(super) fn disconnect(socket: &UdpSocket) -> io::Result<()> {
    rustix::net::connect_unspec(socket).map_err(io::Error::from)
}

pub(super) fn bound_address(socket: &UdpSocket) -> Result<SocketAddr, NetError> {
    socket.local_addr().map_err(|source| NetError::Query {
        what: "the local address of a socket",
        source,
    })
}

/// Returns the granted lengths, as the kernel reports them.
pub(super) fn buffer_lengths(socket: &UdpSocket) -> Result<BufferLengths, NetError> {
    let length = |option: SocketOption| {
        option::get(socket, option)
            .map(|length| usize::try_from(length).unwrap_or(0))
            .map_err(|source| NetError::Query {
                what: option.name,
                source,
            })
    };
    Ok(BufferLengths {
        send: length(option::SEND_BUFFER)?,
        receive: length(option::RECEIVE_BUFFER)?,
    })
}

/// Requests buffer lengths. The kernel grants at most its limits, and more to a privileged process; the transport
/// reports the granted lengths.
pub(super) fn request_buffers(
    socket: &UdpSocket,
    bind: SocketAddr,
    send: Option<usize>,
    receive: Option<usize>,
) -> Result<(), NetError> {
    let requests = [
        (send, option::SEND_BUFFER, option::SEND_BUFFER_FORCE),
        (
            receive,
            option::RECEIVE_BUFFER,
            option::RECEIVE_BUFFER_FORCE,
        ),
    ];
    for (length, option, beyond_limits) in requests {
        let Some(length) = length else { continue };
        let length = i32::try_from(length).unwrap_or(i32::MAX);
        set(socket, bind, option, length)?;
        if granted(socket, option).is_ok_and(|granted| granted < length) {
            let _ = option::set(socket, beyond_limits, length);
        }
    }
    Ok(())
}

/// Returns the granted length of a buffer, which is half of the length that the kernel reports.
fn granted(socket: &UdpSocket, option: SocketOption) -> io::Result<i32> {
    option::get(socket, option).map(|twice| twice / 2)
}

/// Grows the receive buffer, within the limit for unprivileged processes.
pub(super) fn grow_receive_buffer(
    socket: &UdpSocket,
    bind: SocketAddr,
    bytes: usize,
) -> Result<(), NetError> {
    let length = i32::try_from(bytes).unwrap_or(i32::MAX);
    let granted = || granted(socket, option::RECEIVE_BUFFER).unwrap_or(0);
    let before = granted();
    if length > before {
        set(socket, bind, option::RECEIVE_BUFFER, length)?;
        if granted() < before {
            // The buffer of a privileged process was above the limit.
            let _ = option::set(socket, option::RECEIVE_BUFFER_FORCE, before);
        }
    }
    Ok(())
}

/// Sets interface, hop limit and membership; returns the hop limit in force.
fn configure_multicast(
    socket: &UdpSocket,
    bind: SocketAddr,
    spec: &MulticastSpec,
) -> Result<u8, NetError> {
    let index = spec.interface_index.cast_signed();
    match (bind, spec.interface) {
        (SocketAddr::V4(_), IpAddr::V4(interface)) => {
            let option = option::MULTICAST_INTERFACE_V4;
            let request = membership_v4(Ipv4Addr::UNSPECIFIED, interface, spec.interface_index);
            let shown = i64::from(spec.interface_index);
            option::set_bytes(socket, option, &request)
                .map_err(|source| option_error(option, shown, bind, source))?;
        }
        _ => set(socket, bind, option::MULTICAST_INTERFACE_V6, index)?,
    }
    let ttl = by_family(bind, option::MULTICAST_TTL_V4, option::MULTICAST_TTL_V6);
    if let Some(limit) = spec.ttl {
        set(socket, bind, ttl, i32::from(limit))?;
    }
    if let Some(group) = spec.join {
        join(socket, group, spec).map_err(|source| NetError::Join {
            group,
            interface: spec.interface,
            source,
        })?;
    }
    option::get(socket, ttl)
        .map(|limit| u8::try_from(limit).unwrap_or(u8::MAX))
        .map_err(|source| NetError::Query {
            what: ttl.name,
            source,
        })
}

fn join(socket: &UdpSocket, group: IpAddr, spec: &MulticastSpec) -> io::Result<()> {
    match (group, spec.interface) {
        (IpAddr::V4(group), IpAddr::V4(interface)) => {
            let request = membership_v4(group, interface, spec.interface_index);
            option::set_bytes(socket, option::JOIN_V4, &request)
        }
        (IpAddr::V6(group), IpAddr::V6(_)) => {
            let request = membership_v6(group, spec.interface_index);
            option::set_bytes(socket, option::JOIN_V6, &request)
        }
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "group and interface are of different families",
        )),
    }
}

/// Returns the bytes of an `ip_mreqn`: group, address of the interface, index of the interface.
fn membership_v4(group: Ipv4Addr, interface: Ipv4Addr, index: u32) -> [u8; 12] {
    const _: () = assert!(size_of::<libc::ip_mreqn>() == 12);
    let mut request = [0; 12];
    request[..4].copy_from_slice(&group.octets());
    request[4..8].copy_from_slice(&interface.octets());
    request[8..].copy_from_slice(&index.to_ne_bytes());
    request
}

/// Returns the bytes of an `ipv6_mreq`: group, index of the interface.
fn membership_v6(group: Ipv6Addr, index: u32) -> [u8; 20] {
    const _: () = assert!(size_of::<libc::ipv6_mreq>() == 20);
    let mut request = [0; 20];
    request[..16].copy_from_slice(&group.octets());
    request[16..].copy_from_slice(&index.to_ne_bytes());
    request
}

fn by_family(bind: SocketAddr, v4: SocketOption, v6: SocketOption) -> SocketOption {
    if bind.is_ipv4() { v4 } else { v6 }
}

fn set(
    socket: &UdpSocket,
    bind: SocketAddr,
    option: SocketOption,
    value: i32,
) -> Result<(), NetError> {
    option::set(socket, option, value)
        .map_err(|source| option_error(option, i64::from(value), bind, source))
}

fn option_error(option: SocketOption, value: i64, bind: SocketAddr, source: io::Error) -> NetError {
    NetError::Option {
        option: option.name,
        value,
        bind,
        source,
    }
}
