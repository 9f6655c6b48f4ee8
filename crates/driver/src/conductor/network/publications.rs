//! The network publications: found for sharing, walked for limits and life cycles.

use std::collections::BTreeMap;

use taran_protocol::uri::ResponseCorrelation;

use super::publication::NetworkPublication;
use crate::boundary::{EndpointId, PublicationId};

/// All network publications of the driver.
#[derive(Debug, Default)]
pub(crate) struct NetworkPublications {
    entries: BTreeMap<PublicationId, NetworkPublication>,
}

impl NetworkPublications {
    pub(crate) fn insert(&mut self, publication: NetworkPublication) {
        self.entries.insert(publication.id, publication);
    }

    pub(crate) fn get(&self, id: PublicationId) -> Option<&NetworkPublication> {
        self.entries.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: PublicationId) -> Option<&mut NetworkPublication> {
        self.entries.get_mut(&id)
    }

    pub(crate) fn contains(&self, id: PublicationId) -> bool {
        self.entries.contains_key(&id)
    }

    pub(crate) fn remove(&mut self, id: PublicationId) -> Option<NetworkPublication> {
        self.entries.remove(&id)
    }

    /// The publication that a shared add on an endpoint gets instead of a new one.
    pub(crate) fn find_shared(
        &mut self,
        endpoint: EndpointId,
        stream_id: i32,
        response: ResponseCorrelation,
    ) -> Option<&mut NetworkPublication> {
        self.entries.values_mut().find(|p| {
            p.endpoint == endpoint
                && p.terms.stream_id == stream_id
                && p.terms.params.response == response
                && p.is_shareable()
        })
    }

    /// The oldest publication with an entity tag.
    pub(crate) fn find_tagged(&self, entity_tag: i64) -> Option<&NetworkPublication> {
        self.entries
            .values()
            .find(|p| p.terms.entity_tag == Some(entity_tag))
    }

    /// Whether a session id is taken on a stream of an endpoint.
    pub(crate) fn endpoint_uses_session(
        &self,
        endpoint: EndpointId,
        stream_id: i32,
        session_id: i32,
    ) -> bool {
        self.entries.values().any(|p| {
            p.endpoint == endpoint
                && p.terms.stream_id == stream_id
                && p.terms.session_id == session_id
        })
    }

    /// Whether a session id is taken on a stream of any endpoint.
    pub(crate) fn uses_session(&self, stream_id: i32, session_id: i32) -> bool {
        self.entries
            .values()
            .any(|p| p.terms.stream_id == stream_id && p.terms.session_id == session_id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &NetworkPublication> {
        self.entries.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut NetworkPublication> {
        self.entries.values_mut()
    }

    /// Every duty cycle: how many limits moved.
    pub(crate) fn update_limits(&mut self) -> usize {
        self.entries
            .values_mut()
            .map(|p| usize::from(p.update_limit()))
            .sum()
    }
}
