use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;
use std::{mem, ptr};

use super::super::address::CAPACITY;
use super::super::wait::wait;
use super::*;

/// The calls of the C library, whichever are used here.
#[path = "by_libc.rs"]
mod by_libc;

/// One way of making the calls.
#[derive(Clone, Copy)]
struct Way {
    recvmsg: unsafe fn(RawFd, *mut libc::msghdr, libc::c_int) -> isize,
    recvmmsg: unsafe fn(RawFd, *mut libc::mmsghdr, libc::c_uint, libc::c_int) -> isize,
    sendmsg: unsafe fn(RawFd, *const libc::msghdr, libc::c_int) -> isize,
    sendmmsg: unsafe fn(RawFd, *mut libc::mmsghdr, libc::c_uint, libc::c_int) -> isize,
    sendto: unsafe fn(RawFd, &[u8], libc::c_int, *const libc::sockaddr, libc::socklen_t) -> isize,
}

const EACH: [Way; 2] = [
    Way {
        recvmsg: kernel::recvmsg,
        recvmmsg: kernel::recvmmsg,
        sendmsg: kernel::sendmsg,
        sendmmsg: kernel::sendmmsg,
        sendto: kernel::sendto,
    },
    Way {
        recvmsg: by_libc::recvmsg,
        recvmmsg: by_libc::recvmmsg,
        sendmsg: by_libc::sendmsg,
        sendmmsg: by_libc::sendmmsg,
        sendto: by_libc::sendto,
    },
];

/// A descriptor that nobody has.
const NOBODYS: RawFd = -1;

/// Two messages with room for their bytes and an address each.
struct Messages {
    bytes: [[u8; 16]; 2],
    addresses: [RawAddress; 2],
    parts: [libc::iovec; 2],
    headers: [libc::mmsghdr; 2],
}

impl Messages {
    /// Boxed, as it points into itself.
    fn new(bytes: [&[u8; 16]; 2], address: Option<SocketAddr>) -> Box<Self> {
        let (raw, length) = match address {
            Some(address) => RawAddress::encode(address, address),
            None => (RawAddress::EMPTY, CAPACITY),
        };
        let mut messages = Box::new(Self {
            bytes: bytes.map(|bytes| *bytes),
            addresses: [raw; 2],
            // SAFETY: null pointers and zero lengths are what absent parts look like.
            parts: unsafe { mem::zeroed() },
            // SAFETY: as above.
            headers: unsafe { mem::zeroed() },
        });
        let it = &mut *messages;
        for index in 0..2 {
            it.parts[index].iov_base = it.bytes[index].as_mut_ptr().cast();
            it.parts[index].iov_len = it.bytes[index].len();
            let header = &mut it.headers[index].msg_hdr;
            header.msg_iov = &raw mut it.parts[index];
            header.msg_iovlen = 1;
            header.msg_name = (&raw mut it.addresses[index]).cast();
            header.msg_namelen = length;
        }
        messages
    }

    fn empty() -> Box<Self> {
        Self::new([&[0; 16]; 2], None)
    }

    fn first(&mut self) -> &mut libc::msghdr {
        &mut self.headers[0].msg_hdr
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

fn arrived(socket: &UdpSocket) {
    assert!(wait(&[socket.as_raw_fd()], Duration::from_secs(10)).unwrap());
}

#[test]
fn a_message_goes_over_as_it_is() {
    for way in EACH {
        let (there, here) = (socket(), socket());
        let mut out = Messages::new([b"0123456789abcdef"; 2], Some(here.local_addr().unwrap()));
        let mut came = Messages::empty();
        // SAFETY: the header describes memory of `out`, which outlives the call.
        let sent = unsafe { (way.sendmsg)(there.as_raw_fd(), out.first(), 0) };
        assert_eq!(sent, 16);
        arrived(&here);
        // SAFETY: the header describes memory of `came`, which outlives the call.
        let length = unsafe { (way.recvmsg)(here.as_raw_fd(), came.first(), 0) };
        assert_eq!((length, &came.bytes[0]), (16, b"0123456789abcdef"));
        assert_eq!(came.addresses[0].decode(), there.local_addr().ok());
    }
}

#[test]
fn messages_go_over_together() {
    for way in EACH {
        let (there, here) = (socket(), socket());
        let texts = [b"the first one...", b"the second one.."];
        let mut out = Messages::new(texts, Some(here.local_addr().unwrap()));
        let mut came = Messages::empty();
        // SAFETY: both headers describe memory of `out`, which outlives the call.
        let sent = unsafe { (way.sendmmsg)(there.as_raw_fd(), out.headers.as_mut_ptr(), 2, 0) };
        assert_eq!(sent, 2);
        assert_eq!(out.headers.map(|header| header.msg_len), [16, 16]);
        arrived(&here);
        // SAFETY: both headers describe memory of `came`, which outlives the call.
        let taken = unsafe { (way.recvmmsg)(here.as_raw_fd(), came.headers.as_mut_ptr(), 2, 0) };
        assert_eq!(taken, 2);
        assert_eq!(came.headers.map(|header| header.msg_len), [16, 16]);
        assert_eq!(came.bytes.each_ref(), texts);
    }
}

#[test]
fn a_datagram_goes_to_the_peer_or_elsewhere() {
    for way in EACH {
        let (there, peer, other) = (socket(), socket(), socket());
        there.connect(peer.local_addr().unwrap()).unwrap();
        let other_address = other.local_addr().unwrap();
        let (raw, length) = RawAddress::encode(other_address, other_address);
        let fd = there.as_raw_fd();
        // SAFETY: there is no address.
        let to_peer = unsafe { (way.sendto)(fd, b"peer", 0, ptr::null(), 0) };
        // SAFETY: the address has that length.
        let to_other = unsafe { (way.sendto)(fd, b"other", 0, (&raw const raw).cast(), length) };
        assert_eq!((to_peer, to_other), (4, 5));
        for (receiver, text) in [(peer, &b"peer"[..]), (other, b"other")] {
            arrived(&receiver);
            let mut bytes = [0; 16];
            let length = receiver.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], text);
        }
    }
}

