// SPDX-License-Identifier: Apache-2.0
//! The images as the last poll has seen them, for tasks that wait for a change.

use std::sync::Arc;

use super::{Subscription, SubscriptionState};
use crate::image::{Image, ImageView};

impl Subscription {
    pub(crate) fn state(&self) -> &Arc<SubscriptionState> {
        &self.state
    }

    /// Returns the version of the images that the last poll has used.
    pub(crate) fn polled_version(&self) -> u64 {
        self.version
    }

    /// Returns the images that the last poll has used.
    pub(crate) fn polled_images(&self) -> impl Iterator<Item = &ImageView> {
        self.images.iter().map(Image::view)
    }
}
