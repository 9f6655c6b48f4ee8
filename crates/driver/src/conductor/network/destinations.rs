// SPDX-License-Identifier: Apache-2.0
//! Destinations of send endpoints with manual control, in the order of their commands.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use taran_protocol::uri::Address;

use crate::boundary::EndpointId;

/// A destination added by a command.
#[derive(Debug, Clone)]
pub(crate) struct KnownDestination {
    /// Registration id: the correlation id of the command.
    pub(crate) id: i64,
    /// The endpoint as given.
    pub(crate) requested: Address,
    /// `None` while the host name is unresolved.
    pub(crate) address: Option<SocketAddr>,
}

/// Destinations by endpoint, in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct SendDestinations {
    endpoints: BTreeMap<EndpointId, Vec<KnownDestination>>,
}

impl SendDestinations {
    pub(crate) fn add(&mut self, endpoint: EndpointId, destination: KnownDestination) {
        self.endpoints
            .entry(endpoint)
            .or_default()
            .push(destination);
    }

    /// Returns the newest destination with this endpoint text.
    pub(crate) fn find_by_text(&self, endpoint: EndpointId, text: &str) -> Option<i64> {
        self.newest(endpoint, |known| known.requested.text == text)
    }

    /// Returns the newest destination with this address.
    pub(crate) fn find_by_address(&self, endpoint: EndpointId, address: SocketAddr) -> Option<i64> {
        self.newest(endpoint, |known| known.address == Some(address))
    }

    fn newest(
        &self,
        endpoint: EndpointId,
        is_wanted: impl Fn(&KnownDestination) -> bool,
    ) -> Option<i64> {
        let known = self.endpoints.get(&endpoint)?;
        let found = known.iter().rev().find(|known| is_wanted(known))?;
        Some(found.id)
    }

    pub(crate) fn get(&self, endpoint: EndpointId, id: i64) -> Option<&KnownDestination> {
        let mut known = self.endpoints.get(&endpoint)?.iter();
        known.find(|known| known.id == id)
    }

    pub(crate) fn get_mut(
        &mut self,
        endpoint: EndpointId,
        id: i64,
    ) -> Option<&mut KnownDestination> {
        let mut known = self.endpoints.get_mut(&endpoint)?.iter_mut();
        known.find(|known| known.id == id)
    }

    /// Returns the known addresses of an endpoint's destinations.
    pub(crate) fn addresses(&self, endpoint: EndpointId) -> impl Iterator<Item = SocketAddr> {
        let known = self.endpoints.get(&endpoint).into_iter().flatten();
        known.filter_map(|known| known.address)
    }

    /// Removes a destination; returns true if it existed.
    pub(crate) fn remove(&mut self, endpoint: EndpointId, id: i64) -> bool {
        let Some(known) = self.endpoints.get_mut(&endpoint) else {
            return false;
        };
        let before = known.len();
        known.retain(|known| known.id != id);
        known.len() != before
    }

    /// Removes the destinations of an endpoint.
    pub(crate) fn remove_endpoint(&mut self, endpoint: EndpointId) {
        self.endpoints.remove(&endpoint);
    }
}
