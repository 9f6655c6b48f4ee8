use taran_core::memory::Region;
use taran_core::sync::{Ordering, fence};
use zerocopy::{FromBytes, IntoBytes};

use super::CorruptFrame;
use crate::frame::{DATA_HEADER_LENGTH, DataHeader, FrameHeader, FrameType};
use crate::position::{align32, is_frame_offset};

const HEADER: usize = DATA_HEADER_LENGTH as usize;

/// A frame in a term whose length was checked: it holds its header and ends inside the term.
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

    /// Where the frame starts in its term.
    #[inline]
    #[must_use]
    pub fn offset(&self) -> i32 {
        self.offset as i32
    }

    /// Bytes of header and payload, not aligned.
    #[inline]
    #[must_use]
    pub fn length(&self) -> i32 {
        self.length as i32
    }

    /// Bytes that the frame takes in the term.
    #[inline]
    #[must_use]
    pub fn aligned_length(&self) -> i32 {
        align32(self.length())
    }

    /// The header. Its length field is not to be trusted: use [`Self::length`].
    #[inline]
    #[must_use]
    pub fn header(&self) -> &'a DataHeader {
        match DataHeader::ref_from_bytes(self.term.bytes(self.offset, HEADER)) {
            Ok(header) => header,
            Err(_) => unreachable!("the slice is as long as the header, and neither is aligned"),
        }
    }

    /// Flags of the frame, see [`DataHeader`].
    #[inline]
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.header().header.flags
    }

    /// True for padding, which has no payload to deliver.
    #[inline]
    #[must_use]
    pub fn is_padding(&self) -> bool {
        self.header().header.frame_type() == FrameType::PAD
    }

    /// The payload.
    #[inline]
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.term.bytes(self.offset + HEADER, self.length - HEADER)
    }

    /// Header and payload.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.term.bytes(self.offset, self.length)
    }
}

/// The frame at `offset`, which is a frame offset in the term: `None` if none is committed there yet.
#[inline]
pub(super) fn next_frame(term: &Region, offset: i32) -> Result<Option<LogFrame<'_>>, CorruptFrame> {
    // Acquire: pairs with the release of the length by whoever committed the frame (`commit` and `insert`).
    let length = term.atomic_i32(offset as usize).load(Ordering::Acquire);
    if length <= 0 {
        return Ok(None);
    }
    // Terms end on a multiple of 32, so what ends inside does so when aligned, too.
    if length < DATA_HEADER_LENGTH || length > term.len() as i32 - offset {
        return Err(CorruptFrame { offset, length });
    }
    Ok(Some(LogFrame::new(term, offset, length)))
}

/// The frame that starts at `offset`, for whoever was told that one does: `None` if none is committed there.
///
/// # Errors
/// The offset is none, or the frame does not end in the term.
pub fn frame_at(term: &Region, offset: i32) -> Result<Option<LogFrame<'_>>, CorruptFrame> {
    if !is_frame_offset(offset, term.len() as i32) {
        return Err(CorruptFrame { offset, length: 0 });
    }
    next_frame(term, offset)
}

/// What every header of a stream has in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamIds {
    pub(super) session_id: i32,
    pub(super) stream_id: i32,
}

/// Writes the header of a frame that is being written: its length is negative until [`commit`].
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
    // Nothing of the frame may be seen before the negative length: if the writer dies, the unblocker relies on it. On
    // the reader's side nothing pairs with it, as nobody looks further while the length is negative.
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

/// Empties a slot: nothing is found there until a frame is begun.
#[inline]
pub(super) fn clear_length(term: &Region, offset: i32) {
    // Relaxed: the frame that leads here is published after it, with release.
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
