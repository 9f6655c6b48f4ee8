//! From a [`SocketSpec`] to a bound socket.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::address::{self, RawAddress};
use super::option::{self, SocketOption};
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
    // A kernel that has no such option says so here, and the transport does without.
    let coalesces = offload && option::set(&socket, option::COALESCE, 1).is_ok();
    let segments = offload && option::get(&socket, option::SEGMENT).is_ok();
    if spec.multicast.is_some() {
        // Sockets that share a port hear only the groups that they joined. Kernels without the option are left as they
        // are.
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

/// A non-blocking socket of the family of `bind`.
pub(super) fn new_socket(bind: SocketAddr) -> Result<UdpSocket, NetError> {
    let family = if bind.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    // SAFETY: no pointers are passed.
    let fd = unsafe {
        libc::socket(
            family,
            libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
            0,
        )
    };
    if fd < 0 {
        return Err(NetError::Open {
            bind,
            source: io::Error::last_os_error(),
        });
    }
    // SAFETY: the descriptor is fresh, and nobody else owns it.
    Ok(UdpSocket::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

pub(super) fn bind(socket: &UdpSocket, address: SocketAddr) -> Result<(), NetError> {
    let (raw, length) = RawAddress::encode(address, address);
    // SAFETY: the descriptor is open as long as `socket` is borrowed; `raw` holds an address of `length` bytes.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const raw).cast(), length) };
    if result == 0 {
        Ok(())
    } else {
        Err(NetError::Bind {
            address,
            source: io::Error::last_os_error(),
        })
    }
}

/// Takes back a `connect`.
pub(super) fn disconnect(socket: &UdpSocket) -> io::Result<()> {
    let nobody = RawAddress::EMPTY;
    // SAFETY: the descriptor is open as long as `socket` is borrowed; `nobody` starts with the family AF_UNSPEC (zero)
    // and outlives the call.
    let result = unsafe {
        libc::connect(
            socket.as_raw_fd(),
            (&raw const nobody).cast(),
            address::CAPACITY,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

pub(super) fn bound_address(socket: &UdpSocket) -> Result<SocketAddr, NetError> {
    socket.local_addr().map_err(|source| NetError::Query {
        what: "the local address of a socket",
        source,
    })
}

/// The granted lengths, as the kernel reports them.
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

/// Asks for buffer lengths. The kernel grants what its limits allow, and more to a privileged process; the transport
/// reports how much that is.
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

/// The length of a buffer, of which the kernel reports twice as much.
fn granted(socket: &UdpSocket, option: SocketOption) -> io::Result<i32> {
    option::get(socket, option).map(|twice| twice / 2)
}

/// A longer receive buffer, within the limit that holds for everybody.
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
            // A privileged process had more than the limit.
            let _ = option::set(socket, option::RECEIVE_BUFFER_FORCE, before);
        }
    }
    Ok(())
}

/// Interface, hop limit and membership; returns the hop limit in force.
fn configure_multicast(
    socket: &UdpSocket,
    bind: SocketAddr,
    spec: &MulticastSpec,
) -> Result<u8, NetError> {
    let index = spec.interface_index.cast_signed();
    match (bind, spec.interface) {
        (SocketAddr::V4(_), IpAddr::V4(interface)) => {
            let address = libc::in_addr {
                s_addr: u32::from_ne_bytes(interface.octets()),
            };
            let none = libc::in_addr { s_addr: 0 };
            let request = libc::ip_mreqn {
                imr_multiaddr: none,
                imr_address: address,
                imr_ifindex: index,
            };
            set_as(
                socket,
                bind,
                option::MULTICAST_INTERFACE_V4,
                request,
                i64::from(spec.interface_index),
            )?;
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
            let request = libc::ip_mreqn {
                imr_multiaddr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(group.octets()),
                },
                imr_address: libc::in_addr {
                    s_addr: u32::from_ne_bytes(interface.octets()),
                },
                imr_ifindex: spec.interface_index.cast_signed(),
            };
            option::set(socket, option::JOIN_V4, request)
        }
        (IpAddr::V6(group), IpAddr::V6(_)) => {
            let request = libc::ipv6_mreq {
                ipv6mr_multiaddr: libc::in6_addr {
                    s6_addr: group.octets(),
                },
                ipv6mr_interface: spec.interface_index,
            };
            option::set(socket, option::JOIN_V6, request)
        }
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "group and interface are of different families",
        )),
    }
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
    set_as(socket, bind, option, value, i64::from(value))
}

fn set_as<T: option::OptionValue>(
    socket: &UdpSocket,
    bind: SocketAddr,
    option: SocketOption,
    value: T,
    shown: i64,
) -> Result<(), NetError> {
    option::set(socket, option, value).map_err(|source| NetError::Option {
        option: option.name,
        value: shown,
        bind,
        source,
    })
}
