// SPDX-License-Identifier: Apache-2.0
//! Walking the frames of a segment file.

use std::collections::VecDeque;

use taran_protocol::frame::{DATA_HEADER_LENGTH, DataHeader, FrameType};
use taran_protocol::position::align32;
use taran_storage::{DiskError, DiskFile};
use thiserror::Error;
use zerocopy::FromBytes;

use super::super::checksum::Checksum;
use super::super::layout::RecordingLayout;

const HEADER: u64 = DATA_HEADER_LENGTH as u64;
/// Bytes read at once.
const CHUNK: usize = 256 * 1024;
/// Unit in which the kernel writes the page cache to the device.
const PAGE: u64 = 4096;

/// A reason why bytes are no frame of the recording.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameFault {
    /// The length is negative, less than that of a header, or reaches beyond the term.
    #[error(
        "the frame length {0} is negative, shorter than a header, or reaches beyond the end of the term"
    )]
    Length(i32),
    /// The header has another version.
    #[error("the frame version {0} is not 0")]
    Version(u8),
    /// The frame is neither data nor padding.
    #[error("the frame type {0} is neither data nor padding")]
    Type(u16),
    /// The header belongs to another term.
    #[error("the term id is {found}, not {expected}")]
    TermId {
        /// Expected term id.
        expected: i32,
        /// Term id in the header.
        found: i32,
    },
    /// The header belongs to another place in the term.
    #[error("the term offset is {found}, not {expected}")]
    TermOffset {
        /// Expected offset in bytes.
        expected: i32,
        /// Offset in the header.
        found: i32,
    },
    /// The header belongs to another stream.
    #[error("the stream id is {found}, not {expected}")]
    StreamId {
        /// Expected stream id.
        expected: i32,
        /// Stream id in the header.
        found: i32,
    },
    /// The file ends inside the frame.
    #[error("the file ends after {len} bytes, inside the frame")]
    Cut {
        /// Length of the file in bytes.
        len: u64,
    },
    /// The checksum is wrong.
    #[error("the checksum is {found:#010x}, and that of the bytes is {expected:#010x}")]
    Checksum {
        /// Checksum of the bytes.
        expected: i32,
        /// Checksum in the header.
        found: i32,
    },
    /// A page of the frame has only zeros, and no checksum tells whether they were recorded: the page may have been lost.
    #[error(
        "bytes of the last frame are zero from page {page} of the file on: the page may have been lost in a crash"
    )]
    LostPage {
        /// Number of the page in the file.
        page: u64,
    },
}

taran_core::debug_is_display!(FrameFault);

/// A frame in a segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Offset in the file.
    pub offset: u64,
    /// Length with the header, without alignment, in bytes.
    pub length: i32,
    /// True for padding, of which only the header is in the file.
    pub is_padding: bool,
    /// The header.
    pub header: DataHeader,
}

impl Frame {
    /// Returns the offset behind the frame.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + u64::from(align32(self.length).unsigned_abs())
    }
}

/// End of the frames in a segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentEnd {
    /// Offset behind the last good frame.
    pub offset: u64,
    /// The reason why no frame follows; `None` if the segment is full, or the next length is zero.
    pub fault: Option<FrameFault>,
    /// The last good frame.
    pub last: Option<Frame>,
    /// Number of good frames.
    pub frames: u64,
}

/// Walks the frames of one segment file, in order.
///
/// Contract: [`next_frame`](Self::next_frame) returns the frames up to the end of the segment, the first zero length, or the first
/// fault, which [`fault`](Self::fault) then tells. Headers are checked against the place of the frame.
#[derive(Debug)]
pub struct FrameWalker<'a> {
    file: &'a dyn DiskFile,
    layout: RecordingLayout,
    base: i64,
    stream_id: i32,
    len: u64,
    /// End of the walk in the file.
    limit: u64,
    offset: u64,
    buffer: Vec<u8>,
    buffer_offset: u64,
    fault: Option<FrameFault>,
}

impl<'a> FrameWalker<'a> {
    /// Creates a walker from a position to the end of its segment. `base` is that of the file.
    ///
    /// # Errors
    ///
    /// The length of the file cannot be found out.
    pub fn new(
        file: &'a dyn DiskFile,
        layout: RecordingLayout,
        base: i64,
        stream_id: i32,
        from: i64,
    ) -> Result<Self, DiskError> {
        let len = file.len()?;
        let segment = u64::from(layout.segment_length().unsigned_abs());
        Ok(Self {
            file,
            layout,
            base,
            stream_id,
            len,
            limit: segment,
            offset: from.saturating_sub(base).max(0).unsigned_abs(),
            buffer: Vec::new(),
            buffer_offset: 0,
            fault: None,
        })
    }

