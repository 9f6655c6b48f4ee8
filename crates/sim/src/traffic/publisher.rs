// SPDX-License-Identifier: Apache-2.0
//! A publication with a publisher.
//!
//! Contract: [`Publisher::do_work`] is called once or more per step. It processes the driver's response, then
//! offers messages by all available methods until one is refused, its burst is used up, or all messages are
//! sent.

use std::time::Duration;

use taran::{Client, CommandError, OfferError, Pending, Publication};
use taran_core::clock::saturating_nanos;

use super::publication_handle::{OfferMethod, PendingPublication, PublicationHandle};
use super::requests::{Request, RequestKind, Requests};
use super::{Ledger, MessageState, PublisherSpec, Stream, StreamKey, fill, is_transient};
use crate::history::{Event, History};

/// One publisher.
#[derive(Debug)]
pub struct Publisher {
    number: usize,
    spec: PublisherSpec,
    state: State,
    random: fastrand::Rng,
    offered: u64,
    key: Option<StreamKey>,
    refusal_reason: &'static str,
    refusal: Option<OfferError>,
    was_back_pressured: bool,
    content: Vec<u8>,
    requests: Requests,
    paused: bool,
    /// It holds an unfinished claim and publishes nothing more.
    is_holding: bool,
    /// Time of the next burst.
    next_ns: i64,
    /// The last burst ended although the publication took messages, or will take them with the next attempt.
    may_offer: bool,
    position: i64,
}

#[derive(Debug)]
enum State {
    Pending(PendingPublication),
    Open(PublicationHandle),
    Failed(CommandError),
    Closed,
}

impl State {
    /// Requests a publication from the driver.
    fn add(client: &Client, spec: &PublisherSpec) -> Self {
        PendingPublication::begin(client, spec).map_or_else(Self::Failed, Self::Pending)
    }
}

impl Publisher {
    pub(crate) fn new(
        number: usize,
        client: &Client,
        spec: PublisherSpec,
        random: fastrand::Rng,
    ) -> Self {
        Self {
            number,
            state: State::add(client, &spec),
            spec,
            random,
            offered: 0,
            key: None,
            refusal_reason: "",
            refusal: None,
            was_back_pressured: false,
            content: Vec::new(),
            requests: Requests::default(),
            paused: false,
            is_holding: false,
            next_ns: 0,
            may_offer: true,
            position: 0,
        }
    }

    /// Runs one duty cycle; returns the amount of work done.
    pub(crate) fn do_work(
        &mut self,
        client: Option<&Client>,
        now_ns: i64,
        ledger: &mut Ledger,
        history: &mut History,
    ) -> usize {
        self.requests.poll_responses(now_ns, |_, _| {});
        self.poll_response(client, ledger);
        if self.paused
            || self.is_holding
            || now_ns < self.next_ns
            || self.is_done()
            || !self.is_open()
        {
            return 0;
        }
        let Some(stream) = self.key.and_then(|key| ledger.stream_mut(&key)) else {
            return 0;
        };
        let longest = 2 * saturating_nanos(self.spec.pause);
        if longest > 0 {
            self.next_ns = now_ns + self.random.i64(0..=longest);
        }
        self.may_offer = true;
        let mut sent = 0;
        let burst = self.random.usize(0..=self.spec.burst);
        while sent < burst && self.offered < self.spec.messages {
            match self.send(stream) {
                Ok(event) => {
                    history.record(now_ns, event);
                    self.refusal_reason = "";
                    sent += 1;
                }
                Err(error) => {
                    // The rest of the term was padded.
                    self.may_offer = error == OfferError::AdminAction;
                    sent += usize::from(self.may_offer);
                    self.record_refusal(error, now_ns, history);
                    break;
                }
            }
        }
        sent
    }

    /// Returns the time of the next burst, if the publication and its driver do not change before; `i64::MAX` for never.
    pub(crate) fn next_deadline_ns(&self) -> i64 {
        let is_waiting = self.paused || self.is_holding || self.is_done() || !self.is_open();
        let has_pause = !self.spec.pause.is_zero();
        if is_waiting || !(self.may_offer || has_pause) {
            i64::MAX
        } else {
            self.next_ns
        }
    }

