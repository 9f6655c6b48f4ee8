// SPDX-License-Identifier: Apache-2.0
//! Framing of messages in a file or a stream.

use super::{DecodeError, Reason};
use crate::model::{ByteOrder, Primitive};

/// Frame header in front of each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Unsigned frame length that excludes itself.
    Length {
        /// Size of the length field.
        size: LengthSize,
        /// Byte order of the length field.
        order: ByteOrder,
    },
    /// Simple Open Framing Header of FIX: a four-byte length of the whole frame, then a two-byte encoding type.
    SimpleOpen,
}

/// Size of a length field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthSize {
    /// Two bytes.
    Two,
    /// Four bytes.
    Four,
}

/// Bytes of one message; can end with groups and data of a newer schema version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'data> {
    /// Offset of the message from the start of the input.
    pub offset: usize,
    /// Bytes of the message.
    pub bytes: &'data [u8],
}

/// Returns an iterator over the frames in `bytes`. It ends after the first error.
pub fn frames(
    bytes: &[u8],
    framing: Framing,
) -> impl Iterator<Item = Result<Frame<'_>, DecodeError>> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(offset..).filter(|rest| !rest.is_empty())?;
        let found = frame(rest, offset, framing);
        offset = match &found {
            Ok(frame) => frame.offset + frame.bytes.len(),
            Err(_) => bytes.len(),
        };
        Some(found)
    })
}

fn frame(rest: &[u8], offset: usize, framing: Framing) -> Result<Frame<'_>, DecodeError> {
    let (header, primitive, order, counted) = match framing {
        Framing::Length { size, order } => match size {
            LengthSize::Two => (2, Primitive::Uint16, order, 0),
            LengthSize::Four => (4, Primitive::Uint32, order, 0),
        },
        Framing::SimpleOpen => (6, Primitive::Uint32, ByteOrder::Big, 6),
    };
    let error = |offset, what, needed, left| DecodeError {
        offset,
        path: String::new(),
        reason: Reason::Truncated { what, needed, left },
    };
    let Some((front, behind)) = rest.split_at_checked(header) else {
        let what = "the header of a frame";
        return Err(error(offset, what, header as u64, rest.len()));
    };
    let number = &front[..primitive.size() as usize];
    let length = super::number::scalar(number, primitive, order).as_integer();
    let length = u64::try_from(length.unwrap_or(0)).unwrap_or(0);
    let Some(length) = length.checked_sub(counted) else {
        return Err(DecodeError {
            offset,
            path: String::new(),
            reason: Reason::FrameTooShort(length),
        });
    };
    let offset = offset + header;
    usize::try_from(length)
        .ok()
        .and_then(|length| behind.get(..length))
        .map(|bytes| Frame { offset, bytes })
        .ok_or_else(|| error(offset, "a frame", length, behind.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], framing: Framing) -> Vec<(usize, &[u8])> {
        frames(bytes, framing)
            .map(|frame| frame.expect("a whole frame"))
            .map(|frame| (frame.offset, frame.bytes))
            .collect()
    }

    #[test]
    fn frames_of_each_framing_return_message_bytes() {
        let length = |size, order| Framing::Length { size, order };
        let expected: &[(usize, &[u8])] = &[(2, b"ab"), (6, b"")];
        let two = length(LengthSize::Two, ByteOrder::Little);
        assert_eq!(all(b"\x02\0ab\0\0", two), expected);
        let two = length(LengthSize::Two, ByteOrder::Big);
        assert_eq!(all(b"\0\x02ab\0\0", two), expected);
        let four = length(LengthSize::Four, ByteOrder::Big);
        assert_eq!(all(b"\0\0\0\x01a", four), [(4, b"a".as_slice())]);
        let simple = b"\0\0\0\x07\x5B\xE0a\0\0\0\x06\x5B\xE0";
        assert_eq!(
            all(simple, Framing::SimpleOpen),
            [(6, b"a".as_slice()), (13, b"")]
        );
    }

    #[test]
    fn frames_truncated_returns_error() {
        for (bytes, framing, reason) in [
            (
                b"\0\0\0\x05\x5B\xE0".as_slice(),
                Framing::SimpleOpen,
                Reason::FrameTooShort(5),
            ),
            (
                b"\0\0",
                Framing::SimpleOpen,
                Reason::Truncated {
                    what: "the header of a frame",
                    needed: 6,
                    left: 2,
                },
            ),
            (
                b"\xFF\xFF\xFF\xFFa",
                Framing::Length {
                    size: LengthSize::Four,
                    order: ByteOrder::Big,
                },
                Reason::Truncated {
                    what: "a frame",
                    needed: u32::MAX.into(),
                    left: 1,
                },
            ),
        ] {
            let found: Vec<_> = frames(bytes, framing).collect();
            let [Err(error)] = found.as_slice() else {
                panic!("{found:?}")
            };
            assert_eq!(error.reason, reason);
        }
    }
}
