//! IPC publications: lookup by id and by stream, polling of limits.

mod publication;

use std::collections::BTreeMap;

use taran_protocol::uri::ResponseCorrelation;

use super::limit_update;
use super::publication_index::{PublicationIndex, PublicationKey};
use crate::poll_schedule::{AgentLoad, PollSchedule, Slot};

pub(crate) use publication::{Event, IpcPublication, PublisherCounters, State, Timeouts};

/// All IPC publications of the driver.
#[derive(Debug, Default)]
pub(crate) struct IpcPublications {
    rounds: PollSchedule<IpcPublication>,
    /// By registration id.
    seats: BTreeMap<i64, Slot>,
    /// All are on the same channel.
    streams: PublicationIndex<()>,
}

impl IpcPublications {
    pub(crate) fn insert(&mut self, publication: IpcPublication) {
        let id = publication.registration_id;
        self.streams.insert(whereabouts(&publication));
        self.seats
            .insert(id, self.rounds.insert(Box::new(publication)));
    }

    /// Returns the publication for modification, and schedules it once.
    pub(crate) fn find(&mut self, registration_id: i64) -> Option<&mut IpcPublication> {
        self.rounds
            .schedule_once(*self.seats.get(&registration_id)?)
    }

    pub(crate) fn get(&self, registration_id: i64) -> Option<&IpcPublication> {
        self.rounds.get(*self.seats.get(&registration_id)?)
    }

    pub(crate) fn contains(&self, registration_id: i64) -> bool {
        self.seats.contains_key(&registration_id)
    }

    pub(crate) fn remove(&mut self, registration_id: i64) -> Option<IpcPublication> {
        let seat = self.seats.remove(&registration_id)?;
        let publication = *self.rounds.remove(seat)?;
        self.streams.remove(whereabouts(&publication));
        Some(publication)
    }

    /// Returns the publication that a new shared publication is mapped to, if there is one.
    pub(crate) fn find_shared(
        &mut self,
        stream_id: i32,
        response: ResponseCorrelation,
    ) -> Option<&mut IpcPublication> {
        let id = self.streams.shared((), stream_id).find(|&id| {
            self.get(id)
                .is_some_and(|p| p.terms.params.response == response && p.is_shareable())
        })?;
        self.find(id)
    }

    /// Returns true if the stream has a publication that a new shared one may be mapped to.
    pub(crate) fn may_share(&self, stream_id: i32) -> bool {
        self.streams.shared((), stream_id).next().is_some()
    }

    /// Returns true if a session id is in use on a stream.
    pub(crate) fn uses_session(&self, stream_id: i32, session_id: i32) -> bool {
        self.streams
            .of_session(stream_id, session_id)
            .filter_map(|id| self.get(id))
            .any(|p| matches!(p.state(), State::Active | State::Draining))
    }

    /// Returns the publications that a subscriber can join now, oldest first.
    pub(crate) fn joinable(
        &self,
        stream_id: i32,
        session_id: Option<i32>,
    ) -> impl Iterator<Item = &IpcPublication> {
        let ids = self.streams.of(stream_id, session_id).into_iter();
        ids.filter_map(|id| self.get(id))
            .filter(|p| p.accepts_subscribers())
    }

    /// Returns the ids of the publications of a stream, oldest first.
    pub(crate) fn of_stream(&self, stream_id: i32) -> Vec<i64> {
        self.streams.of(stream_id, None)
    }

    /// Returns up to `count` publications for the timer, and the position at which to continue.
    pub(crate) fn portion(
        &mut self,
        from: usize,
        count: usize,
    ) -> (impl Iterator<Item = &mut IpcPublication>, Option<usize>) {
        self.rounds.range_mut(from, count)
    }

    /// Updates limits; returns how many were raised. Called in every duty cycle.
    pub(crate) fn update_limits(&mut self, now_ns: i64, pace: AgentLoad) -> usize {
        limit_update::turn(&mut self.rounds, now_ns, pace, IpcPublication::update_limit)
    }
}

fn whereabouts(publication: &IpcPublication) -> PublicationKey<()> {
    PublicationKey {
        registration_id: publication.registration_id,
        channel: (),
        stream_id: publication.terms.stream_id,
        session_id: publication.terms.session_id,
        exclusive: publication.terms.exclusive,
    }
}
