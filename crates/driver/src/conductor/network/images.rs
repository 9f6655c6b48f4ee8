//! The images: found for subscribers that join, walked for cleaning and life cycles.

use std::collections::BTreeMap;

use super::image::Image;
use crate::boundary::{EndpointId, ImageId};

/// All images of the driver.
#[derive(Debug, Default)]
pub(crate) struct Images {
    entries: BTreeMap<ImageId, Image>,
}

impl Images {
    pub(crate) fn insert(&mut self, image: Image) {
        self.entries.insert(image.id, image);
    }

    pub(crate) fn get(&self, id: ImageId) -> Option<&Image> {
        self.entries.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: ImageId) -> Option<&mut Image> {
        self.entries.get_mut(&id)
    }

    pub(crate) fn contains(&self, id: ImageId) -> bool {
        self.entries.contains_key(&id)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Image> {
        self.entries.values_mut()
    }

    /// The images that a subscriber may join now.
    pub(crate) fn joinable(
        &mut self,
        endpoint: EndpointId,
        stream_id: i32,
        session_id: Option<i32>,
    ) -> impl Iterator<Item = &mut Image> {
        self.entries.values_mut().filter(move |image| {
            image.endpoint == endpoint
                && image.stream_id == stream_id
                && session_id.is_none_or(|wanted| wanted == image.session_id)
                && image.accepts_subscribers()
        })
    }

    /// Whether somebody follows a stream already.
    pub(crate) fn is_followed(
        &self,
        endpoint: EndpointId,
        session_id: i32,
        stream_id: i32,
    ) -> bool {
        self.entries.values().any(|image| {
            (image.endpoint, image.session_id, image.stream_id) == (endpoint, session_id, stream_id)
                && image.is_followed()
        })
    }

    /// Every duty cycle: how many had something to do.
    pub(crate) fn update(&mut self, now_ns: i64) -> usize {
        self.entries
            .values_mut()
            .map(|image| usize::from(image.update(now_ns)))
            .sum()
    }

    /// Takes out the images that nobody needs any more.
    pub(crate) fn take_done(&mut self) -> Vec<Image> {
        self.entries
            .extract_if(.., |_, image| image.is_done())
            .map(|(_, image)| image)
            .collect()
    }
}
