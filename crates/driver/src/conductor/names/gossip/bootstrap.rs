//! The drivers that the options name to start from.

use std::net::{IpAddr, SocketAddr};

use taran_core::counters::Counter;
use taran_protocol::uri::{Address, Host};

use super::super::super::counters::Counters;
use super::super::super::failure::Failure;
use super::neighbors::Neighbors;

/// One of them; its name may mean another address later.
#[derive(Debug)]
pub(super) struct Bootstrap {
    address: Address,
    resolved: Option<SocketAddr>,
    counter: Counter,
    /// Its name is being looked up.
    asked: bool,
}

impl Bootstrap {
    pub(super) fn new(
        index: usize,
        address: &Address,
        counters: &mut Counters,
    ) -> Result<Self, Failure> {
        Ok(Self {
            address: address.clone(),
            resolved: None,
            counter: counters.bootstrap_neighbor(index, &address.text)?,
            asked: false,
        })
    }

    pub(super) fn resolved(&self) -> Option<SocketAddr> {
        self.resolved
    }

    #[cfg(test)]
    pub(super) fn counter_id(&self) -> i32 {
        self.counter.id()
    }

    /// The host to look up, if it is not among the neighbours and nobody is looking already.
    pub(super) fn ask(&mut self, neighbors: &Neighbors) -> Option<&Host> {
        let is_there = self
            .resolved
            .is_some_and(|address| neighbors.contains(address));
        if is_there || std::mem::replace(&mut self.asked, true) {
            return None;
        }
        Some(&self.address.host)
    }

    /// What its name means, as of now.
    pub(super) fn answered(&mut self, ip: Option<IpAddr>, counters: &mut Counters) {
        self.asked = false;
        let resolved = ip.map(|ip| SocketAddr::new(ip, self.address.port));
        if resolved != self.resolved {
            self.resolved = resolved;
            counters.bootstrap_resolved(self.counter.id(), &self.address.text, resolved);
        }
    }

    /// Says in its counter whether it is a neighbour.
    pub(super) fn show(&self, neighbors: &Neighbors) {
        let is_there = self
            .resolved
            .is_some_and(|address| neighbors.contains(address));
        if self.counter.get_plain() != i64::from(is_there) {
            self.counter.set(i64::from(is_there));
        }
    }
}
