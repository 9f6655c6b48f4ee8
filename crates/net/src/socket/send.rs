//! Sending messages to the kernel, one or many per call.

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use super::address::RawAddress;
use super::call;
use super::control::Control;
use super::cut::{Cursor, Cut, Message};

/// Messages per call. The cost is per packet, not per call, so longer vectors gain nothing.
const VECTOR: usize = 32;

/// The ends of the socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) local: SocketAddr,
    pub(super) peer: Option<SocketAddr>,
}

impl Ends {
    /// The destination that the kernel must be told; `None` if it is the connected peer.
    fn explicit(self, message: &Message<'_>) -> Option<SocketAddr> {
        message
            .destination
            .filter(|destination| self.peer != Some(*destination))
    }
}

/// Sends one message by the cheapest call there is for it.
pub(super) fn send_one(socket: &UdpSocket, ends: Ends, message: &Message<'_>) -> io::Result<()> {
    if message.segment_size.is_some() {
        return send_segmented(socket, ends, message);
    }
    let destination = ends
        .explicit(message)
        .map(|destination| RawAddress::encode(destination, ends.local));
    // SAFETY: the descriptor is open as long as `socket` is borrowed.
    unsafe { call::send_datagram(socket.as_raw_fd(), message.payload, destination.as_ref()) }?;
    Ok(())
}

fn send_segmented(socket: &UdpSocket, ends: Ends, message: &Message<'_>) -> io::Result<()> {
    let mut slot = Slot::EMPTY;
    let header = slot.describe(message, ends);
    // SAFETY: the descriptor is open as long as `socket` is borrowed. `header` points into `slot` and the payload, which
    // are borrowed until after the call and which nothing else touches meanwhile; the kernel only reads.
    unsafe { call::send_message(socket.as_raw_fd(), &header) }?;
    Ok(())
}

/// Sends the messages from `cursor` on, as many as fit into a vector, and returns how many of them the kernel took (at
/// least one).
pub(super) fn send_many(
    socket: &UdpSocket,
    ends: Ends,
    mut cursor: Cursor<'_>,
    cut: Cut,
) -> io::Result<usize> {
    let mut slots = [const { Slot::EMPTY }; VECTOR];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; VECTOR];
    let mut count = 0;
    for (slot, header) in slots.iter_mut().zip(&mut headers) {
        let Some(message) = cursor.next(cut) else {
            break;
        };
        if message.destination.is_none() && ends.peer.is_none() {
            break;
        }
        header.write(libc::mmsghdr {
            msg_hdr: slot.describe(&message, ends),
            msg_len: 0,
        });
        count += 1;
    }
    // SAFETY: the descriptor is open as long as `socket` is borrowed. The first `count` headers are initialised and point
    // into `slots`, which is not moved, and into payloads borrowed by `cursor`; all outlive the call.
    unsafe { call::send_messages(socket.as_raw_fd(), headers.as_mut_ptr().cast(), count) }
}

/// What the header of one message points to. Filled in only as far as the message needs it.
struct Slot {
    address: MaybeUninit<RawAddress>,
    payload: MaybeUninit<libc::iovec>,
    control: Control,
}

impl Slot {
    const EMPTY: Self = Self {
        address: MaybeUninit::uninit(),
        payload: MaybeUninit::uninit(),
        control: Control::new(),
    };

    /// A header for `message`, valid as long as this slot stays where it is.
    fn describe(&mut self, message: &Message<'_>, ends: Ends) -> libc::msghdr {
        // SAFETY: null pointers and zero lengths are what an absent part of a header looks like.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        if let Some(destination) = ends.explicit(message) {
            let (raw, length) = RawAddress::encode(destination, ends.local);
            header.msg_name = std::ptr::from_mut(self.address.write(raw)).cast();
            header.msg_namelen = length;
        }
        // The kernel does not write through this pointer when it sends.
        let base = message.payload.as_ptr().cast_mut().cast();
        header.msg_iov = self.payload.write(libc::iovec {
            iov_base: base,
            iov_len: message.payload.len(),
        });
        header.msg_iovlen = 1;
        if let Some(segment_size) = message.segment_size {
            self.control.request_segments(&mut header, segment_size);
        }
        header
    }
}
