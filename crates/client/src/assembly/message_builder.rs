// SPDX-License-Identifier: Apache-2.0
//! Reassembly of one message.

use taran_protocol::frame::DataHeader;
use taran_protocol::position::MESSAGE_LENGTH_MAX;

use crate::Position;
use crate::header::Header;

/// Reassembles the messages of one session. Fragments arrive in stream order; a fragment that does not follow its
/// predecessor discards the message.
#[derive(Debug, Default)]
#[doc(alias = "BufferBuilder")]
pub(super) struct MessageBuilder {
    bytes: Vec<u8>,
    /// Header of the first fragment.
    first: Option<DataHeader>,
    /// Position at which the next fragment must start; `None` if no message is in progress.
    next: Option<Position>,
}

/// State that [`MessageBuilder::restore`] returns to.
#[derive(Clone, Copy)]
pub(super) struct Checkpoint {
    length: usize,
    next: Option<Position>,
}

impl MessageBuilder {
    pub(super) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            length: self.bytes.len(),
            next: self.next,
        }
    }

    /// Removes the last fragment, so that it can be pushed again.
    pub(super) fn restore(&mut self, checkpoint: Checkpoint) {
        self.bytes.truncate(checkpoint.length);
        self.next = checkpoint.next;
    }

    /// Adds a fragment. Returns true if it completes the message.
    pub(super) fn push(&mut self, fragment: &[u8], header: &Header<'_>) -> bool {
        if header.is_begin() {
            self.bytes.clear();
            self.first = Some(*header.data_header());
        } else if self.next != Some(header.frame_start()) {
            self.next = None;
            return false;
        }
        if self.bytes.len() + fragment.len() > MESSAGE_LENGTH_MAX as usize {
            self.next = None;
            return false;
        }
        self.bytes.extend_from_slice(fragment);
        self.next = Some(header.position());
        header.is_end()
    }

    /// Returns the complete message. `last` is the header of its last fragment.
    pub(super) fn message<'a>(&'a self, last: &Header<'a>) -> (&'a [u8], Header<'a>) {
        // A complete message has a first header, and is at most 16 MiB long, see `push`.
        let first = self.first.as_ref().unwrap_or(last.data_header());
        (
            &self.bytes,
            Header::of_message(first, self.bytes.len() as i32, last),
        )
    }

    /// Discards the message after its delivery. The buffer is reused for the next one.
    pub(super) fn reset(&mut self) {
        self.bytes.clear();
        self.next = None;
    }
}
