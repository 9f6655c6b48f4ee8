// SPDX-License-Identifier: Apache-2.0
//! The service, and its messages.
//!
//! A request is its number (8 bytes), the verb (1 byte), the length of the key (4 bytes), key and value; an answer is the number of
//! its request, the kind (1 byte) and a value. Numbers are little-endian.

use std::collections::BTreeMap;
use std::sync::Arc;

use taran_cluster::protocol::CloseReason;
use taran_cluster::service::{ClientSession, Cluster, Service, SnapshotWriter};

use super::support::answers::AnswerQueue;
use super::support::chunks::{self, ChunkError, ChunkReader, Format, u32_at, u64_at};

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request<'a> {
    Put { key: &'a [u8], value: &'a [u8] },
    Get { key: &'a [u8] },
    Delete { key: &'a [u8] },
}

impl<'a> Request<'a> {
    pub(crate) fn encode(&self, number: u64) -> Vec<u8> {
        let (verb, key, value) = match *self {
            Self::Put { key, value } => (0, key, value),
            Self::Get { key } => (1, key, &[][..]),
            Self::Delete { key } => (2, key, &[][..]),
        };
        let mut bytes = number.to_le_bytes().to_vec();
        bytes.push(verb);
        // A message is shorter than 2 GiB.
        bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
        bytes
    }

    /// Decodes a request without its number; none if it is malformed.
    fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (verb, rest) = bytes.split_first()?;
        let length = u32_at(rest, 0)? as usize;
        let (key, value) = rest.get(4..)?.split_at_checked(length)?;
        match (verb, value) {
            (0, _) => Some(Self::Put { key, value }),
            (1, []) => Some(Self::Get { key }),
            (2, []) => Some(Self::Delete { key }),
            _ => None,
        }
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer<'a> {
    Stored,
    Deleted,
    Value(&'a [u8]),
    Missing,
    Invalid,
}

impl<'a> Answer<'a> {
    fn encode(&self, number: u64, bytes: &mut Vec<u8>) {
        bytes.clear();
        bytes.extend_from_slice(&number.to_le_bytes());
        let (kind, value) = match *self {
            Self::Stored => (0, &[][..]),
            Self::Deleted => (1, &[][..]),
            Self::Value(value) => (2, value),
            Self::Missing => (3, &[][..]),
            Self::Invalid => (4, &[][..]),
        };
        bytes.push(kind);
        bytes.extend_from_slice(value);
    }

    /// Decodes the number of the request, and the answer; none if it is malformed.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<(u64, Self)> {
        let number = u64_at(bytes, 0)?;
        let (kind, value) = bytes.get(8..)?.split_first()?;
        let answer = match kind {
            0 => Self::Stored,
            1 => Self::Deleted,
            2 => Self::Value(value),
            3 => Self::Missing,
            4 => Self::Invalid,
            _ => return None,
        };
        Some((number, answer))
    }
}

/// The last request of a session, and its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Last {
    number: u64,
    answer: Vec<u8>,
}

/// Number of parts of the entries.
const PARTS: usize = 1024;

/// Entries, in parts that a snapshot shares: an entry that changes while the snapshot is recorded costs a copy of its part, once.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entries {
    parts: Vec<Arc<BTreeMap<Vec<u8>, Vec<u8>>>>,
}

impl Default for Entries {
    fn default() -> Self {
        Self {
            parts: vec![Arc::default(); PARTS],
        }
    }
}

impl Entries {
    /// Returns the index of the part that a key belongs to, by its FNV-1a hash: the same in all processes.
    fn part(key: &[u8]) -> usize {
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        key.iter().fold(0xcbf2_9ce4_8422_2325, mix) as usize % PARTS
    }

    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.parts[Self::part(key)].get(key).map(Vec::as_slice)
    }

    fn insert(&mut self, key: &[u8], value: &[u8]) {
        Arc::make_mut(&mut self.parts[Self::part(key)]).insert(key.to_vec(), value.to_vec());
    }

    /// Removes an entry. Returns false if there is none.
    fn remove(&mut self, key: &[u8]) -> bool {
        let part = &mut self.parts[Self::part(key)];
        part.contains_key(key) && Arc::make_mut(part).remove(key).is_some()
    }

    fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }

    /// Returns all entries as items of a snapshot, which are made part by part.
    fn items(&self) -> impl Iterator<Item = Vec<u8>> + Send + use<> {
        let parts = self.parts.clone().into_iter();
        parts.flat_map(|part| part.iter().map(entry_item).collect::<Vec<_>>())
    }
}

