// SPDX-License-Identifier: Apache-2.0
use taran_protocol::frame::FrameHeader;
use zerocopy::little_endian::{I32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{ANNOUNCE, HELLO, InvalidSecureFrame, QUESTION_LENGTH, layout, zero};
use crate::VERSION;
use crate::derive::{Fingerprint, KeyId};

/// Announcement of a sender (docs/spec/transport-security.md §2.4). Without the key of the stream it is a hint that a
/// handshake may be worthwhile; with it, the SETUP inside is authentic.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Announce {
    /// Base header.
    pub header: FrameHeader,
    /// Key of the sealed SETUP; zero without one.
    pub key_id: [u8; 8],
    /// Counter of the sealed SETUP; zero without one.
    pub counter: U64,
    /// Fingerprint of the sender's identity.
    pub fingerprint: [u8; 16],
    /// Random number of this run of the sender's driver.
    pub incarnation: U64,
    /// Session id; 0 in an answer that names no stream.
    pub session_id: I32,
    /// Stream id; 0 in an answer that names no stream.
    pub stream_id: I32,
    /// Epoch of the key.
    pub epoch: U32,
    /// Protocol version.
    pub version: U16,
    /// Suite of the key; 0 without one.
    pub suite: U16,
    /// Zero.
    pub reserved: [u8; 72],
    /// SETUP, encrypted.
    pub setup: [u8; 40],
    /// Tag over everything before `setup`.
    pub tag: [u8; 16],
}

layout!(Announce: 192 {
    0 => header, 8 => key_id, 16 => counter, 24 => fingerprint, 40 => incarnation, 48 => session_id, 52 => stream_id,
    56 => epoch, 60 => version, 62 => suite, 64 => reserved, 136 => setup, 176 => tag,
});

impl Announce {
    /// Flag: carries a sealed SETUP.
    pub const HAS_SETUP: u8 = 0x80;
    /// Flag: answers a HELLO.
    pub const ANSWER: u8 = 0x40;
    pub(crate) const FLAGS: u8 = Self::HAS_SETUP | Self::ANSWER;
    /// Length of the bytes that are authenticated and not encrypted.
    pub const AAD_LENGTH: usize = 136;

    /// Returns an announcement without a sealed SETUP.
    #[must_use]
    pub fn hint(
        flags: u8,
        fingerprint: Fingerprint,
        incarnation: u64,
        session_id: i32,
        stream_id: i32,
    ) -> Self {
        Self {
            header: FrameHeader::new(QUESTION_LENGTH as i32, flags & !Self::HAS_SETUP, ANNOUNCE),
            key_id: KeyId::NONE.0,
            counter: 0.into(),
            fingerprint: fingerprint.0,
            incarnation: incarnation.into(),
            session_id: session_id.into(),
            stream_id: stream_id.into(),
            epoch: 0.into(),
            version: VERSION.into(),
            suite: 0.into(),
            reserved: [0; 72],
            setup: [0; 40],
            tag: [0; 16],
        }
    }

    /// Returns true if there is a sealed SETUP.
    #[must_use]
    pub const fn has_setup(&self) -> bool {
        self.header.flags & Self::HAS_SETUP != 0
    }

    pub(super) fn check(&self) -> Result<(), InvalidSecureFrame> {
        if self.version.get() != VERSION {
            return Err(InvalidSecureFrame::ProtocolVersion(self.version.get()));
        }
        zero(&self.reserved)?;
        if !self.has_setup() {
            zero(&self.key_id)?;
            zero(self.counter.as_bytes())?;
            zero(&self.setup)?;
            zero(&self.tag)?;
        }
        Ok(())
    }
}

/// Question of a receiver for an announcement (docs/spec/transport-security.md §2.5).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Hello {
    /// Base header.
    pub header: FrameHeader,
    /// Key id that the receiver does not know, or zero.
    pub key_id: [u8; 8],
    /// Random bytes.
    pub random: [u8; 16],
    /// Session id, or 0.
    pub session_id: I32,
    /// Stream id, or 0.
    pub stream_id: I32,
    /// Zero.
    pub reserved: [u8; 152],
}

layout!(Hello: 192 { 0 => header, 8 => key_id, 16 => random, 32 => session_id, 36 => stream_id, 40 => reserved });

impl Hello {
    /// Returns a question.
    #[must_use]
    pub fn new(key_id: KeyId, random: [u8; 16], session_id: i32, stream_id: i32) -> Self {
        Self {
            header: FrameHeader::new(QUESTION_LENGTH as i32, 0, HELLO),
            key_id: key_id.0,
            random,
            session_id: session_id.into(),
            stream_id: stream_id.into(),
            reserved: [0; 152],
        }
    }
}
