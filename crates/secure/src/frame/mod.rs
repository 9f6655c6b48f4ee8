// SPDX-License-Identifier: Apache-2.0
//! Frames on the wire (docs/spec/transport-security.md §2). All integers are little-endian unless noted, and the structures
//! have no alignment.
//!
//! [`SecureFrame::parse`] enforces every rule that needs no key: versions, flags, lengths, zero fields. The content is
//! untrusted until its authenticator was verified.

mod announce;
mod handshake;
mod item;
mod pair;

pub use announce::{Announce, Hello};
pub use handshake::{Cookie, Init, Resp};
pub use item::{
    Code, GRANT_CURRENT, GRANT_NEXT, Grant, InvalidItem, Item, ItemWriter, Items, REFUSAL_TEXT_MAX,
    RequestedKey,
};
pub use pair::{PAIR_OVERHEAD, PairFrame, PairFrames};
pub use zerocopy::{FromBytes, IntoBytes};

use taran_protocol::frame::{FrameHeader, FrameType};
use zerocopy::little_endian::U64;
use zerocopy::{Immutable, KnownLayout, Unaligned};

use crate::provider::TAG_LENGTH;

/// Frames of a stream, sealed by the sender.
pub const SEALED: FrameType = FrameType(0x5450);
/// Feedback, sealed by a receiver.
pub const BACK: FrameType = FrameType(0x5451);
/// Announcement of a sender, with a sealed SETUP where there is one.
pub const ANNOUNCE: FrameType = FrameType(0x5452);
/// Question of a receiver for an announcement.
pub const HELLO: FrameType = FrameType(0x5453);
/// First message of a handshake.
pub const INIT: FrameType = FrameType(0x5454);
/// Second message of a handshake.
pub const RESP: FrameType = FrameType(0x5455);
/// Request to repeat an INIT with a proof of its source address.
pub const COOKIE: FrameType = FrameType(0x5456);
/// Items between the ends of a link.
pub const PAIR: FrameType = FrameType(0x5457);

/// Bytes that sealing adds to a datagram.
pub const SEALED_OVERHEAD: usize = size_of::<SealedHeader>() + TAG_LENGTH;
/// Longest plain datagram that can be sealed.
pub const PLAIN_MAX: usize = 65_440;

/// Length of ANNOUNCE, HELLO and INIT in bytes: equal, so that none gains by being answered with another.
pub const QUESTION_LENGTH: usize = 192;

/// Returns true if the type is one of transport security.
#[must_use]
pub const fn is_secure(frame_type: FrameType) -> bool {
    frame_type.0 >= SEALED.0 && frame_type.0 <= PAIR.0
}

/// Header of SEALED and BACK, which is authenticated.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct SealedHeader {
    /// Base header; its length is that of the datagram.
    pub header: FrameHeader,
    /// Key that the frame is sealed with.
    pub key_id: [u8; 8],
    /// Number of the frame under this key.
    pub counter: U64,
}

layout!(SealedHeader: 24 { 0 => header, 8 => key_id, 16 => counter });

/// Reason why bytes are no frame of transport security.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSecureFrame {
    /// The datagram does not have the length of its frame type.
    #[error("a datagram of {length} bytes; frame type {frame_type:#06x} needs {needed}")]
    Length {
        /// Type in the header; 0 if there is none.
        frame_type: u16,
        /// Length of the datagram.
        length: usize,
        /// Length needed, or the least one.
        needed: usize,
    },
    /// The length in the header is not that of the datagram.
    #[error("frame length {frame_length} in a datagram of {length} bytes")]
    FrameLength {
        /// Length in the header.
        frame_length: i32,
        /// Length of the datagram, or of the rest of it.
        length: usize,
    },
    /// The version is not 0.
    #[error("version {0}; expected 0")]
    Version(u8),
    /// A flag that the type does not have.
    #[error("flags {0:#04x}")]
    Flags(u8),
    /// A type of plain Aeron, or unknown.
    #[error("frame type {0:#06x} is none of transport security")]
    Type(u16),
    /// A reserved byte is not zero.
    #[error("a reserved byte is not zero")]
    Reserved,
    /// The protocol version of an announcement is unknown.
    #[error("protocol version {0}; expected 1")]
    ProtocolVersion(u16),
}

taran_core::debug_is_display!(InvalidSecureFrame);

