// SPDX-License-Identifier: Apache-2.0
//! Framing: where a message begins and ends in a stream of bytes (`docs/spec/fix-gateway.md` §3.1).
//!
//! [`Framer::next`] looks at the bytes that have been received and not consumed, and returns one message, one garbled
//! piece to drop, or that more bytes are needed. It keeps no state: the caller drops what is consumed and calls again.

use thiserror::Error;

use super::{Fields, SOH};

/// Longest BeginString with its tag and delimiter: `8=FIXT.1.1` and SOH, with room for two-digit versions.
const MAX_BEGIN: usize = 14;
/// Longest BodyLength with its tag and delimiter: nine digits.
const MAX_LENGTH_FIELD: usize = 12;
/// Length of the CheckSum field with its delimiter.
const TRAILER: usize = 7;

/// One message whose BeginString, BodyLength, MsgType position and CheckSum are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'bytes> {
    bytes: &'bytes [u8],
    /// Offset of `35=`.
    body: usize,
    /// Offset of `10=`.
    trailer: usize,
}

impl<'bytes> Frame<'bytes> {
    /// Returns the whole message.
    #[must_use]
    pub const fn bytes(&self) -> &'bytes [u8] {
        self.bytes
    }

    /// Returns the value of BeginString.
    #[must_use]
    pub fn begin_string(&self) -> &'bytes [u8] {
        let end = self.bytes.iter().position(|byte| *byte == SOH);
        self.bytes.get(2..end.unwrap_or(2)).unwrap_or_default()
    }

    /// Returns the value of MsgType: one to four printable bytes.
    #[must_use]
    pub fn msg_type(&self) -> &'bytes [u8] {
        let value = self.bytes.get(self.body + 3..).unwrap_or_default();
        let end = value.iter().position(|byte| *byte == SOH);
        value.get(..end.unwrap_or(0)).unwrap_or_default()
    }

    /// Returns the offset of MsgType, the first field that BodyLength counts.
    #[must_use]
    pub const fn body_start(&self) -> usize {
        self.body
    }

    /// Returns the offset of CheckSum.
    #[must_use]
    pub const fn body_end(&self) -> usize {
        self.trailer
    }

    /// Returns the fields from MsgType up to CheckSum, without both ends of the frame.
    #[must_use]
    pub fn fields(&self) -> Fields<'bytes> {
        Fields::new(self.bytes, self.body, self.trailer)
    }

    /// Returns the value of the first field with this tag. Data fields are passed over by their lengths.
    #[must_use]
    pub fn get(&self, tag: u32) -> Option<&'bytes [u8]> {
        self.fields()
            .filter_map(Result::ok)
            .find_map(|field| (field.tag == tag).then_some(field.value))
    }
}

/// Reason why bytes are not a message. The number of the message, if it has one, is not consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Garbled {
    /// The bytes do not begin a message.
    #[error("the bytes do not begin with BeginString (8)")]
    NoMessage,
    /// BeginString is not of the form `FIX.4.4` or `FIXT.1.1`.
    #[error("BeginString (8) is not FIX.d.d or FIXT.d.d")]
    BeginString,
    /// BodyLength is not the second field, or not a number of one to nine digits.
    #[error("BodyLength (9) is missing or not a number of at most nine digits")]
    BodyLength,
    /// BodyLength is larger than the limit.
    #[error("BodyLength (9) is {length}, at most {limit} is allowed")]
    TooLong {
        /// Claimed length.
        length: usize,
        /// Limit of the framer.
        limit: usize,
    },
    /// CheckSum does not follow where BodyLength says.
    #[error("CheckSum (10) does not follow where BodyLength (9) says")]
    Trailer,
    /// CheckSum is wrong.
    #[error("CheckSum (10) is {found:03}, the bytes sum up to {computed:03}")]
    CheckSum {
        /// Value of the field.
        found: u16,
        /// Sum of the bytes.
        computed: u8,
    },
    /// The third field is not MsgType, or its value is not one to four printable bytes.
    #[error("MsgType (35) is not the third field, or not of one to four printable characters")]
    MsgType,
}

