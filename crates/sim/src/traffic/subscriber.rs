//! A subscription and who consumes it.
//!
//! Contract: [`Subscriber::turn`] once or more in each step. It takes the driver's answer and the news of images in, then
//! polls in one of the ways there are and holds each message against the ledger.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use taran::{
    Action, AddError, Client, ControlledFragmentAssembler, FragmentAssembler, ImageHandlers,
    ImageView, Pending, PollError, Subscription,
};

use super::{Ledger, StreamKey, Subscribing, passes};
use crate::check::delivery::ImageCheck;
use crate::check::{Violation, violation};
use crate::history::{Event, History};

/// One subscriber.
#[derive(Debug)]
pub struct Subscriber {
    number: usize,
    spec: Subscribing,
    state: State,
    random: fastrand::Rng,
    news: Arc<Mutex<Vec<News>>>,
    /// By correlation id.
    images: BTreeMap<i64, ImageCheck>,
    ended: Vec<EndedImage>,
    reader: Reader,
    error: Option<PollError>,
    checks_content: bool,
}

#[derive(Debug)]
enum State {
    Adding(Pending<Subscription>),
    Open(Subscription),
    Failed(AddError),
    Closed,
}

impl State {
    /// Asks the driver for a subscription whose images are told to `news`.
    fn add(client: &Client, spec: &Subscribing, news: &Arc<Mutex<Vec<News>>>) -> Self {
        let tell = |what: fn(ImageView) -> News| {
            let news = Arc::clone(news);
            move |image: &ImageView| {
                let mut news = news.lock().unwrap_or_else(PoisonError::into_inner);
                news.push(what(image.clone()));
            }
        };
        let handlers = ImageHandlers::new()
            .on_available(tell(News::Available))
            .on_unavailable(tell(News::Unavailable));
        let adding = client.async_add_subscription_with(&spec.channel, spec.stream_id, handlers);
        adding.map_or_else(Self::Failed, Self::Adding)
    }
}

/// How a subscription is read; each keeps its unfinished messages.
#[derive(Debug)]
enum Reader {
    Plain(FragmentAssembler),
    Controlled(ControlledFragmentAssembler),
}

/// What a handler was told.
#[derive(Debug)]
enum News {
    Available(ImageView),
    Unavailable(ImageView),
}

/// An image that is gone.
#[derive(Clone, Copy, Debug)]
pub struct EndedImage {
    /// Its stream.
    pub key: StreamKey,
    /// Where it joined.
    pub join: i64,
    /// Where it was left.
    pub position: i64,
    /// Whether that was the end of its stream.
    pub at_end_of_stream: bool,
    /// Whether all that was sent until then was delivered.
    pub is_complete: bool,
}

impl Subscriber {
    pub(crate) fn new(
        number: usize,
        client: &Client,
        spec: Subscribing,
        mut random: fastrand::Rng,
        checks_content: bool,
    ) -> Self {
        let news = Arc::default();
        Self {
            number,
            state: State::add(client, &spec, &news),
            spec,
            reader: if random.bool() {
                Reader::Plain(FragmentAssembler::new())
            } else {
                Reader::Controlled(ControlledFragmentAssembler::new())
            },
            random,
            news,
            images: BTreeMap::new(),
            ended: Vec::new(),
            error: None,
            checks_content,
        }
    }

    /// One turn; how much was done.
    pub(crate) fn turn(
        &mut self,
        client: Option<&Client>,
        now_ns: i64,
        ledger: &Ledger,
        history: &mut History,
    ) -> Result<usize, Violation> {
        if let State::Adding(pending) = &mut self.state
            && let Some(answer) = pending.poll()
        {
            self.state = match (answer, client) {
                (Err(error), Some(client)) if passes(&error) => {
                    State::add(client, &self.spec, &self.news)
                }
                (answer, _) => answer.map_or_else(State::Failed, State::Open),
            };
        }
        self.take_news(now_ns, ledger, history)?;
        if self.error.is_some() || self.random.f64() < self.spec.laziness {
            return Ok(0);
        }
        let fragments = self.poll(now_ns, ledger, history)?;
        self.check_positions(ledger)?;
        Ok(fragments)
    }

