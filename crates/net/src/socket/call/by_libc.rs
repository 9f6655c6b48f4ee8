//! The calls of the C library, for systems whose own way is not known here.

use std::io;
use std::os::fd::RawFd;

/// # Safety
/// As `receive_message`.
pub(super) unsafe fn recvmsg(
    socket: RawFd,
    header: *mut libc::msghdr,
    flags: libc::c_int,
) -> isize {
    // SAFETY: the caller's promise.
    or_error(unsafe { libc::recvmsg(socket, header, flags) })
}

/// # Safety
/// As `receive_messages`.
pub(super) unsafe fn recvmmsg(
    socket: RawFd,
    headers: *mut libc::mmsghdr,
    count: libc::c_uint,
    flags: libc::c_int,
) -> isize {
    // SAFETY: the caller's promise; there is no timeout.
    let taken = unsafe { libc::recvmmsg(socket, headers, count, flags as _, std::ptr::null_mut()) };
    or_error(taken as isize)
}

/// # Safety
/// As `send_message`.
pub(super) unsafe fn sendmsg(
    socket: RawFd,
    header: *const libc::msghdr,
    flags: libc::c_int,
) -> isize {
    // SAFETY: the caller's promise.
    or_error(unsafe { libc::sendmsg(socket, header, flags) })
}

/// # Safety
/// As `send_messages`.
pub(super) unsafe fn sendmmsg(
    socket: RawFd,
    headers: *mut libc::mmsghdr,
    count: libc::c_uint,
    flags: libc::c_int,
) -> isize {
    // SAFETY: the caller's promise.
    let taken = unsafe { libc::sendmmsg(socket, headers, count, flags as _) };
    or_error(taken as isize)
}

/// # Safety
/// As `send_datagram`; `address` is null, or points to an address of `length` bytes.
pub(super) unsafe fn sendto(
    socket: RawFd,
    payload: &[u8],
    flags: libc::c_int,
    address: *const libc::sockaddr,
    length: libc::socklen_t,
) -> isize {
    let bytes = payload.as_ptr().cast();
    // SAFETY: the caller's promise; the payload is borrowed until after the call.
    or_error(unsafe { libc::sendto(socket, bytes, payload.len(), flags, address, length) })
}

/// The number of an error, negated, in place of the one that all errors have.
fn or_error(returned: isize) -> isize {
    if returned >= 0 {
        return returned;
    }
    let number = io::Error::last_os_error().raw_os_error();
    -(number.unwrap_or(libc::EIO) as isize)
}
