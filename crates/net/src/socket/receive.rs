// SPDX-License-Identifier: Apache-2.0
//! Receiving from the kernel, one or many messages per call.

use std::io;
use std::mem::MaybeUninit;
use std::net::UdpSocket;

use super::address::{self, RawAddress};
use super::call;
use super::control::{self, ControlBuffer, ControlData};
use crate::{ReceiveBatch, Received};

/// Messages per call.
const VECTOR: usize = 32;

/// Receives one message into the next free slot of `batch`; returns the number of messages.
pub(super) fn receive_one(
    socket: &UdpSocket,
    batch: &mut ReceiveBatch,
    wants_control: bool,
) -> io::Result<usize> {
    let Some(free) = batch.free_slots().next() else {
        return Ok(0);
    };
    let received = receive(socket, [free, &mut []], wants_control)?;
    batch.commit(received);
    Ok(1)
}

/// Receives the next message into `head`, and the bytes that do not fit there into `rest`.
pub(super) fn receive_parts(
    socket: &UdpSocket,
    head: &mut [u8],
    rest: &mut [u8],
    wants_control: bool,
) -> io::Result<Received> {
    receive(socket, [head, rest], wants_control)
}

/// Receives the next message into `parts`, one after the other.
fn receive(socket: &UdpSocket, parts: [&mut [u8]; 2], wants_control: bool) -> io::Result<Received> {
    let mut slot = Slot::new();
    let mut header = slot.header_for(parts, wants_control);
    // SAFETY: `header` points into `slot` and `parts`, which are exclusively borrowed until after the call.
    let length = unsafe { call::receive_message(socket, &mut header) }?;
    // SAFETY: the call succeeded and `slot` is alive.
    Ok(unsafe { slot.read(&header, length) })
}

/// Receives up to [`VECTOR`] messages into free slots of `batch` by one call; returns the number of messages.
pub(super) fn receive_many(
    socket: &UdpSocket,
    batch: &mut ReceiveBatch,
    wants_control: bool,
) -> io::Result<usize> {
    let mut slots = [const { Slot::new() }; VECTOR];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; VECTOR];
    let mut count = 0;
    for ((free, slot), header) in batch.free_slots().zip(&mut slots).zip(&mut headers) {
        header.write(libc::mmsghdr {
            msg_hdr: slot.header_for([free, &mut []], wants_control),
            msg_len: 0,
        });
        count += 1;
    }
    // SAFETY: the first `count` headers are initialised and
    // point into `slots` and into the free slots of `batch`; neither moves, is freed or is accessed until after the
    // call.
    let taken = unsafe { call::receive_messages(socket, headers.as_mut_ptr().cast(), count) }?;
    for (slot, header) in slots.iter().zip(&headers).take(taken) {
        // SAFETY: the kernel filled in the first `taken` headers, all initialised above, and `slots` is alive.
        let received = unsafe {
            let header = header.assume_init_ref();
            slot.read(&header.msg_hdr, header.msg_len as usize)
        };
        batch.commit(received);
    }
    Ok(taken)
}

/// Memory that the header of one message points to.
struct Slot {
    address: RawAddress,
    payload: MaybeUninit<[libc::iovec; 2]>,
    control: ControlBuffer,
}

impl Slot {
    const fn new() -> Self {
        Self {
            address: RawAddress::EMPTY,
            payload: MaybeUninit::uninit(),
            control: ControlBuffer::new(),
        }
    }

    /// Returns a header for receiving into `parts`, one after the other. Valid as long as this slot and the parts are
    /// not moved.
    fn header_for(&mut self, parts: [&mut [u8]; 2], wants_control: bool) -> libc::msghdr {
        let mut header = call::empty_header();
        header.msg_name = (&raw mut self.address).cast();
        header.msg_namelen = address::CAPACITY;
        let [_, rest] = &parts;
        // The C library decides on the type of the field.
        header.msg_iovlen = (1 + u8::from(!rest.is_empty())).into();
        let parts = parts.map(|part| libc::iovec {
            iov_base: part.as_mut_ptr().cast(),
            iov_len: part.len(),
        });
        header.msg_iov = self.payload.write(parts).as_mut_ptr();
        if wants_control {
            self.control.attach(&mut header);
        }
        header
    }

    /// Returns the description of a received message of `length` bytes.
    ///
    /// # Safety
    /// `header` comes from `describe` of this slot and was filled in by a successful receiving call.
    unsafe fn read(&self, header: &libc::msghdr, length: usize) -> Received {
        let control = if header.msg_controllen == 0 {
            ControlData::default()
        } else {
            // SAFETY: the caller guarantees it, and the control buffer is in this slot.
            unsafe { control::read(header) }
        };
        Received {
            source: self.address.decode().unwrap_or(Received::default().source),
            length,
            stride: control.stride.unwrap_or(length).min(length),
            timestamp_ns: control.timestamp_ns,
        }
    }
}
