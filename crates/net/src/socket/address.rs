// SPDX-License-Identifier: Apache-2.0
//! Socket addresses in the kernel's form.

use std::mem::offset_of;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use libc::{sa_family_t, sockaddr_in, sockaddr_in6};

/// The bytes of a `sockaddr_in` or a `sockaddr_in6`.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct RawAddress([u8; size_of::<sockaddr_in6>()]);

/// Bytes of [`RawAddress`] that the kernel may write.
pub(super) const CAPACITY: libc::socklen_t = size_of::<sockaddr_in6>() as libc::socklen_t;

const FAMILY: usize = offset_of!(sockaddr_in, sin_family);
const PORT: usize = offset_of!(sockaddr_in, sin_port);

const _: () = {
    assert!(size_of::<sockaddr_in>() <= size_of::<sockaddr_in6>());
    assert!(align_of::<sockaddr_in>() <= align_of::<RawAddress>());
    assert!(align_of::<sockaddr_in6>() <= align_of::<RawAddress>());
    assert!(offset_of!(sockaddr_in6, sin6_family) == FAMILY);
    assert!(offset_of!(sockaddr_in6, sin6_port) == PORT);
};

impl RawAddress {
    /// All bytes zero: no address.
    pub(super) const EMPTY: Self = Self([0; size_of::<sockaddr_in6>()]);

    /// Returns the kernel's form of `address` for a socket of the family of `local`, and its length. IPv6 sockets
    /// address IPv4 peers by mapped addresses.
    pub(super) fn encode(address: SocketAddr, local: SocketAddr) -> (Self, libc::socklen_t) {
        match (address, local) {
            (SocketAddr::V4(v4), SocketAddr::V4(_)) => Self::encode_v4(v4),
            (SocketAddr::V4(v4), SocketAddr::V6(_)) => {
                Self::encode_v6(SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0))
            }
            (SocketAddr::V6(v6), _) => Self::encode_v6(v6),
        }
    }

    fn encode_v4(address: SocketAddrV4) -> (Self, libc::socklen_t) {
        let mut raw = Self::EMPTY;
        raw.set(FAMILY, (libc::AF_INET as sa_family_t).to_ne_bytes());
        raw.set(PORT, address.port().to_be_bytes());
        raw.set(offset_of!(sockaddr_in, sin_addr), address.ip().octets());
        (raw, size_of::<sockaddr_in>() as libc::socklen_t)
    }

    fn encode_v6(address: SocketAddrV6) -> (Self, libc::socklen_t) {
        let mut raw = Self::EMPTY;
        raw.set(FAMILY, (libc::AF_INET6 as sa_family_t).to_ne_bytes());
        raw.set(PORT, address.port().to_be_bytes());
        let flowinfo = address.flowinfo().to_ne_bytes();
        raw.set(offset_of!(sockaddr_in6, sin6_flowinfo), flowinfo);
        raw.set(offset_of!(sockaddr_in6, sin6_addr), address.ip().octets());
        let scope_id = address.scope_id().to_ne_bytes();
        raw.set(offset_of!(sockaddr_in6, sin6_scope_id), scope_id);
        (raw, size_of::<sockaddr_in6>() as libc::socklen_t)
    }

    /// Returns the address, mapped ones as the IPv4 addresses that they represent; `None` for another family.
    pub(super) fn decode(&self) -> Option<SocketAddr> {
        let port = u16::from_be_bytes(self.get(PORT));
        match i32::from(sa_family_t::from_ne_bytes(self.get(FAMILY))) {
            libc::AF_INET => {
                let ip = Ipv4Addr::from(self.get(offset_of!(sockaddr_in, sin_addr)));
                Some(SocketAddr::from((ip, port)))
            }
            libc::AF_INET6 => {
                let octets: [u8; 16] = self.get(offset_of!(sockaddr_in6, sin6_addr));
                let ip = Ipv6Addr::from(octets);
                if let Some(ip) = ip.to_ipv4_mapped() {
                    return Some(SocketAddr::from((ip, port)));
                }
                let flowinfo =
                    u32::from_ne_bytes(self.get(offset_of!(sockaddr_in6, sin6_flowinfo)));
                let scope_id =
                    u32::from_ne_bytes(self.get(offset_of!(sockaddr_in6, sin6_scope_id)));
                Some(SocketAddrV6::new(ip, port, flowinfo, scope_id).into())
            }
            _ => None,
        }
    }

    #[inline]
    fn set<const N: usize>(&mut self, offset: usize, bytes: [u8; N]) {
        self.0[offset..offset + N].copy_from_slice(&bytes);
    }

    #[inline]
    fn get<const N: usize>(&self, offset: usize) -> [u8; N] {
        std::array::from_fn(|index| self.0[offset + index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decode_returns_the_encoded_address() {
        let v4: SocketAddr = "10.1.2.3:40123".parse().unwrap();
        let v6: SocketAddr = "[fe80::1%3]:40123".parse().unwrap();
        for (address, local) in [(v4, v4), (v6, v6), (v4, v6), (v6, v4)] {
            let (raw, length) = RawAddress::encode(address, local);
            assert!(length <= CAPACITY);
            assert_eq!(raw.decode(), Some(address));
        }
        assert_eq!(RawAddress::EMPTY.decode(), None);
    }

    #[test]
    fn encode_gives_network_byte_order() {
        let v4 = SocketAddr::from(([10, 1, 2, 3], 0x1234));
        let (raw, length) = RawAddress::encode(v4, v4);
        assert_eq!(length, 16);
        assert_eq!(raw.0[2..8], [0x12, 0x34, 10, 1, 2, 3]);
    }
}
