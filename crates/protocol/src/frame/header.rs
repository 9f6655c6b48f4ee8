// SPDX-License-Identifier: Apache-2.0
use zerocopy::little_endian::{I32, U16};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Common header of every frame, eight bytes (docs/spec/wire.md §1.1).
#[doc(alias = "HeaderFlyweight")]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct FrameHeader {
    /// Length of header and body in bytes, not aligned; 0 in a heartbeat; negative only inside a log.
    pub frame_length: I32,
    /// Always 0.
    pub version: u8,
    /// Flags, specific to the frame type.
    pub flags: u8,
    /// Frame type, see [`FrameType`].
    pub frame_type: U16,
}

super::layout!(FrameHeader: 8 { 0 => frame_length, 4 => version, 5 => flags, 6 => frame_type });

impl FrameHeader {
    /// Returns a header of the current version.
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

    /// Returns the frame type.
    #[inline]
    #[must_use]
    pub const fn frame_type(&self) -> FrameType {
        FrameType(self.frame_type.get())
    }
}

/// Type of a frame (docs/spec/wire.md §1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameType(pub u16);

impl FrameType {
    /// Padding to the end of a term, or over a gap.
    pub const PAD: Self = Self(0);
    /// Message, fragment or heartbeat.
    pub const DATA: Self = Self(1);
    /// Negative acknowledgement: a receiver reports missing bytes.
    pub const NAK: Self = Self(2);
    /// Status message: position and window of a receiver.
    pub const STATUS_MESSAGE: Self = Self(3);
    /// Error report of a receiver.
    pub const ERROR: Self = Self(4);
    /// Stream parameters from the sender.
    pub const SETUP: Self = Self(5);
    /// Round-trip time measurement.
    pub const RTTM: Self = Self(6);
    /// Name resolution between drivers.
    pub const RESOLUTION: Self = Self(7);
    /// Session id of a response stream, sent to the requester.
    pub const RESPONSE_SETUP: Self = Self(11);
    /// Reserved for extensions, never sent.
    pub const EXTENSION: Self = Self(0xFFFF);

    /// Returns true if a driver handles frames of this type. All others are dropped.
    #[inline]
    #[must_use]
    pub const fn is_known(self) -> bool {
        self.0 <= 7 || self.0 == 11
    }

    /// Returns true if the type is one of transport security, which only the layers of secured sockets handle
    /// (docs/spec/transport-security.md §2.1).
    #[inline]
    #[must_use]
    pub const fn is_transport_security(self) -> bool {
        matches!(self.0, 0x5450..=0x5457)
    }
}
