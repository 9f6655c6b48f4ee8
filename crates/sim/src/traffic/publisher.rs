//! A publication and who publishes on it.
//!
//! Contract: [`Publisher::turn`] once or more in each step. It takes the driver's answer in, then offers messages in all
//! the ways there are until it is refused, its burst is used up, or all messages are sent.

use std::time::Duration;

use taran::{AddError, Client, OfferError, Pending, Publication};
use taran_core::clock::saturating_nanos;

use super::handle::{Adding, Handle, Way};
use super::requests::{Request, Requests, What};
use super::{Fate, Ledger, Publishing, Stream, StreamKey, fill, passes};
use crate::history::{Event, History};

/// One publisher.
#[derive(Debug)]
pub struct Publisher {
    number: usize,
    spec: Publishing,
    state: State,
    random: fastrand::Rng,
    offered: u64,
    key: Option<StreamKey>,
    refused: &'static str,
    refusal: Option<OfferError>,
    was_back_pressured: bool,
    content: Vec<u8>,
    asked: Requests,
    paused: bool,
    /// It has claimed room for a message, and does nothing more.
    is_holding: bool,
    /// When the next burst is due.
    next_ns: i64,
    position: i64,
}

#[derive(Debug)]
enum State {
    Adding(Adding),
    Open(Handle),
    Failed(AddError),
    Closed,
}

impl State {
    /// Asks the driver for a publication.
    fn add(client: &Client, spec: &Publishing) -> Self {
        Adding::begin(client, spec).map_or_else(Self::Failed, Self::Adding)
    }
}

impl Publisher {
    pub(crate) fn new(
        number: usize,
        client: &Client,
        spec: Publishing,
        random: fastrand::Rng,
    ) -> Self {
        Self {
            number,
            state: State::add(client, &spec),
            spec,
            random,
            offered: 0,
            key: None,
            refused: "",
            refusal: None,
            was_back_pressured: false,
            content: Vec::new(),
            asked: Requests::default(),
            paused: false,
            is_holding: false,
            next_ns: 0,
            position: 0,
        }
    }

    /// One turn; how much was done.
    pub(crate) fn turn(
        &mut self,
        client: Option<&Client>,
        now_ns: i64,
        ledger: &mut Ledger,
        history: &mut History,
    ) -> usize {
        self.asked.take_answers(now_ns, |_, _| {});
        self.take_answer(client, ledger);
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
        let mut sent = 0;
        let burst = self.random.usize(0..=self.spec.burst);
        while sent < burst && self.offered < self.spec.messages {
            match self.send(stream) {
                Ok(event) => {
                    history.note(now_ns, event);
                    self.refused = "";
                    sent += 1;
                }
                Err(error) => {
                    self.note_refusal(error, now_ns, history);
                    break;
                }
            }
        }
        sent
    }

