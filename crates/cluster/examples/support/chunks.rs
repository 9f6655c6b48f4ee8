// SPDX-License-Identifier: Apache-2.0
//! Snapshots as frames of bounded length, with the name and the version of their format.
//!
//! The first frame has the name (8 bytes), the version (4 bytes) and the number of items (8 bytes), little-endian. Each frame
//! behind it is a chunk of whole items, each with its length (4 bytes) before it.

use taran_cluster::service::SnapshotWriter;
use thiserror::Error;

/// Length from which a chunk is written. A frame may be longer than that by one item.
const CHUNK_LENGTH: usize = 8 * 1024;

const HEADER_LENGTH: usize = 20;

/// Name of a format, and the version that this program writes: the highest one that it reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub(crate) name: &'static [u8; 8],
    pub(crate) version: u32,
}

/// Reason why frames are no snapshot of a service.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ChunkError {
    #[error("it has no header of {HEADER_LENGTH} bytes")]
    NoHeader,
    #[error("it is one of {found:?}, not of {expected:?}")]
    Name { found: String, expected: String },
    #[error("its format has version {found}; this program reads versions 1 to {known}")]
    Version { found: u32, known: u32 },
    #[error("frame {frame} ends in the middle of an item")]
    Truncated { frame: usize },
    #[error("it has {found} items, its header says {expected}")]
    Items { found: u64, expected: u64 },
    #[error("item {item}: {reason}")]
    Item { item: u64, reason: &'static str },
}

/// Writes a snapshot with this number of items, which are made while the snapshot is recorded.
pub(crate) fn write(
    snapshot: &mut SnapshotWriter,
    format: Format,
    count: usize,
    items: impl Iterator<Item = Vec<u8>> + Send + 'static,
) {
    let mut header = format.name.to_vec();
    header.extend_from_slice(&format.version.to_le_bytes());
    header.extend_from_slice(&(count as u64).to_le_bytes());
    snapshot.write(header);
    snapshot.write_later(Chunks { items });
}

/// Makes chunks of items.
struct Chunks<I> {
    items: I,
}

impl<I: Iterator<Item = Vec<u8>>> Iterator for Chunks<I> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut chunk = Vec::new();
        while chunk.len() < CHUNK_LENGTH
            && let Some(item) = self.items.next()
        {
            // Items come from messages, whose length is an i32.
            chunk.extend_from_slice(&(item.len() as u32).to_le_bytes());
            chunk.extend_from_slice(&item);
        }
        (!chunk.is_empty()).then_some(chunk)
    }
}

/// Reads the items of a snapshot in order.
#[derive(Debug)]
pub(crate) struct ChunkReader<'a> {
    frames: &'a [Vec<u8>],
    /// Frame that is read, and what is left of it.
    frame: usize,
    rest: &'a [u8],
    items: u64,
    read: u64,
}

impl<'a> ChunkReader<'a> {
    pub(crate) fn open(frames: &'a [Vec<u8>], format: Format) -> Result<Self, ChunkError> {
        let header = frames.first().ok_or(ChunkError::NoHeader)?;
        let (Some((name, rest)), HEADER_LENGTH) = (header.split_first_chunk::<8>(), header.len())
        else {
            return Err(ChunkError::NoHeader);
        };
        if name != format.name {
            return Err(ChunkError::Name {
                found: String::from_utf8_lossy(name).into_owned(),
                expected: String::from_utf8_lossy(format.name).into_owned(),
            });
        }
        let version = u32_at(rest, 0).ok_or(ChunkError::NoHeader)?;
        if !(1..=format.version).contains(&version) {
            return Err(ChunkError::Version {
                found: version,
                known: format.version,
            });
        }
        Ok(Self {
            frames,
            frame: 0,
            rest: &[],
            items: u64_at(rest, 4).ok_or(ChunkError::NoHeader)?,
            read: 0,
        })
    }

    /// Returns the next item; none at the end, where all items of the header have come.
    pub(crate) fn next_item(&mut self) -> Result<Option<&'a [u8]>, ChunkError> {
        while self.rest.is_empty() {
            self.frame += 1;
            let Some(frame) = self.frames.get(self.frame) else {
                let (found, expected) = (self.read, self.items);
                return if found == expected {
                    Ok(None)
                } else {
                    Err(ChunkError::Items { found, expected })
                };
            };
            self.rest = frame;
        }
        let truncated = ChunkError::Truncated { frame: self.frame };
        let item = self
            .rest
            .split_first_chunk::<4>()
            .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize));
        let (item, rest) = item.ok_or(truncated)?;
        self.rest = rest;
        self.read += 1;
        Ok(Some(item))
    }

    /// Returns the error of the item that was read last.
    pub(crate) fn invalid(&self, reason: &'static str) -> ChunkError {
        ChunkError::Item {
            item: self.read.saturating_sub(1),
            reason,
        }
    }
}

/// Returns the number at an offset; none behind the end.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

/// Returns the number at an offset; none behind the end.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format = Format {
        name: b"examples",
        version: 2,
    };

    fn frames(items: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut snapshot = SnapshotWriter::new();
        let items = items.to_vec();
        write(&mut snapshot, FORMAT, items.len(), items.into_iter());
        snapshot.into_frames()
    }

    fn read(frames: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, ChunkError> {
        let mut reader = ChunkReader::open(frames, FORMAT)?;
        let mut items = Vec::new();
        while let Some(item) = reader.next_item()? {
            items.push(item.to_vec());
        }
        Ok(items)
    }

    #[test]
    fn items_come_back_from_chunks_of_bounded_length() {
        let items: Vec<Vec<u8>> = (0..100).map(|number| vec![number; 700]).collect();
        let frames = frames(&items);
        assert!(frames.len() > 8, "{} frames", frames.len());
        assert!(frames.iter().all(|frame| frame.len() < CHUNK_LENGTH + 704));
        assert_eq!(read(&frames), Ok(items));
        assert_eq!(read(&self::frames(&[])), Ok(Vec::new()));
    }

    #[test]
    fn frames_that_are_no_snapshot_of_this_format_are_refused_with_the_reason() {
        let whole = frames(&[vec![1; 9], vec![2; 9]]);
        let other = |change: fn(&mut Vec<Vec<u8>>)| {
            let mut frames = whole.clone();
            change(&mut frames);
            read(&frames).unwrap_err().to_string()
        };
        assert_eq!(
            other(Vec::clear),
            "it has no header of 20 bytes",
            "no frames"
        );
        assert_eq!(
            other(|frames| frames[0].truncate(19)),
            "it has no header of 20 bytes"
        );
        let error = other(|frames| frames[0][0] = b'E');
        assert_eq!(error, "it is one of \"Examples\", not of \"examples\"");
        let error = other(|frames| frames[0][8] = 3);
        assert_eq!(
            error,
            "its format has version 3; this program reads versions 1 to 2"
        );
        let error = other(|frames| frames[1].truncate(25));
        assert_eq!(error, "frame 1 ends in the middle of an item");
        let error = other(|frames| frames.truncate(1));
        assert_eq!(error, "it has 0 items, its header says 2");
    }
}
