//! A subscription and who consumes it.
//!
//! Contract: [`Subscriber::turn`] once or more in each step. It takes the driver's answer and the news of images in, then
//! polls in one of the ways there are and holds each message against the ledger.

use std::collections::BTreeSet;

use taran::{
    Action, AddError, Client, ControlledFragmentAssembler, FragmentAssembler, Header, Pending,
    PollError, Subscription,
};

use super::images::Images;
use super::requests::{Request, Requests, What};
use super::{EndedImage, Ledger, StreamKey, Subscribing, passes};
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
    images: Images,
    reader: Reader,
    error: Option<PollError>,
    /// Sources that the driver has confirmed.
    sources: BTreeSet<String>,
    asked: Requests,
    stamps: Stamps,
}

/// The reserved values of messages, where drivers may write times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// How many messages had none.
    pub missing: u64,
    /// The least one, and the greatest.
    pub range: Option<(i64, i64)>,
}

impl Stamps {
    fn take(&mut self, value: i64) {
        if value == 0 {
            self.missing += 1;
        } else {
            let (least, most) = self.range.unwrap_or((value, value));
            self.range = Some((least.min(value), most.max(value)));
        }
    }
}

#[derive(Debug)]
enum State {
    Adding(Pending<Subscription>),
    Open(Subscription),
    Failed(AddError),
    Closed,
}

impl State {
    /// Asks the driver for a subscription.
    fn add(client: &Client, spec: &Subscribing, images: &Images) -> Self {
        let (channel, stream_id) = (&spec.channel, spec.stream_id);
        let adding = client.async_add_subscription_with(channel, stream_id, images.handlers());
        adding.map_or_else(Self::Failed, Self::Adding)
    }
}

/// How a subscription is read; each keeps its unfinished messages.
#[derive(Debug)]
enum Reader {
    Plain(FragmentAssembler),
    Bounded(FragmentAssembler),
    Controlled(ControlledFragmentAssembler),
}

impl Reader {
    fn any(random: &mut fastrand::Rng) -> Self {
        match random.u32(0..3) {
            0 => Self::Plain(FragmentAssembler::new()),
            1 => Self::Bounded(FragmentAssembler::new()),
            _ => Self::Controlled(ControlledFragmentAssembler::new()),
        }
    }

