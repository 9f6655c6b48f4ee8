// SPDX-License-Identifier: Apache-2.0
//! IPC publications: lookup by id and by stream, polling of limits.

mod publication;

use std::collections::BTreeMap;

use taran_core::clock::Now;
use taran_protocol::uri::ResponseCorrelation;

use super::limit_update;
use super::log_files::LogFiles;
use super::publication_index::{PublicationIndex, PublicationKey};
use crate::poll_schedule::{AgentLoad, PollSchedule, Slot};

pub(crate) use publication::{Event, IpcPublication, PublisherCounters, State, Timeouts};

/// All IPC publications of the driver.
#[derive(Debug, Default)]
pub(crate) struct IpcPublications {
    schedule: PollSchedule<IpcPublication>,
    /// By registration id.
    slots: BTreeMap<i64, Slot>,
    /// All are on the same channel.
    index: PublicationIndex<()>,
}

impl IpcPublications {
    pub(crate) fn insert(&mut self, publication: IpcPublication) {
        let id = publication.registration_id;
        self.index.insert(publication_key(&publication));
        self.slots
            .insert(id, self.schedule.insert(Box::new(publication)));
    }

    /// Returns the publication for modification, and schedules it once.
    pub(crate) fn find(&mut self, registration_id: i64) -> Option<&mut IpcPublication> {
        self.schedule
            .schedule_once(*self.slots.get(&registration_id)?)
    }

    pub(crate) fn get(&self, registration_id: i64) -> Option<&IpcPublication> {
        self.schedule.get(*self.slots.get(&registration_id)?)
    }

    pub(crate) fn contains(&self, registration_id: i64) -> bool {
        self.slots.contains_key(&registration_id)
    }

    pub(crate) fn remove(&mut self, registration_id: i64) -> Option<IpcPublication> {
        let slot = self.slots.remove(&registration_id)?;
        let publication = *self.schedule.remove(slot)?;
        self.index.remove(publication_key(&publication));
        Some(publication)
    }

    /// Returns the publication that a new shared publication is mapped to, if there is one.
    pub(crate) fn find_shared(
        &mut self,
        stream_id: i32,
        response: ResponseCorrelation,
    ) -> Option<&mut IpcPublication> {
        let id = self.index.shared((), stream_id).find(|&id| {
            self.get(id)
                .is_some_and(|p| p.config.params.response == response && p.is_shareable())
        })?;
        self.find(id)
    }

    /// Returns true if the stream has a publication that a new shared one may be mapped to.
    pub(crate) fn can_share(&self, stream_id: i32) -> bool {
        self.index.shared((), stream_id).next().is_some()
    }

    /// Returns true if a session id is in use on a stream.
    pub(crate) fn uses_session(&self, stream_id: i32, session_id: i32) -> bool {
        self.index
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
        let ids = self.index.of_stream(stream_id, session_id).into_iter();
        ids.filter_map(|id| self.get(id))
            .filter(|p| p.accepts_subscribers())
    }

    /// Returns the ids of the publications of a stream, oldest first.
    pub(crate) fn of_stream(&self, stream_id: i32) -> Vec<i64> {
        self.index.of_stream(stream_id, None)
    }

    /// Returns up to `count` publications for the timer, and the position at which to continue.
    pub(crate) fn range_mut(
        &mut self,
        from: usize,
        count: usize,
    ) -> (impl Iterator<Item = &mut IpcPublication>, Option<usize>) {
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

fn publication_key(publication: &IpcPublication) -> PublicationKey<()> {
    PublicationKey {
        registration_id: publication.registration_id,
        channel: (),
        stream_id: publication.config.stream_id,
        session_id: publication.config.session_id,
        exclusive: publication.config.exclusive,
    }
}
