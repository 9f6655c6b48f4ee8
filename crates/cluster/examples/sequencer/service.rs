// SPDX-License-Identifier: Apache-2.0
//! The service, and its messages.
//!
//! A request is its number (8 bytes), the kind (1 byte), and a text or the number of a message (8 bytes). Events begin with their
//! kind (1 byte). Numbers are little-endian.

use std::collections::{BTreeMap, VecDeque};

use taran_cluster::protocol::CloseReason;
use taran_cluster::service::{ClientSession, Cluster, Service, SnapshotWriter};

use super::support::answers::AnswerQueue;
use super::support::chunks::{self, ChunkError, ChunkReader, Format, u64_at};

/// Messages that are kept, to be sent again.
const HISTORY: usize = 512;

/// Highest number that a snapshot may have. No log has more messages, as its positions are an `i64`, so the next number always exists.
const MAX_LAST: u64 = i64::MAX as u64;

/// Time without a message after which a heartbeat is sent, in the unit of the cluster's clock: milliseconds by default.
const HEARTBEAT: i64 = 1_000;

/// Correlation id of the only timer.
const HEARTBEAT_TIMER: i64 = 1;

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request<'a> {
    /// A text for all clients.
    Publish(&'a [u8]),
    /// Asks for all messages from this number on.
    Resend(u64),
}

impl<'a> Request<'a> {
    pub(crate) fn encode(&self, number: u64) -> Vec<u8> {
        let mut bytes = number.to_le_bytes().to_vec();
        match self {
            Self::Publish(text) => {
                bytes.push(0);
                bytes.extend_from_slice(text);
            }
            Self::Resend(from) => {
                bytes.push(1);
                bytes.extend_from_slice(&from.to_le_bytes());
            }
        }
        bytes
    }

    /// Decodes the number of a request and the request; none if it is malformed.
    fn decode(bytes: &'a [u8]) -> Option<(u64, Self)> {
        let number = u64_at(bytes, 0)?;
        let (kind, rest) = bytes.get(8..)?.split_first()?;
        let request = match (kind, rest.len()) {
            (0, _) => Self::Publish(rest),
            (1, 8) => Self::Resend(u64_at(rest, 0)?),
            _ => return None,
        };
        Some((number, request))
    }
}

/// A message of the sequencer to its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// The message with this number, the time at which it got it, and the request that it came with.
    Message {
        sequence: u64,
        time: i64,
        request: u64,
        text: &'a [u8],
    },
    /// There was no message for a while.
    Heartbeat { next: u64 },
    /// All messages that a request asked for are sent, as far as they are kept.
    Resent { request: u64, oldest: u64 },
}

impl<'a> Event<'a> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.clear();
        match *self {
            Self::Message {
                sequence,
                time,
                request,
                text,
            } => {
                bytes.push(0);
                bytes.extend_from_slice(&sequence.to_le_bytes());
                bytes.extend_from_slice(&time.to_le_bytes());
                bytes.extend_from_slice(&request.to_le_bytes());
                bytes.extend_from_slice(text);
            }
            Self::Heartbeat { next } => {
                bytes.push(1);
                bytes.extend_from_slice(&next.to_le_bytes());
            }
            Self::Resent { request, oldest } => {
                bytes.push(2);
                bytes.extend_from_slice(&request.to_le_bytes());
                bytes.extend_from_slice(&oldest.to_le_bytes());
            }
        }
    }

    /// Decodes an event; none if it is malformed.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        match kind {
            0 => Some(Self::Message {
                sequence: u64_at(rest, 0)?,
                time: u64_at(rest, 8)?.cast_signed(),
                request: u64_at(rest, 16)?,
                text: rest.get(24..)?,
            }),
            1 => Some(Self::Heartbeat {
                next: u64_at(rest, 0)?,
            }),
            2 => Some(Self::Resent {
                request: u64_at(rest, 0)?,
                oldest: u64_at(rest, 8)?,
            }),
            _ => None,
        }
    }
}

