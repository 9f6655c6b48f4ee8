// SPDX-License-Identifier: Apache-2.0
//! Sending, one or many messages per call.

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, UdpSocket};

use super::address::RawAddress;
use super::call;
use super::control::ControlBuffer;
use super::segment_limiter::{BatchCursor, Message, SegmentLimiter};

/// Messages per call. The cost is per packet, not per call, so longer vectors gain nothing.
const VECTOR: usize = 32;

/// Local address and connected peer of a socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct SocketAddresses {
    pub(super) local: SocketAddr,
    pub(super) peer: Option<SocketAddr>,
}

impl SocketAddresses {
    /// Returns the destination to pass to the kernel; `None` if it is the connected peer.
    fn explicit_destination(self, message: &Message<'_>) -> Option<SocketAddr> {
        message
            .destination
            .filter(|destination| self.peer != Some(*destination))
    }
}

/// Sends one message by the cheapest call for it.
pub(super) fn send_one(
    socket: &UdpSocket,
    addresses: SocketAddresses,
    message: &Message<'_>,
) -> io::Result<()> {
    if message.segment_size.is_some() {
        return send_segmented(socket, addresses, message);
    }
    let destination = addresses
        .explicit_destination(message)
        .map(|destination| RawAddress::encode(destination, addresses.local));
    call::send_datagram(socket, message.payload, destination.as_ref())?;
    Ok(())
}

fn send_segmented(
    socket: &UdpSocket,
    addresses: SocketAddresses,
    message: &Message<'_>,
) -> io::Result<()> {
    let mut slot = Slot::EMPTY;
    let header = slot.header_for(message, addresses);
    // SAFETY: `header` points into `slot` and the payload,
    // which are borrowed until after the call; the kernel only reads them.
    unsafe { call::send_message(socket, &header) }?;
    Ok(())
}

/// Sends up to [`VECTOR`] messages from `cursor` on by one call; returns how many of them the kernel accepted (at least
/// one).
pub(super) fn send_many(
    socket: &UdpSocket,
    addresses: SocketAddresses,
    mut cursor: BatchCursor<'_>,
    limiter: SegmentLimiter,
) -> io::Result<usize> {
    let mut slots = [const { Slot::EMPTY }; VECTOR];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; VECTOR];
    let mut count = 0;
    for (slot, header) in slots.iter_mut().zip(&mut headers) {
        let Some(message) = cursor.next(limiter) else {
            break;
        };
        if message.destination.is_none() && addresses.peer.is_none() {
            break;
        }
        header.write(libc::mmsghdr {
            msg_hdr: slot.header_for(&message, addresses),
            msg_len: 0,
        });
        count += 1;
    }
    // SAFETY: the first `count` headers are initialised and
    // point into `slots`, which is not moved, and into payloads borrowed by `cursor`; all outlive the call.
    unsafe { call::send_messages(socket, headers.as_mut_ptr().cast(), count) }
}

/// Memory that the header of one message points to. Initialised only as far as the message needs it.
struct Slot {
    address: MaybeUninit<RawAddress>,
    payload: MaybeUninit<libc::iovec>,
    control: ControlBuffer,
}

impl Slot {
    const EMPTY: Self = Self {
        address: MaybeUninit::uninit(),
        payload: MaybeUninit::uninit(),
        control: ControlBuffer::new(),
    };

    /// Returns a header for `message`. Valid as long as this slot is not moved.
    fn header_for(&mut self, message: &Message<'_>, addresses: SocketAddresses) -> libc::msghdr {
        let mut header = call::empty_header();
        if let Some(destination) = addresses.explicit_destination(message) {
            let (raw, length) = RawAddress::encode(destination, addresses.local);
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
