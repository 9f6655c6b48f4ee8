//! One message under construction.

use taran_protocol::frame::DataHeader;
use taran_protocol::position::MESSAGE_LENGTH_MAX;

use crate::Position;
use crate::header::Header;

/// Puts the fragments of one session together. Fragments come in the order of the stream; one that does not follow
/// its predecessor makes the message be dropped.
#[derive(Debug, Default)]
pub(super) struct Builder {
    bytes: Vec<u8>,
    /// Header of the first fragment.
    first: Option<DataHeader>,
    /// Where the next fragment has to start; `None` while no message is open.
    next: Option<Position>,
}

/// State to which [`Builder::rewind`] returns.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    length: usize,
    next: Option<Position>,
}

impl Builder {
    pub(super) fn mark(&self) -> Mark {
        Mark {
            length: self.bytes.len(),
            next: self.next,
        }
    }

    /// Takes the last fragment back, so that it can be given again.
    pub(super) fn rewind(&mut self, mark: Mark) {
        self.bytes.truncate(mark.length);
        self.next = mark.next;
    }

    /// Adds a fragment of a message in several; true if that completed it.
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

    /// The complete message. `last` is the header of the fragment that completed it.
    pub(super) fn message<'a>(&'a self, last: &Header<'a>) -> (&'a [u8], Header<'a>) {
        // A complete message has a first header; and at most 16 MiB, see `push`.
        let first = self.first.as_ref().unwrap_or(last.data_header());
        (
            &self.bytes,
            Header::of_message(first, self.bytes.len() as i32, last),
        )
    }

    /// Forgets the message after it was delivered. The buffer is kept for the next one.
    pub(super) fn reset(&mut self) {
        self.bytes.clear();
        self.next = None;
    }
}
