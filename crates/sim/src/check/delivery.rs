// SPDX-License-Identifier: Apache-2.0
//! Each message is delivered exactly once, in order and intact, from where its image joined.
//!
//! Input: [`ImageCheck::deliver`] with each message, [`ImageCheck::consumed`] with the position of the image after each
//! poll. The ledger contains the end of the next message and, by its pattern, the content; a message without an entry
//! was never sent. Delivery to the end of a stream follows from the position, see [`ImageCheck::has_all`].

use super::{Violation, violation};
use crate::traffic::{Message, MessageState, Stream, StreamKey, fill};

/// State of one image of one subscriber.
#[derive(Debug)]
pub struct ImageCheck {
    key: StreamKey,
    join: i64,
    /// Index of the next message, once known.
    next: Option<usize>,
    position: i64,
    delivered: u64,
    /// An earlier image ended where this one joined, so a message may continue across both.
    continues: bool,
    /// Messages may be missing (`reliable=false`).
    is_lossy: bool,
    expected: Vec<u8>,
}

impl ImageCheck {
    /// Creates the check for an image that joined its stream at a position.
    #[must_use]
    pub fn new(key: StreamKey, join: i64) -> Self {
        Self {
            key,
            join,
            next: None,
            position: join,
            delivered: 0,
            continues: false,
            is_lossy: false,
            expected: Vec::new(),
        }
    }

    /// Allows the first message to begin before the join position: the subscriber left the stream there, and the
    /// fragment assembler combines the fragments from both images.
    #[must_use]
    pub fn continuing(self) -> Self {
        Self {
            continues: true,
            ..self
        }
    }

    /// Allows missing messages, for a stream without repair.
    #[must_use]
    pub fn lossy(self) -> Self {
        Self {
            is_lossy: true,
            ..self
        }
    }

    /// Returns the stream of the image.
    #[must_use]
    pub fn key(&self) -> &StreamKey {
        &self.key
    }

    /// Returns the position at which the image joined its stream.
    #[must_use]
    pub fn join(&self) -> i64 {
        self.join
    }

    /// Returns the position after the last poll.
    #[must_use]
    pub fn position(&self) -> i64 {
        self.position
    }

    /// Returns the number of messages delivered.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the index of the next message, skipping aborted ones.
    fn next(&mut self, messages: &[Message]) -> usize {
        let first = || messages.partition_point(|message| message.begin < self.join);
        let mut next = self.next.unwrap_or_else(first);
        while messages
            .get(next)
            .is_some_and(|message| message.state == MessageState::Aborted)
        {
            next += 1;
        }
        self.next = Some(next);
        next
    }

    /// Compares a message that ends at `end` with the next expected one. It counts as delivered if `is_taken`.
    ///
    /// # Errors
    /// It is a different message, or differs from what was sent.
    pub fn deliver(
        &mut self,
        stream: &Stream,
        end: i64,
        content: &[u8],
        is_taken: bool,
    ) -> Result<(), Violation> {
        let messages = stream.messages();
        let mut next = self.next(messages);
        if self.continues && self.delivered == 0 {
            let across = |message: &Message| message.begin < self.join && self.join < end;
            let index = messages.binary_search_by_key(&end, |message| message.end);
            next = index
                .ok()
                .filter(|index| across(&messages[*index]))
                .unwrap_or(next);
        }
        if self.is_lossy {
            let behind = messages[next..].partition_point(|message| message.end < end);
            next += behind;
        }
        let key = self.key;
        let Some(message) = messages.get(next) else {
            violation!(
                "{key:?}: a message of {} bytes up to {end} after the last that was sent",
                content.len()
            );
        };
        if message.end != end {
            let what = match messages.binary_search_by_key(&end, |message| message.end) {
                Ok(index) if index < next => {
                    "was delivered before (or lies before the join position)"
                }
                Ok(index) if messages[index].state == MessageState::Aborted => {
                    "was aborted by its publisher"
                }
                Ok(_) => "is early: messages before it are missing",
                Err(_) => "was never sent",
            };
            violation!(
                "{key:?}: the message up to {end} ({} bytes) {what}; next is number {next}, {message:?}",
                content.len()
            );
        }
        if message.state == MessageState::Held {
            violation!("{key:?}: message number {next} was not committed yet, {message:?}");
        }
        if content.len() != message.length {
            violation!(
                "{key:?}: message number {next} has {} bytes, {message:?}",
                content.len()
            );
        }
        fill(stream.tag, next, message.length, &mut self.expected);
        if content != self.expected {
            let at = content.iter().zip(&self.expected).position(|(a, b)| a != b);
            violation!("{key:?}: message number {next} differs from byte {at:?} on, {message:?}");
        }
        if is_taken {
            self.next = self.next.max(Some(next + 1));
            self.delivered += 1;
        }
        Ok(())
    }

