// SPDX-License-Identifier: Apache-2.0
//! Network interfaces of the machine.

use std::net::IpAddr;

/// One address of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface, such as `eth0`.
    pub name: String,
    /// Index of the interface.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// Length of the network part of the address in bits.
    pub prefix: u8,
    /// True if the interface is up.
    pub up: bool,
    /// True if the interface can send multicast.
    pub multicast: bool,
    /// True for the loopback interface.
    pub loopback: bool,
}
