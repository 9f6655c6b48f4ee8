use zerocopy::little_endian::{I32, U16};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The eight bytes that start every frame (`docs/spec/wire.md §1.1`).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct FrameHeader {
    /// Bytes of header and body, not aligned; 0 in a heartbeat; negative only inside a log.
    pub frame_length: I32,
    /// Always 0.
    pub version: u8,
    /// Meaning depends on the type.
    pub flags: u8,
    /// See [`FrameType`].
    pub frame_type: U16,
}

super::layout!(FrameHeader: 8 { 0 => frame_length, 4 => version, 5 => flags, 6 => frame_type });

impl FrameHeader {
    /// A header of the current version.
    #[inline]
    #[must_use]
    pub const fn new(frame_length: i32, flags: u8, frame_type: FrameType) -> Self {
        Self {
            frame_length: I32::new(frame_length),
            version: 0,
            flags,
            frame_type: U16::new(frame_type.0),
        }
    }

    /// The type of the frame.
    #[inline]
    #[must_use]
    pub const fn frame_type(&self) -> FrameType {
        FrameType(self.frame_type.get())
    }
}

/// Type of a frame (`docs/spec/wire.md §1.2`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameType(pub u16);

impl FrameType {
    /// Padding up to the end of a term, or over a gap.
    pub const PAD: Self = Self(0);
    /// A message, a fragment of one, or a heartbeat.
    pub const DATA: Self = Self(1);
    /// Negative acknowledgement: a receiver misses bytes.
    pub const NAK: Self = Self(2);
    /// Status message: a receiver's position and window.
    pub const STATUS_MESSAGE: Self = Self(3);
    /// Error report of a receiver.
    pub const ERROR: Self = Self(4);
    /// Description of a stream by its sender.
    pub const SETUP: Self = Self(5);
    /// Round-trip measurement.
    pub const RTTM: Self = Self(6);
    /// Name resolution between drivers.
    pub const RESOLUTION: Self = Self(7);
    /// Request for a response stream.
    pub const RESPONSE_SETUP: Self = Self(11);
    /// Reserved for extensions, never sent.
    pub const EXTENSION: Self = Self(0xFFFF);

    /// True for the types that a driver acts upon; all others are dropped.
    #[inline]
    #[must_use]
    pub const fn is_known(self) -> bool {
        self.0 <= 7 || self.0 == 11
    }
}