    fn poll_response(&mut self, client: Option<&Client>, ledger: &mut Ledger) {
        let State::Pending(pending) = &mut self.state else {
            return;
        };
        let Some(response) = pending.poll() else {
            return;
        };
        self.state = match (response, client) {
            (Err(error), Some(client)) if is_transient(&error) => State::add(client, &self.spec),
            (Err(error), _) => State::Failed(error),
            (Ok(handle), _) => {
                ledger.add_stream(handle.key(), handle.max_payload());
                self.key = Some(handle.key());
                for channel in &self.spec.destinations {
                    match handle.add_destination(channel) {
                        // The driver may have ended since it responded; then there is nothing to add to.
                        Err(CommandError::Closed | CommandError::DriverLost(_)) => {}
                        requested => self.requests.add(
                            RequestKind::AddDestination,
                            channel,
                            expect_sent(requested),
                        ),
                    }
                }
                State::Open(handle)
            }
        };
    }

    /// Sends the next message of the stream.
    fn send(&mut self, stream: &mut Stream) -> Result<Event, OfferError> {
        let State::Open(handle) = &mut self.state else {
            return Err(OfferError::Closed);
        };
        let (random, max_payload) = (&mut self.random, handle.max_payload());
        let length = self
            .spec
            .lengths
            .next(random, max_payload, handle.max_message());
        let method = match random.u32(0..16) {
            0..3 => OfferMethod::OfferParts(random.usize(0..=length)),
            3 if length <= max_payload => OfferMethod::ClaimAndAbort,
            4..8 if length <= max_payload => OfferMethod::Claim,
            _ => OfferMethod::Offer,
        };
        fill(
            stream.tag,
            stream.messages().len(),
            length,
            &mut self.content,
        );
        let (before, limit) = (handle.position(), handle.limit());
        let position = handle.offer(&self.content, method)?;
        let state = if method == OfferMethod::ClaimAndAbort {
            MessageState::Aborted
        } else {
            MessageState::Sent
        };
        let index = stream.push(position, length, state);
        let begin = stream.messages()[index].begin;
        assert!(
            before < limit && begin == before,
            "publisher {}: a message was accepted from {begin} to {position}, at {before} with the limit {limit}",
            self.number
        );
        self.position = position;
        let publisher = self.number;
        if method == OfferMethod::ClaimAndAbort {
            return Ok(Event::Aborted {
                publisher,
                position,
            });
        }
        self.offered += 1;
        Ok(Event::Offered {
            publisher,
            index,
            position,
        })
    }

    fn record_refusal(&mut self, error: OfferError, now_ns: i64, history: &mut History) {
        let reason = match error {
            OfferError::NotConnected => "not connected",
            OfferError::BackPressured => "back-pressured",
            OfferError::AdminAction => "admin action",
            OfferError::Closed => "closed",
            OfferError::DriverLost(_) => "driver lost",
            OfferError::MaxPositionExceeded { .. } => "end of the position space",
            _ => panic!("publisher {}: {error}", self.number),
        };
        self.refusal = Some(error);
        self.was_back_pressured |= error == OfferError::BackPressured;
        if self.refusal_reason != reason {
            self.refusal_reason = reason;
            let publisher = self.number;
            history.record(now_ns, Event::Refused { publisher, reason });
        }
    }

    // --- control by the scenario ---

    /// Publishes this many additional messages.
    pub fn publish_more(&mut self, messages: u64) {
        self.spec.messages += messages;
    }

    /// Publishes the remaining messages without pauses.
    pub fn drop_pauses(&mut self) {
        (self.spec.pause, self.next_ns) = (Duration::ZERO, 0);
    }

    /// Pauses or resumes publishing.
    pub fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Claims a message and never finishes it, which blocks the stream. Returns true if the claim succeeded.
    pub(crate) fn hold_claim(&mut self, ledger: &mut Ledger) -> bool {
        let State::Open(handle) = &mut self.state else {
            return false;
        };
        let length = self.random.usize(0..=handle.max_payload());
        let stream = self.key.and_then(|key| ledger.stream_mut(&key));
        let (Some(stream), Ok(position)) = (stream, handle.hold_claim(length)) else {
            return false;
        };
        stream.push(position, length, MessageState::Aborted);
        self.position = position;
        self.is_holding = true;
        true
    }

