// SPDX-License-Identifier: Apache-2.0
//! Frames on the wire (docs/spec/wire.md §1). All integers are little-endian, and the structures have no alignment.
//!
//! Each frame type is a `zerocopy` structure with field offsets asserted at compile time. A frame to send is built as a
//! structure literal and sent with `as_bytes()`. A received datagram is parsed by [`Frame::parse`], which enforces the
//! strict rules for single frames. Checks that need the term length of the stream are methods of the frame types
//! (docs/spec/wire.md §1.14).

mod data;
mod error;
mod header;
mod invalid;
mod nak;
mod resolution;
mod response_setup;
mod rttm;
mod setup;
mod status_message;

pub use data::{DATA_HEADER_LENGTH, DataFrame, DataHeader, ValidatedFrames};
pub use error::{ERROR_FRAME_LENGTH_MAX, ERROR_TEXT_LENGTH_MAX, ErrorFrame, ErrorHeader};
pub use header::{FrameHeader, FrameType};
pub use invalid::InvalidFrame;
pub use nak::Nak;
pub use resolution::{ResolutionEntry, Resolutions, write_resolution};
pub use response_setup::ResponseSetup;
pub use rttm::Rttm;
pub use setup::Setup;
pub use status_message::{StatusFrame, StatusMessage, StatusMessageWithTag};
// The traits behind `as_bytes()` and the field types, so that users need no dependency on `zerocopy`.
pub use zerocopy::{
    FromBytes, IntoBytes,
    little_endian::{I32, I64, U16},
};

/// Maximum MTU, which is also the maximum payload of a UDP datagram.
pub const MTU_MAX: i32 = 65_504;

/// Valid datagram.
#[derive(Clone, Copy, Debug)]
pub enum Frame<'a> {
    /// One or more data or padding frames of one stream, or a heartbeat.
    Data(DataFrame<'a>),
    /// Missing range reported by a receiver.
    Nak(&'a Nak),
    /// Position and window of a receiver.
    StatusMessage(StatusFrame<'a>),
    /// Error report of a receiver that rejected the stream.
    Error(ErrorFrame<'a>),
    /// Stream parameters from the sender.
    Setup(&'a Setup),
    /// Round-trip time measurement, request or reply.
    Rttm(&'a Rttm),
    /// Names and addresses of drivers.
    Resolution(Resolutions<'a>),
    /// Session id of a response stream, sent to the requester.
    ResponseSetup(&'a ResponseSetup),
}

impl<'a> Frame<'a> {
    /// Parses a datagram and enforces the strict first-frame rules. For data, [`DataFrame::validate`] then validates
    /// the whole packet against the term length of the stream (docs/spec/wire.md §1.14 rules 1, 2 and 5).
    ///
    /// # Errors
    /// The datagram violates a rule. The caller drops it and counts it as invalid.
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<Self, InvalidFrame> {
        let Ok((header, _)) = FrameHeader::ref_from_prefix(datagram) else {
            return Err(InvalidFrame::TooShort {
                length: datagram.len(),
                needed: 8,
            });
        };
        let frame_type = first_type(header, datagram.len())?;
        if matches!(frame_type, FrameType::DATA | FrameType::PAD) {
            return DataFrame::parse(datagram).map(Frame::Data);
        }
        let frame_length = header.frame_length.get();
        if frame_length as usize > datagram.len() && frame_type.is_known() {
            return Err(InvalidFrame::FrameLength {
                frame_length,
                length: datagram.len(),
            });
        }
        match frame_type {
            FrameType::STATUS_MESSAGE => StatusFrame::parse(datagram).map(Frame::StatusMessage),
            FrameType::NAK => fixed(datagram).map(Frame::Nak),
            FrameType::SETUP => {
                let setup: &Setup = fixed(datagram)?;
                setup.check()?;
                Ok(Frame::Setup(setup))
            }
            FrameType::RTTM => fixed(datagram).map(Frame::Rttm),
            FrameType::ERROR => ErrorFrame::parse(datagram).map(Frame::Error),
            FrameType::RESPONSE_SETUP => fixed(datagram).map(Frame::ResponseSetup),
            FrameType::RESOLUTION => Resolutions::parse(datagram).map(Frame::Resolution),
            FrameType(other) => Err(InvalidFrame::UnknownType(other)),
        }
    }
}

/// Returns the frame type of a datagram of `length` bytes, once version and frame length are validated.
#[inline]
fn first_type(header: &FrameHeader, length: usize) -> Result<FrameType, InvalidFrame> {
    if header.version != 0 {
        return Err(InvalidFrame::Version(header.version));
    }
    let frame_length = header.frame_length.get();
    if frame_length < 0 {
        return Err(InvalidFrame::FrameLength {
            frame_length,
            length,
        });
    }
    Ok(header.frame_type())
}

/// Returns the fixed part at the start of a datagram.
#[inline]
fn fixed<T>(datagram: &[u8]) -> Result<&T, InvalidFrame>
where
    T: FromBytes + zerocopy::KnownLayout + zerocopy::Immutable + zerocopy::Unaligned,
{
    match T::ref_from_prefix(datagram) {
        Ok((frame, _)) => Ok(frame),
        Err(_) => Err(InvalidFrame::TooShort {
            length: datagram.len(),
            needed: size_of::<T>(),
        }),
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
