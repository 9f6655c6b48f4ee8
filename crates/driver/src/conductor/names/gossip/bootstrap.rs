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
    text: String,
    /// What is wrong with the text, if it is no address.
    address: Result<Address, String>,
    resolved: Option<SocketAddr>,
    counter: Counter,
    /// Its name is being looked up.
    asked: bool,
}

impl Bootstrap {
    pub(super) fn new(index: usize, text: &str, counters: &mut Counters) -> Result<Self, Failure> {
        Ok(Self {
            address: Address::parse(text).map_err(|needed| format!("it must be {needed}")),
            resolved: None,
            counter: counters.bootstrap_neighbor(index, text)?,
            text: text.to_owned(),
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

    /// The text it was given as.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The host to look up, or why there is none, if it is not among the neighbours and nobody is looking already.
    pub(super) fn ask(&mut self, neighbors: &Neighbors) -> Option<Result<&Host, &str>> {
        let is_there = self
            .resolved
            .is_some_and(|address| neighbors.contains(address));
        if is_there || std::mem::replace(&mut self.asked, true) {
            return None;
        }
        let address = self.address.as_ref();
        Some(address.map(|address| &address.host).map_err(String::as_str))
    }

    /// What its name means, as of now. Without an answer it means what it did: names may be served again before the
    /// driver of this one moves.
    pub(super) fn answered(&mut self, ip: Option<IpAddr>, counters: &mut Counters) {
        self.asked = false;
        let port = self.address.as_ref().map_or(0, |address| address.port);
        let resolved = ip.map(|ip| SocketAddr::new(ip, port));
        if resolved.is_some() && resolved != self.resolved {
            self.resolved = resolved;
            counters.bootstrap_resolved(self.counter.id(), &self.text, resolved);
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