    /// Requests one more destination, if the publication is open.
    ///
    /// # Panics
    /// If the driver is gone.
    pub fn add_destination(&mut self, channel: &str) {
        if let State::Open(handle) = &self.state {
            let response = expect_sent(handle.add_destination(channel));
            self.requests
                .add(RequestKind::AddDestination, channel, response);
        }
    }

    /// Requests the removal of a destination, if the publication is open.
    ///
    /// # Panics
    /// If the driver is gone.
    pub fn remove_destination(&mut self, channel: &str) {
        if let State::Open(handle) = &self.state {
            let response = expect_sent(handle.remove_destination(channel));
            self.requests
                .add(RequestKind::RemoveDestination, channel, response);
        }
    }

    /// Requests the addition or removal of a destination. Returns false if the request cannot be sent.
    pub fn request_destination(&mut self, channel: &str, add: bool) -> bool {
        let State::Open(handle) = &self.state else {
            return false;
        };
        let (kind, response) = if add {
            (RequestKind::AddDestination, handle.add_destination(channel))
        } else {
            (
                RequestKind::RemoveDestination,
                handle.remove_destination(channel),
            )
        };
        let Ok(response) = response else { return false };
        self.requests.add(kind, channel, response);
        true
    }

    /// Closes the publication.
    pub fn close(&mut self) {
        self.state = State::Closed;
        self.requests.forget();
    }

    /// Revokes the publication: the stream ends without regard to unconsumed messages.
    pub fn revoke(&mut self) {
        self.requests.forget();
        if let State::Open(handle) = std::mem::replace(&mut self.state, State::Closed) {
            handle.revoke();
        }
    }

    /// Returns the resources that must not be dropped, because the process was killed.
    pub(crate) fn kill(&mut self) -> Box<dyn std::any::Any> {
        let requests = self.requests.forget();
        Box::new((std::mem::replace(&mut self.state, State::Closed), requests))
    }

    /// Returns true if it will do no more work.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Closed | State::Failed(_))
    }

    // --- queries ---

    fn handle(&self) -> Option<&PublicationHandle> {
        match &self.state {
            State::Open(handle) => Some(handle),
            _ => None,
        }
    }

    /// Returns the stream, once the driver has added the publication.
    #[must_use]
    pub fn key(&self) -> Option<StreamKey> {
        self.key
    }

    /// Returns the publication itself, if it is shared and open.
    #[must_use]
    pub fn shared(&self) -> Option<Publication> {
        match self.handle()? {
            PublicationHandle::Shared(publication) => Some(publication.clone()),
            PublicationHandle::Exclusive(_) => None,
        }
    }

    /// Returns true while the publication is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.handle().is_some()
    }

    /// Returns true while the publication is connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.handle().is_some_and(PublicationHandle::is_connected)
    }

    /// Returns true until the driver has responded.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(self.state, State::Pending(_))
    }

    /// Returns true if it holds an unfinished claim.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.is_holding
    }

    /// Returns the error of a publication that the driver did not add.
    #[must_use]
    pub fn failure(&self) -> Option<&CommandError> {
        match &self.state {
            State::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the destination requests that are pending or failed.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        self.requests.all()
    }

    /// Returns the number of granted requests.
    #[must_use]
    pub fn granted(&self) -> u64 {
        self.requests.granted()
    }

    /// Returns the error of the last refused offer.
    #[must_use]
    pub fn refusal(&self) -> Option<OfferError> {
        self.refusal
    }

    /// Returns true if an offer was ever back-pressured.
    #[must_use]
    pub fn was_back_pressured(&self) -> bool {
        self.was_back_pressured
    }

    /// Returns true when all messages were accepted.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.offered == self.spec.messages
    }

    /// Returns the number of accepted messages, without aborted ones.
    #[must_use]
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// Returns the stream position after the last message, by any publisher of a shared stream.
    #[must_use]
    pub fn position(&self) -> i64 {
        self.handle()
            .map_or(self.position, PublicationHandle::position)
    }

    /// Returns the position limit.
    #[must_use]
    pub fn limit(&self) -> i64 {
        self.handle()
            .map_or(self.position, PublicationHandle::limit)
    }
}

/// Returns the pending response of a command that must have been sent.
fn expect_sent(requested: Result<Pending<()>, CommandError>) -> Pending<()> {
    requested.unwrap_or_else(|error| panic!("a command was not sent: {error}"))
}