/// State that all members have in common: it follows from the log, and from nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    entries: Entries,
    sessions: BTreeMap<i64, Last>,
}

/// Returns an item of a snapshot with an entry.
fn entry_item((key, value): (&Vec<u8>, &Vec<u8>)) -> Vec<u8> {
    // As above: shorter than 2 GiB.
    let length = (key.len() as u32).to_le_bytes();
    [&[ENTRY], &length[..], key, value].concat()
}

/// Returns an item of a snapshot with a session.
fn session_item((session, last): (&i64, &Last)) -> Vec<u8> {
    let (session, number) = (session.to_le_bytes(), last.number.to_le_bytes());
    [&[SESSION], &session[..], &number, &last.answer].concat()
}

/// Kind of an item of a snapshot.
const ENTRY: u8 = 0;
const SESSION: u8 = 1;

impl State {
    const FORMAT: Format = Format {
        name: b"kv-store",
        version: 1,
    };

    /// Applies a request once, and returns its answer; none if a later request of the session has been answered.
    pub(crate) fn apply(&mut self, session: i64, message: &[u8]) -> Option<&[u8]> {
        let number = u64_at(message, 0)?;
        let last = self.sessions.entry(session).or_default();
        if number < last.number {
            return None;
        }
        // A repetition: the client has not got the answer.
        if number > last.number {
            last.number = number;
            let answer = match Request::decode(&message[8..]) {
                Some(Request::Put { key, value }) => {
                    self.entries.insert(key, value);
                    Answer::Stored
                }
                Some(Request::Get { key }) => {
                    self.entries.get(key).map_or(Answer::Missing, Answer::Value)
                }
                Some(Request::Delete { key }) if self.entries.remove(key) => Answer::Deleted,
                Some(Request::Delete { .. }) => Answer::Missing,
                None => Answer::Invalid,
            };
            answer.encode(number, &mut last.answer);
        }
        Some(&last.answer)
    }

    /// Shares the entries with the snapshot, and copies the sessions.
    pub(crate) fn write(&self, snapshot: &mut SnapshotWriter) {
        let count = self.entries.len() + self.sessions.len();
        let sessions: Vec<Vec<u8>> = self.sessions.iter().map(session_item).collect();
        let items = self.entries.items().chain(sessions);
        chunks::write(snapshot, Self::FORMAT, count, items);
    }

    pub(crate) fn read(frames: &[Vec<u8>]) -> Result<Self, ChunkError> {
        let mut reader = ChunkReader::open(frames, Self::FORMAT)?;
        let mut state = Self::default();
        while let Some(item) = reader.next_item()? {
            let read = match item.split_first() {
                Some((&ENTRY, rest)) => state.read_entry(rest),
                Some((&SESSION, rest)) => state.read_session(rest),
                _ => None,
            };
            read.ok_or_else(|| reader.invalid("neither an entry nor a session"))?;
        }
        Ok(state)
    }

    fn read_entry(&mut self, item: &[u8]) -> Option<()> {
        let length = u32_at(item, 0)? as usize;
        let (key, value) = item[4..].split_at_checked(length)?;
        self.entries.insert(key, value);
        Some(())
    }

    fn read_session(&mut self, item: &[u8]) -> Option<()> {
        let session = u64_at(item, 0)?.cast_signed();
        let number = u64_at(item, 8)?;
        let answer = item[16..].to_vec();
        self.sessions.insert(session, Last { number, answer });
        Some(())
    }
}

