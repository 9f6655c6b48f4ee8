// SPDX-License-Identifier: Apache-2.0
//! A subscription with a subscriber.
//!
//! Contract: [`Subscriber::do_work`] is called once or more per step. It processes the driver's response and the image
//! events, then polls by one of the available methods and compares each message with the ledger.

use std::collections::BTreeSet;

use taran::{
    Action, Client, CommandError, ControlledFragmentAssembler, FragmentAssembler, Header, Pending,
    PollError, Subscription,
};

use super::images::ImageTracker;
use super::requests::{Request, RequestKind, Requests};
use super::{EndedImage, Ledger, StreamKey, SubscriberSpec, is_transient};
use crate::check::delivery::ImageCheck;
use crate::check::{Violation, violation};
use crate::history::{Event, History};

/// One subscriber.
#[derive(Debug)]
pub struct Subscriber {
    number: usize,
    spec: SubscriberSpec,
    state: State,
    random: fastrand::Rng,
    images: ImageTracker,
    poller: Poller,
    error: Option<PollError>,
    /// Sources confirmed by the driver.
    sources: BTreeSet<String>,
    requests: Requests,
    reserved_values: ReservedValues,
    /// The last duty cycle may have left messages that were there.
    may_have_left: bool,
}

/// Reserved values of messages, where drivers may write timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservedValues {
    /// Number of messages with reserved value 0.
    pub missing: u64,
    /// Smallest and largest other value.
    pub range: Option<(i64, i64)>,
}

impl ReservedValues {
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
    Pending(Pending<Subscription>),
    Open(Subscription),
    Failed(CommandError),
    Closed,
}

impl State {
    /// Requests a subscription from the driver.
    fn add(client: &Client, spec: &SubscriberSpec, images: &ImageTracker) -> Self {
        let (channel, stream_id) = (&spec.channel, spec.stream_id);
        let adding = client.async_add_subscription_with(channel, stream_id, images.handlers());
        adding.map_or_else(Self::Failed, Self::Pending)
    }
}

/// Method of polling; each has its own fragment assembler.
#[derive(Debug)]
enum Poller {
    Plain(FragmentAssembler),
    Bounded(FragmentAssembler),
    Controlled(ControlledFragmentAssembler),
}

impl Poller {
    fn random(random: &mut fastrand::Rng) -> Self {
        match random.u32(0..3) {
            0 => Self::Plain(FragmentAssembler::new()),
            1 => Self::Bounded(FragmentAssembler::new()),
            _ => Self::Controlled(ControlledFragmentAssembler::new()),
        }
    }

    /// Polls once and calls `take` with each message and whether it is consumed. Returns also true if messages that were
    /// there may be left although fewer than `limit` fragments were polled. `is_whole` is true for a poll without bound.
    fn poll(
        &mut self,
        subscription: &mut Subscription,
        limit: usize,
        is_whole: bool,
        random: &mut fastrand::Rng,
        mut take: impl FnMut(&[u8], &Header<'_>, bool),
    ) -> (Result<usize, PollError>, bool) {
        let mut may_have_left = false;
        let polled = match self {
            Self::Plain(assembler) => {
                let handler = assembler.wrap(|message, header| take(message, header, true));
                subscription.poll(handler, limit)
            }
            Self::Bounded(assembler) => {
                let first = subscription.images().first().map(|image| image.position());
                let bound = first.map_or(i64::MAX, |first| first + random.i64(0..50_000));
                // The bound applies to all images alike, so sometimes there is none; otherwise images far ahead would
                // starve.
                may_have_left = random.bool() && !is_whole;
                let bound = if may_have_left { bound } else { i64::MAX };
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
                    may_have_left |= action == Action::Abort;
                    take(message, header, action != Action::Abort);
                    action
                });
                subscription.controlled_poll(handler, limit)
            }
        };
        (polled, may_have_left)
    }
}

