// SPDX-License-Identifier: Apache-2.0
//! State shared by the conductor and the user's handle of a subscription.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::callback::Callback;
use crate::client_state::CloseReason;
use crate::close_mark::CloseMark;
use crate::handlers::{Handlers, ImageHandlers};
use crate::image::ImageView;

/// The images of a subscription as the conductor knows them, with a version that tells the poller when they have
/// changed.
#[derive(Debug)]
pub(crate) struct SubscriptionState {
    pub(crate) registration_id: i64,
    pub(crate) channel: String,
    pub(crate) stream_id: i32,
    /// Counter id of the channel's status indicator; −1 if it has none.
    pub(crate) status_counter_id: i32,
    images: Mutex<Vec<ImageView>>,
    /// Number of images, readable without the lock.
    image_count: AtomicUsize,
    version: AtomicU64,
    closed: CloseMark,
    handlers: Callback<ImageHandlers>,
}

impl SubscriptionState {
    pub(crate) fn new(
        registration_id: i64,
        channel: String,
        stream_id: i32,
        status_counter_id: i32,
        handlers: ImageHandlers,
    ) -> Self {
        Self {
            registration_id,
            channel,
            stream_id,
            status_counter_id,
            images: Mutex::new(Vec::new()),
            image_count: AtomicUsize::new(0),
            version: AtomicU64::new(0),
            closed: CloseMark::default(),
            handlers: Callback::new(Some(Box::new(handlers))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ImageView>> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the images in the order in which they became available.
    pub(crate) fn images(&self) -> Vec<ImageView> {
        self.lock().clone()
    }

    /// Returns the number of images.
    #[inline]
    pub(crate) fn image_count(&self) -> usize {
        // Acquire: pairs with the releases where images are added and removed.
        self.image_count.load(Ordering::Acquire)
    }

    /// Returns an image that a poll has marked as damaged, once.
    pub(crate) fn take_damaged(&self) -> Option<ImageView> {
        let images = self.lock();
        images
            .iter()
            .find(|image| image.take_damaged_flag())
            .cloned()
    }

    #[inline]
    pub(crate) fn version(&self) -> u64 {
        // Acquire: pairs with the release in `bump_version`.
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn bump_version(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn image(&self, correlation_id: i64) -> Option<ImageView> {
        self.lock()
            .iter()
            .find(|image| image.correlation_id() == correlation_id)
            .cloned()
    }

    /// Adds an image. Returns false if the subscription is closed.
    pub(crate) fn add(&self, image: ImageView) -> bool {
        let mut images = self.lock();
        // Checked under the lock: `close` sets the mark before it takes the lock, so it closes every image added here.
        if self.is_closed() {
            return false;
        }
        images.push(image);
        self.image_count.store(images.len(), Ordering::Release);
        drop(images);
        self.bump_version();
        true
    }

    /// Removes and closes an image.
    pub(crate) fn remove(&self, correlation_id: i64) -> Option<ImageView> {
        let mut images = self.lock();
        let index = images
            .iter()
            .position(|image| image.correlation_id() == correlation_id)?;
        let image = images.remove(index);
        self.image_count.store(images.len(), Ordering::Release);
        drop(images);
        image.close();
        self.bump_version();
        Some(image)
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_closed()
    }

    /// Returns why the subscription is closed; [`CloseReason::Closed`] while it is open.
    pub(crate) fn close_reason(&self) -> CloseReason {
        self.closed.reason().unwrap_or(CloseReason::Closed)
    }

    /// Closes the subscription and its images, which are returned.
    pub(crate) fn close(&self, reason: CloseReason) -> Vec<ImageView> {
        self.closed.close(reason);
        let images = {
            let mut images = self.lock();
            self.image_count.store(0, Ordering::Release);
            std::mem::take(&mut *images)
        };
        for image in &images {
            image.close();
        }
        self.bump_version();
        images
    }

    /// Calls the handler for a new image unless the subscription is closed.
    pub(crate) fn notify_available(&self, client_handlers: &Handlers, image: &ImageView) {
        let outcome = self.handlers.call(|own| match &mut own.available {
            Some(handler) => handler(image),
            None => client_handlers.run(
                "available image",
                &client_handlers.available_image,
                |handler| {
                    handler(image);
                },
            ),
        });
        client_handlers.report_panic("available image", outcome);
    }

    /// Calls the handler for an image that has ended unless the subscription is closed.
    pub(crate) fn notify_unavailable(&self, client_handlers: &Handlers, image: &ImageView) {
        let outcome = self.handlers.call(|own| match &mut own.unavailable {
            Some(handler) => handler(image),
            None => client_handlers.run(
                "unavailable image",
                &client_handlers.unavailable_image,
                |handler| {
                    handler(image);
                },
            ),
        });
        client_handlers.report_panic("unavailable image", outcome);
    }

    /// Waits for a callback in progress; none runs afterwards.
    pub(crate) fn end_callbacks(&self) {
        self.handlers.disable();
    }
}
