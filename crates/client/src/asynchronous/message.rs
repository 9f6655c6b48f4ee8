// SPDX-License-Identifier: Apache-2.0
//! A message with its own memory.

use std::ops::Deref;

use crate::Position;
use crate::header::Header;

/// A whole message, copied out of the term buffer; an item of the stream of an
/// [`AsyncSubscription`](crate::AsyncSubscription). It dereferences to its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    payload: Vec<u8>,
    position: Position,
    reserved_value: i64,
    session_id: i32,
    stream_id: i32,
}

impl Message {
    pub(super) fn new(payload: &[u8], header: &Header<'_>) -> Self {
        Self {
            payload: payload.to_vec(),
            position: header.position(),
            reserved_value: header.reserved_value(),
            session_id: header.session_id(),
            stream_id: header.stream_id(),
        }
    }

    /// Returns the bytes of the message.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Returns the bytes of the message without a copy.
    #[must_use]
    pub fn into_payload(self) -> Vec<u8> {
        self.payload
    }

    /// Returns the stream position after the message, in bytes.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns the reserved value of the first frame, which the publisher may set; 0 by default.
    #[must_use]
    pub fn reserved_value(&self) -> i64 {
        self.reserved_value
    }

    /// Returns the session id of the publication.
    #[must_use]
    pub fn session_id(&self) -> i32 {
        self.session_id
    }

    /// Returns the stream id.
    #[must_use]
    pub fn stream_id(&self) -> i32 {
        self.stream_id
    }
}

impl Deref for Message {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.payload
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.payload
    }
}

impl From<Message> for Vec<u8> {
    fn from(message: Message) -> Self {
        message.payload
    }
}
