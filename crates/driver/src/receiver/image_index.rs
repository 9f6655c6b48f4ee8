// SPDX-License-Identifier: Apache-2.0
//! Index of an endpoint's images.

use std::collections::BTreeMap;

use super::image::ReceiverImage;
use crate::boundary::ImageId;
use crate::poll_schedule::Slot;

/// Session id and stream id.
type Key = (i32, i32);

/// Slots of images by image id and by session.
#[derive(Debug, Default)]
pub(super) struct ImageIndex {
    ids: BTreeMap<ImageId, Slot>,
    /// A session has several images while a new one supersedes an old one.
    keys: BTreeMap<(Key, ImageId), Slot>,
}

impl ImageIndex {
    pub(super) fn insert(&mut self, image: &ReceiverImage, slot: Slot) {
        self.ids.insert(image.id(), slot);
        self.keys.insert((image.key(), image.id()), slot);
    }

    pub(super) fn remove(&mut self, image: &ReceiverImage) {
        self.ids.remove(&image.id());
        self.keys.remove(&(image.key(), image.id()));
    }

    pub(super) fn slot_of(&self, id: ImageId) -> Option<Slot> {
        self.ids.get(&id).copied()
    }

    /// Returns the slots of all images of a session.
    pub(super) fn slots_of_session(&self, key: Key) -> impl Iterator<Item = Slot> {
        let range = (key, ImageId(i64::MIN))..=(key, ImageId(i64::MAX));
        self.keys.range(range).map(|(_, slot)| *slot)
    }
}
