// SPDX-License-Identifier: Apache-2.0
//! The messages sent, by stream.

use std::collections::BTreeMap;

/// Identity of a stream. It also distinguishes streams that use the same session id one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey {
    /// Session id of the publication.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Id of the first term: random unless the channel sets it.
    pub initial_term_id: i32,
}

/// State of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageState {
    /// Sent.
    Sent,
    /// Claimed and not committed yet.
    Held,
    /// Aborted, or claimed by a publisher that died: must not be delivered.
    Aborted,
}

/// A message of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Position of its first frame.
    pub begin: i64,
    /// Position after its last frame.
    pub end: i64,
    /// Payload bytes.
    pub length: usize,
    /// State of the message.
    pub state: MessageState,
}

/// The messages of one stream, in order.
#[derive(Debug)]
pub struct Stream {
    /// Number of the stream in its world; an input of the message pattern.
    pub tag: u64,
    /// Maximum payload bytes per frame.
    pub max_payload: usize,
    messages: Vec<Message>,
}

impl Stream {
    /// Returns the messages so far.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the position after the last message.
    #[must_use]
    pub fn end(&self) -> Option<i64> {
        self.messages.last().map(|message| message.end)
    }

    /// Adds the next message, whose last frame ends at `end`; returns its index.
    ///
    /// # Panics
    /// If it overlaps the previous message: two messages were given the same position.
    pub fn push(&mut self, end: i64, length: usize, state: MessageState) -> usize {
        let begin = end - framed(length, self.max_payload);
        let before = self.end().unwrap_or(i64::MIN);
        assert!(
            begin >= before,
            "a message was accepted from {begin} to {end}, but the previous one ends at {before}"
        );
        self.messages.push(Message {
            begin,
            end,
            length,
            state,
        });
        self.messages.len() - 1
    }

    /// Fills a buffer with the content of the message at this index, for scenarios that claim messages themselves.
    pub fn fill(&self, index: usize, content: &mut [u8]) {
        let mut pattern = Vec::new();
        super::fill(self.tag, index, content.len(), &mut pattern);
        content.copy_from_slice(&pattern);
    }

    /// Sets the final state of a held message.
    pub fn set_state(&mut self, index: usize, state: MessageState) {
        self.messages[index].state = state;
    }
}

/// Returns the bytes that a message takes in the log.
fn framed(length: usize, max_payload: usize) -> i64 {
    let aligned = |payload: usize| (payload + 32).next_multiple_of(32);
    let rest = length % max_payload;
    let last = if rest > 0 || length == 0 {
        aligned(rest)
    } else {
        0
    };
    (length / max_payload * aligned(max_payload) + last) as i64
}

/// The streams of a world.
#[derive(Debug, Default)]
pub struct Ledger {
    streams: BTreeMap<StreamKey, Stream>,
}

impl Ledger {
    /// Adds a stream if it is not known; publications can be shared.
    pub fn add_stream(&mut self, key: StreamKey, max_payload: usize) {
        let tag = self.streams.len() as u64;
        self.streams.entry(key).or_insert_with(|| Stream {
            tag,
            max_payload,
            messages: Vec::new(),
        });
    }

    /// Returns a stream if it is known.
    #[must_use]
    pub fn stream(&self, key: &StreamKey) -> Option<&Stream> {
        self.streams.get(key)
    }

    /// Returns a stream if it is known.
    pub fn stream_mut(&mut self, key: &StreamKey) -> Option<&mut Stream> {
        self.streams.get_mut(key)
    }

    /// Returns all streams.
    pub fn streams(&self) -> impl Iterator<Item = (&StreamKey, &Stream)> {
        self.streams.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_framed_length_counts_headers_and_alignment_of_each_fragment() {
        assert_eq!(framed(0, 1376), 32);
        assert_eq!(framed(1, 1376), 64);
        assert_eq!(framed(1376, 1376), 1408);
        assert_eq!(framed(1377, 1376), 1408 + 64);
        assert_eq!(framed(2 * 1376, 1376), 2 * 1408);
    }
}