    /// Returns the offset of the next frame.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns why the walk ended, if not by the end of the segment or a zero length.
    #[must_use]
    pub fn fault(&self) -> Option<FrameFault> {
        self.fault
    }

    /// Returns the next frame.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, DiskError> {
        if self.fault.is_some() || self.offset >= self.limit {
            return Ok(None);
        }
        let Some(header) = self.read_header()? else {
            return Ok(None);
        };
        match self.check(&header) {
            Ok(None) => Ok(None),
            Ok(Some(frame)) => {
                self.offset = frame.end();
                Ok(Some(frame))
            }
            Err(fault) => {
                self.fault = Some(fault);
                Ok(None)
            }
        }
    }

    /// Walks to the end; verifies data frames if there is a checksum.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn finish(mut self, checksum: Option<Checksum>) -> Result<SegmentEnd, DiskError> {
        let (mut last, mut frames) = (None, 0);
        while let Some(frame) = self.next_frame()? {
            if let Some(checksum) = checksum
                && let Some(fault) = verify(self.file, &frame, checksum)?
            {
                self.offset = frame.offset;
                self.fault = Some(fault);
                break;
            }
            last = Some(frame);
            frames += 1;
        }
        Ok(SegmentEnd {
            offset: self.offset,
            fault: self.fault,
            last,
            frames,
        })
    }

    /// Walks to the end without verifying; returns the last good frames, of at most `window` bytes, too.
    pub(super) fn finish_with_tail(
        mut self,
        window: u64,
    ) -> Result<(SegmentEnd, VecDeque<Frame>), DiskError> {
        let (mut tail, mut frames) = (VecDeque::new(), 0);
        while let Some(frame) = self.next_frame()? {
            while tail
                .front()
                .is_some_and(|first: &Frame| frame.end() - first.offset > window)
            {
                tail.pop_front();
            }
            tail.push_back(frame);
            frames += 1;
        }
        let end = SegmentEnd {
            offset: self.offset,
            fault: self.fault,
            last: tail.back().copied(),
            frames,
        };
        Ok((end, tail))
    }

    fn read_header(&mut self) -> Result<Option<DataHeader>, DiskError> {
        let is_buffered = self.offset >= self.buffer_offset
            && self.offset + HEADER <= self.buffer_offset + self.buffer.len() as u64;
        if !is_buffered {
            let rest = (self.limit - self.offset).min(CHUNK as u64);
            // At most CHUNK.
            self.buffer.resize(rest as usize, 0);
            let count = self.file.read_at(&mut self.buffer, self.offset)?;
            self.buffer.truncate(count);
            self.buffer_offset = self.offset;
        }
        // Within the buffer, whose length is at most CHUNK.
        let at = (self.offset - self.buffer_offset) as usize;
        let bytes = &self.buffer[at.min(self.buffer.len())..];
        if let Ok((header, _)) = DataHeader::read_from_prefix(bytes) {
            return Ok(Some(header));
        }
        if bytes.iter().any(|byte| *byte != 0) {
            self.fault = Some(FrameFault::Cut { len: self.len });
        }
        Ok(None)
    }

    /// Checks a header; `None` if its length is zero.
    fn check(&self, header: &DataHeader) -> Result<Option<Frame>, FrameFault> {
        if header.header.frame_length.get() == 0 {
            return Ok(None);
        }
        let position = self.base + self.offset.cast_signed();
        let is_padding = check_header(&self.layout, self.stream_id, position, header)?;
        let length = header.header.frame_length.get();
        let frame = Frame {
            offset: self.offset,
            length,
            is_padding,
            header: *header,
        };
        // The body of padding is never written, so the file may end after its header if it was cut.
        if !frame.is_padding && self.offset + u64::from(length.unsigned_abs()) > self.len {
            return Err(FrameFault::Cut { len: self.len });
        }
        Ok(Some(frame))
    }
}