    fn take_news(
        &mut self,
        now_ns: i64,
        ledger: &Ledger,
        history: &mut History,
    ) -> Result<(), Violation> {
        let news = std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner));
        if !news.is_empty() && matches!(self.state, State::Closed) {
            violation!("subscriber {}: called back after its close", self.number);
        }
        for news in news {
            match news {
                News::Available(image) => self.on_available(&image, now_ns, history)?,
                News::Unavailable(image) => self.on_unavailable(&image, now_ns, ledger, history)?,
            }
        }
        Ok(())
    }

    fn on_available(
        &mut self,
        image: &ImageView,
        now_ns: i64,
        history: &mut History,
    ) -> Result<(), Violation> {
        let key = StreamKey {
            session_id: image.session_id(),
            stream_id: image.stream_id(),
            initial_term_id: image.initial_term_id(),
        };
        let join = image.join_position();
        let mut check = ImageCheck::new(key, join);
        if self.spec.is_lossy {
            check = check.lossy();
        }
        let before = self.ended.iter().rfind(|ended| ended.key == key);
        if before.is_some_and(|ended| ended.position == join) {
            check = check.continuing();
        }
        if self.images.insert(image.correlation_id(), check).is_some() {
            violation!(
                "subscriber {}: {image:?} became available twice",
                self.number
            );
        }
        let event = Event::Available {
            subscriber: self.number,
            session: key.session_id,
            position: image.join_position(),
        };
        history.note(now_ns, event);
        Ok(())
    }

    fn on_unavailable(
        &mut self,
        image: &ImageView,
        now_ns: i64,
        ledger: &Ledger,
        history: &mut History,
    ) -> Result<(), Violation> {
        let Some(mut check) = self.images.remove(&image.correlation_id()) else {
            violation!(
                "subscriber {}: {image:?} went without having come",
                self.number
            );
        };
        if let Some(stream) = ledger.stream(check.key()).filter(|_| self.checks_content) {
            check.consumed(stream, image.position())?;
        }
        let stream = ledger.stream(check.key());
        self.ended.push(EndedImage {
            is_complete: stream.is_some_and(|stream| check.has_all(stream)),
            key: *check.key(),
            join: check.join(),
            position: image.position(),
            at_end_of_stream: image.is_end_of_stream(),
        });
        let event = Event::Unavailable {
            subscriber: self.number,
            session: image.session_id(),
            position: image.position(),
        };
        history.note(now_ns, event);
        Ok(())
    }

    fn poll(
        &mut self,
        now_ns: i64,
        ledger: &Ledger,
        history: &mut History,
    ) -> Result<usize, Violation> {
        let State::Open(subscription) = &mut self.state else {
            return Ok(0);
        };
        let (number, checks_content) = (self.number, self.checks_content);
        let images = &mut self.images;
        let mut outcome = Ok(());
        let mut take = |message: &[u8], header: &taran::Header<'_>, is_taken: bool| {
            if outcome.is_err() {
                return;
            }
            if checks_content {
                let image = images.get_mut(&header.image().correlation_id());
                outcome = hold(image, ledger, message, header, is_taken);
            }
            if is_taken {
                let event = Event::Delivered {
                    subscriber: number,
                    session: header.session_id(),
                    position: header.position(),
                };
                history.note(now_ns, event);
            }
        };
        let limit = self.random.usize(1..=self.spec.limit);
        let random = &mut self.random;
        let polled = match &mut self.reader {
            Reader::Plain(assembler) => {
                let handler = assembler.wrap(|message, header| take(message, header, true));
                subscription.poll(handler, limit)
            }
            Reader::Controlled(assembler) => {
                let handler = assembler.wrap(|message, header| {
                    let action = match random.u32(0..12) {
                        0 => Action::Abort,
                        1 => Action::Break,
                        2 => Action::Commit,
                        _ => Action::Continue,
                    };
                    take(message, header, action != Action::Abort);
                    action
                });
                subscription.controlled_poll(handler, limit)
            }
        };
        outcome?;
        match polled {
            Ok(fragments) => Ok(fragments),
            Err(error) => {
                self.error = Some(error);
                Ok(0)
            }
        }
    }

    /// What lies before the position of an image must have been delivered.
    fn check_positions(&mut self, ledger: &Ledger) -> Result<(), Violation> {
        let State::Open(subscription) = &mut self.state else {
            return Ok(());
        };
        if !self.checks_content {
            return Ok(());
        }
        for image in subscription.images() {
            if let Some(check) = self.images.get_mut(&image.correlation_id())
                && let Some(stream) = ledger.stream(check.key())
                && !image.is_closed()
            {
                check.consumed(stream, image.position())?;
            }
        }
        Ok(())
    }

    // --- what the story may do ---

    /// In which part of its turns it does nothing, from 0 to 1.
    pub fn set_laziness(&mut self, laziness: f64) {
        self.spec.laziness = laziness;
    }

    /// Closes the subscription.
    pub fn close(&mut self) {
        self.state = State::Closed;
        self.forget_images();
    }

    /// From here on there must be no news.
    fn forget_images(&mut self) {
        self.images.clear();
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        news.clear();
    }

    /// Takes what must not be closed in an orderly way, because its process is dead.
    pub(crate) fn kill(&mut self) -> Box<dyn std::any::Any> {
        self.forget_images();
        Box::new(std::mem::replace(&mut self.state, State::Closed))
    }

    /// True when it will never do anything again.
    pub(crate) fn is_over(&self) -> bool {
        let news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(self.state, State::Closed | State::Failed(_)) && news.is_empty()
    }

    // --- what the story may ask ---

    /// True when the driver has made the subscription and it was not closed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Why the driver did not make the subscription.
    #[must_use]
    pub fn failure(&self) -> Option<&AddError> {
        match &self.state {
            State::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// What polling failed with.
    #[must_use]
    pub fn error(&self) -> Option<PollError> {
        self.error
    }

    /// The images at present.
    pub fn images(&self) -> impl Iterator<Item = &ImageCheck> {
        self.images.values()
    }

    /// The image of a stream, if there is one.
    #[must_use]
    pub fn image(&self, key: &StreamKey) -> Option<&ImageCheck> {
        self.images.values().find(|image| image.key() == key)
    }

    /// The images that are gone, in order.
    #[must_use]
    pub fn ended(&self) -> &[EndedImage] {
        &self.ended
    }
}

/// Holds a message against what was sent.
fn hold(
    image: Option<&mut ImageCheck>,
    ledger: &Ledger,
    message: &[u8],
    header: &taran::Header<'_>,
    is_taken: bool,
) -> Result<(), Violation> {
    let Some(image) = image else {
        violation!("a message of {:?}, which is not available", header.image());
    };
    let Some(stream) = ledger.stream(image.key()) else {
        violation!("a message of {:?}, which nobody publishes", header.image());
    };
    image.deliver(stream, header.position(), message, is_taken)
}