#[test]
fn what_is_not_there_is_told() {
    for way in EACH {
        let silent = socket();
        let mut came = Messages::empty();
        let fd = silent.as_raw_fd();
        // SAFETY: the header describes memory of `came`, which outlives the call.
        let one = unsafe { (way.recvmsg)(fd, came.first(), 0) };
        // SAFETY: as above, both headers.
        let many = unsafe { (way.recvmmsg)(fd, came.headers.as_mut_ptr(), 2, 0) };
        assert_eq!([one, many], [-(libc::EAGAIN as isize); 2]);
    }
}

#[test]
fn what_is_no_socket_is_told() {
    for way in EACH {
        let mut some = Messages::empty();
        let headers = some.headers.as_mut_ptr();
        let header = some.first();
        // SAFETY: nothing is read or written for a descriptor that is none; the memory would be there.
        let told = unsafe {
            [
                (way.recvmsg)(NOBODYS, header, 0),
                (way.sendmsg)(NOBODYS, header, 0),
                (way.recvmmsg)(NOBODYS, headers, 2, 0),
                (way.sendmmsg)(NOBODYS, headers, 2, 0),
                (way.sendto)(NOBODYS, b"text", 0, ptr::null(), 0),
            ]
        };
        assert_eq!(told, [-(libc::EBADF as isize); 5]);
    }
}

/// What each call says on a socket whose peer has closed its port, and was sent something.
#[test]
fn a_closed_port_is_told_once() {
    let refused = -(libc::ECONNREFUSED as isize);
    for way in EACH {
        let there = socket();
        let gone = socket().local_addr().unwrap();
        there.connect(gone).unwrap();
        let fd = there.as_raw_fd();
        let text = [b"0123456789abcdef"; 2];
        let mut some = Messages::new(text, Some(gone));
        let headers = some.headers.as_mut_ptr();
        let header: *mut libc::msghdr = some.first();
        let calls: [&dyn Fn() -> isize; 5] = [
            // SAFETY: the header describes memory of `some`, which outlives the calls; so in all of them.
            &|| unsafe { (way.recvmsg)(fd, header, 0) },
            // SAFETY: as above.
            &|| unsafe { (way.recvmmsg)(fd, headers, 2, 0) },
            // SAFETY: as above.
            &|| unsafe { (way.sendmsg)(fd, header, 0) },
            // SAFETY: as above.
            &|| unsafe { (way.sendmmsg)(fd, headers, 2, 0) },
            // SAFETY: there is no address.
            &|| unsafe { (way.sendto)(fd, b"text", 0, ptr::null(), 0) },
        ];
        for call in calls {
            // SAFETY: there is no address.
            let sent = unsafe { (way.sendto)(fd, b"text", 0, ptr::null(), 0) };
            assert_eq!(sent, 4);
            assert_eq!(call(), refused);
        }
    }
}

#[test]
fn what_is_too_long_or_has_no_destination_is_told() {
    for way in EACH {
        let (there, peer) = (socket(), socket());
        let fd = there.as_raw_fd();
        // SAFETY: there is no address.
        let nowhere = unsafe { (way.sendto)(fd, b"text", 0, ptr::null(), 0) };
        there.connect(peer.local_addr().unwrap()).unwrap();
        // SAFETY: there is no address.
        let too_long = unsafe { (way.sendto)(fd, &[0; 65_508], 0, ptr::null(), 0) };
        let expected = [libc::EDESTADDRREQ, libc::EMSGSIZE].map(|error| -(error as isize));
        assert_eq!([nowhere, too_long], expected);
    }
}

#[test]
fn errors_are_those_of_the_system() {
    // SAFETY: nobody's descriptor.
    let error = unsafe { send_datagram(NOBODYS, b"text", None) }.unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    let silent = socket();
    let mut came = Messages::empty();
    // SAFETY: the header describes memory of `came`, which outlives the call.
    let error = unsafe { receive_message(silent.as_raw_fd(), came.first()) }.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    assert_eq!(outcome(3).unwrap(), 3);
}