/// Checks the header of a frame against its position in a recording. Returns true for padding.
pub(in super::super) fn check_header(
    layout: &RecordingLayout,
    stream_id: i32,
    position: i64,
    header: &DataHeader,
) -> Result<bool, FrameFault> {
    let length = header.header.frame_length.get();
    let terms = layout.terms();
    let term_offset = terms.term_offset(position);
    if length < DATA_HEADER_LENGTH || length > terms.term_length() - term_offset {
        return Err(FrameFault::Length(length));
    }
    if header.header.version != 0 {
        return Err(FrameFault::Version(header.header.version));
    }
    let frame_type = header.header.frame_type();
    if frame_type != FrameType::DATA && frame_type != FrameType::PAD {
        return Err(FrameFault::Type(frame_type.0));
    }
    let (expected, found) = (terms.term_id(position), header.term_id.get());
    if found != expected {
        return Err(FrameFault::TermId { expected, found });
    }
    let (expected, found) = (term_offset, header.term_offset.get());
    if found != expected {
        return Err(FrameFault::TermOffset { expected, found });
    }
    let (expected, found) = (stream_id, header.stream_id.get());
    if found != expected {
        return Err(FrameFault::StreamId { expected, found });
    }
    Ok(frame_type == FrameType::PAD)
}

/// Verifies the checksum of a frame. Padding has none.
pub(in super::super) fn verify(
    file: &dyn DiskFile,
    frame: &Frame,
    checksum: Checksum,
) -> Result<Option<FrameFault>, DiskError> {
    if frame.is_padding {
        return Ok(None);
    }
    let found = frame.header.session_id.get();
    let expected = compute(file, frame, checksum)?;
    Ok((found != expected).then_some(FrameFault::Checksum { expected, found }))
}

/// Finds the first of the last frames of a segment whose checksum shows that a power cut took a part of it. Frames from
/// before the archive recorded with checksums have none: a wrong value counts only after a right one (also before these
/// frames, with `has_checksums`), or, with `session_id`, if it is not that of the stream, which frames without a checksum
/// have in its place.
pub(super) fn torn_frame(
    file: &dyn DiskFile,
    tail: &VecDeque<Frame>,
    checksum: Checksum,
    mut has_checksums: bool,
    session_id: Option<i32>,
) -> Result<Option<(usize, FrameFault)>, DiskError> {
    for (index, frame) in tail.iter().enumerate() {
        let Some(fault) = verify(file, frame, checksum)? else {
            has_checksums |= !frame.is_padding;
            continue;
        };
        let found = frame.header.session_id.get();
        if has_checksums || session_id.is_some_and(|session_id| found != session_id) {
            return Ok(Some((index, fault)));
        }
    }
    Ok(None)
}

/// Computes the checksum of a data frame. Bytes beyond the end of the file count as zeros.
pub(in super::super) fn compute(
    file: &dyn DiskFile,
    frame: &Frame,
    checksum: Checksum,
) -> Result<i32, DiskError> {
    let mut digest = checksum.digest();
    let mut offset = frame.offset + HEADER;
    let mut buffer = [0; 16 * 1024];
    while offset < frame.end() {
        let count = (frame.end() - offset).min(buffer.len() as u64) as usize;
        let part = &mut buffer[..count];
        part.fill(0);
        file.read_at(part, offset)?;
        digest.update(part);
        offset += count as u64;
    }
    Ok(digest.finish())
}

/// Returns a fault if a page of a data frame may have been lost: after the first page boundary, it has only zeros within
/// the frame, and no checksum shows that they were recorded.
pub(super) fn lost_page(
    file: &dyn DiskFile,
    frame: &Frame,
    checksum: Option<Checksum>,
) -> Result<Option<FrameFault>, DiskError> {
    let mut page = frame.offset / PAGE + 1;
    if frame.is_padding || page * PAGE >= frame.end() {
        return Ok(None);
    }
    if let Some(checksum) = checksum
        && verify(file, frame, checksum)?.is_none()
    {
        return Ok(None);
    }
    let end = frame.offset + u64::from(frame.length.unsigned_abs());
    let mut bytes = [0; PAGE as usize];
    while page * PAGE < end {
        let count = (end - page * PAGE).min(PAGE) as usize;
        bytes.fill(0);
        file.read_at(&mut bytes[..count], page * PAGE)?;
        if bytes[..count].iter().all(|byte| *byte == 0) {
            return Ok(Some(FrameFault::LostPage { page }));
        }
        page += 1;
    }
    Ok(None)
}
