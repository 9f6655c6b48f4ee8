// SPDX-License-Identifier: Apache-2.0
//! Images of the driver: lookup for joining subscribers, polling of free positions and states.

use std::collections::{BTreeMap, BTreeSet};

use taran_core::clock::Now;

use super::super::log_files::LogFiles;
use super::image::Image;
use crate::boundary::{EndpointId, ImageId};
use crate::poll_schedule::{AgentLoad, LONG_SWEEP_PERIOD_NS, PollSchedule, Slot};

/// Index key: endpoint, stream, session, image. A session can have several images while one replaces another.
type Session = (EndpointId, i32, i32, ImageId);

/// All images of the driver.
#[derive(Debug)]
pub(crate) struct Images {
    schedule: PollSchedule<Image>,
    slots: BTreeMap<ImageId, Slot>,
    sessions: BTreeSet<Session>,
}

/// The long sweep period: the receiver fills two terms before it depends on the conductor, so an idle image can wait.
impl Default for Images {
    fn default() -> Self {
        Self {
            schedule: PollSchedule::with_sweep_period(LONG_SWEEP_PERIOD_NS),
            slots: BTreeMap::new(),
            sessions: BTreeSet::new(),
        }
    }
}

impl Images {
    pub(crate) fn insert(&mut self, image: Image) {
        let id = image.id;
        self.sessions.insert(session(&image));
        self.slots.insert(id, self.schedule.insert(Box::new(image)));
    }

    pub(crate) fn get(&self, id: ImageId) -> Option<&Image> {
        self.schedule.get(*self.slots.get(&id)?)
    }

    /// Returns the image for modification, and schedules it once.
    pub(crate) fn get_mut(&mut self, id: ImageId) -> Option<&mut Image> {
        self.schedule.schedule_once(*self.slots.get(&id)?)
    }

    pub(crate) fn contains(&self, id: ImageId) -> bool {
        self.slots.contains_key(&id)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Image> {
        self.schedule.iter_mut()
    }

    /// Returns the images that a subscriber can join now, oldest first.
    pub(crate) fn joinable(
        &self,
        endpoint: EndpointId,
        stream_id: i32,
        session_id: Option<i32>,
    ) -> impl Iterator<Item = &Image> {
        let mut images: Vec<&Image> = self
            .of_stream(endpoint, stream_id, session_id)
            .filter(|image| image.accepts_subscribers())
            .collect();
        images.sort_unstable_by_key(|image| image.id);
        images.into_iter()
    }

    /// Returns true if a session has an image that accepts data.
    pub(crate) fn has_receiving_image(
        &self,
        endpoint: EndpointId,
        session_id: i32,
        stream_id: i32,
    ) -> bool {
        self.of_stream(endpoint, stream_id, Some(session_id))
            .any(Image::is_receiving)
    }

    /// Returns true if a session has an image in any state.
    pub(crate) fn has_image(&self, endpoint: EndpointId, session_id: i32, stream_id: i32) -> bool {
        self.of_stream(endpoint, stream_id, Some(session_id))
            .next()
            .is_some()
    }

    /// Returns the images of a stream, or of one session of it.
    fn of_stream(
        &self,
        endpoint: EndpointId,
        stream_id: i32,
        session_id: Option<i32>,
    ) -> impl Iterator<Item = &Image> {
        let (first, last) = session_id.map_or((i32::MIN, i32::MAX), |id| (id, id));
        let from = (endpoint, stream_id, first, ImageId(i64::MIN));
        let to = (endpoint, stream_id, last, ImageId(i64::MAX));
        let sessions = self.sessions.range(from..=to);
        sessions.filter_map(|&(_, _, _, id)| self.get(id))
    }

    /// Returns the next time at which a poll has an effect, if nothing comes from outside before. `None` if it is not known.
    pub(crate) fn next_deadline_ns(&self) -> Option<i64> {
        self.schedule.next_deadline_ns()
    }

    /// Updates the active images and some of the idle ones, and starts to reserve the pages that they need soon; returns
    /// how many changed. Called in every duty cycle.
    pub(crate) fn update(&mut self, logs: &mut LogFiles, now: Now, load: AgentLoad) -> usize {
        let mut work = 0;
        self.schedule.poll(now.nanos, load, |_, image, _| {
            let has_moved = image.update(now.nanos);
            image.extend(logs, now);
            work += usize::from(has_moved);
            has_moved
        });
        work
    }

    /// Removes the images that can be freed, oldest first.
    pub(crate) fn take_done(&mut self) -> Vec<Image> {
        let schedule = &self.schedule;
        let is_done = |slot: Slot| schedule.get(slot).is_some_and(Image::is_done);
        let done = self.slots.extract_if(.., |_, slot| is_done(*slot));
        let slots: Vec<Slot> = done.map(|(_, slot)| slot).collect();
        let images = slots.into_iter().map(|slot| self.schedule.remove(slot));
        let images: Vec<Image> = images.flatten().map(|image| *image).collect();
        for image in &images {
            self.sessions.remove(&session(image));
        }
        images
    }
}

fn session(image: &Image) -> Session {
    (image.endpoint, image.stream_id, image.session_id, image.id)
}
