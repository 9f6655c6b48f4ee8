// SPDX-License-Identifier: Apache-2.0
use taran_protocol::frame::FrameHeader;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::layout;

/// First message of a handshake (docs/spec/transport-security.md §2.6).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Init {
    /// Base header.
    pub header: FrameHeader,
    /// Link id of the initiator, random.
    pub link_id: U64,
    /// Fingerprint of the responder's identity.
    pub responder: [u8; 16],
    /// Noise message 1.
    pub message: [u8; 120],
    /// Authenticator of everything before, by the responder's public key.
    pub mac1: [u8; 16],
    /// Proof of the source address, or zero.
    pub cookie: [u8; 24],
}

layout!(Init: 192 { 0 => header, 8 => link_id, 16 => responder, 32 => message, 152 => mac1, 168 => cookie });

impl Init {
    /// Offset of the first authenticator.
    pub(crate) const MAC1_AT: usize = 152;
    /// Offset of the cookie.
    pub(crate) const COOKIE_AT: usize = 168;
    /// Offset of the Noise message; everything before is hashed into the transcript.
    pub(crate) const MESSAGE_AT: usize = 32;
}

/// Second message of a handshake (docs/spec/transport-security.md §2.6).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Resp {
    /// Base header.
    pub header: FrameHeader,
    /// Link id of the initiator.
    pub initiator_link_id: U64,
    /// Link id of the responder, random.
    pub responder_link_id: U64,
    /// Noise message 2.
    pub message: [u8; 72],
    /// Authenticator of everything before, by the initiator's public key.
    pub mac1: [u8; 16],
}

layout!(Resp: 112 { 0 => header, 8 => initiator_link_id, 16 => responder_link_id, 24 => message, 96 => mac1 });

impl Resp {
    /// Offset of the authenticator.
    pub(crate) const MAC1_AT: usize = 96;
}

/// Request to repeat an INIT with a proof of its source address (docs/spec/transport-security.md §2.6).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Cookie {
    /// Base header.
    pub header: FrameHeader,
    /// Link id of the initiator.
    pub initiator_link_id: U64,
    /// Authenticator of the INIT that is answered.
    pub mac1: [u8; 16],
    /// Cookie to put into the INIT.
    pub cookie: [u8; 24],
}

layout!(Cookie: 56 { 0 => header, 8 => initiator_link_id, 16 => mac1, 32 => cookie });
