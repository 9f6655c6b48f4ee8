//! The machine's interfaces.

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ptr;

use super::address::RawAddress;
use crate::{Interface, NetError};

/// One entry for each IPv4 and IPv6 address of each interface.
pub(super) fn interfaces() -> Result<Vec<Interface>, NetError> {
    let list = List::load().map_err(|source| NetError::Query {
        what: "the network interfaces",
        source,
    })?;
    Ok(list.entries().filter_map(describe).collect())
}

fn describe(entry: &libc::ifaddrs) -> Option<Interface> {
    // SAFETY: `getifaddrs` gives each entry a name that ends in a null byte, alive as long as the list.
    let name = unsafe { CStr::from_ptr(entry.ifa_name) };
    // SAFETY: the pointers are those of a live entry.
    let (address, mask) = unsafe { (decode(entry.ifa_addr)?, decode(entry.ifa_netmask)) };
    let flag = |flag: libc::c_int| entry.ifa_flags & flag.cast_unsigned() != 0;
    // SAFETY: `name` ends in a null byte.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    Some(Interface {
        name: name.to_string_lossy().into_owned(),
        index,
        address: address.ip(),
        prefix: mask.map_or(0, |mask| prefix(mask.ip())),
        up: flag(libc::IFF_UP),
        multicast: flag(libc::IFF_MULTICAST),
        loopback: flag(libc::IFF_LOOPBACK),
    })
}

fn prefix(mask: IpAddr) -> u8 {
    let ones = match mask {
        IpAddr::V4(mask) => mask.to_bits().leading_ones(),
        IpAddr::V6(mask) => mask.to_bits().leading_ones(),
    };
    u8::try_from(ones).unwrap_or(u8::MAX)
}

/// The address at `address`, if it is there and of a family of interest.
///
/// # Safety
/// Null, or what `getifaddrs` left in an entry of a live list.
unsafe fn decode(address: *const libc::sockaddr) -> Option<SocketAddr> {
    if address.is_null() {
        return None;
    }
    let mut raw = RawAddress::EMPTY;
    // SAFETY: an address that is not null starts with its family and is as long as that family's structure, no longer
    // than `raw`.
    unsafe {
        let length = match i32::from((*address).sa_family) {
            libc::AF_INET => size_of::<libc::sockaddr_in>(),
            libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
            _ => return None,
        };
        ptr::copy_nonoverlapping(address.cast::<u8>(), (&raw mut raw).cast::<u8>(), length);
    }
    raw.decode()
}

/// The system's linked list, freed on drop.
struct List(*mut libc::ifaddrs);

impl List {
    fn load() -> io::Result<Self> {
        let mut head = ptr::null_mut();
        // SAFETY: the call only writes the head of a list that we free.
        if unsafe { libc::getifaddrs(&raw mut head) } == 0 {
            Ok(Self(head))
        } else {
            Err(io::Error::last_os_error())
        }
    }

    fn entries(&self) -> impl Iterator<Item = &libc::ifaddrs> {
        // SAFETY: the head is null or points to an entry that lives as long as the list, which is borrowed.
        let first = unsafe { self.0.as_ref() };
        // SAFETY: likewise each link.
        std::iter::successors(first, |entry| unsafe { entry.ifa_next.as_ref() })
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the head came from `getifaddrs`, is freed once, and no borrow of an entry is left.
        unsafe { libc::freeifaddrs(self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found() {
        let all = interfaces().unwrap();
        let loopback = all
            .iter()
            .find(|entry| entry.address == IpAddr::from([127, 0, 0, 1]))
            .unwrap();
        assert!(loopback.loopback && loopback.up);
        assert_eq!(loopback.prefix, 8);
        assert!(loopback.index > 0);
    }
}
