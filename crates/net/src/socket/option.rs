// SPDX-License-Identifier: Apache-2.0
//! Socket options by number: most of those used here (`UDP_SEGMENT`, `UDP_GRO`, `SO_MEMINFO`, `IP_MULTICAST_IF` by
//! index) have no function in `rustix` or `socket2`.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// An option: level, number, and the name for error messages.
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
    PATH_MTU_V4 = IPPROTO_IP, libc::IP_MTU, "IP_MTU";
    PATH_MTU_V6 = IPPROTO_IPV6, libc::IPV6_MTU, "IPV6_MTU";
    JOIN_V4 = IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, "IP_ADD_MEMBERSHIP";
    JOIN_V6 = IPPROTO_IPV6, libc::IPV6_ADD_MEMBERSHIP, "IPV6_ADD_MEMBERSHIP";
}

/// Sets an option whose value is an integer.
pub(super) fn set(socket: &UdpSocket, option: SocketOption, value: i32) -> io::Result<()> {
    set_bytes(socket, option, &value.to_ne_bytes())
}

/// Sets an option whose value is a structure, given as its bytes.
pub(super) fn set_bytes(socket: &UdpSocket, option: SocketOption, value: &[u8]) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as `socket` is borrowed; the kernel only reads the bytes of `value`.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            option.level,
            option.number,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    check(result)
}

/// Returns the value of an option that is an integer.
pub(super) fn get(socket: &UdpSocket, option: SocketOption) -> io::Result<i32> {
    words(socket, option).map(|[value]| value)
}

/// Returns the number of datagrams that a socket dropped because of a full buffer or a wrong checksum, modulo 2^32
/// (`SK_MEMINFO_DROPS` of linux/sock_diag.h).
pub(super) fn drops(socket: &UdpSocket) -> io::Result<u32> {
    words(socket, MEMORY).map(|[.., drops]: [libc::c_int; 9]| drops.cast_unsigned())
}

/// Returns the value of an option that consists of `N` integers.
fn words<const N: usize>(socket: &UdpSocket, option: SocketOption) -> io::Result<[libc::c_int; N]> {
    let mut value = [0; N];
    let mut length = size_of_val(&value) as libc::socklen_t;
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
    check(result).map(|()| value)
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