/// State that all members have in common: it follows from the log, and from nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    /// Number of messages so far, which is the number of the last one.
    last: u64,
    last_time: i64,
    /// The last messages, as events.
    history: VecDeque<Vec<u8>>,
    /// The last request of each session, and the message that it became.
    sessions: BTreeMap<i64, (u64, u64)>,
    /// The heartbeat timer is scheduled. The consensus module has the timers of services in its own snapshot.
    has_timer: bool,
}

/// Kind of an item of a snapshot.
const MESSAGE: u8 = 0;
const SESSION: u8 = 1;
const NUMBERS: u8 = 2;

impl State {
    const FORMAT: Format = Format {
        name: b"sequencr",
        version: 1,
    };

    /// Gives a text the next number. Returns the event for all clients.
    fn publish(&mut self, time: i64, request: u64, text: &[u8]) -> &[u8] {
        self.last += 1;
        self.last_time = time;
        let mut event = if self.history.len() < HISTORY {
            Vec::new()
        } else {
            self.history.pop_front().unwrap_or_default()
        };
        let message = Event::Message {
            sequence: self.last,
            time,
            request,
            text,
        };
        message.encode(&mut event);
        self.history.push_back(event);
        &self.history[self.history.len() - 1]
    }

    /// Returns the number of the oldest message that is kept.
    fn oldest(&self) -> u64 {
        self.last + 1 - self.history.len() as u64
    }

    /// Returns the messages from this number on, as far as they are kept.
    fn from(&self, sequence: u64) -> impl Iterator<Item = &[u8]> {
        let skipped = sequence.saturating_sub(self.oldest());
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        self.history.iter().skip(skipped).map(Vec::as_slice)
    }

    fn write(&self, snapshot: &mut SnapshotWriter) {
        let (last, time) = (self.last.to_le_bytes(), self.last_time.to_le_bytes());
        let mut items = vec![[&[NUMBERS], &last[..], &time, &[u8::from(self.has_timer)]].concat()];
        items.extend(
            self.history
                .iter()
                .map(|event| [&[MESSAGE], &event[..]].concat()),
        );
        for (session, (request, sequence)) in &self.sessions {
            let (request, sequence) = (request.to_le_bytes(), sequence.to_le_bytes());
            items.push([&[SESSION], &session.to_le_bytes()[..], &request, &sequence].concat());
        }
        chunks::write(snapshot, Self::FORMAT, items.len(), items.into_iter());
    }

    fn read(frames: &[Vec<u8>]) -> Result<Self, ChunkError> {
        let mut reader = ChunkReader::open(frames, Self::FORMAT)?;
        let mut state = Self::default();
        // Number of the newest message that was read.
        let mut newest = None;
        while let Some(item) = reader.next_item()? {
            let read = match item.split_first() {
                Some((&MESSAGE, rest)) => {
                    newest = match (Event::decode(rest), newest) {
                        (Some(Event::Message { sequence, .. }), None) => Some(sequence),
                        (Some(Event::Message { sequence, .. }), Some(before))
                            if before.checked_add(1) == Some(sequence) =>
                        {
                            Some(sequence)
                        }
                        _ => return Err(reader.invalid("it is not the message that follows")),
                    };
                    state.history.push_back(rest.to_vec());
                    Some(())
                }
                Some((&SESSION, rest)) => state.read_session(rest),
                Some((&NUMBERS, rest)) => state.read_numbers(rest),
                _ => None,
            };
            read.ok_or_else(|| reader.invalid("neither numbers nor a message nor a session"))?;
        }
        let expected = usize::try_from(state.last).unwrap_or(usize::MAX);
        if state.history.len() != expected.min(HISTORY) {
            return Err(reader.invalid("the history has not as many messages as were numbered"));
        }
        if newest.unwrap_or(0) != state.last {
            return Err(reader.invalid("the history does not end with the last number"));
        }
        if state.last > MAX_LAST {
            return Err(reader.invalid("the last number exceeds what a log can hold"));
        }
        Ok(state)
    }