    /// Polls once; `take` is told of each message, and whether it is consumed.
    fn poll(
        &mut self,
        subscription: &mut Subscription,
        limit: usize,
        random: &mut fastrand::Rng,
        mut take: impl FnMut(&[u8], &Header<'_>, bool),
    ) -> Result<usize, PollError> {
        match self {
            Self::Plain(assembler) => {
                let handler = assembler.wrap(|message, header| take(message, header, true));
                subscription.poll(handler, limit)
            }
            Self::Bounded(assembler) => {
                let first = subscription.images().first().map(|image| image.position());
                let bound = first.map_or(i64::MAX, |first| first + random.i64(0..50_000));
                // Now and then without a bound, which is for all images the same, or those far ahead would starve.
                let bound = if random.bool() { bound } else { i64::MAX };
                let handler = assembler.wrap(|message, header| take(message, header, true));
                subscription.bounded_poll(handler, bound, limit)
            }
            Self::Controlled(assembler) => {
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
        }
    }
}

impl Subscriber {
    pub(crate) fn new(
        number: usize,
        client: &Client,
        spec: Subscribing,
        mut random: fastrand::Rng,
        checks_content: bool,
    ) -> Self {
        let images = Images::new(number, spec.is_lossy, checks_content);
        Self {
            number,
            state: State::add(client, &spec, &images),
            spec,
            reader: Reader::any(&mut random),
            random,
            images,
            error: None,
            sources: BTreeSet::new(),
            asked: Requests::default(),
            stamps: Stamps::default(),
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
        self.take_answers_to_requests(now_ns);
        self.take_answer(client);
        if matches!(self.state, State::Closed) && self.images.has_news() {
            violation!("subscriber {}: called back after its close", self.number);
        }
        self.images.take_news(now_ns, ledger, history)?;
        if self.error.is_some() || self.random.f64() < self.spec.laziness {
            return Ok(0);
        }
        self.poll(now_ns, ledger, history)
    }

    fn take_answer(&mut self, client: Option<&Client>) {
        let State::Adding(pending) = &mut self.state else {
            return;
        };
        let Some(answer) = pending.poll() else { return };
        self.state = match (answer, client) {
            (Err(error), Some(client)) if passes(&error) => {
                State::add(client, &self.spec, &self.images)
            }
            (answer, _) => answer.map_or_else(State::Failed, State::Open),
        };
        for source in self.spec.sources.clone() {
            self.ask_source(&source, true);
        }
    }

    fn take_answers_to_requests(&mut self, now_ns: i64) {
        let sources = &mut self.sources;
        self.asked.take_answers(now_ns, |what, channel| {
            match what {
                What::AddSource => sources.insert(channel.to_owned()),
                What::RemoveSource => sources.remove(channel),
                _ => false,
            };
        });
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
        let (subscriber, images, stamps) = (self.number, &mut self.images, &mut self.stamps);
        let mut outcome = Ok(());
        let take = |message: &[u8], header: &Header<'_>, is_taken: bool| {
            if outcome.is_ok() {
                outcome = images.hold(ledger, message, header, is_taken);
            }
            if is_taken {
                stamps.take(header.reserved_value());
                let (session, position) = (header.session_id(), header.position());
                let event = Event::Delivered {
                    subscriber,
                    session,
                    position,
                };
                history.note(now_ns, event);
            }
        };
        let limit = self.random.usize(1..=self.spec.limit);
        let polled = self
            .reader
            .poll(subscription, limit, &mut self.random, take);
        outcome?;
        match polled {
            Ok(fragments) => {
                for image in subscription.images() {
                    self.images.consumed(ledger, image.view())?;
                }
                Ok(fragments)
            }
            Err(error) => {
                self.error = Some(error);
                Ok(0)
            }
        }
    }

    // --- what the story may do ---

    /// In which part of its turns it does nothing, from 0 to 1.
    pub fn set_laziness(&mut self, laziness: f64) {
        self.spec.laziness = laziness;
    }

    /// Sends its images away; true if it had any and the driver could be asked.
    pub fn reject(&mut self, reason: &str) -> bool {
        let State::Open(subscription) = &mut self.state else {
            return false;
        };
        let (asked, channel) = (&mut self.asked, &self.spec.channel);
        let mut images = subscription.images().iter().peekable();
        images.peek().is_some()
            && images.all(|image| match image.view().async_reject(reason) {
                Ok(answer) => {
                    asked.ask(What::Reject, channel, answer);
                    true
                }
                Err(_) => false,
            })
    }

    /// Asks for one more source, if the subscription is open; the answer is not waited for.
    ///
    /// # Panics
    /// If the driver is gone.
    pub fn add_source(&mut self, channel: &str) {
        assert!(
            !self.is_open() || self.ask_source(channel, true),
            "the command is not taken"
        );
    }

    /// Asks for one source less, if the subscription is open; the answer is not waited for.
    ///
    /// # Panics
    /// If the driver is gone.
    pub fn remove_source(&mut self, channel: &str) {
        assert!(
            !self.is_open() || self.ask_source(channel, false),
            "the command is not taken"
        );
    }

    /// Asks for one source more or less; false if that cannot even be asked for.
    pub fn ask_source(&mut self, channel: &str, more: bool) -> bool {
        let State::Open(subscription) = &self.state else {
            return false;
        };
        let answer = if more {
            subscription.async_add_destination(channel)
        } else {
            subscription.async_remove_destination(channel)
        };
        let Ok(answer) = answer else { return false };
        let what = if more {
            What::AddSource
        } else {
            What::RemoveSource
        };
        self.asked.ask(what, channel, answer);
        true
    }

    /// The sources that the driver has confirmed.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(String::as_str)
    }

    /// Closes the subscription.
    pub fn close(&mut self) {
        self.state = State::Closed;
        self.asked.forget();
        self.images.forget();
    }

    /// Takes what must not be closed in an orderly way, because its process is dead.
    pub(crate) fn kill(&mut self) -> Box<dyn std::any::Any> {
        self.images.forget();
        let asked = self.asked.forget();
        Box::new((std::mem::replace(&mut self.state, State::Closed), asked))
    }

    /// True when it will never do anything again.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Closed | State::Failed(_)) && !self.images.has_news()
    }

    // --- what the story may ask ---

    /// True when the driver has made the subscription and it was not closed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Under which id the driver has the subscription, if it is open.
    #[must_use]
    pub fn registration_id(&self) -> Option<i64> {
        self.subscription().map(Subscription::registration_id)
    }

    /// What stood in the reserved values of the messages so far.
    #[must_use]
    pub fn stamps(&self) -> Stamps {
        self.stamps
    }

    /// The subscription itself, if it is open.
    #[must_use]
    pub fn subscription(&self) -> Option<&Subscription> {
        match &self.state {
            State::Open(subscription) => Some(subscription),
            _ => None,
        }
    }

    /// What was asked for its sources, and to reject images, and not granted, or not yet.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        self.asked.all()
    }

    /// How many of its requests were granted.
    #[must_use]
    pub fn granted(&self) -> u64 {
        self.asked.granted()
    }

    /// True while the driver has not answered, be it about a source or a rejection.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        let has_asked = self.asked.has_pending() && self.is_open();
        has_asked || matches!(self.state, State::Adding(_))
    }

    /// The stream of an image at present.
    #[must_use]
    pub fn stream_of(&self, correlation_id: i64) -> Option<StreamKey> {
        self.images.stream_of(correlation_id)
    }

    /// Correlation ids of the images at present.
    pub fn image_ids(&self) -> impl Iterator<Item = i64> {
        self.images.ids()
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
        self.images.present()
    }

    /// The image of a stream, if there is one.
    #[must_use]
    pub fn image(&self, key: &StreamKey) -> Option<&ImageCheck> {
        self.images().find(|image| image.key() == key)
    }

    /// The images that are gone, in order.
    #[must_use]
    pub fn ended(&self) -> &[EndedImage] {
        self.images.ended()
    }
}