/// Result of [`Framer::next`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framed<'bytes> {
    /// A message at the start of the bytes. Consume its length.
    Message(Frame<'bytes>),
    /// Bytes to drop. Consume `length`, which is at least 1.
    Garbled {
        /// Reason.
        reason: Garbled,
        /// Number of bytes to consume.
        length: usize,
    },
    /// The message is not complete yet.
    Incomplete,
}

/// The point where framing goes on after a garbled message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resync {
    /// After the claimed length. A wrong claim swallows what follows; text inside of a message is never taken for one.
    #[default]
    Length,
    /// At the next `8=FIX` after a delimiter, even inside of the garbled message.
    Scan,
}

/// Finds messages in received bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framer {
    limit: usize,
    resync: Resync,
}

impl Framer {
    /// Returns a framer for messages with a BodyLength of at most `limit`.
    #[must_use]
    pub const fn new(limit: usize, resync: Resync) -> Self {
        Self { limit, resync }
    }

    /// Returns the message at the start of `bytes`, bytes to drop, or that more are needed.
    #[must_use]
    pub fn next<'bytes>(&self, bytes: &'bytes [u8]) -> Framed<'bytes> {
        match bytes {
            [] | [b'8'] => return Framed::Incomplete,
            [b'8', b'=', ..] => {}
            _ => return Self::garbage(bytes, Garbled::NoMessage),
        }
        let head = &bytes[..bytes.len().min(MAX_BEGIN)];
        let Some(end) = head.iter().position(|byte| *byte == SOH) else {
            return if bytes.len() < MAX_BEGIN {
                Framed::Incomplete
            } else {
                Self::garbage(bytes, Garbled::BeginString)
            };
        };
        if !is_begin_string(&bytes[2..end]) {
            return Self::garbage(bytes, Garbled::BeginString);
        }
        let (length, body) = match body_length(bytes, end + 1) {
            Ok(Some(found)) => found,
            Ok(None) => return Framed::Incomplete,
            Err(reason) => return Self::garbage(bytes, reason),
        };
        if length > self.limit {
            let limit = self.limit;
            return Self::garbage(bytes, Garbled::TooLong { length, limit });
        }
        let trailer = body + length;
        let Some(last) = bytes.get(trailer..trailer + TRAILER) else {
            return Framed::Incomplete;
        };
        let found = match last {
            [b'1', b'0', b'=', a, b, c, SOH] if bytes[trailer - 1] == SOH => number(&[*a, *b, *c]),
            _ => None,
        };
        let Some(found) = found else {
            return self.dropped(bytes, trailer, Garbled::Trailer);
        };
        let end = trailer + TRAILER;
        let computed = checksum(&bytes[..trailer]);
        let found = u16::try_from(found).unwrap_or(u16::MAX);
        if found != u16::from(computed) {
            return self.dropped(bytes, end, Garbled::CheckSum { found, computed });
        }
        let frame = Frame {
            bytes: &bytes[..end],
            body,
            trailer,
        };
        if !has_msg_type(&bytes[body..trailer]) {
            return self.dropped(bytes, end, Garbled::MsgType);
        }
        Framed::Message(frame)
    }

    /// Drops up to `end`, the end that the message claims, or only up to the next start with [`Resync::Scan`].
    fn dropped<'bytes>(&self, bytes: &[u8], end: usize, reason: Garbled) -> Framed<'bytes> {
        if self.resync == Resync::Scan {
            return Self::garbage(bytes, reason);
        }
        // After a complete trailer the next byte is a start. Elsewhere the cut is not at a delimiter that the peer's
        // sender wrote: text that begins with `8=FIX` must not look like a start.
        let is_whole = matches!(reason, Garbled::CheckSum { .. } | Garbled::MsgType);
        let length = if is_whole { end } else { before(bytes, end) };
        let length = length.max(1);
        Framed::Garbled { reason, length }
    }

    /// Drops everything before the next start.
    fn garbage<'bytes>(bytes: &[u8], reason: Garbled) -> Framed<'bytes> {
        let start = bytes
            .windows(6)
            .position(|window| window == b"\x018=FIX")
            .map(|at| at + 1);
        let length = start.unwrap_or_else(|| {
            // The end can be the first part of a delimiter and `8=FIX`.
            let kept = (1..6).rev().find(|kept| {
                let tail = bytes.len().checked_sub(*kept).map(|at| &bytes[at..]);
                tail.is_some_and(|tail| b"\x018=FIX".starts_with(tail))
            });
            kept.map_or_else(|| before(bytes, bytes.len()), |kept| bytes.len() - kept)
        });
        if length == 0 {
            // A single byte, or a possible start behind a delimiter.
            return Framed::Incomplete;
        }
        Framed::Garbled { reason, length }
    }
}

