// SPDX-License-Identifier: Apache-2.0
use zerocopy::little_endian::{I32, I64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FrameHeader, FrameType};

/// Round-trip time measurement (docs/spec/wire.md §1.7).
#[doc(alias = "RttMeasurementFlyweight")]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Rttm {
    /// Frame header from [`Rttm::header`].
    pub header: FrameHeader,
    /// Session id.
    pub session_id: I32,
    /// Stream id.
    pub stream_id: I32,
    /// Time of the request in nanoseconds on the requester's clock; opaque to the peer.
    pub echo_timestamp: I64,
    /// Nanoseconds from reception of the request to the reply.
    pub reception_delta: I64,
    /// Receiver id of the addressee or the replier; 0 addresses any receiver.
    pub receiver_id: I64,
}

super::layout!(Rttm: 40 {
    0 => header, 8 => session_id, 12 => stream_id, 16 => echo_timestamp, 24 => reception_delta, 32 => receiver_id,
});

impl Rttm {
    /// Flag of a request; a reply does not set it.
    pub const REPLY: u8 = 0x80;

    /// Returns the header of a measurement frame.
    #[must_use]
    pub const fn header(flags: u8) -> FrameHeader {
        FrameHeader::new(size_of::<Self>() as i32, flags, FrameType::RTTM)
    }

    /// Returns true if the frame is a request.
    #[inline]
    #[must_use]
    pub const fn asks_for_reply(&self) -> bool {
        self.header.flags & Self::REPLY != 0
    }

    /// Returns the reply of `receiver_id` to this request.
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