/// Valid datagram of transport security.
#[derive(Clone, Copy, Debug)]
pub enum SecureFrame<'a> {
    /// Sealed frames of a stream.
    Sealed(&'a SealedHeader),
    /// Sealed feedback.
    Back(&'a SealedHeader),
    /// Announcement.
    Announce(&'a Announce),
    /// Question for an announcement.
    Hello(&'a Hello),
    /// First message of a handshake.
    Init(&'a Init),
    /// Second message of a handshake.
    Resp(&'a Resp),
    /// Request for a proof of address.
    Cookie(&'a Cookie),
    /// One or more frames of links.
    Pair(PairFrames<'a>),
}

impl<'a> SecureFrame<'a> {
    /// Parses a datagram.
    ///
    /// # Errors
    /// The datagram violates a rule of docs/spec/transport-security.md §2; it is dropped.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, InvalidSecureFrame> {
        let Ok((header, _)) = FrameHeader::ref_from_prefix(datagram) else {
            return Err(InvalidSecureFrame::Length {
                frame_type: 0,
                length: datagram.len(),
                needed: size_of::<FrameHeader>(),
            });
        };
        let frame_type = header.frame_type();
        match frame_type {
            SEALED | BACK => {
                check_header(header, datagram.len(), 0)?;
                let sealed = prefix::<SealedHeader>(frame_type, datagram)?;
                if datagram.len() < SEALED_OVERHEAD {
                    return Err(InvalidSecureFrame::Length {
                        frame_type: frame_type.0,
                        length: datagram.len(),
                        needed: SEALED_OVERHEAD,
                    });
                }
                Ok(if frame_type == SEALED {
                    Self::Sealed(sealed)
                } else {
                    Self::Back(sealed)
                })
            }
            ANNOUNCE => {
                check_header(header, datagram.len(), Announce::FLAGS)?;
                let announce: &Announce = whole(frame_type, datagram)?;
                announce.check()?;
                Ok(Self::Announce(announce))
            }
            HELLO => {
                check_header(header, datagram.len(), 0)?;
                let hello: &Hello = whole(frame_type, datagram)?;
                zero(&hello.reserved)?;
                Ok(Self::Hello(hello))
            }
            INIT => {
                check_header(header, datagram.len(), 0)?;
                whole(frame_type, datagram).map(Self::Init)
            }
            RESP => {
                check_header(header, datagram.len(), 0)?;
                whole(frame_type, datagram).map(Self::Resp)
            }
            COOKIE => {
                check_header(header, datagram.len(), 0)?;
                whole(frame_type, datagram).map(Self::Cookie)
            }
            PAIR => PairFrames::parse(datagram).map(Self::Pair),
            FrameType(other) => Err(InvalidSecureFrame::Type(other)),
        }
    }
}

fn check_header(header: &FrameHeader, length: usize, flags: u8) -> Result<(), InvalidSecureFrame> {
    if header.version != 0 {
        return Err(InvalidSecureFrame::Version(header.version));
    }
    if header.flags & !flags != 0 {
        return Err(InvalidSecureFrame::Flags(header.flags));
    }
    let frame_length = header.frame_length.get();
    if usize::try_from(frame_length) != Ok(length) {
        return Err(InvalidSecureFrame::FrameLength {
            frame_length,
            length,
        });
    }
    Ok(())
}

fn prefix<T>(frame_type: FrameType, datagram: &[u8]) -> Result<&T, InvalidSecureFrame>
where
    T: FromBytes + KnownLayout + Immutable + Unaligned,
{
    match T::ref_from_prefix(datagram) {
        Ok((frame, _)) => Ok(frame),
        Err(_) => Err(InvalidSecureFrame::Length {
            frame_type: frame_type.0,
            length: datagram.len(),
            needed: size_of::<T>(),
        }),
    }
}

fn whole<T>(frame_type: FrameType, datagram: &[u8]) -> Result<&T, InvalidSecureFrame>
where
    T: FromBytes + KnownLayout + Immutable + Unaligned,
{
    T::ref_from_bytes(datagram).map_err(|_| InvalidSecureFrame::Length {
        frame_type: frame_type.0,
        length: datagram.len(),
        needed: size_of::<T>(),
    })
}

fn zero(bytes: &[u8]) -> Result<(), InvalidSecureFrame> {
    if bytes.iter().all(|byte| *byte == 0) {
        Ok(())
    } else {
        Err(InvalidSecureFrame::Reserved)
    }
}

/// Asserts size and field offsets of a wire structure at compile time.
macro_rules! layout {
    ($type:ty: $size:literal { $($offset:literal => $field:ident),+ $(,)? }) => {
        const _: () = {
            assert!(size_of::<$type>() == $size);
            assert!(align_of::<$type>() == 1);
            $(assert!(std::mem::offset_of!($type, $field) == $offset);)+
        };
    };
}
use layout;

#[cfg(test)]
mod tests;