/// Returns a point shortly before `end` at which the rest cannot be mistaken for the start of a message.
fn before(bytes: &[u8], end: usize) -> usize {
    let kept = if bytes.get(end.wrapping_sub(1)) == Some(&b'8') {
        2
    } else {
        1
    };
    end.saturating_sub(kept)
}

fn is_begin_string(value: &[u8]) -> bool {
    let version = value
        .strip_prefix(b"FIXT.")
        .or_else(|| value.strip_prefix(b"FIX."));
    matches!(version, Some([major, b'.', minor]) if major.is_ascii_digit() && minor.is_ascii_digit())
}

/// Returns BodyLength and the offset after its field; nothing if the field is not complete.
fn body_length(bytes: &[u8], at: usize) -> Result<Option<(usize, usize)>, Garbled> {
    let rest = &bytes[at..bytes.len().min(at + MAX_LENGTH_FIELD)];
    let head = &rest[..rest.len().min(2)];
    if !b"9=".starts_with(head) {
        return Err(Garbled::BodyLength);
    }
    let Some(end) = rest.iter().position(|byte| *byte == SOH) else {
        let digits = rest.get(2..).unwrap_or_default();
        let is_possible = digits.iter().all(u8::is_ascii_digit) && rest.len() < MAX_LENGTH_FIELD;
        return if is_possible {
            Ok(None)
        } else {
            Err(Garbled::BodyLength)
        };
    };
    let value = rest.get(2..end).and_then(number);
    let value = value.ok_or(Garbled::BodyLength)?;
    // A body holds at least MsgType.
    if value < b"35=0\x01".len() {
        return Err(Garbled::BodyLength);
    }
    Ok(Some((value, at + end + 1)))
}

/// Returns the number of one to nine digits.
fn number(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |sum: usize, digit: &u8| sum * 10 + usize::from(digit - b'0');
    Some(digits.iter().fold(0, add))
}

fn has_msg_type(body: &[u8]) -> bool {
    let Some(value) = body.strip_prefix(b"35=") else {
        return false;
    };
    let end = value.iter().take(5).position(|byte| *byte == SOH);
    end.is_some_and(|end| end > 0 && value[..end].iter().all(u8::is_ascii_graphic))
}

