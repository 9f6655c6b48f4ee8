// SPDX-License-Identifier: Apache-2.0
//! The images of a subscriber as reported to its handlers, each with its check.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taran::{Header, ImageHandlers, ImageView};

use super::{Ledger, StreamKey};
use crate::check::delivery::ImageCheck;
use crate::check::{Violation, once, violation};
use crate::history::{Event, History};

/// An image event reported to a handler.
#[derive(Debug)]
enum ImageEvent {
    Available(ImageView),
    Unavailable(ImageView),
}

/// An image that became unavailable.
#[derive(Clone, Copy, Debug)]
pub struct EndedImage {
    /// Correlation id of the image.
    pub correlation_id: i64,
    /// Stream of the image.
    pub key: StreamKey,
    /// Position at which it joined the stream.
    pub join: i64,
    /// Position at which it ended.
    pub position: i64,
    /// True if that was the end of the stream.
    pub at_end_of_stream: bool,
    /// True if the publication was revoked.
    pub is_revoked: bool,
    /// True if everything sent until then was delivered.
    pub is_complete: bool,
}

/// The current and former images of a subscriber.
#[derive(Debug)]
pub(super) struct ImageTracker {
    subscriber: usize,
    events: Arc<Mutex<Vec<ImageEvent>>>,
    /// Current images by correlation id.
    current: BTreeMap<i64, ImageCheck>,
    ended: Vec<EndedImage>,
    is_lossy: bool,
    checks_content: bool,
}

impl ImageTracker {
    pub(super) fn new(subscriber: usize, is_lossy: bool, checks_content: bool) -> Self {
        Self {
            subscriber,
            events: Arc::default(),
            current: BTreeMap::new(),
            ended: Vec::new(),
            is_lossy,
            checks_content,
        }
    }

    /// Returns handlers that queue image events for [`process_events`](Self::process_events).
    pub(super) fn handlers(&self) -> ImageHandlers {
        let queue = |event: fn(ImageView) -> ImageEvent| {
            let events = Arc::clone(&self.events);
            move |image: &ImageView| {
                let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
                events.push(event(image.clone()));
            }
        };
        ImageHandlers::new()
            .on_available(queue(ImageEvent::Available))
            .on_unavailable(queue(ImageEvent::Unavailable))
    }

    fn events(&self) -> MutexGuard<'_, Vec<ImageEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = i64> {
        self.current.keys().copied()
    }

    pub(super) fn stream_of(&self, correlation_id: i64) -> Option<StreamKey> {
        let image = self.current.get(&correlation_id);
        image.map(|image| *image.key())
    }

    pub(super) fn has_events(&self) -> bool {
        !self.events().is_empty()
    }

    /// Forgets all images after the subscription was closed. No event may follow.
    pub(super) fn forget(&mut self) {
        self.current.clear();
        self.events().clear();
    }

    pub(super) fn current(&self) -> impl Iterator<Item = &ImageCheck> {
        self.current.values()
    }

    pub(super) fn ended(&self) -> &[EndedImage] {
        &self.ended
    }

    pub(super) fn process_events(
        &mut self,
        now_ns: i64,
        ledger: &Ledger,
        history: &mut History,
    ) -> Result<(), Violation> {
        let all = std::mem::take(&mut *self.events());
        for image_event in all {
            let (ImageEvent::Available(image) | ImageEvent::Unavailable(image)) = &image_event;
            let subscriber = self.subscriber;
            let (session, position) = (image.session_id(), image.position());
            let event = match &image_event {
                ImageEvent::Available(image) => {
                    self.add(image)?;
                    Event::Available {
                        subscriber,
                        session,
                        position,
                    }
                }
                ImageEvent::Unavailable(image) => {
                    self.remove(image, ledger)?;
                    Event::Unavailable {
                        subscriber,
                        session,
                        position,
                    }
                }
            };
            history.record(now_ns, event);
        }
        Ok(())
    }

    fn add(&mut self, image: &ImageView) -> Result<(), Violation> {
        let key = StreamKey {
            session_id: image.session_id(),
            stream_id: image.stream_id(),
            initial_term_id: image.initial_term_id(),
        };
        let join = image.join_position();
        if self.checks_content {
            let current = self.current.values().map(|image| *image.key());
            let left = self.ended.iter().map(|image| (image.key, image.position));
            once::check(&key, join, current, left)?;
        }
        let mut check = ImageCheck::new(key, join);
        if self.is_lossy {
            check = check.lossy();
        }
        let before = self.ended.iter().rfind(|ended| ended.key == key);
        if before.is_some_and(|ended| ended.position == join) {
            check = check.continuing();
        }
        if self.current.insert(image.correlation_id(), check).is_some() {
            violation!(
                "subscriber {}: {image:?} became available twice",
                self.subscriber
            );
        }
        Ok(())
    }

    fn remove(&mut self, image: &ImageView, ledger: &Ledger) -> Result<(), Violation> {
        let Some(mut check) = self.current.remove(&image.correlation_id()) else {
            violation!(
                "subscriber {}: {image:?} became unavailable without having become available",
                self.subscriber
            );
        };
        let stream = ledger.stream(check.key()).filter(|_| self.checks_content);
        if let Some(stream) = stream {
            check.consumed(stream, image.position())?;
        }
        self.ended.push(EndedImage {
            is_complete: self.checks_content && stream.is_none_or(|stream| check.has_all(stream)),
            key: *check.key(),
            join: check.join(),
            position: image.position(),
            at_end_of_stream: image.is_end_of_stream(),
            is_revoked: image.is_publication_revoked(),
            correlation_id: image.correlation_id(),
        });
        Ok(())
    }

    /// Compares a message with what was sent.
    pub(super) fn check_message(
        &mut self,
        ledger: &Ledger,
        message: &[u8],
        header: &Header<'_>,
        is_taken: bool,
    ) -> Result<(), Violation> {
        if !self.checks_content {
            return Ok(());
        }
        let image = header.image();
        let Some(check) = self.current.get_mut(&image.correlation_id()) else {
            violation!("a message of {image:?}, which is not available");
        };
        let Some(stream) = ledger.stream(check.key()) else {
            violation!("a message of {image:?}, which no publisher sends");
        };
        check.deliver(stream, header.position(), message, is_taken)
    }

    /// Checks that everything before the position of an image was delivered.
    pub(super) fn consumed(&mut self, ledger: &Ledger, image: &ImageView) -> Result<(), Violation> {
        if !self.checks_content || image.is_closed() {
            return Ok(());
        }
        match self.current.get_mut(&image.correlation_id()) {
            Some(check) => match ledger.stream(check.key()) {
                Some(stream) => check.consumed(stream, image.position()),
                None => Ok(()),
            },
            None => Ok(()),
        }
    }
}
