//! The images of a subscriber, as its handlers are told of them, each with its check.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taran::{Header, ImageHandlers, ImageView};

use super::{Ledger, StreamKey};
use crate::check::delivery::ImageCheck;
use crate::check::{Violation, once, violation};
use crate::history::{Event, History};

/// What a handler was told.
#[derive(Debug)]
enum News {
    Available(ImageView),
    Unavailable(ImageView),
}

/// An image that is gone.
#[derive(Clone, Copy, Debug)]
pub struct EndedImage {
    /// Which image of the driver it was.
    pub correlation_id: i64,
    /// Its stream.
    pub key: StreamKey,
    /// Where it joined.
    pub join: i64,
    /// Where it was left.
    pub position: i64,
    /// Whether that was the end of its stream.
    pub at_end_of_stream: bool,
    /// Whether it was revoked.
    pub is_revoked: bool,
    /// Whether all that was sent until then was delivered.
    pub is_complete: bool,
}

/// All images that a subscriber has and had.
#[derive(Debug)]
pub(super) struct Images {
    subscriber: usize,
    news: Arc<Mutex<Vec<News>>>,
    /// By correlation id.
    present: BTreeMap<i64, ImageCheck>,
    ended: Vec<EndedImage>,
    is_lossy: bool,
    checks_content: bool,
}

impl Images {
    pub(super) fn new(subscriber: usize, is_lossy: bool, checks_content: bool) -> Self {
        Self {
            subscriber,
            news: Arc::default(),
            present: BTreeMap::new(),
            ended: Vec::new(),
            is_lossy,
            checks_content,
        }
    }

    /// Handlers that bring news of images here.
    pub(super) fn handlers(&self) -> ImageHandlers {
        let tell = |what: fn(ImageView) -> News| {
            let news = Arc::clone(&self.news);
            move |image: &ImageView| {
                let mut news = news.lock().unwrap_or_else(PoisonError::into_inner);
                news.push(what(image.clone()));
            }
        };
        ImageHandlers::new()
            .on_available(tell(News::Available))
            .on_unavailable(tell(News::Unavailable))
    }

    fn news(&self) -> MutexGuard<'_, Vec<News>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = i64> {
        self.present.keys().copied()
    }

    pub(super) fn stream_of(&self, correlation_id: i64) -> Option<StreamKey> {
        let image = self.present.get(&correlation_id);
        image.map(|image| *image.key())
    }

    pub(super) fn has_news(&self) -> bool {
        !self.news().is_empty()
    }

    /// The subscription is closed: there must be no news from here on.
    pub(super) fn forget(&mut self) {
        self.present.clear();
        self.news().clear();
    }

    pub(super) fn present(&self) -> impl Iterator<Item = &ImageCheck> {
        self.present.values()
    }

    pub(super) fn ended(&self) -> &[EndedImage] {
        &self.ended
    }

    pub(super) fn take_news(
        &mut self,
        now_ns: i64,
        ledger: &Ledger,
        history: &mut History,
    ) -> Result<(), Violation> {
        let all = std::mem::take(&mut *self.news());
        for news in all {
            let (News::Available(image) | News::Unavailable(image)) = &news;
            let subscriber = self.subscriber;
            let (session, position) = (image.session_id(), image.position());
            let event = match &news {
                News::Available(image) => {
                    self.begin(image)?;
                    Event::Available {
                        subscriber,
                        session,
                        position,
                    }
                }
                News::Unavailable(image) => {
                    self.end(image, ledger)?;
                    Event::Unavailable {
                        subscriber,
                        session,
                        position,
                    }
                }
            };
            history.note(now_ns, event);
        }
        Ok(())
    }

    fn begin(&mut self, image: &ImageView) -> Result<(), Violation> {
        let key = StreamKey {
            session_id: image.session_id(),
            stream_id: image.stream_id(),
            initial_term_id: image.initial_term_id(),
        };
        let join = image.join_position();
        if self.checks_content {
            let present = self.present.values().map(|image| *image.key());
            let left = self.ended.iter().map(|image| (image.key, image.position));
            once::check(&key, join, present, left)?;
        }
        let mut check = ImageCheck::new(key, join);
        if self.is_lossy {
            check = check.lossy();
        }
        let before = self.ended.iter().rfind(|ended| ended.key == key);
        if before.is_some_and(|ended| ended.position == join) {
            check = check.continuing();
        }
        if self.present.insert(image.correlation_id(), check).is_some() {
            violation!("subscriber {}: {image:?} came twice", self.subscriber);
        }
        Ok(())
    }

    fn end(&mut self, image: &ImageView, ledger: &Ledger) -> Result<(), Violation> {
        let Some(mut check) = self.present.remove(&image.correlation_id()) else {
            violation!(
                "subscriber {}: {image:?} went without having come",
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

    /// Holds a message against what was sent.
    pub(super) fn hold(
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
        let Some(check) = self.present.get_mut(&image.correlation_id()) else {
            violation!("a message of {image:?}, which is not available");
        };
        let Some(stream) = ledger.stream(check.key()) else {
            violation!("a message of {image:?}, which nobody publishes");
        };
        check.deliver(stream, header.position(), message, is_taken)
    }

    /// What lies before the position of an image must have been delivered.
    pub(super) fn consumed(&mut self, ledger: &Ledger, image: &ImageView) -> Result<(), Violation> {
        if !self.checks_content || image.is_closed() {
            return Ok(());
        }
        match self.present.get_mut(&image.correlation_id()) {
            Some(check) => match ledger.stream(check.key()) {
                Some(stream) => check.consumed(stream, image.position()),
                None => Ok(()),
            },
            None => Ok(()),
        }
    }
}
