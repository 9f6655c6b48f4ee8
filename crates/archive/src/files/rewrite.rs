// SPDX-License-Identifier: Apache-2.0
//! Making durable what an earlier process has written.

use std::ops::Range;

use taran_storage::{DiskError, DiskFile};

/// Unit of the page cache.
const PAGE: usize = 4096;
/// Bytes read at once.
const CHUNK: usize = 64 * PAGE;

/// Writes the bytes of a range again, so that the next sync makes them durable. After a failed sync, the page cache has bytes that
/// the device does not, and the kernel takes them for written. Pages with zeros only stay as they are, because they may have
/// no blocks; a file system that needs new blocks for the others, and is full, keeps what it has.
///
/// # Errors
///
/// The disk failed.
pub(super) fn rewrite(file: &dyn DiskFile, range: Range<u64>) -> Result<(), DiskError> {
    let mut buffer = vec![0; CHUNK];
    let mut offset = range.start;
    while offset < range.end {
        // At most CHUNK, and from the second one on at a page boundary.
        let boundary = (offset + 1).next_multiple_of(PAGE as u64) + (CHUNK - PAGE) as u64;
        let count = (range.end.min(boundary) - offset) as usize;
        let count = file.read_at(&mut buffer[..count], offset)?;
        if count == 0 {
            break;
        }
        let mut at = 0;
        while at < count {
            let page_end = (offset + at as u64 + 1).next_multiple_of(PAGE as u64);
            // At most CHUNK.
            let end = count.min((page_end - offset) as usize);
            let page = &buffer[at..end];
            if page.iter().any(|byte| *byte != 0) {
                match file.write_at(page, offset + at as u64) {
                    Err(error) if error.is_full() => return Ok(()),
                    result => result?,
                }
            }
            at = end;
        }
        offset += count as u64;
    }
    Ok(())
}
