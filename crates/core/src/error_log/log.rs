// SPDX-License-Identifier: Apache-2.0
//! Writing the distinct error log.

use std::collections::HashMap;

use thiserror::Error;

use super::{ALIGNMENT, HEADER_LENGTH, Header};
use crate::ascii;
use crate::memory::{Region, Shared};
use crate::sync::Ordering;

/// Longest text of one error; longer ones are truncated.
const MAX_TEXT: usize = 16 * 1024;

/// The only writer of a log. Code and description identify an error: the same pair is the same record.
#[doc(alias = "DistinctErrorLog")]
#[derive(Debug)]
pub struct ErrorLog {
    region: Region,
    next: usize,
    records: HashMap<i32, HashMap<Box<str>, Shared<Header>>>,
}

/// There is no space for another distinct error.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "the error log is full: {used} of {capacity} bytes are used and {needed} are needed (see \
     aeron.error.buffer.length)"
)]
#[non_exhaustive]
pub struct ErrorLogFull {
    /// Bytes used so far.
    pub used: usize,
    /// Bytes the record would take.
    pub needed: usize,
    /// Bytes there are.
    pub capacity: usize,
}

impl ErrorLog {
    /// A log in a zeroed region.
    pub fn open(region: Region) -> Self {
        Self {
            region,
            next: 0,
            records: HashMap::new(),
        }
    }

    /// Returns the memory of the log.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Records an observation at `now_epoch_ms`: in the existing record of this error, or in a new one with the
    /// description as its text.
    ///
    /// # Errors
    /// The error is new and does not fit; nothing was written.
    pub fn record(
        &mut self,
        now_epoch_ms: i64,
        code: i32,
        description: &str,
    ) -> Result<(), ErrorLogFull> {
        let text = &description[..description.floor_char_boundary(MAX_TEXT)];
        let known = self
            .records
            .get(&code)
            .and_then(|records| records.get(text));
        let record = if let Some(record) = known {
            record
        } else {
            let record = self.append(now_epoch_ms, text)?;
            self.records
                .entry(code)
                .or_default()
                .entry(text.into())
                .or_insert(record)
        };
        record.count.fetch_add(1, Ordering::AcqRel);
        // Release: partner of the reader's acquire; a reader that sees the new time sees the count.
        record.last_ms.store(now_epoch_ms, Ordering::Release);
        Ok(())
    }

    fn append(&mut self, now_epoch_ms: i64, text: &str) -> Result<Shared<Header>, ErrorLogFull> {
        let bytes: Vec<u8> = ascii::encode(text).collect();
        let needed = HEADER_LENGTH + bytes.len();
        let full = ErrorLogFull {
            used: self.next,
            needed,
            capacity: self.region.len(),
        };
        let offset = self.next;
        let fits = offset
            .checked_add(needed)
            .is_some_and(|end| end <= self.region.len());
        let header = self.region.overlay::<Header>(offset).map_err(|_| full)?;
        if !fits {
            return Err(full);
        }
        self.region.write(offset + HEADER_LENGTH, &bytes);
        header.first_ms.store(now_epoch_ms, Ordering::Relaxed);
        header.count.store(0, Ordering::Relaxed);
        // MAX_TEXT keeps it far below i32::MAX. Release: partner of the acquire in `read`.
        header.length.store(needed as i32, Ordering::Release);
        self.next = (offset + needed).next_multiple_of(ALIGNMENT);
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    fn contents(region: &Region, since_ms: i64) -> Vec<(i32, i64, i64, String)> {
        let mut contents = Vec::new();
        read(region, since_ms, |error| {
            contents.push((
                error.count,
                error.first_ms,
                error.last_ms,
                error.text.clone(),
            ));
        });
        contents
    }

    #[test]
    fn same_error_is_one_record() {
        let region = Region::anonymous(1024).unwrap();
        let mut log = ErrorLog::open(region.clone());
        log.record(10, 1, "unknown host").unwrap();
        log.record(20, 2, "unknown host").unwrap();
        log.record(30, 1, "unknown host").unwrap();
        log.record(40, 1, "no such caf\u{e9}").unwrap();
        let expected = [
            (2, 10, 30, "unknown host".to_owned()),
            (1, 20, 20, "unknown host".to_owned()),
            (1, 40, 40, "no such caf?".to_owned()),
        ];
        assert_eq!(contents(&region, 0), expected);
        assert_eq!(
            contents(&region, 30),
            [expected[0].clone(), expected[2].clone()]
        );
    }

    #[test]
    fn layout_is_as_specified() {
        let region = Region::anonymous(128).unwrap();
        let mut log = ErrorLog::open(region.clone());
        log.record(7, 0, "abc").unwrap();
        log.record(8, 0, "d").unwrap();
        assert_eq!(region.atomic_i32(0).load(Ordering::Relaxed), 27);
        assert_eq!(region.atomic_i32(4).load(Ordering::Relaxed), 1);
        assert_eq!(region.atomic_i64(8).load(Ordering::Relaxed), 7);
        assert_eq!(region.atomic_i64(16).load(Ordering::Relaxed), 7);
        assert_eq!(region.bytes(24, 3), b"abc");
        assert_eq!(region.atomic_i32(32).load(Ordering::Relaxed), 25);
    }

    #[test]
    fn full_log_takes_known_errors_only() {
        let region = Region::anonymous(64).unwrap();
        let mut log = ErrorLog::open(region.clone());
        log.record(1, 0, "0123456789abcdef").unwrap();
        let full = log.record(2, 0, "x").unwrap_err();
        assert_eq!(
            full,
            ErrorLogFull {
                used: 40,
                needed: 25,
                capacity: 64
            }
        );
        log.record(3, 0, "").unwrap();
        log.record(4, 0, "0123456789abcdef").unwrap();
        assert!(log.record(5, 0, "y").is_err());
        let expected = [
            (2, 1, 4, "0123456789abcdef".to_owned()),
            (1, 3, 3, String::new()),
        ];
        assert_eq!(contents(&region, 0), expected);
    }

    #[test]
    fn long_texts_are_cut() {
        let region = Region::anonymous(1 << 20).unwrap();
        let mut log = ErrorLog::open(region.clone());
        let text = "\u{e9}".repeat(MAX_TEXT);
        log.record(1, 0, &text).unwrap();
        log.record(2, 0, &text).unwrap();
        assert_eq!(contents(&region, 0), [(2, 1, 2, "?".repeat(MAX_TEXT / 2))]);
    }
}
