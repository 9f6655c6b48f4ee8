// SPDX-License-Identifier: Apache-2.0
//! System calls of the data path: receiving and sending.
//!
//! They go through the C library, so that socket stacks that interpose its functions (Onload, VMA) and sanitizers see
//! them.

use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use super::address::RawAddress;

/// Returns a header without address, payload and control data.
pub(super) fn empty_header() -> libc::msghdr {
    // SAFETY: null pointers and zero lengths are how the parts of a header are marked as absent.
    unsafe { mem::zeroed() }
}

/// Receives one message; returns its length.
///
/// # Safety
/// Until this returns, nothing else uses the memory that `header` describes, and the kernel may write all of it.
pub(super) unsafe fn receive_message(
    socket: &UdpSocket,
    header: &mut libc::msghdr,
) -> io::Result<usize> {
    // SAFETY: guaranteed by the caller; `header` is borrowed until after the call.
    count(unsafe { libc::recvmsg(socket.as_raw_fd(), header, 0) })
}

/// Receives up to `length` messages; returns their number.
///
/// # Safety
/// As [`receive_message`], for each of the `length` headers from `headers` on, which are initialised.
pub(super) unsafe fn receive_messages(
    socket: &UdpSocket,
    headers: *mut libc::mmsghdr,
    length: libc::c_uint,
) -> io::Result<usize> {
    let no_timeout = std::ptr::null_mut();
    // SAFETY: guaranteed by the caller.
    let received = unsafe { libc::recvmmsg(socket.as_raw_fd(), headers, length, 0, no_timeout) };
    count(received as isize)
}

/// Sends one message; returns its length.
///
/// # Safety
/// Until this returns, nothing writes to the memory that `header` describes.
pub(super) unsafe fn send_message(socket: &UdpSocket, header: &libc::msghdr) -> io::Result<usize> {
    // SAFETY: guaranteed by the caller; `header` is borrowed until after the call.
    count(unsafe { libc::sendmsg(socket.as_raw_fd(), header, libc::MSG_NOSIGNAL) })
}

/// Sends up to `length` messages; returns how many the kernel accepted, at least one.
///
/// # Safety
/// As [`send_message`], for each of the `length` headers from `headers` on, which are initialised, and in which the
/// kernel writes the lengths.
pub(super) unsafe fn send_messages(
    socket: &UdpSocket,
    headers: *mut libc::mmsghdr,
    length: libc::c_uint,
) -> io::Result<usize> {
    // SAFETY: guaranteed by the caller.
    let sent =
        unsafe { libc::sendmmsg(socket.as_raw_fd(), headers, length, libc::MSG_NOSIGNAL as _) };
    count(sent as isize)
}

/// Sends one datagram to `destination`, or to the connected peer; returns its length.
pub(super) fn send_datagram(
    socket: &UdpSocket,
    payload: &[u8],
    destination: Option<&(RawAddress, libc::socklen_t)>,
) -> io::Result<usize> {
    let (address, address_length) = match destination {
        Some((address, length)) => (std::ptr::from_ref(address).cast(), *length),
        None => (std::ptr::null(), 0),
    };
    // SAFETY: payload and address are borrowed until after the call, and the kernel only reads them: of the address at
    // most `address_length` bytes, which `RawAddress::encode` returns along with it.
    count(unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            payload.as_ptr().cast(),
            payload.len(),
            libc::MSG_NOSIGNAL,
            address,
            address_length,
        )
    })
}

/// Converts the return value of a call: a negative one means that `errno` holds the error.
fn count(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn send_datagram_failing_returns_the_systems_error() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let error = send_datagram(&socket, b"text", None).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EDESTADDRREQ));
        socket.connect(peer.local_addr().unwrap()).unwrap();
        let error = send_datagram(&socket, &[0; 65_508], None).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
        assert_eq!(send_datagram(&socket, b"text", None).unwrap(), 4);
    }

    #[test]
    fn receive_message_without_a_message_would_block() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut header = empty_header();
        // SAFETY: the header describes no memory.
        let error = unsafe { receive_message(&socket, &mut header) }.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
