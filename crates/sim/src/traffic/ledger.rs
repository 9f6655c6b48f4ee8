//! What was sent, by stream.

use std::collections::BTreeMap;

/// Tells streams apart, also those that had the same session one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey {
    /// Session of the publication.
    pub session_id: i32,
    /// Stream.
    pub stream_id: i32,
    /// Id of the first term: random, unless the channel says it.
    pub initial_term_id: i32,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was sent.
    Sent,
    /// It is claimed and not committed yet.
    Held,
    /// It was aborted, or its publisher died with it: nobody may get it.
    Gone,
}

/// A message of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Position at which its first frame starts.
    pub begin: i64,
    /// Position after its last frame.
    pub end: i64,
    /// Bytes of payload.
    pub length: usize,
    /// What became of it.
    pub fate: Fate,
}

/// All messages of one stream, in order.
#[derive(Debug)]
pub struct Stream {
    /// Number of the stream in its world; part of the pattern.
    pub tag: u64,
    /// Payload of the longest frame in bytes.
    pub max_payload: usize,
    messages: Vec<Message>,
}

impl Stream {
    /// The messages so far.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Position after the last message.
    #[must_use]
    pub fn end(&self) -> Option<i64> {
        self.messages.last().map(|message| message.end)
    }

    /// Adds the next message, whose last frame ends at `end`; its index.
    ///
    /// # Panics
    /// If it does not lie behind the one before: two messages were given the same place.
    pub fn push(&mut self, end: i64, length: usize, fate: Fate) -> usize {
        let begin = end - framed(length, self.max_payload);
        let before = self.end().unwrap_or(i64::MIN);
        assert!(
            begin >= before,
            "a message was accepted from {begin} to {end}, but the one before it ends at {before}"
        );
        self.messages.push(Message {
            begin,
            end,
            length,
            fate,
        });
        self.messages.len() - 1
    }

    /// Fills in the message with this index: for a story that claims by itself.
    pub fn fill(&self, index: usize, content: &mut [u8]) {
        let mut pattern = Vec::new();
        super::fill(self.tag, index, content.len(), &mut pattern);
        content.copy_from_slice(&pattern);
    }

    /// Says what became of a message that was held.
    pub fn settle(&mut self, index: usize, fate: Fate) {
        self.messages[index].fate = fate;
    }
}

/// Bytes that a message takes in the log.
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

/// All streams of a world.
#[derive(Debug, Default)]
pub struct Ledger {
    streams: BTreeMap<StreamKey, Stream>,
}

impl Ledger {
    /// Makes a stream known. It may be known already: publications can be shared.
    pub fn open(&mut self, key: StreamKey, max_payload: usize) {
        let tag = self.streams.len() as u64;
        self.streams.entry(key).or_insert_with(|| Stream {
            tag,
            max_payload,
            messages: Vec::new(),
        });
    }

    /// A stream, if it is known.
    #[must_use]
    pub fn stream(&self, key: &StreamKey) -> Option<&Stream> {
        self.streams.get(key)
    }

    /// A stream, if it is known.
    pub fn stream_mut(&mut self, key: &StreamKey) -> Option<&mut Stream> {
        self.streams.get_mut(key)
    }

    /// All streams.
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
