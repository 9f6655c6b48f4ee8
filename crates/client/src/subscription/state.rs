//! What the conductor and the user's handle of a subscription share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::callback::Callback;
use crate::handlers::{Handlers, ImageHandlers};
use crate::image::ImageView;

/// A subscription: its images as the conductor knows them, with a version that tells the poller when to look again.
#[derive(Debug)]
pub(crate) struct SubscriptionState {
    pub(crate) registration_id: i64,
    pub(crate) channel: String,
    pub(crate) stream_id: i32,
    /// Counter id of the channel's status indicator; −1 if it has none.
    pub(crate) status_counter_id: i32,
    images: Mutex<Vec<ImageView>>,
    /// How many images there are, for whoever asks without the lock.
    image_count: AtomicUsize,
    version: AtomicU64,
    closed: AtomicBool,
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
            closed: AtomicBool::new(false),
            handlers: Callback::new(Some(Box::new(handlers))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ImageView>> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The images in the order in which they became available.
    pub(crate) fn images(&self) -> Vec<ImageView> {
        self.lock().clone()
    }

    /// Number of images.
    #[inline]
    pub(crate) fn image_count(&self) -> usize {
        // Acquire: partner of the releases where images come and go.
        self.image_count.load(Ordering::Acquire)
    }

    /// An image that a poll has found damaged, told once.
    pub(crate) fn take_damaged(&self) -> Option<ImageView> {
        let images = self.lock();
        images.iter().find(|image| image.take_damage()).cloned()
    }

    #[inline]
    pub(crate) fn version(&self) -> u64 {
        // Acquire: partner of the release in `note_change`.
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn note_change(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn image(&self, correlation_id: i64) -> Option<ImageView> {
        self.lock()
            .iter()
            .find(|image| image.correlation_id() == correlation_id)
            .cloned()
    }

    /// Adds an image; false if the subscription is closed.
    pub(crate) fn add(&self, image: ImageView) -> bool {
        let mut images = self.lock();
        // Checked under the lock: `close` sets it before it takes the lock, so it meets every image added here.
        if self.is_closed() {
            return false;
        }
        images.push(image);
        self.image_count.store(images.len(), Ordering::Release);
        drop(images);
        self.note_change();
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
        self.note_change();
        Some(image)
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Ends all use of it and closes its images, which are returned.
    pub(crate) fn close(&self) -> Vec<ImageView> {
        self.closed.store(true, Ordering::Release);
        let images = {
            let mut images = self.lock();
            self.image_count.store(0, Ordering::Release);
            std::mem::take(&mut *images)
        };
        for image in &images {
            image.close();
        }
        self.note_change();
        images
    }

    /// Tells the user of a new image, unless the subscription was closed.
    pub(crate) fn tell_available(&self, client: &Handlers, image: &ImageView) {
        let told = self.handlers.call(|own| match &mut own.available {
            Some(handler) => handler(image),
            None => client.run("available image", &client.available_image, |handler| {
                handler(image);
            }),
        });
        client.report_panic("available image", told);
    }

    /// Tells the user that an image has ended, unless the subscription was closed.
    pub(crate) fn tell_unavailable(&self, client: &Handlers, image: &ImageView) {
        let told = self.handlers.call(|own| match &mut own.unavailable {
            Some(handler) => handler(image),
            None => client.run("unavailable image", &client.unavailable_image, |handler| {
                handler(image);
            }),
        });
        client.report_panic("unavailable image", told);
    }

    /// Waits for a callback in progress; there is none afterwards.
    pub(crate) fn end_callbacks(&self) {
        self.handlers.take_away();
    }
}
