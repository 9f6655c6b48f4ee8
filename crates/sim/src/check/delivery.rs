//! Every message exactly once, in order, intact: of each image from where it joined.
//!
//! Input: [`ImageCheck::deliver`] with each message, [`ImageCheck::consumed`] with the position of the image after each
//! poll. The ledger says which message is next, where it ends, and by its pattern what is in it; what has no message in
//! the ledger was never sent. That a stream is delivered to its end follows from the position, see
//! [`ImageCheck::has_all`].

use super::{Violation, violation};
use crate::traffic::{Fate, Message, Stream, StreamKey, fill};

/// What one image of one subscriber has to deliver.
#[derive(Debug)]
pub struct ImageCheck {
    key: StreamKey,
    join: i64,
    /// Index of the next message, once it is known.
    next: Option<usize>,
    position: i64,
    delivered: u64,
    /// An image before it ended where this one joined: a message may have begun there.
    continues: bool,
    /// Messages may be missing.
    is_lossy: bool,
    expected: Vec<u8>,
}

impl ImageCheck {
    /// An image that joined its stream at a position.
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

    /// The same, where the subscriber had left the stream at that position: fragments of a message from before and from
    /// after that make a whole message.
    #[must_use]
    pub fn continuing(self) -> Self {
        Self {
            continues: true,
            ..self
        }
    }

    /// The same, of a stream without repair: messages may be missing.
    #[must_use]
    pub fn lossy(self) -> Self {
        Self {
            is_lossy: true,
            ..self
        }
    }

    /// The stream of the image.
    #[must_use]
    pub fn key(&self) -> &StreamKey {
        &self.key
    }

    /// Where the image joined its stream.
    #[must_use]
    pub fn join(&self) -> i64 {
        self.join
    }

    /// Position after the last poll.
    #[must_use]
    pub fn position(&self) -> i64 {
        self.position
    }

    /// How many messages were delivered.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Index of the message that is next, without those that nobody may get.
    fn next(&mut self, messages: &[Message]) -> usize {
        let first = || messages.partition_point(|message| message.begin < self.join);
        let mut next = self.next.unwrap_or_else(first);
        while messages
            .get(next)
            .is_some_and(|message| message.fate == Fate::Gone)
        {
            next += 1;
        }
        self.next = Some(next);
        next
    }

    /// Holds a message that ends at `end` against the one that is next. It counts as delivered if `is_taken`.
    ///
    /// # Errors
    /// It is another one, or differs from what was sent.
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
                Ok(index) if messages[index].fate == Fate::Gone => "was given up by its publisher",
                Ok(_) => "comes too early: messages before it are missing",
                Err(_) => "was never sent",
            };
            violation!(
                "{key:?}: the message up to {end} ({} bytes) {what}; next is number {next}, {message:?}",
                content.len()
            );
        }
        if message.fate == Fate::Held {
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

    /// Notes how far the image has come: all up to there must have been delivered.
    ///
    /// # Errors
    /// A message was skipped, or the image went back.
    pub fn consumed(&mut self, stream: &Stream, position: i64) -> Result<(), Violation> {
        let key = self.key;
        if position < self.position {
            violation!(
                "{key:?}: an image went back from {} to {position}",
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

    /// True when nothing that was sent so far is left to deliver.
    #[must_use]
    pub fn has_all(&self, stream: &Stream) -> bool {
        let sent = |message: &Message| message.fate != Fate::Gone;
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

    /// A stream of messages of 10 bytes, each of which takes 64.
    fn ledger(count: i64) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.open(KEY, 1376);
        for index in 1..=count {
            ledger
                .stream_mut(&KEY)
                .unwrap()
                .push(index * 64, 10, Fate::Sent);
        }
        ledger
    }

    fn content(stream: &Stream, index: usize) -> Vec<u8> {
        let mut content = Vec::new();
        fill(stream.tag, index, 10, &mut content);
        content
    }

    #[test]
    fn messages_in_order_are_fine_from_where_the_image_joined() {
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
    fn what_is_lost_repeated_damaged_or_invented_is_found() {
        let ledger = ledger(3);
        let stream = ledger.stream(&KEY).unwrap();
        let first = content(stream, 0);
        let fails = |end: i64, content: &[u8], text: &str| {
            let mut check = ImageCheck::new(KEY, 0);
            check.deliver(stream, 64, &first, true).unwrap();
            let Violation(found) = check.deliver(stream, end, content, true).unwrap_err();
            assert!(found.contains(text), "{found}");
        };
        fails(192, &content(stream, 2), "missing");
        fails(64, &first, "before");
        fails(96, &first, "never sent");
        fails(128, &first, "differs");
        fails(128, &first[..9], "9 bytes");
        let mut check = ImageCheck::new(KEY, 0);
        check.consumed(stream, 64).unwrap_err();
    }

    #[test]
    fn of_a_stream_without_repair_messages_may_be_missing_but_not_come_again() {
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
    fn what_was_given_up_is_skipped_and_must_not_come() {
        let mut ledger = ledger(3);
        ledger.stream_mut(&KEY).unwrap().settle(1, Fate::Gone);
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
