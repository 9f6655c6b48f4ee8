// SPDX-License-Identifier: Apache-2.0
//! Iterator over the frames of a log buffer.

use taran_core::memory::Region;
use taran_core::sync::Ordering;
use taran_protocol::frame::{DATA_HEADER_LENGTH, DataHeader, FromBytes};
use taran_protocol::log::LogBuffers;
use taran_protocol::position::PARTITION_COUNT;

const HEADER: usize = DATA_HEADER_LENGTH as usize;

/// A committed frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoggedFrame<'a> {
    /// Index of the term's partition in the file, 0 to 2.
    pub(super) partition: usize,
    /// Offset in the term, in bytes.
    pub(super) offset: usize,
    pub(super) header: DataHeader,
    pub(super) payload: &'a [u8],
}

/// Iterates over the frames of all terms. The contents are not trusted.
#[derive(Clone, Debug)]
pub(super) struct Frames<'a> {
    log: &'a LogBuffers,
    scan_over_zeroes: bool,
    partition: usize,
    offset: usize,
}

impl<'a> Frames<'a> {
    pub(super) fn new(log: &'a LogBuffers, scan_over_zeroes: bool) -> Self {
        Self {
            log,
            scan_over_zeroes,
            partition: 0,
            offset: 0,
        }
    }

    fn next_in(&mut self, term: &'a Region) -> Option<LoggedFrame<'a>> {
        while self.offset + HEADER <= term.len() {
            // Acquire: pairs with the release store that commits a frame.
            let length = term.atomic_i32(self.offset).load(Ordering::Acquire);
            let length = usize::try_from(length).unwrap_or(0);
            if length < HEADER || length > term.len() - self.offset {
                if self.scan_over_zeroes && length == 0 {
                    self.offset += HEADER;
                    continue;
                }
                return None;
            }
            let offset = self.offset;
            self.offset += length.next_multiple_of(HEADER);
            let bytes = term.bytes(offset, length);
            let (header, payload) = DataHeader::read_from_prefix(bytes).ok()?;
            return Some(LoggedFrame {
                partition: self.partition,
                offset,
                header,
                payload,
            });
        }
        None
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = LoggedFrame<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.partition < PARTITION_COUNT {
            let term = self.log.term(self.partition);
            if let Some(frame) = self.next_in(term) {
                return Some(frame);
            }
            self.partition += 1;
            self.offset = 0;
        }
        None
    }
}
