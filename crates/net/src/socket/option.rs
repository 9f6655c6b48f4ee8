//! Socket options by number.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// An option: level, number, and the name to report it by.
#[derive(Clone, Copy, Debug)]
pub(super) struct SocketOption {
    pub(super) level: i32,
    pub(super) number: i32,
    pub(super) name: &'static str,
}

macro_rules! options {
    ($($constant:ident = $level:ident, $number:expr, $name:literal;)*) => {
        $(pub(super) const $constant: SocketOption =
            SocketOption { level: libc::$level, number: $number, name: $name };)*
    };
}

options! {
    REUSE_ADDRESS = SOL_SOCKET, libc::SO_REUSEADDR, "SO_REUSEADDR";
    SEND_BUFFER = SOL_SOCKET, libc::SO_SNDBUF, "SO_SNDBUF";
    SEND_BUFFER_FORCE = SOL_SOCKET, libc::SO_SNDBUFFORCE, "SO_SNDBUFFORCE";
    RECEIVE_BUFFER = SOL_SOCKET, libc::SO_RCVBUF, "SO_RCVBUF";
    RECEIVE_BUFFER_FORCE = SOL_SOCKET, libc::SO_RCVBUFFORCE, "SO_RCVBUFFORCE";
    MEMORY = SOL_SOCKET, libc::SO_MEMINFO, "SO_MEMINFO";
    TIMESTAMPS = SOL_SOCKET, libc::SO_TIMESTAMPNS, "SO_TIMESTAMPNS";
    SEGMENT = SOL_UDP, libc::UDP_SEGMENT, "UDP_SEGMENT";
    COALESCE = SOL_UDP, libc::UDP_GRO, "UDP_GRO";
    MULTICAST_INTERFACE_V4 = IPPROTO_IP, libc::IP_MULTICAST_IF, "IP_MULTICAST_IF";
    MULTICAST_INTERFACE_V6 = IPPROTO_IPV6, libc::IPV6_MULTICAST_IF, "IPV6_MULTICAST_IF";
    MULTICAST_TTL_V4 = IPPROTO_IP, libc::IP_MULTICAST_TTL, "IP_MULTICAST_TTL";
    MULTICAST_TTL_V6 = IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS, "IPV6_MULTICAST_HOPS";
    MULTICAST_ALL_V4 = IPPROTO_IP, libc::IP_MULTICAST_ALL, "IP_MULTICAST_ALL";
    // linux/in6.h; the libc crate does not have it.
    MULTICAST_ALL_V6 = IPPROTO_IPV6, 29, "IPV6_MULTICAST_ALL";
    JOIN_V4 = IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, "IP_ADD_MEMBERSHIP";
    JOIN_V6 = IPPROTO_IPV6, libc::IPV6_ADD_MEMBERSHIP, "IPV6_ADD_MEMBERSHIP";
}

/// A structure that the kernel reads as an option's value.
///
/// # Safety
/// Plain data without padding that the kernel could be shown uninitialised.
pub(super) unsafe trait OptionValue: Copy {}

// SAFETY: an integer.
unsafe impl OptionValue for libc::c_int {}
// SAFETY: two addresses of four bytes and an `int`.
unsafe impl OptionValue for libc::ip_mreqn {}
// SAFETY: sixteen bytes of address and an `int`.
unsafe impl OptionValue for libc::ipv6_mreq {}

pub(super) fn set<T: OptionValue>(
    socket: &UdpSocket,
    option: SocketOption,
    value: T,
) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as `socket` is borrowed; pointer and length describe `value`, which
    // outlives the call and is fully initialised (`OptionValue`).
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            option.level,
            option.number,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

pub(super) fn get(socket: &UdpSocket, option: SocketOption) -> io::Result<i32> {
    words(socket, option).map(|[value]| value)
}

/// Datagrams that a socket had no room for, or found damaged, modulo 2^32 (`SK_MEMINFO_DROPS` of linux/sock_diag.h).
pub(super) fn drops(socket: &UdpSocket) -> io::Result<u32> {
    words(socket, MEMORY).map(|[.., drops]: [libc::c_int; 9]| drops.cast_unsigned())
}

/// A value that is so many integers.
fn words<const N: usize>(socket: &UdpSocket, option: SocketOption) -> io::Result<[libc::c_int; N]> {
    let mut value = MaybeUninit::<[libc::c_int; N]>::zeroed();
    let mut length = size_of::<[libc::c_int; N]>() as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `socket` is borrowed; the kernel writes at most `length` bytes of
    // `value`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            option.level,
            option.number,
            value.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result == 0 {
        // SAFETY: zeroed above, and any bits are integers.
        Ok(unsafe { value.assume_init() })
    } else {
        Err(io::Error::last_os_error())
    }
}
