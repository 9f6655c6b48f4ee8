// SPDX-License-Identifier: Apache-2.0
//! Labels: at most 380 bytes of ASCII in the metadata record.

use std::fmt;
use std::ops::Deref;
use std::str;

use super::layout::{LABEL_LENGTH, Metadata};
use crate::ascii;
use crate::sync::Ordering;

/// A copy of a counter's label: printable ASCII, regardless of the contents of the record.
#[derive(Clone)]
pub struct Label {
    bytes: [u8; LABEL_LENGTH],
    length: usize,
}

impl Label {
    /// Copies the label. The length is clamped, unprintable bytes become `?`, and zeros at the end are removed (labels
    /// that the C driver truncated end in one).
    pub(super) fn read(record: &Metadata) -> Self {
        let mut length = stored_length(record);
        let mut bytes = [0; LABEL_LENGTH];
        for (byte, stored) in bytes.iter_mut().zip(&record.label[..length]) {
            *byte = stored.load(Ordering::Relaxed);
        }
        while length > 0 && bytes[length - 1] == 0 {
            length -= 1;
        }
        for byte in &mut bytes[..length] {
            *byte = ascii::printable(*byte);
        }
        Self { bytes, length }
    }

    /// Writes a label, truncated at 380 bytes.
    pub(super) fn write(record: &Metadata, text: &str) {
        store(record, 0, text);
    }

    /// Appends to the label, truncated at 380 bytes in total.
    pub(super) fn append(record: &Metadata, text: &str) {
        store(record, stored_length(record), text);
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        // Never fails: `read` stores ASCII only.
        str::from_utf8(&self.bytes[..self.length]).unwrap_or("")
    }
}

fn stored_length(record: &Metadata) -> usize {
    // Acquire: partner of the release in `store`, so that the bytes are there.
    let length = record.label_length.load(Ordering::Acquire);
    usize::try_from(length).unwrap_or(0).min(LABEL_LENGTH)
}

fn store(record: &Metadata, start: usize, text: &str) {
    let mut end = start;
    for (target, byte) in record.label[start..].iter().zip(ascii::encode(text)) {
        target.store(byte, Ordering::Relaxed);
        end += 1;
    }
    // `end` is at most LABEL_LENGTH. Release: partner of the acquire in `stored_length`.
    record.label_length.store(end as i32, Ordering::Release);
}

impl Deref for Label {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq<str> for Label {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Label {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Region, Shared};

    fn record() -> Shared<Metadata> {
        Region::anonymous(512).unwrap().overlay(0).unwrap()
    }

    #[test]
    fn labels_are_cut() {
        let record = record();
        Label::write(&record, &"x".repeat(500));
        assert_eq!(Label::read(&record).len(), LABEL_LENGTH);
        Label::append(&record, "more");
        assert_eq!(Label::read(&record), "x".repeat(LABEL_LENGTH).as_str());
    }

    #[test]
    fn labels_grow_and_are_replaced() {
        let record = record();
        Label::write(&record, "client-heartbeat: id=3");
        Label::append(&record, " name=caf\u{e9}");
        assert_eq!(Label::read(&record), "client-heartbeat: id=3 name=caf?");
        Label::write(&record, "short");
        assert_eq!(
            format!("{:>7}|{0:?}", Label::read(&record)),
            "  short|\"short\""
        );
    }

    #[test]
    fn any_stored_length_and_bytes_can_be_read() {
        let record = record();
        Label::write(&record, "a\x1bb\0\0");
        assert_eq!(Label::read(&record), "a?b");
        for (stored, read) in [
            (-1, 0),
            (i32::MIN, 0),
            (0, 0),
            (2, 2),
            (381, 3),
            (i32::MAX, 3),
        ] {
            record.label_length.store(stored, Ordering::Release);
            assert_eq!(Label::read(&record).len(), read, "{stored}");
        }
    }
}
