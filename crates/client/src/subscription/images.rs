// SPDX-License-Identifier: Apache-2.0
//! Access to the images of a subscription.

use super::Subscription;
use crate::image::{Image, ImageView};

impl Subscription {
    /// Returns the current images in the order in which they became available, without those that were taken.
    pub fn images(&mut self) -> &mut [Image] {
        // A closed subscription has none.
        let _ = self.refresh();
        &mut self.images
    }

    /// Returns the image of a session, to poll it alone.
    pub fn image_mut(&mut self, session_id: i32) -> Option<&mut Image> {
        self.images()
            .iter_mut()
            .find(|image| image.session_id() == session_id)
    }

    /// Returns a view of the image of a session, also if the image was taken.
    #[must_use]
    pub fn image(&self, session_id: i32) -> Option<ImageView> {
        self.state
            .images()
            .into_iter()
            .find(|image| image.session_id() == session_id)
    }

    /// Returns the image with a correlation id, to poll it alone.
    pub fn image_mut_by_correlation_id(&mut self, correlation_id: i64) -> Option<&mut Image> {
        self.images()
            .iter_mut()
            .find(|image| image.correlation_id() == correlation_id)
    }

    /// Returns a view of the image with a correlation id, also if the image was taken.
    #[must_use]
    pub fn image_by_correlation_id(&self, correlation_id: i64) -> Option<ImageView> {
        self.state.image(correlation_id)
    }

    /// Returns views of all current images, including those that were taken, in the order in which they became
    /// available.
    #[must_use]
    pub fn image_views(&self) -> Vec<ImageView> {
        self.state.images()
    }

    /// Takes the image of a session out of the subscription, which then does not poll it. The image may be moved to
    /// another thread; when it is dropped it returns to the subscription.
    pub fn take_image(&mut self, session_id: i32) -> Option<Image> {
        let index = self
            .images()
            .iter()
            .position(|image| image.session_id() == session_id)?;
        Some(self.images.remove(index).into_taken(&self.state))
    }

    /// Like [`take_image`](Self::take_image), for the image with a correlation id.
    pub fn take_image_by_correlation_id(&mut self, correlation_id: i64) -> Option<Image> {
        let index = self
            .images()
            .iter()
            .position(|image| image.correlation_id() == correlation_id)?;
        Some(self.images.remove(index).into_taken(&self.state))
    }

    /// Returns the number of images, including those that were taken.
    #[must_use]
    pub fn image_count(&self) -> usize {
        self.state.image_count()
    }

    /// Returns true if the subscription has no image.
    #[must_use]
    pub fn has_no_images(&self) -> bool {
        self.image_count() == 0
    }

    /// Returns true if the subscription has an image.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.image_count() != 0
    }
}
