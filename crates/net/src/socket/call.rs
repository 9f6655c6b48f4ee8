//! The calls of the road: receiving and sending.
//!
//! They go straight to the kernel on Linux on x86-64 and ARM64: those of the C library ask each time whether their thread
//! is to be cancelled, which no thread of Rust ever is, and leave an error where it has to be fetched from. Elsewhere they
//! are those of the C library. What either of them returns is the count, or the error as a value.

use std::io;
use std::os::fd::RawFd;

use super::address::RawAddress;

#[cfg_attr(
    all(
        target_os = "linux",
        target_pointer_width = "64",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ),
    path = "call/direct.rs"
)]
#[cfg_attr(
    not(all(
        target_os = "linux",
        target_pointer_width = "64",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    path = "call/by_libc.rs"
)]
mod kernel;
#[cfg(test)]
mod tests;

/// Receives one message; returns its length.
///
/// # Safety
/// `socket` is a socket of the caller's, or no descriptor at all. Nobody else uses the memory that `header` describes until
/// this returns, and the kernel may write all of it.
pub(super) unsafe fn receive_message(
    socket: RawFd,
    header: &mut libc::msghdr,
) -> io::Result<usize> {
    // SAFETY: the caller's promise; `header` is borrowed until after the call.
    outcome(unsafe { kernel::recvmsg(socket, header, 0) })
}

/// Receives up to `count` messages; returns how many.
///
/// # Safety
/// As [`receive_message`], for each of the `count` headers from `headers` on, which are initialised.
pub(super) unsafe fn receive_messages(
    socket: RawFd,
    headers: *mut libc::mmsghdr,
    count: libc::c_uint,
) -> io::Result<usize> {
    // SAFETY: the caller's promise.
    outcome(unsafe { kernel::recvmmsg(socket, headers, count, 0) })
}

/// Sends one message; returns its length.
///
/// # Safety
/// `socket` is a socket of the caller's, or no descriptor at all. Nobody writes to the memory that `header` describes until
/// this returns.
pub(super) unsafe fn send_message(socket: RawFd, header: &libc::msghdr) -> io::Result<usize> {
    // SAFETY: the caller's promise; `header` is borrowed until after the call.
    outcome(unsafe { kernel::sendmsg(socket, header, libc::MSG_NOSIGNAL) })
}

/// Sends up to `count` messages; returns how many the kernel took, one at least.
///
/// # Safety
/// As [`send_message`], for each of the `count` headers from `headers` on, which are initialised, and in which the kernel
/// writes the lengths.
pub(super) unsafe fn send_messages(
    socket: RawFd,
    headers: *mut libc::mmsghdr,
    count: libc::c_uint,
) -> io::Result<usize> {
    // SAFETY: the caller's promise.
    outcome(unsafe { kernel::sendmmsg(socket, headers, count, libc::MSG_NOSIGNAL) })
}

/// Sends one datagram, to the peer that the socket is connected to if there is no `destination`; returns its length.
///
/// # Safety
/// `socket` is a socket of the caller's, or no descriptor at all.
pub(super) unsafe fn send_datagram(
    socket: RawFd,
    payload: &[u8],
    destination: Option<&(RawAddress, libc::socklen_t)>,
) -> io::Result<usize> {
    let (address, length) = match destination {
        Some((address, length)) => (std::ptr::from_ref(address).cast(), *length),
        None => (std::ptr::null(), 0),
    };
    // SAFETY: the caller's promise; payload and address are borrowed until after the call, and the kernel only reads them:
    // of the address no more than `length` bytes, which `encode` gives along with it.
    outcome(unsafe { kernel::sendto(socket, payload, libc::MSG_NOSIGNAL, address, length) })
}

/// A count as it is; what is less than zero is the number of an error, negated.
fn outcome(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::from_raw_os_error(-(returned as i32)))
}