/// Returns the sum of the bytes modulo 256.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: &str) -> Vec<u8> {
        let body = body.replace('|', "\x01");
        let mut bytes = format!("8=FIX.4.4\x019={}\x01{body}", body.len()).into_bytes();
        let sum = checksum(&bytes);
        bytes.extend(format!("10={sum:03}\x01").into_bytes());
        bytes
    }

    /// Returns the types of all messages, and the number of garbled pieces, with the bytes arriving in chunks.
    fn frames(bytes: &[u8], chunk: usize, framer: Framer) -> (Vec<String>, usize) {
        let (mut pending, mut types, mut garbled) = (Vec::new(), Vec::new(), 0);
        for part in bytes.chunks(chunk) {
            pending.extend_from_slice(part);
            loop {
                let length = match framer.next(&pending) {
                    Framed::Message(frame) => {
                        types.push(String::from_utf8_lossy(frame.msg_type()).into_owned());
                        frame.bytes().len()
                    }
                    Framed::Garbled { length, .. } => {
                        garbled += 1;
                        length
                    }
                    Framed::Incomplete => break,
                };
                assert!(length > 0);
                pending.drain(..length);
            }
        }
        (types, garbled)
    }

    const FRAMER: Framer = Framer::new(1 << 20, Resync::Length);

    #[test]
    fn framer_any_split_returns_same_messages() {
        let mut bytes = message("35=0|34=1|");
        bytes.extend(message("35=AE|34=2|58=8=FIX.4.4|"));
        for chunk in 1..bytes.len() {
            let (types, garbled) = frames(&bytes, chunk, FRAMER);
            assert_eq!((types, garbled), (vec!["0".into(), "AE".into()], 0));
        }
    }

    #[test]
    fn framer_wrong_checksum_drops_one_message() {
        let mut bytes = message("35=0|34=1|");
        bytes[23] ^= 1;
        bytes.extend(message("35=1|34=2|"));
        assert_eq!(frames(&bytes, 7, FRAMER), (vec!["1".into()], 1));
    }

    #[test]
    fn framer_short_length_drops_one_message_long_length_drops_two() {
        let text = String::from_utf8(message("35=0|34=1|")).expect("ASCII");
        let after = message("35=1|34=2|");
        let last = message("35=2|34=3|");
        let short = [text.replace("9=10\x01", "9=8\x01").as_bytes(), &after].concat();
        assert_eq!(frames(&short, 1000, FRAMER).0, ["1"]);
        let long = [
            text.replace("9=10\x01", "9=30\x01").as_bytes(),
            &after,
            &last,
        ]
        .concat();
        assert_eq!(frames(&long, 1000, FRAMER).0, ["2"]);
        let scan = Framer::new(1 << 20, Resync::Scan);
        assert_eq!(frames(&long, 1000, scan).0, ["1", "2"]);
    }

    #[test]
    fn framer_text_that_looks_like_start_is_not_one() {
        // The claimed length ends right before text that begins like a message.
        let inner = message("35=5|34=9|");
        let mut bytes = b"8=FIX.4.4\x019=13\x0135=0\x0158=aaaaa".to_vec();
        bytes.extend(&inner);
        for chunk in 1..bytes.len() {
            assert_eq!(
                frames(&bytes, chunk, FRAMER).0,
                Vec::<String>::new(),
                "{chunk}"
            );
        }
    }

    #[test]
    fn framer_bad_heads_are_garbled() {
        for (bytes, reason) in [
            (&b"GET / HTTP/1.1\r\n"[..], Garbled::NoMessage),
            (b"8=FIX.44\x019=5\x01", Garbled::BeginString),
            (b"8=FIX.4.444444444444444444", Garbled::BeginString),
            (b"8=FIX.4.4\x0135=0\x019=5\x01", Garbled::BodyLength),
            (b"8=FIX.4.4\x019=-5\x01", Garbled::BodyLength),
            (b"8=FIX.4.4\x019=\x01", Garbled::BodyLength),
            (b"8=FIX.4.4\x019=1234567890\x01", Garbled::BodyLength),
            (b"8=FIX.4.4\x019=0\x0110=000\x01", Garbled::BodyLength),
        ] {
            let next = FRAMER.next(bytes);
            assert!(
                matches!(next, Framed::Garbled { reason: found, .. } if found == reason),
                "{next:?}"
            );
        }
        let limit = Garbled::TooLong {
            length: 999_999_999,
            limit: 1 << 20,
        };
        let next = FRAMER.next(b"8=FIX.4.4\x019=999999999\x01");
        assert!(matches!(next, Framed::Garbled { reason, .. } if reason == limit));
    }

    #[test]
    fn framer_msg_type_not_third_is_garbled() {
        let (types, garbled) = frames(&message("34=1|35=0|"), 100, FRAMER);
        assert_eq!((types.len(), garbled), (0, 1));
        assert_eq!(frames(&message("35=|34=1|"), 100, FRAMER).0.len(), 0);
        assert_eq!(frames(&message("35=ABCDE|34=1|"), 100, FRAMER).0.len(), 0);
    }
}
