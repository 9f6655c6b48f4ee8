//! The network publications: found by id, stream and tag, given turns for limits and life cycles.

use std::collections::{BTreeMap, BTreeSet};

use taran_protocol::uri::ResponseCorrelation;

use super::super::motion;
use super::super::streams::{Streams, Whereabouts};
use super::publication::NetworkPublication;
use crate::boundary::{EndpointId, PublicationId};
use crate::rounds::{LONG_LAP_NS, Pace, Rounds, Seat};

/// All network publications of the driver.
#[derive(Debug)]
pub(crate) struct NetworkPublications {
    rounds: Rounds<NetworkPublication>,
    seats: BTreeMap<PublicationId, Seat>,
    streams: Streams<EndpointId>,
    /// Entity tags, and ids of who has them.
    tags: BTreeSet<(i64, i64)>,
}

/// A publisher that was calm has a whole window before it waits for the conductor.
impl Default for NetworkPublications {
    fn default() -> Self {
        Self {
            rounds: Rounds::in_laps_of(LONG_LAP_NS),
            seats: BTreeMap::new(),
            streams: Streams::default(),
            tags: BTreeSet::new(),
        }
    }
}

impl NetworkPublications {
    pub(crate) fn insert(&mut self, publication: NetworkPublication) {
        let id = publication.id;
        self.streams.insert(whereabouts(&publication));
        if let Some(tag) = publication.terms.entity_tag {
            self.tags.insert((tag, id.0));
        }
        self.seats
            .insert(id, self.rounds.enter(Box::new(publication)));
    }

    pub(crate) fn get(&self, id: PublicationId) -> Option<&NetworkPublication> {
        self.rounds.get(*self.seats.get(&id)?)
    }

    /// The publication, which has a turn soon: something about it changes.
    pub(crate) fn get_mut(&mut self, id: PublicationId) -> Option<&mut NetworkPublication> {
        self.rounds.rouse(*self.seats.get(&id)?)
    }

    pub(crate) fn contains(&self, id: PublicationId) -> bool {
        self.seats.contains_key(&id)
    }

    pub(crate) fn remove(&mut self, id: PublicationId) -> Option<NetworkPublication> {
        let seat = self.seats.remove(&id)?;
        let publication = *self.rounds.leave(seat)?;
        self.streams.remove(whereabouts(&publication));
        if let Some(tag) = publication.terms.entity_tag {
            self.tags.remove(&(tag, id.0));
        }
        Some(publication)
    }

    /// The publication that a shared add on an endpoint gets instead of a new one.
    pub(crate) fn find_shared(
        &mut self,
        endpoint: EndpointId,
        stream_id: i32,
        response: ResponseCorrelation,
    ) -> Option<&mut NetworkPublication> {
        let shared = self.streams.shared(endpoint, stream_id);
        let id = shared.map(PublicationId).find(|&id| {
            self.get(id)
                .is_some_and(|p| p.terms.params.response == response && p.is_shareable())
        })?;
        self.get_mut(id)
    }

    /// Whether a shared add on a stream, of whatever channel, may get a publication that is there.
    pub(crate) fn may_share(&self, stream_id: i32) -> bool {
        self.of_stream(stream_id).any(|p| !p.terms.exclusive)
    }

    /// The oldest publication with an entity tag.
    pub(crate) fn find_tagged(&self, entity_tag: i64) -> Option<&NetworkPublication> {
        let range = (entity_tag, i64::MIN)..=(entity_tag, i64::MAX);
        let &(_, id) = self.tags.range(range).next()?;
        self.get(PublicationId(id))
    }

    /// Whether a session id is taken on a stream of an endpoint.
    pub(crate) fn endpoint_uses_session(
        &self,
        endpoint: EndpointId,
        stream_id: i32,
        session_id: i32,
    ) -> bool {
        self.streams
            .of_session(stream_id, session_id)
            .filter_map(|id| self.get(PublicationId(id)))
            .any(|p| p.endpoint == endpoint)
    }

    /// Whether a session id is taken on a stream of any endpoint.
    pub(crate) fn uses_session(&self, stream_id: i32, session_id: i32) -> bool {
        let mut users = self.streams.of_session(stream_id, session_id);
        users.next().is_some()
    }

    /// Those of a stream, oldest first.
    pub(crate) fn of_stream(&self, stream_id: i32) -> impl Iterator<Item = &NetworkPublication> {
        let ids = self.streams.of(stream_id, None).into_iter();
        ids.filter_map(|id| self.get(PublicationId(id)))
    }

    /// Ids of those of a stream, oldest first.
    pub(crate) fn ids_of_stream(
        &self,
        stream_id: i32,
    ) -> impl Iterator<Item = PublicationId> + use<> {
        let ids = self.streams.of(stream_id, None).into_iter();
        ids.map(PublicationId)
    }

    /// For the timer: some of them, and where to go on.
    pub(crate) fn portion(
        &mut self,
        from: usize,
        count: usize,
    ) -> (impl Iterator<Item = &mut NetworkPublication>, Option<usize>) {
        self.rounds.portion(from, count)
    }

    /// Every duty cycle: how many limits moved.
    pub(crate) fn update_limits(&mut self, now_ns: i64, pace: Pace) -> usize {
        motion::turn(
            &mut self.rounds,
            now_ns,
            pace,
            NetworkPublication::update_limit,
        )
    }
}

fn whereabouts(publication: &NetworkPublication) -> Whereabouts<EndpointId> {
    Whereabouts {
        registration_id: publication.id.0,
        channel: publication.endpoint,
        stream_id: publication.terms.stream_id,
        session_id: publication.terms.session_id,
        exclusive: publication.terms.exclusive,
    }
}