impl Subscriber {
    pub(crate) fn new(
        number: usize,
        client: &Client,
        spec: SubscriberSpec,
        mut random: fastrand::Rng,
        checks_content: bool,
    ) -> Self {
        let images = ImageTracker::new(number, spec.is_lossy, checks_content);
        Self {
            number,
            state: State::add(client, &spec, &images),
            spec,
            poller: Poller::random(&mut random),
            random,
            images,
            error: None,
            sources: BTreeSet::new(),
            requests: Requests::default(),
            reserved_values: ReservedValues::default(),
            may_have_left: false,
        }
    }

    /// Runs one duty cycle; returns the amount of work done.
    pub(crate) fn do_work(
        &mut self,
        client: Option<&Client>,
        now_ns: i64,
        ledger: &Ledger,
        history: &mut History,
    ) -> Result<usize, Violation> {
        self.poll_requests(now_ns);
        self.poll_response(client);
        if matches!(self.state, State::Closed) && self.images.has_events() {
            violation!(
                "subscriber {}: image handler called after its close",
                self.number
            );
        }
        self.images.process_events(now_ns, ledger, history)?;
        if self.error.is_some() || self.random.f64() < self.spec.skip_rate {
            self.may_have_left = self.error.is_none() && self.spec.skip_rate < 1.0;
            return Ok(0);
        }
        self.poll(now_ns, ledger, history)
    }

    /// Returns the time of the next poll with an effect, if nothing is received before: at once, or never.
    pub(crate) fn next_deadline_ns(&self) -> i64 {
        if self.may_have_left && self.is_open() {
            i64::MIN
        } else {
            i64::MAX
        }
    }

    fn poll_response(&mut self, client: Option<&Client>) {
        let State::Pending(pending) = &mut self.state else {
            return;
        };
        let Some(response) = pending.poll() else {
            return;
        };
        self.state = match (response, client) {
            (Err(error), Some(client)) if is_transient(&error) => {
                State::add(client, &self.spec, &self.images)
            }
            (response, _) => response.map_or_else(State::Failed, State::Open),
        };
        for source in self.spec.sources.clone() {
            self.request_source(&source, true);
        }
    }

    fn poll_requests(&mut self, now_ns: i64) {
        let sources = &mut self.sources;
        self.requests.poll_responses(now_ns, |kind, channel| {
            match kind {
                RequestKind::AddSource => sources.insert(channel.to_owned()),
                RequestKind::RemoveSource => sources.remove(channel),
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
        let (subscriber, images, reserved_values) =
            (self.number, &mut self.images, &mut self.reserved_values);
        let mut outcome = Ok(());
        let take = |message: &[u8], header: &Header<'_>, is_taken: bool| {
            if outcome.is_ok() {
                outcome = images.check_message(ledger, message, header, is_taken);
            }
            if is_taken {
                reserved_values.take(header.reserved_value());
                let (session, position) = (header.session_id(), header.position());
                let event = Event::Delivered {
                    subscriber,
                    session,
                    position,
                };
                history.record(now_ns, event);
            }
        };
        let limit = self.random.usize(1..=self.spec.limit);
        let position = |subscription: &mut Subscription| {
            let images = subscription.images().iter();
            images.map(|image| image.position()).sum::<i64>()
        };
        let before = position(subscription);
        let is_whole = self.may_have_left;
        let poller = &mut self.poller;
        let (polled, left) = poller.poll(subscription, limit, is_whole, &mut self.random, take);
        self.may_have_left = left;
        outcome?;
        match polled {
            Ok(fragments) => {
                for image in subscription.images() {
                    self.images.consumed(ledger, image.view())?;
                }
                // Padding is no fragment.
                let has_moved = position(subscription) != before;
                Ok(fragments.max(usize::from(has_moved)))
            }
            Err(error) => {
                self.error = Some(error);
                Ok(0)
            }
        }
    }

    // --- control by the scenario ---

    /// Sets the share of duty cycles without a poll, from 0 to 1.
    pub fn set_skip_rate(&mut self, skip_rate: f64) {
        self.spec.skip_rate = skip_rate;
    }

    /// Rejects all images. Returns true if there were any and the requests were sent.
    pub fn reject(&mut self, reason: &str) -> bool {
        let State::Open(subscription) = &mut self.state else {
            return false;
        };
        let (requests, channel) = (&mut self.requests, &self.spec.channel);
        let mut images = subscription.images().iter().peekable();
        images.peek().is_some()
            && images.all(|image| match image.view().async_reject(reason) {
                Ok(response) => {
                    requests.add(RequestKind::Reject, channel, response);
                    true
                }
                Err(_) => false,
            })
    }

    /// Requests one more source, if the subscription is open, without waiting for the response.
    ///
    /// # Panics
    /// If the driver is gone.
    pub fn add_source(&mut self, channel: &str) {
        assert!(
            !self.is_open() || self.request_source(channel, true),
            "the command is not sent"
        );
    }

    /// Requests the removal of a source, if the subscription is open, without waiting for the response.
    ///
    /// # Panics
    /// If the driver is gone.
    pub fn remove_source(&mut self, channel: &str) {
        assert!(
            !self.is_open() || self.request_source(channel, false),
            "the command is not sent"
        );
    }

    /// Requests the addition or removal of a source. Returns false if the request cannot be sent.
    pub fn request_source(&mut self, channel: &str, add: bool) -> bool {
        let State::Open(subscription) = &self.state else {
            return false;
        };
        let response = if add {
            subscription.async_add_destination(channel)
        } else {
            subscription.async_remove_destination(channel)
        };
        let Ok(response) = response else { return false };
        let kind = if add {
            RequestKind::AddSource
        } else {
            RequestKind::RemoveSource
        };
        self.requests.add(kind, channel, response);
        true
    }

    /// Returns the sources confirmed by the driver.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(String::as_str)
    }

    /// Closes the subscription.
    pub fn close(&mut self) {
        self.state = State::Closed;
        self.requests.forget();
        self.images.forget();
    }

    /// Returns the resources that must not be dropped, because the process was killed.
    pub(crate) fn kill(&mut self) -> Box<dyn std::any::Any> {
        self.images.forget();
        let requests = self.requests.forget();
        Box::new((std::mem::replace(&mut self.state, State::Closed), requests))
    }

    /// Returns true if it will do no more work.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Closed | State::Failed(_)) && !self.images.has_events()
    }

