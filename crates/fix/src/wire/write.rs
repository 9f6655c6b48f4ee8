// SPDX-License-Identifier: Apache-2.0
//! Writers of fields and of whole messages into a buffer of the caller.

use thiserror::Error;

use super::{Decimal, Precision, SOH, Timestamp, checksum};

/// Reason why a message cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The buffer is too small.
    #[error("the buffer of {capacity} bytes is too small for the message")]
    Full {
        /// Size of the buffer.
        capacity: usize,
    },
    /// A value that is not data is empty or contains the delimiter.
    #[error("the value of tag {tag} is empty or contains the delimiter SOH")]
    Value {
        /// Tag.
        tag: u32,
    },
    /// A required field is missing.
    #[error("required tag {tag} is missing")]
    Missing {
        /// Tag.
        tag: u32,
    },
    /// A field was written twice.
    #[error("tag {tag} is written twice")]
    Twice {
        /// Tag.
        tag: u32,
    },
    /// The first field of a group entry was not written first.
    #[error("an entry of group {group} has to begin with tag {first}")]
    GroupStart {
        /// Tag of the count.
        group: u32,
        /// Tag of the first field.
        first: u32,
    },
}

/// Writer of fields. The first error sticks, and [`Writer::finish`] returns it.
#[derive(Debug)]
pub struct Writer<'buffer> {
    buffer: &'buffer mut [u8],
    length: usize,
    error: Option<WriteError>,
}

impl<'buffer> Writer<'buffer> {
    /// Returns a writer into an empty buffer.
    #[must_use]
    pub const fn new(buffer: &'buffer mut [u8]) -> Self {
        Self {
            buffer,
            length: 0,
            error: None,
        }
    }

    /// Returns the number of bytes written.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Returns true if nothing is written.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Records an error; the first one is kept.
    pub fn fail(&mut self, error: WriteError) {
        self.error.get_or_insert(error);
    }

    /// Returns the written bytes, or the first error.
    ///
    /// # Errors
    ///
    /// The first reason why something could not be written.
    pub fn finish(self) -> Result<&'buffer [u8], WriteError> {
        match self.error {
            None => Ok(&self.buffer[..self.length]),
            Some(error) => Err(error),
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if let Some(space) = self.buffer.get_mut(self.length..end) {
            space.copy_from_slice(bytes);
            self.length = end;
        } else {
            let capacity = self.buffer.len();
            self.fail(WriteError::Full { capacity });
        }
    }

    fn tag(&mut self, tag: u32) {
        let mut digits = [b'='; 11];
        let mut at = 10;
        let mut rest = tag;
        loop {
            at -= 1;
            // One digit of ten: fits.
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.put(&digits[at..]);
    }

    /// Writes fields that are encoded already, each with its delimiter.
    pub fn encoded(&mut self, fields: &[u8]) {
        self.put(fields);
    }

    /// Writes a text.
    pub fn text(&mut self, tag: u32, value: &[u8]) {
        if value.is_empty() || value.contains(&SOH) {
            self.fail(WriteError::Value { tag });
            return;
        }
        self.tag(tag);
        self.put(value);
        self.put(&[SOH]);
    }

    /// Writes an integer.
    pub fn int(&mut self, tag: u32, value: i64) {
        self.decimal(tag, Decimal::from(value));
    }

    /// Writes a non-negative integer.
    pub fn unsigned(&mut self, tag: u32, value: u64) {
        let mut digits = [SOH; 21];
        let mut at = 20;
        let mut rest = value;
        loop {
            at -= 1;
            // One digit of ten: fits.
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.tag(tag);
        self.put(&digits[at..]);
    }

    /// Writes a decimal number.
    pub fn decimal(&mut self, tag: u32, value: Decimal) {
        let mut buffer = [0; 40];
        self.tag(tag);
        self.put(value.write(&mut buffer));
        self.put(&[SOH]);
    }

    /// Writes `Y` or `N`.
    pub fn boolean(&mut self, tag: u32, value: bool) {
        self.tag(tag);
        self.put(&[if value { b'Y' } else { b'N' }, SOH]);
    }

    /// Writes one character.
    pub fn char(&mut self, tag: u32, value: u8) {
        self.text(tag, &[value]);
    }

    /// Writes a time.
    pub fn timestamp(&mut self, tag: u32, value: Timestamp, precision: Precision) {
        let mut buffer = [0; Timestamp::MAX_LENGTH];
        self.tag(tag);
        self.put(value.write(precision, &mut buffer));
        self.put(&[SOH]);
    }

    /// Writes data, which may contain delimiters, behind its length.
    pub fn data(&mut self, length_tag: u32, tag: u32, value: &[u8]) {
        if value.is_empty() {
            self.fail(WriteError::Value { tag });
            return;
        }
        self.unsigned(length_tag, value.len() as u64);
        self.tag(tag);
        self.put(value);
        self.put(&[SOH]);
    }
}

/// First fields of a message.
#[derive(Debug, Clone, Copy)]
pub struct Header<'value> {
    /// BeginString.
    pub begin_string: &'value [u8],
    /// MsgType.
    pub msg_type: &'value [u8],
    /// SenderCompID.
    pub sender: &'value [u8],
    /// TargetCompID.
    pub target: &'value [u8],
    /// MsgSeqNum.
    pub seq: u64,
    /// SendingTime.
    pub sending_time: Timestamp,
    /// Digits of the time.
    pub precision: Precision,
}

/// Space in front of MsgType for BeginString and BodyLength.
const FRONT: usize = 32;

impl Header<'_> {
    /// Writes a message with this header into the buffer and returns its bytes, which need not begin where the buffer
    /// does: BodyLength is written last, without padding. `rest` writes all other fields of header and body.
    ///
    /// # Errors
    ///
    /// A value with a delimiter, or a buffer that is too small.
    pub fn write<'buffer>(
        &self,
        buffer: &'buffer mut [u8],
        rest: impl FnOnce(&mut Writer<'_>),
    ) -> Result<&'buffer mut [u8], WriteError> {
        seal(buffer, self.begin_string, |writer| {
            writer.text(35, self.msg_type);
            writer.unsigned(34, self.seq);
            writer.text(49, self.sender);
            writer.timestamp(52, self.sending_time, self.precision);
            writer.text(56, self.target);
            rest(writer);
        })
    }
}

