// SPDX-License-Identifier: Apache-2.0
//! Bootstrap neighbors named by `aeron.driver.resolver.bootstrap.neighbor`.

use std::net::{IpAddr, SocketAddr};

use taran_core::counters::Counter;
use taran_protocol::uri::{Address, Host};

use super::super::super::counters::Counters;
use super::super::super::failure::Failure;
use super::neighbors::Neighbors;

/// A bootstrap neighbor. Its name may be resolved to another address later.
#[derive(Debug)]
pub(super) struct BootstrapNeighbor {
    text: String,
    /// The parsed address, or the error in the text.
    address: Result<Address, String>,
    resolved: Option<SocketAddr>,
    counter: Counter,
    /// True while a lookup of its name is in progress.
    lookup_pending: bool,
}

impl BootstrapNeighbor {
    pub(super) fn new(index: usize, text: &str, counters: &mut Counters) -> Result<Self, Failure> {
        Ok(Self {
            address: Address::parse(text).map_err(|needed| format!("it must be {needed}")),
            resolved: None,
            counter: counters.bootstrap_neighbor(index, text)?,
            text: text.to_owned(),
            lookup_pending: false,
        })
    }

    pub(super) fn resolved(&self) -> Option<SocketAddr> {
        self.resolved
    }

    #[cfg(test)]
    pub(super) fn counter_id(&self) -> i32 {
        self.counter.id()
    }

    /// Returns the configured text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the host to look up, or the error in the text, unless the driver is a neighbor or a lookup is in
    /// progress.
    pub(super) fn next_lookup(&mut self, neighbors: &Neighbors) -> Option<Result<&Host, &str>> {
        let is_neighbor = self
            .resolved
            .is_some_and(|address| neighbors.contains(address));
        if is_neighbor || std::mem::replace(&mut self.lookup_pending, true) {
            return None;
        }
        let address = self.address.as_ref();
        Some(address.map(|address| &address.host).map_err(String::as_str))
    }

    /// Handles the end of a lookup. After a failure the address is kept: the name service may return before the driver
    /// moves.
    pub(super) fn on_resolved(&mut self, ip: Option<IpAddr>, counters: &mut Counters) {
        self.lookup_pending = false;
        let port = self.address.as_ref().map_or(0, |address| address.port);
        let resolved = ip.map(|ip| SocketAddr::new(ip, port));
        if resolved.is_some() && resolved != self.resolved {
            self.resolved = resolved;
            counters.set_bootstrap_address(self.counter.id(), &self.text, resolved);
        }
    }

    /// Sets the counter to 1 if the driver is a neighbor, else to 0.
    pub(super) fn update_counter(&self, neighbors: &Neighbors) {
        let is_neighbor = self
            .resolved
            .is_some_and(|address| neighbors.contains(address));
        if self.counter.get_plain() != i64::from(is_neighbor) {
            self.counter.set(i64::from(is_neighbor));
        }
    }
}
