use zerocopy::little_endian::{I32, I64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FrameHeader, FrameType};

/// Round-trip measurement (`docs/spec/wire.md §1.7`).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Rttm {
    /// From [`Rttm::header`].
    pub header: FrameHeader,
    /// Session of the stream.
    pub session_id: I32,
    /// Stream id.
    pub stream_id: I32,
    /// Nanoseconds on the clock of whoever asked; opaque to the peer.
    pub echo_timestamp: I64,
    /// Nanoseconds between receiving the request and sending the reply.
    pub reception_delta: I64,
    /// The receiver meant or answering; 0 for any.
    pub receiver_id: I64,
}

super::layout!(Rttm: 40 {
    0 => header, 8 => session_id, 12 => stream_id, 16 => echo_timestamp, 24 => reception_delta, 32 => receiver_id,
});

impl Rttm {
    /// Asks for a reply; a reply does not have it.
    pub const REPLY: u8 = 0x80;

    /// Header of a measurement.
    #[must_use]
    pub const fn header(flags: u8) -> FrameHeader {
        FrameHeader::new(size_of::<Self>() as i32, flags, FrameType::RTTM)
    }

    /// True if the peer asks for a reply.
    #[inline]
    #[must_use]
    pub const fn asks_for_reply(&self) -> bool {
        self.header.flags & Self::REPLY != 0
    }

    /// The answer to this request, in the name of `receiver_id`.
    #[must_use]
    pub fn reply(&self, receiver_id: i64) -> Self {
        Self {
            header: Self::header(0),
            reception_delta: 0.into(),
            receiver_id: receiver_id.into(),
            ..*self
        }
    }
}