    // --- queries ---

    /// Returns true while the subscription is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Returns the registration id of an open subscription.
    #[must_use]
    pub fn registration_id(&self) -> Option<i64> {
        self.subscription().map(Subscription::registration_id)
    }

    /// Returns the reserved values of the messages so far.
    #[must_use]
    pub fn reserved_values(&self) -> ReservedValues {
        self.reserved_values
    }

    /// Returns the subscription itself, if it is open.
    #[must_use]
    pub fn subscription(&self) -> Option<&Subscription> {
        match &self.state {
            State::Open(subscription) => Some(subscription),
            _ => None,
        }
    }

    /// Returns the source and rejection requests that are pending or failed.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        self.requests.all()
    }

    /// Returns the number of granted requests.
    #[must_use]
    pub fn granted(&self) -> u64 {
        self.requests.granted()
    }

    /// Returns true until the driver has responded to the subscription and to all its requests.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        let has_pending = self.requests.has_pending() && self.is_open();
        has_pending || matches!(self.state, State::Pending(_))
    }

    /// Returns the stream of a current image.
    #[must_use]
    pub fn stream_of(&self, correlation_id: i64) -> Option<StreamKey> {
        self.images.stream_of(correlation_id)
    }

    /// Returns the correlation ids of the current images.
    pub fn image_ids(&self) -> impl Iterator<Item = i64> {
        self.images.ids()
    }

    /// Returns the error of a subscription that the driver did not add.
    #[must_use]
    pub fn failure(&self) -> Option<&CommandError> {
        match &self.state {
            State::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the error of the last poll.
    #[must_use]
    pub fn error(&self) -> Option<PollError> {
        self.error
    }

    /// Returns the current images.
    pub fn images(&self) -> impl Iterator<Item = &ImageCheck> {
        self.images.current()
    }

    /// Returns the image of a stream, if there is one.
    #[must_use]
    pub fn image(&self, key: &StreamKey) -> Option<&ImageCheck> {
        self.images().find(|image| image.key() == key)
    }

    /// Returns the former images, in order.
    #[must_use]
    pub fn ended(&self) -> &[EndedImage] {
        self.images.ended()
    }
}