    fn read_session(&mut self, item: &[u8]) -> Option<()> {
        let session = u64_at(item, 0)?.cast_signed();
        self.sessions
            .insert(session, (u64_at(item, 8)?, u64_at(item, 16)?));
        Some(())
    }

    fn read_numbers(&mut self, item: &[u8]) -> Option<()> {
        self.last = u64_at(item, 0)?;
        self.last_time = u64_at(item, 8)?.cast_signed();
        self.has_timer = *item.get(16)? != 0;
        Some(())
    }
}

/// The service.
#[derive(Debug, Default)]
pub(crate) struct Sequencer {
    state: State,
    answers: AnswerQueue,
    event: Vec<u8>,
}

impl Sequencer {
    fn schedule(&mut self, cluster: &mut Cluster<'_>, deadline: i64) {
        self.state.has_timer = true;
        cluster.schedule_timer(HEARTBEAT_TIMER, deadline);
    }

    fn resend(&mut self, cluster: &Cluster<'_>, session: i64, request: u64, from: u64) {
        for event in self.state.from(from) {
            self.answers.send(cluster, session, event);
        }
        let oldest = self.state.oldest();
        Event::Resent { request, oldest }.encode(&mut self.event);
        self.answers.send(cluster, session, &self.event);
    }
}

impl Service for Sequencer {
    fn check_snapshot(&self, frames: &[Vec<u8>]) -> Result<(), String> {
        State::read(frames)
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn on_start(&mut self, _: &mut Cluster<'_>, snapshot: Option<&[Vec<u8>]>) {
        // It was checked.
        if let Some(Ok(state)) = snapshot.map(State::read) {
            self.state = state;
        }
    }

    fn on_session_open(&mut self, cluster: &mut Cluster<'_>, _: &ClientSession) {
        if !self.state.has_timer {
            let deadline = cluster.timestamp() + HEARTBEAT;
            self.schedule(cluster, deadline);
        }
    }

    fn on_session_close(&mut self, _: &mut Cluster<'_>, session: &ClientSession, _: CloseReason) {
        self.state.sessions.remove(&session.id);
        self.answers.forget(session.id);
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        session: Option<&ClientSession>,
        message: &[u8],
    ) {
        // Messages without a session are of services, and this one sends none. Malformed ones have no answer.
        let (Some(session), Some((number, request))) = (session, Request::decode(message)) else {
            return;
        };
        match request {
            Request::Resend(from) => self.resend(cluster, session.id, number, from),
            Request::Publish(text) => {
                let known = self.state.sessions.get(&session.id).copied();
                if let Some((last, sequence)) = known
                    && number <= last
                {
                    // A repetition: the message has its number, and the client may have missed it.
                    if number == last
                        && let Some(event) = self.state.from(sequence).next()
                    {
                        self.answers.send(cluster, session.id, event);
                    }
                    return;
                }
                let event = self.state.publish(cluster.timestamp(), number, text);
                for receiver in cluster.sessions() {
                    self.answers.send(cluster, receiver.id, event);
                }
                let sequence = self.state.last;
                self.state.sessions.insert(session.id, (number, sequence));
            }
        }
    }

    fn on_timer_event(&mut self, cluster: &mut Cluster<'_>, correlation_id: i64) {
        if correlation_id != HEARTBEAT_TIMER {
            return;
        }
        self.state.has_timer = false;
        if cluster.sessions().next().is_none() {
            // The next session schedules it.
            return;
        }
        let now = cluster.timestamp();
        let due = self.state.last_time.saturating_add(HEARTBEAT);
        if now < due {
            // There were messages. To move the timer only here is less work than to do so with each of them.
            self.schedule(cluster, due);
            return;
        }
        let next = self.state.last + 1;
        Event::Heartbeat { next }.encode(&mut self.event);
        for receiver in cluster.sessions() {
            self.answers.send(cluster, receiver.id, &self.event);
        }
        self.schedule(cluster, now + HEARTBEAT);
    }

    fn on_take_snapshot(&mut self, _: &mut Cluster<'_>, snapshot: &mut SnapshotWriter) {
        self.state.write(snapshot);
    }

    fn do_background_work(&mut self, cluster: &Cluster<'_>) -> usize {
        self.answers.flush(cluster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(event: &[u8]) -> (u64, &[u8]) {
        match Event::decode(event) {
            Some(Event::Message { sequence, text, .. }) => (sequence, text),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_have_consecutive_numbers_and_the_last_ones_are_kept() {
        let mut state = State::default();
        assert_eq!((state.oldest(), state.from(0).count()), (1, 0));
        let count = HISTORY as u64 + 10;
        for number in 1..=count {
            let event = state.publish(number.cast_signed(), number, b"text");
            assert_eq!(text(event), (number, &b"text"[..]));
        }
        assert_eq!(state.oldest(), 11);
        let all: Vec<u64> = state.from(0).map(|event| text(event).0).collect();
        assert_eq!(all, (11..=count).collect::<Vec<_>>());
        assert_eq!(state.from(count).count(), 1);
        assert_eq!(state.from(u64::MAX).count(), 0);
    }

    #[test]
    fn snapshot_has_history_sessions_and_timer() {
        let mut state = State {
            has_timer: true,
            ..State::default()
        };
        for number in 1..=700 {
            state.publish(5, number, &[b'x'; 60]);
            state.sessions.insert(number.cast_signed() % 7, (number, 1));
        }
        let mut snapshot = SnapshotWriter::new();
        state.write(&mut snapshot);
        let mut frames = snapshot.into_frames();
        assert!(frames.len() > 4, "{} frames", frames.len());
        assert_eq!(State::read(&frames), Ok(state));
        frames.truncate(2);
        let service = Sequencer::default();
        let refused = service.check_snapshot(&frames).unwrap_err();
        assert!(refused.contains("its header says 520"), "{refused}");
    }

    #[test]
    fn snapshot_whose_numbers_are_not_consecutive_or_too_high_is_refused() {
        let snapshot = |last: u64, change: fn(&mut State)| {
            let mut state = State {
                last: last - HISTORY as u64,
                ..State::default()
            };
            for number in 0..HISTORY as u64 {
                state.publish(5, number, b"text");
            }
            change(&mut state);
            let mut snapshot = SnapshotWriter::new();
            state.write(&mut snapshot);
            let service = Sequencer::default();
            service.check_snapshot(&snapshot.into_frames())
        };
        let unchanged = |_: &mut State| ();
        assert_eq!(snapshot(MAX_LAST, unchanged), Ok(()));
        for last in [MAX_LAST + 1, u64::MAX] {
            let refused = snapshot(last, unchanged).unwrap_err();
            let expected = "item 512: the last number exceeds what a log can hold";
            assert_eq!(refused, expected, "{last}");
        }
        let refused = snapshot(600, |state| state.history.swap(1, 2)).unwrap_err();
        assert_eq!(refused, "item 2: it is not the message that follows");
        let refused = snapshot(600, |state| state.history[3].truncate(9)).unwrap_err();
        assert_eq!(refused, "item 4: it is not the message that follows");
        let refused = snapshot(600, |state| state.last += 1).unwrap_err();
        let expected = "item 512: the history does not end with the last number";
        assert_eq!(refused, expected);
    }

    #[test]
    fn malformed_messages_are_neither_requests_nor_events() {
        let request = Request::Resend(3).encode(9);
        assert_eq!(Request::decode(&request), Some((9, Request::Resend(3))));
        let mut event = Vec::new();
        let resent = Event::Resent {
            request: 1,
            oldest: 2,
        };
        resent.encode(&mut event);
        assert_eq!(Event::decode(&event), Some(resent));
        assert!((0..request.len()).all(|length| Request::decode(&request[..length]).is_none()));
        assert!((0..event.len()).all(|length| Event::decode(&event[..length]).is_none()));
    }
}