/// The service.
#[derive(Debug, Default)]
pub(crate) struct KeyValueStore {
    state: State,
    answers: AnswerQueue,
}

impl Service for KeyValueStore {
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
        // Messages without a session are of services, and this one sends none.
        let Some(session) = session else { return };
        if let Some(answer) = self.state.apply(session.id, message) {
            self.answers.send(cluster, session.id, answer);
        }
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

    fn apply(state: &mut State, number: u64, request: Request<'_>) -> Vec<u8> {
        let answer = state.apply(7, &request.encode(number));
        answer.expect("it is not out of date").to_vec()
    }

    fn answer(number: u64, answer: Answer<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        answer.encode(number, &mut bytes);
        bytes
    }

    #[test]
    fn requests_have_answers_and_repetitions_have_the_first_one() {
        let mut state = State::default();
        let (key, value) = (&b"colour"[..], &b"blue"[..]);
        let put = Request::Put { key, value };
        assert_eq!(apply(&mut state, 1, put), answer(1, Answer::Stored));
        let get = Request::Get { key };
        assert_eq!(apply(&mut state, 2, get), answer(2, Answer::Value(value)));
        let delete = Request::Delete { key };
        assert_eq!(apply(&mut state, 3, delete), answer(3, Answer::Deleted));
        assert_eq!(apply(&mut state, 3, delete), answer(3, Answer::Deleted));
        assert_eq!(apply(&mut state, 4, delete), answer(4, Answer::Missing));
        assert_eq!(state.apply(7, &put.encode(3)), None, "out of date");
        assert_eq!(state.entries.len(), 0);
    }

    #[test]
    fn malformed_requests_change_nothing() {
        let mut state = State::default();
        let whole = Request::Put {
            key: b"key",
            value: b"",
        };
        let whole = whole.encode(1);
        for length in 0..whole.len() {
            let mut state = State::default();
            let answered = state.apply(7, &whole[..length]).map(<[u8]>::to_vec);
            let expected = (length >= 8).then(|| answer(1, Answer::Invalid));
            assert_eq!(answered, expected, "{length} bytes");
            assert_eq!(state.entries.len(), 0);
        }
        let mut get_with_value = Request::Get { key: b"key" }.encode(1);
        get_with_value.push(0);
        let answered = state.apply(7, &get_with_value).map(<[u8]>::to_vec);
        assert_eq!(answered, Some(answer(1, Answer::Invalid)));
    }

    #[test]
    fn snapshot_has_entries_and_last_answers() {
        let mut state = State::default();
        for number in 1..=3_000_u64 {
            let (key, value) = (number.to_le_bytes(), [7; 40]);
            let (key, value) = (&key[..], &value[..]);
            let session = (number % 5).cast_signed();
            state.apply(session, &Request::Put { key, value }.encode(number));
        }
        let mut snapshot = SnapshotWriter::new();
        state.write(&mut snapshot);
        let captured = state.clone();
        // Changes while the snapshot is recorded are not in it.
        let (key, changed) = (&7_u64.to_le_bytes()[..], &b"changed"[..]);
        let put = Request::Put {
            key,
            value: changed,
        };
        state.apply(0, &put.encode(4_000));
        state.apply(1, &Request::Delete { key: &[9; 8] }.encode(4_001));
        let frames = snapshot.into_frames();
        assert!(frames.len() > 10, "{} frames", frames.len());
        assert_eq!(state.entries.get(key), Some(changed));
        assert_eq!(State::read(&frames), Ok(captured));

        let mut damaged = frames.clone();
        damaged[1][4] = 9;
        assert_eq!(
            State::read(&damaged).unwrap_err().to_string(),
            "item 0: neither an entry nor a session"
        );
        let service = KeyValueStore::default();
        assert!(service.check_snapshot(&frames).is_ok());
        let mut later = frames;
        later[0][8] = 2;
        let refused = service.check_snapshot(&later).unwrap_err();
        assert!(refused.contains("has version 2"), "{refused}");
    }
}
