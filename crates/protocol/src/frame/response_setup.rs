// SPDX-License-Identifier: Apache-2.0
use zerocopy::little_endian::I32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FrameHeader, FrameType};

/// Response setup frame: informs the requester which session carries the responses (docs/spec/wire.md §1.10).
#[doc(alias = "ResponseSetupFlyweight")]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct ResponseSetup {
    /// Frame header from [`ResponseSetup::header`].
    pub header: FrameHeader,
    /// Session id of the request stream.
    pub session_id: I32,
    /// Stream id of the request stream.
    pub stream_id: I32,
    /// Session id of the response stream.
    pub response_session_id: I32,
}

super::layout!(ResponseSetup: 20 { 0 => header, 8 => session_id, 12 => stream_id, 16 => response_session_id });

impl ResponseSetup {
    /// Returns the header of a response setup frame.
    #[must_use]
    pub const fn header() -> FrameHeader {
        FrameHeader::new(size_of::<Self>() as i32, 0, FrameType::RESPONSE_SETUP)
    }
}
