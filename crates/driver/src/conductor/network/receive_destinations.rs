//! The sockets of subscriptions under manual control, as the conductor knows them (docs/spec/wire.md §2.11).

use std::collections::BTreeMap;

use taran_core::counters::Counter;

use super::addresses::ResolvedChannel;
use super::endpoints::status;
use crate::boundary::{EndpointId, TransportId};

/// A source that was added to a subscription. The socket is with the receiver.
#[derive(Debug)]
pub(crate) struct ReceiveDestination {
    pub(crate) endpoint: EndpointId,
    pub(crate) resolved: ResolvedChannel,
    pub(crate) local_address: Counter,
    port: u16,
    /// The receiver was asked for it.
    is_leaving: bool,
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
            is_leaving: false,
        }
    }
}

/// All of them, by the ids of the commands that added them.
#[derive(Debug, Default)]
pub(crate) struct ReceiveDestinations {
    entries: BTreeMap<TransportId, ReceiveDestination>,
}

impl ReceiveDestinations {
    pub(crate) fn contains(&self, id: TransportId) -> bool {
        self.entries.contains_key(&id)
    }

    /// One that is of use still.
    pub(crate) fn get_mut(&mut self, id: TransportId) -> Option<&mut ReceiveDestination> {
        self.entries
            .get_mut(&id)
            .filter(|source| !source.is_leaving)
    }

    /// The ports of all of them, as long as their sockets are open.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> {
        self.entries.values().map(|destination| destination.port)
    }

    pub(crate) fn insert(&mut self, id: TransportId, destination: ReceiveDestination) {
        self.entries.insert(id, destination);
    }

    /// The oldest of an endpoint that was added with this text.
    pub(crate) fn with_text(&self, endpoint: EndpointId, text: &str) -> Option<TransportId> {
        self.first(endpoint, |destination| destination.resolved.text() == text)
    }

    /// The oldest of an endpoint that is the same as this one in other words.
    pub(crate) fn like(
        &self,
        endpoint: EndpointId,
        resolved: &ResolvedChannel,
    ) -> Option<TransportId> {
        let wanted = canonical(resolved);
        self.first(endpoint, |destination| {
            canonical(&destination.resolved) == wanted
        })
    }

    /// Whether one that is the same in other words is about to go, by itself or with its endpoint.
    pub(crate) fn is_leaving(
        &self,
        resolved: &ResolvedChannel,
        is_unused: impl Fn(EndpointId) -> bool,
    ) -> bool {
        let wanted = canonical(resolved);
        self.entries.values().any(|destination| {
            (destination.is_leaving || is_unused(destination.endpoint))
                && canonical(&destination.resolved) == wanted
        })
    }

    fn first(
        &self,
        endpoint: EndpointId,
        is_wanted: impl Fn(&ReceiveDestination) -> bool,
    ) -> Option<TransportId> {
        self.entries
            .iter()
            .filter(|(_, destination)| destination.endpoint == endpoint && !destination.is_leaving)
            .find(|(_, destination)| is_wanted(destination))
            .map(|(&id, _)| id)
    }

    /// It is of no use to anybody from now on; true if it was before.
    pub(crate) fn leave(&mut self, endpoint: EndpointId, id: TransportId) -> bool {
        let Some(destination) = self.entries.get_mut(&id) else {
            return false;
        };
        if destination.endpoint != endpoint || destination.is_leaving {
            return false;
        }
        destination.is_leaving = true;
        destination.local_address.set(status::CLOSING);
        true
    }

    /// The receiver gave its socket back: the counter is for the caller to free.
    pub(crate) fn released(&mut self, id: TransportId) -> Option<Counter> {
        Some(self.entries.remove(&id)?.local_address)
    }

    /// The receiver gave the whole endpoint back: the counters are for the caller to free.
    pub(crate) fn released_with(&mut self, endpoint: EndpointId) -> Vec<Counter> {
        self.entries
            .extract_if(.., |_, destination| destination.endpoint == endpoint)
            .map(|(_, destination)| destination.local_address)
            .collect()
    }
}

fn canonical(resolved: &ResolvedChannel) -> String {
    // A destination needs nothing unique.
    resolved.channel.canonical_form(&resolved.roles, true, || 0)
}
