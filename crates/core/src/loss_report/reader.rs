// SPDX-License-Identifier: Apache-2.0
//! Reading the loss report.

use super::{CHANNEL_OFFSET, Header, LENGTH_FIELD, entry_length, source_offset};
use crate::ascii;
use crate::memory::Region;
use crate::sync::Ordering;

/// The losses of one image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LossObservation {
    /// Number of losses.
    pub count: i64,
    /// Total lost bytes.
    pub bytes_lost: i64,
    /// Time of the first loss, epoch milliseconds.
    pub first_ms: i64,
    /// Time of the last loss, epoch milliseconds.
    pub last_ms: i64,
    /// The image's session.
    pub session_id: i32,
    /// The image's stream.
    pub stream_id: i32,
    /// The URI that created the endpoint, in printable ASCII.
    pub channel: String,
    /// The identity of the sender, in printable ASCII.
    pub source: String,
}

/// Calls `visit` for each entry, in the order of creation; returns the number of calls. Safe with any
/// bytes in the region: an invalid entry ends the report.
pub fn read(region: &Region, mut visit: impl FnMut(&LossObservation)) -> usize {
    let mut visited = 0;
    let mut offset = 0;
    while let Ok(header) = region.overlay::<Header>(offset) {
        // Acquire: partner of the release in `LossReport::create_entry`.
        let count = header.count.load(Ordering::Acquire);
        if count <= 0 {
            break;
        }
        let Some(channel) = text(region, offset + CHANNEL_OFFSET) else {
            break;
        };
        let Some(source) = text(region, offset + source_offset(channel.len())) else {
            break;
        };
        let length = entry_length(channel.len(), source.len());
        visit(&LossObservation {
            count,
            bytes_lost: header.bytes_lost.load(Ordering::Acquire),
            first_ms: header.first_ms.load(Ordering::Relaxed),
            // Acquire: partner of the release in `LossEntry::record`.
            last_ms: header.last_ms.load(Ordering::Acquire),
            session_id: header.session_id.load(Ordering::Relaxed),
            stream_id: header.stream_id.load(Ordering::Relaxed),
            channel,
            source,
        });
        visited += 1;
        offset += length;
    }
    visited
}

/// A length and that many bytes; `None` if they are not all inside.
fn text(region: &Region, offset: usize) -> Option<String> {
    let start = offset
        .checked_add(LENGTH_FIELD)
        .filter(|&start| start <= region.len())?;
    let length = usize::try_from(region.atomic_i32(offset).load(Ordering::Relaxed)).ok()?;
    let inside = length <= region.len() - start;
    inside.then(|| ascii::read_line(region, start, length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_can_be_read(
            bytes in prop::collection::vec(any::<u8>(), 1..600),
            lengths in prop::collection::vec((0..150_usize, -1..100_i32), 0..40),
        ) {
            let region = Region::anonymous(bytes.len()).unwrap();
            region.write(0, &bytes);
            for (index, length) in lengths {
                if index * 4 + 4 <= region.len() {
                    region.atomic_i32(index * 4).store(length, Ordering::Relaxed);
                }
            }
            let visited = read(&region, |loss| assert!(loss.channel.is_ascii()));
            prop_assert!(visited <= region.len().div_ceil(64));
        }
    }

    #[test]
    fn texts_beyond_the_end_end_the_report() {
        let region = Region::anonymous(64).unwrap();
        region.atomic_i64(0).store(1, Ordering::Relaxed);
        for length in [-1, 21, i32::MAX, i32::MIN] {
            region.atomic_i32(40).store(length, Ordering::Relaxed);
            assert_eq!(read(&region, |_| ()), 0, "{length}");
        }
        region.atomic_i32(40).store(16, Ordering::Relaxed);
        assert_eq!(read(&region, |_| ()), 1);
    }
}
