// SPDX-License-Identifier: Apache-2.0
//! Ethernet, ARP, IPv4, IPv6, ND, UDP, ICMP, IGMP and MLD for network backends that exchange frames with a card, past the
//! kernel's network stack (docs/spec/kernel-bypass.md). No backend uses this crate yet.
//!
//! All parts are pure: no I/O and no clock.
//!
//! * [`Frame::parse`] reads a received frame into views of its bytes, or refuses it with one of the reasons of [`FrameError`],
//!   which [`RefusalCounters`] count. Fragments are refused: a backend passes them to the kernel or drops them.
//! * [`UdpTemplate`] holds the headers for one destination. It writes them in front of a payload in a buffer of the backend,
//!   and cuts trains of datagrams.
//! * [`ArpPacket`], [`NeighbourSolicitation`], [`NeighbourAdvertisement`], [`Addresses`] and [`MembershipReport`] write the
//!   frames of control protocols.
//! * [`NeighbourTable`], [`RouteTable`] and [`Memberships`] are state machines of bounded size: they take the time as an argument and return
//!   decisions.
//!
//! # Why no existing crate
//! smoltcp 0.13 parses strictly and without copies. It has no VLAN tags and no IGMPv3. Its neighbour cache holds addresses that
//! it was told, and drops the one that expires first when it is full, so that a flood of addresses displaces those in use. Its
//! sockets copy each datagram into buffers of their own, one at a time. Its licence (0BSD) and its dependency bitflags 1 are
//! outside the policy of this project. etherparse 0.20 slices without copies, but does not verify checksums while slicing, has no
//! MLD, and writes each header by itself rather than from a template; it has no tables. It serves as the counterpart in tests.

#![forbid(unsafe_code)]

mod arp;
pub mod checksum;
mod error;
mod ethernet;
mod frame;
mod group;
mod icmp;
mod ip;
mod membership;
mod nd;
mod neighbour;
mod route;
mod template;
mod udp;

pub use arp::{ArpOperation, ArpPacket};
pub use error::{FrameError, RefusalClass, RefusalCounters};
pub use ethernet::{ETHERNET_LENGTH, EthernetHeader, MacAddress, VLAN_LENGTH, VlanTag};
pub use frame::{Frame, Payload, Verification};
pub use group::{
    ALL_NODES_V4, ALL_NODES_V6, ALL_ROUTERS_V4, ALL_ROUTERS_V6, MembershipMessage,
    MembershipReport, MembershipVersion, Query, REPORTS_V4, REPORTS_V6, Record, RecordKind,
    Records, Sources,
};
pub use icmp::{Addresses, Echo, IcmpMessage, Quote, Unreachable};
pub use ip::{IPV4_LENGTH, IPV6_LENGTH, IpHeader};
pub use membership::{DueReport, MembershipError, Memberships};
pub use nd::{NeighbourAdvertisement, NeighbourSolicitation, solicited_node};
pub use neighbour::{NeighbourCounters, NeighbourOutput, NeighbourTable, Resolution};
pub use route::{Hop, Prefix, Route, RouteError, RouteTable};
pub use template::{
    BuildError, ChecksumOffload, MAX_HEADER_LENGTH, PathError, Train, UdpPath, UdpTemplate,
};
pub use udp::{UDP_LENGTH, UdpChecksum, UdpDatagram};