/// Writes a message around the fields from MsgType on: BeginString and BodyLength in front, CheckSum behind.
///
/// # Errors
///
/// A BeginString that is too long, what `fields` reports, or a buffer that is too small.
pub fn seal<'buffer>(
    buffer: &'buffer mut [u8],
    begin_string: &[u8],
    fields: impl FnOnce(&mut Writer<'_>),
) -> Result<&'buffer mut [u8], WriteError> {
    let capacity = buffer.len();
    let full = WriteError::Full { capacity };
    let (front, space) = buffer.split_at_mut_checked(FRONT).ok_or(full)?;
    let mut body = Writer::new(space);
    fields(&mut body);
    let length = match body.finish() {
        Ok(body) => body.len(),
        Err(WriteError::Full { .. }) => return Err(full),
        Err(error) => return Err(error),
    };
    let mut scratch = [0; FRONT];
    let mut head = Writer::new(&mut scratch);
    head.text(8, begin_string);
    head.unsigned(9, length as u64);
    let head = head.finish().map_err(|_| WriteError::Value { tag: 8 })?;
    let start = FRONT - head.len();
    front[start..].copy_from_slice(head);
    let end = FRONT + length;
    let sum = checksum(&buffer[start..end]);
    let trailer = buffer.get_mut(end..end + 7).ok_or(full)?;
    let digit = |divisor: u8| b'0' + sum / divisor % 10;
    trailer.copy_from_slice(&[b'1', b'0', b'=', digit(100), digit(10), digit(1), SOH]);
    Ok(&mut buffer[start..end + 7])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Framed, Framer, Resync};

    fn header() -> Header<'static> {
        Header {
            begin_string: b"FIX.4.4",
            msg_type: b"D",
            sender: b"A",
            target: b"B",
            seq: 7,
            sending_time: Timestamp::from_nanos(0),
            precision: Precision::Millis,
        }
    }

    #[test]
    fn header_written_message_is_framed() {
        let mut buffer = [0; 200];
        let bytes = header().write(&mut buffer, |writer| {
            writer.text(11, b"id");
            writer.data(95, 96, b"a\x01b");
            writer.int(38, -5);
            writer.boolean(43, true);
        });
        let bytes = bytes.expect("fits");
        let shown = String::from_utf8_lossy(bytes).replace('\x01', "|");
        assert_eq!(
            shown,
            "8=FIX.4.4|9=74|35=D|34=7|49=A|52=19700101-00:00:00.000|56=B|11=id|95=3|96=a|b|38=-5|43=Y|10=029|"
        );
        let framer = Framer::new(1000, Resync::Length);
        assert!(
            matches!(framer.next(bytes), Framed::Message(frame) if frame.bytes().len() == bytes.len())
        );
    }

    #[test]
    fn header_small_buffer_or_delimiter_is_refused() {
        for size in 0..90 {
            let mut buffer = vec![0; size];
            let written = header().write(&mut buffer, |writer| writer.text(11, b"id"));
            assert_eq!(written.err(), Some(WriteError::Full { capacity: size }));
        }
        let mut buffer = [0; 200];
        for value in [&b""[..], b"a\x01b"] {
            let written = header().write(&mut buffer, |writer| writer.text(11, value));
            assert_eq!(written.err(), Some(WriteError::Value { tag: 11 }));
        }
    }
}
