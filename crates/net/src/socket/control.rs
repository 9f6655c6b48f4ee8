// SPDX-License-Identifier: Apache-2.0
//! Control messages: the segment size of sent batches (GSO), and the stride and timestamp of received ones (GRO).

use std::mem::MaybeUninit;

/// Bytes of a control buffer: the stride (an `int`) and a `timespec` with their headers.
const LENGTH: usize = 64;

/// Buffer for control messages, aligned as their headers must be.
#[repr(C, align(8))]
pub(super) struct ControlBuffer([MaybeUninit<u8>; LENGTH]);

/// Contents of the control messages of a received message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ControlData {
    pub(super) stride: Option<usize>,
    pub(super) timestamp_ns: Option<i64>,
}

const _: () = {
    // SAFETY: plain arithmetic on lengths.
    let (stride, time) = unsafe {
        (
            libc::CMSG_SPACE(size_of::<libc::c_int>() as u32),
            libc::CMSG_SPACE(size_of::<libc::timespec>() as u32),
        )
    };
    assert!((stride + time) as usize <= LENGTH);
    assert!(align_of::<libc::cmsghdr>() <= align_of::<ControlBuffer>());
};

impl ControlBuffer {
    pub(super) const fn new() -> Self {
        Self([MaybeUninit::uninit(); LENGTH])
    }

    /// Attaches the buffer to `header` for the kernel to write into.
    pub(super) fn attach(&mut self, header: &mut libc::msghdr) {
        header.msg_control = self.0.as_mut_ptr().cast();
        header.msg_controllen = LENGTH as _;
    }

    /// Adds a request to `header` to split the payload into datagrams of `segment_size` bytes.
    pub(super) fn request_segments(&mut self, header: &mut libc::msghdr, segment_size: u16) {
        self.attach(header);
        // SAFETY: `header` points to the buffer attached above, which is aligned and has room for the header and a
        // `u16` (asserted above for larger values), so `CMSG_FIRSTHDR` is not null and the data lie inside.
        unsafe {
            let message = libc::CMSG_FIRSTHDR(header);
            (*message).cmsg_level = libc::SOL_UDP;
            (*message).cmsg_type = libc::UDP_SEGMENT;
            (*message).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
            libc::CMSG_DATA(message)
                .cast::<u16>()
                .write_unaligned(segment_size);
            header.msg_controllen = libc::CMSG_SPACE(size_of::<u16>() as u32) as _;
        }
    }
}

/// Reads the control messages that the kernel wrote for `header`.
///
/// # Safety
/// `header` has been filled in by a successful `recvmsg` or `recvmmsg`, and the control buffer that it points to is
/// alive.
pub(super) unsafe fn read(header: &libc::msghdr) -> ControlData {
    let mut data = ControlData::default();
    // SAFETY: the kernel keeps `msg_controllen` and the lengths of the messages inside the buffer of `header` (the
    // caller's guarantee); the macros stay within them. Values are read unaligned and only with the type that the
    // kernel writes.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            match ((*message).cmsg_level, (*message).cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let stride = libc::CMSG_DATA(message)
                        .cast::<libc::c_int>()
                        .read_unaligned();
                    data.stride = usize::try_from(stride).ok().filter(|stride| *stride > 0);
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time = libc::CMSG_DATA(message)
                        .cast::<libc::timespec>()
                        .read_unaligned();
                    data.timestamp_ns = Some(time.tv_sec * 1_000_000_000 + time.tv_nsec);
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    data
}
