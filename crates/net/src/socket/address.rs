//! Socket addresses as the kernel has them.

use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Room for an address of either family.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) union RawAddress {
    family: libc::sa_family_t,
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

/// Bytes of [`RawAddress`], for the kernel to write into.
pub(super) const CAPACITY: libc::socklen_t = size_of::<RawAddress>() as libc::socklen_t;

impl RawAddress {
    /// All zero: no address.
    // SAFETY: zero is a value of every field of both structures.
    pub(super) const EMPTY: Self = unsafe { mem::zeroed() };

    /// The kernel's form of `address` for a socket of the family of `local`, and its length. A socket of IPv6 reaches
    /// IPv4 by mapped addresses.
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
        raw.v4 = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: address.port().to_be(),
            sin_addr: libc::in_addr {
                s_addr: u32::from_ne_bytes(address.ip().octets()),
            },
            sin_zero: [0; 8],
        };
        (raw, size_of::<libc::sockaddr_in>() as libc::socklen_t)
    }

    fn encode_v6(address: SocketAddrV6) -> (Self, libc::socklen_t) {
        let mut raw = Self::EMPTY;
        raw.v6 = libc::sockaddr_in6 {
            sin6_family: libc::AF_INET6 as libc::sa_family_t,
            sin6_port: address.port().to_be(),
            sin6_flowinfo: address.flowinfo(),
            sin6_addr: libc::in6_addr {
                s6_addr: address.ip().octets(),
            },
            sin6_scope_id: address.scope_id(),
        };
        (raw, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
    }

    /// The address, mapped ones as the IPv4 addresses that they stand for; `None` if the kernel wrote another family.
    pub(super) fn decode(&self) -> Option<SocketAddr> {
        // SAFETY: every constructor zeroes the whole union and the kernel only overwrites bytes of it, so all bytes are
        // initialised, and every field has a value for every pattern of bits.
        let (family, v4, v6) = unsafe { (self.family, self.v4, self.v6) };
        match i32::from(family) {
            libc::AF_INET => {
                let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddr::from((ip, u16::from_be(v4.sin_port))))
            }
            libc::AF_INET6 => {
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                let port = u16::from_be(v6.sin6_port);
                Some(ip.to_ipv4_mapped().map_or_else(
                    || {
                        SocketAddr::V6(SocketAddrV6::new(
                            ip,
                            port,
                            v6.sin6_flowinfo,
                            v6.sin6_scope_id,
                        ))
                    },
                    |ip| SocketAddr::from((ip, port)),
                ))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_kernels_form() {
        let v4: SocketAddr = "10.1.2.3:40123".parse().unwrap();
        let v6: SocketAddr = "[fe80::1%3]:40123".parse().unwrap();
        for (address, local) in [(v4, v4), (v6, v6), (v4, v6), (v6, v4)] {
            let (raw, length) = RawAddress::encode(address, local);
            assert!(length <= CAPACITY);
            assert_eq!(raw.decode(), Some(address));
        }
        assert_eq!(RawAddress::EMPTY.decode(), None);
    }
}
