// SPDX-License-Identifier: Apache-2.0
use taran_core::memory::Region;
use taran_core::sync::{Ordering, fence};
use zerocopy::{FromBytes, IntoBytes};

use super::CorruptFrame;
use crate::frame::{DATA_HEADER_LENGTH, DataHeader, FrameHeader, FrameType};
use crate::position::{align32, is_frame_offset};

const HEADER: usize = DATA_HEADER_LENGTH as usize;

/// A frame in a term with a validated length: at least its header, and ending inside the term.
#[derive(Clone, Copy, Debug)]
pub struct LogFrame<'a> {
    term: &'a Region,
    offset: usize,
    length: usize,
}

impl<'a> LogFrame<'a> {
    #[inline]
    pub(super) fn new(term: &'a Region, offset: i32, length: i32) -> Self {
        Self {
            term,
            offset: offset as usize,
            length: length as usize,
        }
    }

    /// Returns the offset of the frame in its term.
    #[inline]
    #[must_use]
    pub fn offset(&self) -> i32 {
        self.offset as i32
    }

    /// Returns the length of header and payload in bytes, not aligned.
    #[inline]
    #[must_use]
    pub fn length(&self) -> i32 {
        self.length as i32
    }

    /// Returns the number of bytes that the frame occupies in the term.
    #[inline]
    #[must_use]
    pub fn aligned_length(&self) -> i32 {
        align32(self.length())
    }

    /// Returns the header. Its length field is not validated: use [`Self::length`].
    #[inline]
    #[must_use]
    pub fn header(&self) -> &'a DataHeader {
        match DataHeader::ref_from_bytes(self.term.bytes(self.offset, HEADER)) {
            Ok(header) => header,
            Err(_) => unreachable!("the slice is as long as the header, and neither is aligned"),
        }
    }

    /// Returns the flags of the frame, see [`DataHeader`].
    #[inline]
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.header().header.flags
    }

    /// Returns true if the frame is padding, which has no payload to deliver.
    #[inline]
    #[must_use]
    pub fn is_padding(&self) -> bool {
        self.header().header.frame_type() == FrameType::PAD
    }

    /// Returns the payload.
    #[inline]
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.term.bytes(self.offset + HEADER, self.length - HEADER)
    }

    /// Returns header and payload.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.term.bytes(self.offset, self.length)
    }
}

/// Returns the frame at `offset`, which must be a frame offset in the term, or `None` if none is committed there.
#[inline]
pub(super) fn next_frame(term: &Region, offset: i32) -> Result<Option<LogFrame<'_>>, CorruptFrame> {
    // Acquire: pairs with the release of the length when the frame was committed (`commit` and `insert`).
    let length = term.atomic_i32(offset as usize).load(Ordering::Acquire);
    if length <= 0 {
        return Ok(None);
    }
    // Terms end on a multiple of 32, so a frame that ends inside also ends inside when aligned.
    if length < DATA_HEADER_LENGTH || length > term.len() as i32 - offset {
        return Err(CorruptFrame { offset, length });
    }
    Ok(Some(LogFrame::new(term, offset, length)))
}

/// Returns the frame at `offset`, an offset from an untrusted source, or `None` if none is committed there.
///
/// # Errors
/// The offset is not a frame offset, or the frame does not end inside the term.
pub fn frame_at(term: &Region, offset: i32) -> Result<Option<LogFrame<'_>>, CorruptFrame> {
    if !is_frame_offset(offset, term.len() as i32) {
        return Err(CorruptFrame { offset, length: 0 });
    }
    next_frame(term, offset)
}

/// Header fields common to all frames of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamIds {
    pub(super) session_id: i32,
    pub(super) stream_id: i32,
}

/// Starts a frame: writes its header with a negative length, which [`commit`] makes positive.
#[inline]
pub(super) fn write_header(
    term: &Region,
    ids: StreamIds,
    term_id: i32,
    offset: i32,
    length: i32,
    flags: u8,
    frame_type: FrameType,
) {
    let at = offset as usize;
    term.atomic_i32(at).store(-length, Ordering::Relaxed);
    // No byte of the frame may be visible before the negative length: the unblocker relies on it if the writer dies.
    // Readers need no counterpart, because they do not read a frame with a negative length.
    fence(Ordering::Release);
    let header = DataHeader {
        header: FrameHeader::new(0, flags, frame_type),
        term_offset: offset.into(),
        session_id: ids.session_id.into(),
        stream_id: ids.stream_id.into(),
        term_id: term_id.into(),
        reserved_value: 0.into(),
    };
    term.write(at + 4, &header.as_bytes()[4..]);
}

/// Zeroes the length in a slot, so that it holds no frame until one is started.
#[inline]
pub(super) fn clear_length(term: &Region, offset: i32) {
    // Relaxed: the frame before this slot is published afterwards, with release.
    term.atomic_i32(offset as usize).store(0, Ordering::Relaxed);
}

/// Publishes a frame.
#[inline]
pub(super) fn commit(term: &Region, offset: i32, length: i32) {
    // Release: pairs with the acquire in `next_frame`, and in official readers.
    term.atomic_i32(offset as usize)
        .store(length, Ordering::Release);
}

/// Writes and publishes padding of `length` bytes, header included.
#[inline]
pub(super) fn write_padding(term: &Region, ids: StreamIds, term_id: i32, offset: i32, length: i32) {
    write_header(
        term,
        ids,
        term_id,
        offset,
        length,
        DataHeader::UNFRAGMENTED,
        FrameType::PAD,
    );
    commit(term, offset, length);
}