    fn take_answer(&mut self, client: Option<&Client>, ledger: &mut Ledger) {
        let State::Adding(adding) = &mut self.state else {
            return;
        };
        let Some(answer) = adding.poll() else { return };
        self.state = match (answer, client) {
            (Err(error), Some(client)) if passes(&error) => State::add(client, &self.spec),
            (Err(error), _) => State::Failed(error),
            (Ok(handle), _) => {
                ledger.open(handle.key(), handle.max_payload());
                self.key = Some(handle.key());
                for channel in &self.spec.destinations {
                    match handle.add_destination(channel) {
                        // The driver may be gone since it answered; then there is nothing to add to.
                        Err(AddError::Closed | AddError::DriverLost(_)) => {}
                        asked => self.asked.ask(What::AddDestination, channel, taken(asked)),
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
        let way = match random.u32(0..16) {
            0..3 => Way::Parts(random.usize(0..=length)),
            3 if length <= max_payload => Way::Aborted,
            4..8 if length <= max_payload => Way::Claimed,
            _ => Way::Whole,
        };
        fill(
            stream.tag,
            stream.messages().len(),
            length,
            &mut self.content,
        );
        let (before, limit) = (handle.position(), handle.limit());
        let position = handle.offer(&self.content, way)?;
        let fate = if way == Way::Aborted {
            Fate::Gone
        } else {
            Fate::Sent
        };
        let index = stream.push(position, length, fate);
        let begin = stream.messages()[index].begin;
        assert!(
            before < limit && begin == before,
            "publisher {}: a message was accepted from {begin} to {position}, at {before} with the limit {limit}",
            self.number
        );
        self.position = position;
        let publisher = self.number;
        if way == Way::Aborted {
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

    fn note_refusal(&mut self, error: OfferError, now_ns: i64, history: &mut History) {
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
        if self.refused != reason {
            self.refused = reason;
            let publisher = self.number;
            history.note(now_ns, Event::Refused { publisher, reason });
        }
    }

    // --- what the story may do ---

    /// Publishes that many messages more.
    pub fn more(&mut self, messages: u64) {
        self.spec.messages += messages;
    }

    /// Publishes what is left as fast as it can.
    pub fn hurry(&mut self) {
        (self.spec.pause, self.next_ns) = (Duration::ZERO, 0);
    }

    /// Publishes nothing until it is told to go on.
    pub fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Claims room for a message and never fills it in: whoever publishes stands still from now on. True if it did.
    pub(crate) fn hold(&mut self, ledger: &mut Ledger) -> bool {
        let State::Open(handle) = &mut self.state else {
            return false;
        };
        let length = self.random.usize(0..=handle.max_payload());
        let stream = self.key.and_then(|key| ledger.stream_mut(&key));
        let (Some(stream), Ok(position)) = (stream, handle.hold(length)) else {
            return false;
        };
        stream.push(position, length, Fate::Gone);
        self.position = position;
        self.is_holding = true;
        true
    }

    /// Asks for one more destination, if the publication is open.
    ///
    /// # Panics
    /// If the driver is gone.
    pub fn add_destination(&mut self, channel: &str) {
        if let State::Open(handle) = &self.state {
            let answer = taken(handle.add_destination(channel));
            self.asked.ask(What::AddDestination, channel, answer);
        }
    }

    /// Asks for one destination less, if the publication is open.
    ///
    /// # Panics
    /// If the driver is gone.
    pub fn remove_destination(&mut self, channel: &str) {
        if let State::Open(handle) = &self.state {
            let answer = taken(handle.remove_destination(channel));
            self.asked.ask(What::RemoveDestination, channel, answer);
        }
    }

    /// Asks for one destination more or less; false if that cannot even be asked for.
    pub fn ask_destination(&mut self, channel: &str, more: bool) -> bool {
        let State::Open(handle) = &self.state else {
            return false;
        };
        let (what, answer) = if more {
            (What::AddDestination, handle.add_destination(channel))
        } else {
            (What::RemoveDestination, handle.remove_destination(channel))
        };
        let Ok(answer) = answer else { return false };
        self.asked.ask(what, channel, answer);
        true
    }

    /// Closes the publication.
    pub fn close(&mut self) {
        self.state = State::Closed;
        self.asked.forget();
    }

    /// Ends the stream without regard to what was not consumed yet.
    pub fn revoke(&mut self) {
        self.asked.forget();
        if let State::Open(handle) = std::mem::replace(&mut self.state, State::Closed) {
            handle.revoke();
        }
    }

    /// Takes what must not be closed in an orderly way, because its process is dead.
    pub(crate) fn kill(&mut self) -> Box<dyn std::any::Any> {
        let asked = self.asked.forget();
        Box::new((std::mem::replace(&mut self.state, State::Closed), asked))
    }

    /// True when it will never do anything again.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Closed | State::Failed(_))
    }

    // --- what the story may ask ---

    fn handle(&self) -> Option<&Handle> {
        match &self.state {
            State::Open(handle) => Some(handle),
            _ => None,
        }
    }

    /// The stream, once the driver has made it.
    #[must_use]
    pub fn key(&self) -> Option<StreamKey> {
        self.key
    }

    /// The publication itself, if it is a shared one and open.
    #[must_use]
    pub fn shared(&self) -> Option<Publication> {
        match self.handle()? {
            Handle::Shared(publication) => Some(publication.clone()),
            Handle::Exclusive(_) => None,
        }
    }

    /// True when the driver has made the publication and it was not closed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.handle().is_some()
    }

    /// True while somebody receives the stream.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.handle().is_some_and(Handle::is_connected)
    }

    /// True while the driver has not answered.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(self.state, State::Adding(_))
    }

    /// True if it stands still for good, with a claim that it does not fill in.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.is_holding
    }

    /// Why the driver did not make the publication.
    #[must_use]
    pub fn failure(&self) -> Option<&AddError> {
        match &self.state {
            State::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// What was asked for its destinations and not granted, or not yet.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        self.asked.all()
    }

    /// How many of its requests were granted.
    #[must_use]
    pub fn granted(&self) -> u64 {
        self.asked.granted()
    }

    /// Why the last message that was refused was refused.
    #[must_use]
    pub fn refusal(&self) -> Option<OfferError> {
        self.refusal
    }

    /// True when a message was ever refused for the sake of a slow subscriber.
    #[must_use]
    pub fn was_back_pressured(&self) -> bool {
        self.was_back_pressured
    }

    /// True when all messages were accepted.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.offered == self.spec.messages
    }

    /// Messages that were accepted, without aborted ones.
    #[must_use]
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// Position of the stream after the last message; of a shared one, whoever sent it.
    #[must_use]
    pub fn position(&self) -> i64 {
        self.handle().map_or(self.position, Handle::position)
    }

    /// Position up to which messages are accepted.
    #[must_use]
    pub fn limit(&self) -> i64 {
        self.handle().map_or(self.position, Handle::limit)
    }
}

/// A command has to be taken by the ring; its answer is another matter.
fn taken(asked: Result<Pending<()>, AddError>) -> Pending<()> {
    asked.unwrap_or_else(|error| panic!("a command was not taken: {error}"))
}
