//! The images: found for subscribers that join, looked at for cleaning and life cycles.

use std::collections::BTreeMap;

use super::image::Image;
use crate::boundary::{EndpointId, ImageId};
use crate::rounds::{Pace, Rounds, Seat};

/// All images of the driver.
#[derive(Debug, Default)]
pub(crate) struct Images {
    rounds: Rounds<Image>,
    seats: BTreeMap<ImageId, Seat>,
}

impl Images {
    pub(crate) fn insert(&mut self, image: Image) {
        let id = image.id;
        self.seats.insert(id, self.rounds.enter(Box::new(image)));
    }

    pub(crate) fn get(&self, id: ImageId) -> Option<&Image> {
        self.rounds.get(*self.seats.get(&id)?)
    }

    /// The image, which has a turn soon: something about it changes.
    pub(crate) fn get_mut(&mut self, id: ImageId) -> Option<&mut Image> {
        self.rounds.rouse(*self.seats.get(&id)?)
    }

    pub(crate) fn contains(&self, id: ImageId) -> bool {
        self.seats.contains_key(&id)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Image> {
        self.rounds.iter_mut()
    }

    /// The images that a subscriber may join now, the oldest first.
    pub(crate) fn joinable(
        &mut self,
        endpoint: EndpointId,
        stream_id: i32,
        session_id: Option<i32>,
    ) -> impl Iterator<Item = &mut Image> {
        let is_joinable = |image: &&mut Image| {
            image.endpoint == endpoint
                && image.stream_id == stream_id
                && session_id.is_none_or(|wanted| wanted == image.session_id)
                && image.accepts_subscribers()
        };
        let mut images: Vec<&mut Image> = self.rounds.iter_mut().filter(is_joinable).collect();
        images.sort_unstable_by_key(|image| image.id);
        images.into_iter()
    }

    /// Whether somebody follows a stream already.
    pub(crate) fn is_followed(
        &self,
        endpoint: EndpointId,
        session_id: i32,
        stream_id: i32,
    ) -> bool {
        self.rounds.iter().any(|image| {
            (image.endpoint, image.session_id, image.stream_id) == (endpoint, session_id, stream_id)
                && image.is_followed()
        })
    }

    /// Every duty cycle, a turn for those that move and some of the others: how many had something to do.
    pub(crate) fn update(&mut self, now_ns: i64, pace: Pace) -> usize {
        let mut work = 0;
        self.rounds.turn(now_ns, pace, |_, image| {
            let has_moved = image.update(now_ns);
            work += usize::from(has_moved);
            has_moved
        });
        work
    }

    /// Takes out the images that nobody needs any more, the oldest first.
    pub(crate) fn take_done(&mut self) -> Vec<Image> {
        let rounds = &self.rounds;
        let is_done = |seat: Seat| rounds.get(seat).is_some_and(Image::is_done);
        let done = self.seats.extract_if(.., |_, seat| is_done(*seat));
        let seats: Vec<Seat> = done.map(|(_, seat)| seat).collect();
        let images = seats.into_iter().map(|seat| self.rounds.leave(seat));
        images.flatten().map(|image| *image).collect()
    }
}
