use zerocopy::little_endian::I32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FrameHeader, FrameType};

/// Response setup (`docs/spec/wire.md §1.10`): tells a requester which session will carry the responses.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct ResponseSetup {
    /// From [`ResponseSetup::header`].
    pub header: FrameHeader,
    /// Session of the request stream.
    pub session_id: I32,
    /// Stream id of the request stream.
    pub stream_id: I32,
    /// Session to subscribe to for the responses.
    pub response_session_id: I32,
}

super::layout!(ResponseSetup: 20 { 0 => header, 8 => session_id, 12 => stream_id, 16 => response_session_id });

impl ResponseSetup {
    /// Header of a response setup.
    #[must_use]
    pub const fn header() -> FrameHeader {
        FrameHeader::new(size_of::<Self>() as i32, 0, FrameType::RESPONSE_SETUP)
    }
}
