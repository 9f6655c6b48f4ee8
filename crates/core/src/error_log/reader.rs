// SPDX-License-Identifier: Apache-2.0
//! Reading the distinct error log.

use super::{ALIGNMENT, HEADER_LENGTH, Header};
use crate::ascii;
use crate::memory::Region;
use crate::sync::Ordering;

/// One distinct error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorObservation {
    /// Number of observations; zero for a moment after the first one.
    pub count: i32,
    /// Time of the first observation, epoch milliseconds.
    pub first_ms: i64,
    /// Time of the last observation, epoch milliseconds.
    pub last_ms: i64,
    /// The text: lines of printable ASCII.
    pub text: String,
}

/// Calls `visit` for each error observed at `since_ms` (epoch) or later, in the order of their first
/// observations; returns the number of calls. Safe with any bytes in the region: an invalid record ends the log.
pub fn read(region: &Region, since_ms: i64, mut visit: impl FnMut(&ErrorObservation)) -> usize {
    let mut visited = 0;
    let mut offset = 0;
    while let Ok(header) = region.overlay::<Header>(offset) {
        // Acquire: partner of the release in `ErrorLog::append`.
        let length = usize::try_from(header.length.load(Ordering::Acquire)).unwrap_or(0);
        if length < HEADER_LENGTH {
            break;
        }
        let length = length.min(region.len() - offset);
        // Acquire: partner of the release in `ErrorLog::record`.
        let last_ms = header.last_ms.load(Ordering::Acquire);
        if last_ms >= since_ms {
            visit(&ErrorObservation {
                count: header.count.load(Ordering::Relaxed),
                first_ms: header.first_ms.load(Ordering::Relaxed),
                last_ms,
                text: ascii::read_lines(region, offset + HEADER_LENGTH, length - HEADER_LENGTH),
            });
            visited += 1;
        }
        offset = (offset + length).next_multiple_of(ALIGNMENT);
    }
    visited
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_can_be_read(
            bytes in prop::collection::vec(any::<u8>(), 1..400),
            lengths in prop::collection::vec((0..50_usize, -1..100_i32), 0..20),
        ) {
            let region = Region::anonymous(bytes.len()).unwrap();
            region.write(0, &bytes);
            for (index, length) in lengths {
                if index * 8 + 4 <= region.len() {
                    region.atomic_i32(index * 8).store(length, Ordering::Relaxed);
                }
            }
            let visited = read(&region, i64::MIN, |error| assert!(error.text.is_ascii()));
            prop_assert!(visited <= region.len() / HEADER_LENGTH);
        }
    }

    #[test]
    fn length_beyond_the_end_is_cut() {
        let region = Region::anonymous(32).unwrap();
        region.write(24, b"the text");
        region.atomic_i32(0).store(i32::MAX, Ordering::Relaxed);
        let mut texts = Vec::new();
        assert_eq!(read(&region, 0, |error| texts.push(error.text.clone())), 1);
        assert_eq!(texts, ["the text"]);
    }
}
