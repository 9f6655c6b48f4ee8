// SPDX-License-Identifier: Apache-2.0
//! Conductor's view of the destinations of multi-destination subscriptions (docs/spec/wire.md §2.11).

use std::collections::BTreeMap;

use taran_core::counters::Counter;

use super::addresses::ResolvedChannel;
use super::endpoints::status;
use crate::boundary::{EndpointId, TransportId};

/// A destination of a subscription. The receiver owns its socket.
#[derive(Debug)]
pub(crate) struct ReceiveDestination {
    pub(crate) endpoint: EndpointId,
    pub(crate) resolved: ResolvedChannel,
    pub(crate) local_address: Counter,
    port: u16,
    /// True after the receiver was requested to release it.
    is_closing: bool,
}

impl ReceiveDestination {
    pub(crate) fn new(
        endpoint: EndpointId,
        resolved: ResolvedChannel,
        port: u16,
        local_address: Counter,
    ) -> Self {
        Self {
            endpoint,
            resolved,
            local_address,
            port,
            is_closing: false,
        }
    }
}

/// Destinations by the correlation ids of the commands that added them.
#[doc(alias = "MultiRcvDestination")]
#[derive(Debug, Default)]
pub(crate) struct ReceiveDestinations {
    entries: BTreeMap<TransportId, ReceiveDestination>,
}

impl ReceiveDestinations {
    pub(crate) fn contains(&self, id: TransportId) -> bool {
        self.entries.contains_key(&id)
    }

    /// Returns a destination that is not closing.
    pub(crate) fn get_mut(&mut self, id: TransportId) -> Option<&mut ReceiveDestination> {
        self.entries
            .get_mut(&id)
            .filter(|source| !source.is_closing)
    }

    /// Returns the ports of all open destinations.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> {
        self.entries.values().map(|destination| destination.port)
    }

    pub(crate) fn insert(&mut self, id: TransportId, destination: ReceiveDestination) {
        self.entries.insert(id, destination);
    }

    /// Returns the oldest destination of an endpoint with this URI.
    pub(crate) fn find_by_text(&self, endpoint: EndpointId, text: &str) -> Option<TransportId> {
        self.first(endpoint, |destination| destination.resolved.text() == text)
    }

    /// Returns the oldest destination of an endpoint with the same canonical form.
    pub(crate) fn find_equivalent(
        &self,
        endpoint: EndpointId,
        resolved: &ResolvedChannel,
    ) -> Option<TransportId> {
        let form = canonical(resolved);
        self.first(endpoint, |destination| {
            canonical(&destination.resolved) == form
        })
    }

    /// Returns true if a destination with the same canonical form is closing, by itself or with its endpoint.
    pub(crate) fn is_closing(
        &self,
        resolved: &ResolvedChannel,
        is_unused: impl Fn(EndpointId) -> bool,
    ) -> bool {
        let form = canonical(resolved);
        self.entries.values().any(|destination| {
            (destination.is_closing || is_unused(destination.endpoint))
                && canonical(&destination.resolved) == form
        })
    }

    fn first(
        &self,
        endpoint: EndpointId,
        is_wanted: impl Fn(&ReceiveDestination) -> bool,
    ) -> Option<TransportId> {
        self.entries
            .iter()
            .filter(|(_, destination)| destination.endpoint == endpoint && !destination.is_closing)
            .find(|(_, destination)| is_wanted(destination))
            .map(|(&id, _)| id)
    }

    /// Marks a destination as closing; returns true if it was open.
    pub(crate) fn begin_closing(&mut self, endpoint: EndpointId, id: TransportId) -> bool {
        let Some(destination) = self.entries.get_mut(&id) else {
            return false;
        };
        if destination.endpoint != endpoint || destination.is_closing {
            return false;
        }
        destination.is_closing = true;
        destination.local_address.set(status::CLOSING);
        true
    }

    /// Removes a destination released by the receiver. The caller frees its counter.
    pub(crate) fn on_released(&mut self, id: TransportId) -> Option<Counter> {
        Some(self.entries.remove(&id)?.local_address)
    }

    /// Removes the destinations of an endpoint released by the receiver. The caller frees their counters.
    pub(crate) fn on_endpoint_released(&mut self, endpoint: EndpointId) -> Vec<Counter> {
        self.entries
            .extract_if(.., |_, destination| destination.endpoint == endpoint)
            .map(|(_, destination)| destination.local_address)
            .collect()
    }
}

fn canonical(resolved: &ResolvedChannel) -> String {
    // The form of a destination needs no unique number.
    resolved.channel.canonical_form(&resolved.roles, true, || 0)
}
