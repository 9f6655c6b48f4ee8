// SPDX-License-Identifier: Apache-2.0
//! Network publications: lookup by id, stream and tag, polling of limits.

use std::collections::{BTreeMap, BTreeSet};

use taran_core::clock::Now;
use taran_protocol::uri::ResponseCorrelation;

use super::super::limit_update;
use super::super::log_files::LogFiles;
use super::super::publication_index::{PublicationIndex, PublicationKey};
use super::publication::NetworkPublication;
use crate::boundary::{EndpointId, PublicationId};
use crate::poll_schedule::{AgentLoad, LONG_SWEEP_PERIOD_NS, PollSchedule, Slot};

/// All network publications of the driver.
#[derive(Debug)]
pub(crate) struct NetworkPublications {
    schedule: PollSchedule<NetworkPublication>,
    slots: BTreeMap<PublicationId, Slot>,
    index: PublicationIndex<EndpointId>,
    /// Entity tag and registration id.
    tags: BTreeSet<(i64, i64)>,
}

/// The long sweep period: an idle publisher has a whole window before it depends on the conductor.
impl Default for NetworkPublications {
    fn default() -> Self {
        Self {
            schedule: PollSchedule::with_sweep_period(LONG_SWEEP_PERIOD_NS),
            slots: BTreeMap::new(),
            index: PublicationIndex::default(),
            tags: BTreeSet::new(),
        }
    }
}

impl NetworkPublications {
    pub(crate) fn insert(&mut self, publication: NetworkPublication) {
        let id = publication.id;
        self.index.insert(publication_key(&publication));
        if let Some(tag) = publication.config.entity_tag {
            self.tags.insert((tag, id.0));
        }
        self.slots
            .insert(id, self.schedule.insert(Box::new(publication)));
    }

    pub(crate) fn get(&self, id: PublicationId) -> Option<&NetworkPublication> {
        self.schedule.get(*self.slots.get(&id)?)
    }

    /// Returns the publication for modification, and schedules it once.
    pub(crate) fn get_mut(&mut self, id: PublicationId) -> Option<&mut NetworkPublication> {
        self.schedule.schedule_once(*self.slots.get(&id)?)
    }

    pub(crate) fn contains(&self, id: PublicationId) -> bool {
        self.slots.contains_key(&id)
    }

    pub(crate) fn remove(&mut self, id: PublicationId) -> Option<NetworkPublication> {
        let slot = self.slots.remove(&id)?;
        let publication = *self.schedule.remove(slot)?;
        self.index.remove(publication_key(&publication));
        if let Some(tag) = publication.config.entity_tag {
            self.tags.remove(&(tag, id.0));
        }
        Some(publication)
    }

    /// Returns the publication that a new shared one on an endpoint is mapped to, if there is one.
    pub(crate) fn find_shared(
        &mut self,
        endpoint: EndpointId,
        stream_id: i32,
        response: ResponseCorrelation,
    ) -> Option<&mut NetworkPublication> {
        let shared = self.index.shared(endpoint, stream_id);
        let id = shared.map(PublicationId).find(|&id| {
            self.get(id)
                .is_some_and(|p| p.config.params.response == response && p.is_shareable())
        })?;
        self.get_mut(id)
    }

    /// Returns true if the stream, on any channel, has a publication that a new shared one may be mapped to.
    pub(crate) fn can_share(&self, stream_id: i32) -> bool {
        self.of_stream(stream_id).any(|p| !p.config.exclusive)
    }

    /// Returns the oldest publication with an entity tag.
    pub(crate) fn find_tagged(&self, entity_tag: i64) -> Option<&NetworkPublication> {
        let range = (entity_tag, i64::MIN)..=(entity_tag, i64::MAX);
        let &(_, id) = self.tags.range(range).next()?;
        self.get(PublicationId(id))
    }

    /// Returns true if a session id is in use on a stream of an endpoint.
    pub(crate) fn endpoint_uses_session(
        &self,
        endpoint: EndpointId,
        stream_id: i32,
        session_id: i32,
    ) -> bool {
        self.index
            .of_session(stream_id, session_id)
            .filter_map(|id| self.get(PublicationId(id)))
            .any(|p| p.endpoint == endpoint)
    }

    /// Returns true if a session id is in use on a stream of any endpoint.
    pub(crate) fn uses_session(&self, stream_id: i32, session_id: i32) -> bool {
        let mut users = self.index.of_session(stream_id, session_id);
        users.next().is_some()
    }

    /// Returns the publications of a stream, oldest first.
    pub(crate) fn of_stream(&self, stream_id: i32) -> impl Iterator<Item = &NetworkPublication> {
        let ids = self.index.of_stream(stream_id, None).into_iter();
        ids.filter_map(|id| self.get(PublicationId(id)))
    }

    /// Returns the ids of the publications of a stream, oldest first.
    pub(crate) fn ids_of_stream(
        &self,
        stream_id: i32,
    ) -> impl Iterator<Item = PublicationId> + use<> {
        let ids = self.index.of_stream(stream_id, None).into_iter();
        ids.map(PublicationId)
    }

    /// Returns up to `count` publications for the timer, and the position at which to continue.
    pub(crate) fn range_mut(
        &mut self,
        from: usize,
        count: usize,
    ) -> (impl Iterator<Item = &mut NetworkPublication>, Option<usize>) {
        self.schedule.range_mut(from, count)
    }

    /// Returns the next time at which a poll has an effect, if nothing comes from outside before. `None` if it is not known.
    pub(crate) fn next_deadline_ns(&self) -> Option<i64> {
        self.schedule.next_deadline_ns()
    }

    /// Updates limits, and starts to reserve the pages that they need soon; returns how many were raised. Called in
    /// every duty cycle.
    pub(crate) fn update_limits(
        &mut self,
        logs: &mut LogFiles,
        now: Now,
        load: AgentLoad,
    ) -> usize {
        limit_update::poll_limits(&mut self.schedule, now.nanos, load, |publication| {
            let update = publication.update_limit();
            publication.log.extend(logs, now);
            update
        })
    }
}

fn publication_key(publication: &NetworkPublication) -> PublicationKey<EndpointId> {
    PublicationKey {
        registration_id: publication.id.0,
        channel: publication.endpoint,
        stream_id: publication.config.stream_id,
        session_id: publication.config.session_id,
        exclusive: publication.config.exclusive,
    }
}
