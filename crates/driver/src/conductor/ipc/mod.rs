//! The IPC publications: found for sharing, walked for limits and life cycles.

mod publication;

use std::collections::BTreeMap;

use taran_protocol::uri::ResponseCorrelation;

pub(crate) use publication::{Event, IpcPublication, PublisherCounters, State, Timeouts};

/// All IPC publications of the driver, by registration id.
#[derive(Debug, Default)]
pub(crate) struct IpcPublications {
    entries: BTreeMap<i64, IpcPublication>,
}

impl IpcPublications {
    pub(crate) fn insert(&mut self, publication: IpcPublication) {
        self.entries
            .insert(publication.registration_id, publication);
    }

    pub(crate) fn find(&mut self, registration_id: i64) -> Option<&mut IpcPublication> {
        self.entries.get_mut(&registration_id)
    }

    pub(crate) fn get(&self, registration_id: i64) -> Option<&IpcPublication> {
        self.entries.get(&registration_id)
    }

    pub(crate) fn contains(&self, registration_id: i64) -> bool {
        self.entries.contains_key(&registration_id)
    }

    pub(crate) fn remove(&mut self, registration_id: i64) -> Option<IpcPublication> {
        self.entries.remove(&registration_id)
    }

    /// The publication that a shared add gets instead of a new one.
    pub(crate) fn find_shared(
        &mut self,
        stream_id: i32,
        response: ResponseCorrelation,
    ) -> Option<&mut IpcPublication> {
        self.entries.values_mut().find(|p| {
            p.terms.stream_id == stream_id
                && p.terms.params.response == response
                && p.is_shareable()
        })
    }

    /// Whether a session id is taken on a stream.
    pub(crate) fn uses_session(&self, stream_id: i32, session_id: i32) -> bool {
        self.entries.values().any(|p| {
            matches!(p.state(), State::Active | State::Draining)
                && p.terms.stream_id == stream_id
                && p.terms.session_id == session_id
        })
    }

    /// The publications that a subscriber may join now.
    pub(crate) fn joinable(
        &self,
        stream_id: i32,
        session_id: Option<i32>,
    ) -> impl Iterator<Item = &IpcPublication> {
        self.entries.values().filter(move |p| {
            p.terms.stream_id == stream_id
                && session_id.is_none_or(|wanted| wanted == p.terms.session_id)
                && p.accepts_subscribers()
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &IpcPublication> {
        self.entries.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut IpcPublication> {
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
