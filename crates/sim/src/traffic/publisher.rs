//! A publication and who publishes on it.
//!
//! Contract: [`Publisher::turn`] once or more in each step. It takes the driver's answer in, then offers messages in all
//! the ways there are until it is refused, its burst is used up, or all messages are sent.

use taran::{AddError, Client, ExclusivePublication, OfferError, Pending, Publication};
use taran_core::clock::saturating_nanos;

use super::{Fate, Ledger, Publishing, Stream, StreamKey, fill, passes};
use crate::history::{Event, History};

/// The stream of a publication of whatever kind.
macro_rules! key {
    ($publication:expr) => {
        StreamKey {
            session_id: $publication.session_id(),
            stream_id: $publication.stream_id(),
            initial_term_id: $publication.initial_term_id(),
        }
    };
}

/// Commits a message in a claim, or gives it up; the position after it.
fn finish(mut claim: taran::BufferClaim<'_>, content: &[u8], is_aborted: bool) -> i64 {
    claim.copy_from_slice(content);
    let position = claim.position();
    if is_aborted {
        claim.abort();
    } else {
        claim.commit();
    }
    position
}

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
    paused: bool,
    /// When the next burst is due.
    next_ns: i64,
    position: i64,
}

#[derive(Debug)]
enum State {
    AddingShared(Pending<Publication>),
    AddingExclusive(Pending<ExclusivePublication>),
    Shared(Publication),
    Exclusive(ExclusivePublication),
    Failed(AddError),
    Closed,
}

impl State {
    /// Asks the driver for a publication.
    fn add(client: &Client, spec: &Publishing) -> Self {
        let (channel, stream_id) = (&spec.channel, spec.stream_id);
        let adding = if spec.exclusive {
            client
                .async_add_exclusive_publication(channel, stream_id)
                .map(Self::AddingExclusive)
        } else {
            client
                .async_add_publication(channel, stream_id)
                .map(Self::AddingShared)
        };
        adding.unwrap_or_else(Self::Failed)
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
            paused: false,
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
        self.take_answer(client, ledger);
        if self.paused || now_ns < self.next_ns || self.is_done() || !self.is_open() {
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
        let state = match &mut self.state {
            State::AddingShared(pending) => pending.poll().map(|added| added.map(State::Shared)),
            State::AddingExclusive(pending) => {
                pending.poll().map(|added| added.map(State::Exclusive))
            }
            _ => None,
        };
        let Some(state) = state else { return };
        self.state = match (state, client) {
            (Err(error), Some(client)) if passes(&error) => State::add(client, &self.spec),
            (state, _) => state.unwrap_or_else(State::Failed),
        };
        let (key, max_payload) = match &self.state {
            State::Shared(it) => (key!(it), it.max_payload_length()),
            State::Exclusive(it) => (key!(it), it.max_payload_length()),
            _ => return,
        };
        ledger.open(key, max_payload);
        self.key = Some(key);
    }

    /// Sends the next message of the stream.
    fn send(&mut self, stream: &mut Stream) -> Result<Event, OfferError> {
        let (max_payload, max_message) = match &self.state {
            State::Shared(it) => (it.max_payload_length(), it.max_message_length()),
            State::Exclusive(it) => (it.max_payload_length(), it.max_message_length()),
            _ => return Err(OfferError::Closed),
        };
        let length = self
            .spec
            .lengths
            .next(&mut self.random, max_payload, max_message);
        let index = stream.messages().len();
        fill(stream.tag, index, length, &mut self.content);
        let way = self.random.u32(0..16);
        let split = self.random.usize(0..=length);
        let content = &self.content[..];
        let (before, limit) = (self.position(), self.limit());
        let parts = [&content[..split], &[], &content[split..]];
        let offered = match (&mut self.state, way) {
            (State::Shared(it), 0..3) => it.offer_parts(&parts),
            (State::Exclusive(it), 0..3) => it.offer_parts(&parts),
            (State::Shared(it), 3..7) if length <= max_payload => it
                .try_claim(length)
                .map(|claim| finish(claim, content, way == 3)),
            (State::Exclusive(it), 3..7) if length <= max_payload => it
                .try_claim(length)
                .map(|claim| finish(claim, content, way == 3)),
            (State::Shared(it), _) => it.offer(content),
            (State::Exclusive(it), _) => it.offer(content),
            _ => Err(OfferError::Closed),
        };
        let position = offered?;
        assert!(
            before < limit && position > before,
            "publisher {}: a message was accepted at {before} (then {position}) with the limit {limit}",
            self.number
        );
        let is_aborted = way == 3 && length <= max_payload;
        let fate = if is_aborted { Fate::Gone } else { Fate::Sent };
        stream.push(position, length, fate);
        self.position = position;
        let publisher = self.number;
        if is_aborted {
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

    /// Publishes nothing until it is told to go on.
    pub fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Closes the publication.
    pub fn close(&mut self) {
        self.state = State::Closed;
    }

    /// Ends the stream without regard to what was not consumed yet.
    pub fn revoke(&mut self) {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Shared(it) => it.revoke(),
            State::Exclusive(it) => it.revoke(),
            other => self.state = other,
        }
    }

    /// Takes what must not be closed in an orderly way, because its process is dead.
    pub(crate) fn kill(&mut self) -> Box<dyn std::any::Any> {
        Box::new(std::mem::replace(&mut self.state, State::Closed))
    }

    /// True when it will never do anything again.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Closed | State::Failed(_))
    }

    // --- what the story may ask ---

    /// The stream, once the driver has made it.
    #[must_use]
    pub fn key(&self) -> Option<StreamKey> {
        self.key
    }

    /// The publication itself, if it is a shared one and open.
    #[must_use]
    pub fn shared(&self) -> Option<Publication> {
        match &self.state {
            State::Shared(publication) => Some(publication.clone()),
            _ => None,
        }
    }

    /// True when the driver has made the publication and it was not closed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Shared(_) | State::Exclusive(_))
    }

    /// True while somebody receives the stream.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        match &self.state {
            State::Shared(it) => it.is_connected(),
            State::Exclusive(it) => it.is_connected(),
            _ => false,
        }
    }

    /// Why the driver did not make the publication.
    #[must_use]
    pub fn failure(&self) -> Option<&AddError> {
        match &self.state {
            State::Failed(error) => Some(error),
            _ => None,
        }
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
        match &self.state {
            State::Shared(it) => it.position(),
            State::Exclusive(it) => it.position(),
            _ => self.position,
        }
    }

    /// Position up to which messages are accepted.
    #[must_use]
    pub fn limit(&self) -> i64 {
        match &self.state {
            State::Shared(it) => it.position_limit(),
            State::Exclusive(it) => it.position_limit(),
            _ => self.position,
        }
    }
}
