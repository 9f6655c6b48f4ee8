//! The images of a subscription, found and taken out.

use super::Subscription;
use crate::image::{Image, ImageView};

impl Subscription {
    /// The images at this moment, in the order in which they became available; without those that were taken out.
    pub fn images(&mut self) -> &mut [Image] {
        // A closed subscription has none.
        let _ = self.refresh();
        &mut self.images
    }

    /// The image of a session, to poll it by itself.
    pub fn image_mut(&mut self, session_id: i32) -> Option<&mut Image> {
        self.images()
            .iter_mut()
            .find(|image| image.session_id() == session_id)
    }

    /// What is known of the image of a session, also of one that was taken out.
    #[must_use]
    pub fn image(&self, session_id: i32) -> Option<ImageView> {
        self.state
            .images()
            .into_iter()
            .find(|image| image.session_id() == session_id)
    }

    /// The image with that correlation id, to poll it by itself.
    pub fn image_mut_by_correlation_id(&mut self, correlation_id: i64) -> Option<&mut Image> {
        self.images()
            .iter_mut()
            .find(|image| image.correlation_id() == correlation_id)
    }

    /// What is known of the image with that correlation id, also of one that was taken out.
    #[must_use]
    pub fn image_by_correlation_id(&self, correlation_id: i64) -> Option<ImageView> {
        self.state.image(correlation_id)
    }

    /// What is known of all images at this moment, also of those that were taken out, in the order in which they became
    /// available.
    #[must_use]
    pub fn image_views(&self) -> Vec<ImageView> {
        self.state.images()
    }

    /// Takes the image of a session out: the subscription does not poll it any more, the caller does, on whatever
    /// thread. When the image is dropped it goes back.
    pub fn take_image(&mut self, session_id: i32) -> Option<Image> {
        let index = self
            .images()
            .iter()
            .position(|image| image.session_id() == session_id)?;
        Some(self.images.remove(index).taken_from(&self.state))
    }

    /// As [`take_image`](Self::take_image), for the image with that correlation id.
    pub fn take_image_by_correlation_id(&mut self, correlation_id: i64) -> Option<Image> {
        let index = self
            .images()
            .iter()
            .position(|image| image.correlation_id() == correlation_id)?;
        Some(self.images.remove(index).taken_from(&self.state))
    }

    /// Number of images, those that were taken out included.
    #[must_use]
    pub fn image_count(&self) -> usize {
        self.state.image_count()
    }

    /// True while there is none.
    #[must_use]
    pub fn has_no_images(&self) -> bool {
        self.image_count() == 0
    }

    /// True while there is an image.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.image_count() != 0
    }
}
