//! The calls made by the processor's own instruction (Linux; x86-64 and ARM64).

use std::arch::asm;
use std::os::fd::RawFd;

/// # Safety
/// As `receive_message`.
pub(super) unsafe fn recvmsg(
    socket: RawFd,
    header: *mut libc::msghdr,
    flags: libc::c_int,
) -> isize {
    let arguments = [socket as usize, header as usize, flags as usize, 0, 0, 0];
    // SAFETY: the arguments are those of this call, and the caller's promise.
    unsafe { system_call(libc::SYS_recvmsg, arguments) }
}

/// # Safety
/// As `receive_messages`.
pub(super) unsafe fn recvmmsg(
    socket: RawFd,
    headers: *mut libc::mmsghdr,
    count: libc::c_uint,
    flags: libc::c_int,
) -> isize {
    // The last one is a timeout: none.
    let arguments = [
        socket as usize,
        headers as usize,
        count as usize,
        flags as usize,
        0,
        0,
    ];
    // SAFETY: the arguments are those of this call, and the caller's promise.
    unsafe { system_call(libc::SYS_recvmmsg, arguments) }
}

/// # Safety
/// As `send_message`.
pub(super) unsafe fn sendmsg(
    socket: RawFd,
    header: *const libc::msghdr,
    flags: libc::c_int,
) -> isize {
    let arguments = [socket as usize, header as usize, flags as usize, 0, 0, 0];
    // SAFETY: the arguments are those of this call, and the caller's promise.
    unsafe { system_call(libc::SYS_sendmsg, arguments) }
}

/// # Safety
/// As `send_messages`.
pub(super) unsafe fn sendmmsg(
    socket: RawFd,
    headers: *mut libc::mmsghdr,
    count: libc::c_uint,
    flags: libc::c_int,
) -> isize {
    let arguments = [
        socket as usize,
        headers as usize,
        count as usize,
        flags as usize,
        0,
        0,
    ];
    // SAFETY: the arguments are those of this call, and the caller's promise.
    unsafe { system_call(libc::SYS_sendmmsg, arguments) }
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
    let arguments = [
        socket as usize,
        payload.as_ptr() as usize,
        payload.len(),
        flags as usize,
        address as usize,
        length as usize,
    ];
    // SAFETY: the arguments are those of this call, and the caller's promise.
    unsafe { system_call(libc::SYS_sendto, arguments) }
}

/// Asks the kernel for the call of this number; the number of an error comes back negated.
///
/// # Safety
/// The arguments are right for the call, and the memory that they describe may be read and written as it does.
#[cfg(target_arch = "x86_64")]
unsafe fn system_call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let returned;
    // SAFETY: the caller's promise about the arguments. The instruction overwrites RCX and R11, which is declared, restores
    // the flags, and uses no stack of ours; memory is taken to be read and written, as there is no `nomem`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => returned,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack, preserves_flags),
        );
    }
    returned
}

/// Asks the kernel for the call of this number; the number of an error comes back negated.
///
/// # Safety
/// The arguments are right for the call, and the memory that they describe may be read and written as it does.
#[cfg(target_arch = "aarch64")]
unsafe fn system_call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let returned;
    // SAFETY: the caller's promise about the arguments. The kernel keeps all registers but X0, and uses no stack of ours;
    // memory is taken to be read and written, as there is no `nomem`.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") arguments[0] => returned,
            in("x1") arguments[1],
            in("x2") arguments[2],
            in("x3") arguments[3],
            in("x4") arguments[4],
            in("x5") arguments[5],
            options(nostack, preserves_flags),
        );
    }
    returned
}