    /// Records the position of the image: all messages up to it must have been delivered.
    ///
    /// # Errors
    /// A message was skipped, or the position decreased.
    pub fn consumed(&mut self, stream: &Stream, position: i64) -> Result<(), Violation> {
        let key = self.key;
        if position < self.position {
            violation!(
                "{key:?}: an image position decreased from {} to {position}",
                self.position
            );
        }
        self.position = position;
        let next = self.next(stream.messages());
        match stream.messages().get(next) {
            Some(message) if message.end <= position && !self.is_lossy => {
                violation!(
                    "{key:?}: an image is at {position} without having delivered number {next}, {message:?}"
                );
            }
            _ => Ok(()),
        }
    }

    /// Returns true if everything sent so far was delivered.
    #[must_use]
    pub fn has_all(&self, stream: &Stream) -> bool {
        let sent = |message: &Message| message.state != MessageState::Aborted;
        let last = stream.messages().iter().rfind(|message| sent(message));
        last.is_none_or(|last| last.end <= self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Ledger;

    const KEY: StreamKey = StreamKey {
        session_id: 1,
        stream_id: 2,
        initial_term_id: 3,
    };

    /// Builds a stream of messages of 10 bytes, each of which takes 64 bytes in the log.
    fn ledger(count: i64) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.add_stream(KEY, 1376);
        for index in 1..=count {
            ledger
                .stream_mut(&KEY)
                .unwrap()
                .push(index * 64, 10, MessageState::Sent);
        }
        ledger
    }

    fn content(stream: &Stream, index: usize) -> Vec<u8> {
        let mut content = Vec::new();
        fill(stream.tag, index, 10, &mut content);
        content
    }

    #[test]
    fn messages_in_order_from_the_join_position_are_accepted() {
        let ledger = ledger(3);
        let stream = ledger.stream(&KEY).unwrap();
        let mut check = ImageCheck::new(KEY, 64);
        assert!(!check.has_all(stream));
        for index in 1..3 {
            let end = (index as i64 + 1) * 64;
            check
                .deliver(stream, end, &content(stream, index), true)
                .unwrap();
            check.consumed(stream, end).unwrap();
        }
        assert!(check.has_all(stream));
        assert_eq!(check.delivered(), 2);
    }

    #[test]
    fn lost_repeated_damaged_or_unsent_message_is_a_violation() {
        let ledger = ledger(3);
        let stream = ledger.stream(&KEY).unwrap();
        let first = content(stream, 0);
        let expect_violation = |end: i64, content: &[u8], text: &str| {
            let mut check = ImageCheck::new(KEY, 0);
            check.deliver(stream, 64, &first, true).unwrap();
            let Violation(found) = check.deliver(stream, end, content, true).unwrap_err();
            assert!(found.contains(text), "{found}");
        };
        expect_violation(192, &content(stream, 2), "missing");
        expect_violation(64, &first, "before");
        expect_violation(96, &first, "never sent");
        expect_violation(128, &first, "differs");
        expect_violation(128, &first[..9], "9 bytes");
        let mut check = ImageCheck::new(KEY, 0);
        check.consumed(stream, 64).unwrap_err();
    }

    #[test]
    fn unreliable_stream_may_lose_but_not_repeat_messages() {
        let ledger = ledger(3);
        let stream = ledger.stream(&KEY).unwrap();
        let mut check = ImageCheck::new(KEY, 0).lossy();
        check
            .deliver(stream, 128, &content(stream, 1), true)
            .unwrap();
        check
            .deliver(stream, 64, &content(stream, 0), true)
            .unwrap_err();
        check.consumed(stream, 192).unwrap();
    }

    #[test]
    fn aborted_message_is_skipped_and_its_delivery_is_a_violation() {
        let mut ledger = ledger(3);
        ledger
            .stream_mut(&KEY)
            .unwrap()
            .set_state(1, MessageState::Aborted);
        let stream = ledger.stream(&KEY).unwrap();
        let mut check = ImageCheck::new(KEY, 64);
        check
            .deliver(stream, 128, &content(stream, 1), true)
            .unwrap_err();
        check.consumed(stream, 128).unwrap();
        check
            .deliver(stream, 192, &content(stream, 2), true)
            .unwrap();
    }
}
