// SPDX-License-Identifier: Apache-2.0
use taran_protocol::frame::FrameHeader;
use zerocopy::FromBytes;

use super::{InvalidSecureFrame, PAIR, SealedHeader, prefix, zero};
use crate::provider::TAG_LENGTH;

/// Bytes of a PAIR frame besides its items.
pub const PAIR_OVERHEAD: usize = HEADER + TAG_LENGTH;
const HEADER: usize = size_of::<SealedHeader>();
/// Alignment of the frames in a datagram.
const ALIGNMENT: usize = 8;

/// One frame of a link. It has the layout of a sealed frame, with the addressee's link id in place of the key id.
#[derive(Clone, Copy, Debug)]
pub struct PairFrame<'a> {
    bytes: &'a [u8],
    header: &'a SealedHeader,
}

impl<'a> PairFrame<'a> {
    /// Returns the link id of the addressee.
    #[must_use]
    pub const fn link_id(&self) -> u64 {
        u64::from_le_bytes(self.header.key_id)
    }

    /// Returns the counter.
    #[must_use]
    pub const fn counter(&self) -> u64 {
        self.header.counter.get()
    }

    /// Returns the authenticated header and the sealed items.
    #[must_use]
    pub fn parts(&self) -> (&'a [u8], &'a [u8]) {
        self.bytes.split_at(HEADER)
    }

    /// Returns the whole frame, without padding.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Valid datagram of PAIR frames, each padded to eight bytes; iterates over them.
#[derive(Clone, Copy, Debug)]
pub struct PairFrames<'a> {
    rest: &'a [u8],
}

impl<'a> PairFrames<'a> {
    pub(super) fn parse(datagram: &'a [u8]) -> Result<Self, InvalidSecureFrame> {
        let mut rest = datagram;
        while !rest.is_empty() {
            rest = split(rest)?.1;
        }
        Ok(Self { rest: datagram })
    }
}

impl<'a> Iterator for PairFrames<'a> {
    type Item = PairFrame<'a>;

    fn next(&mut self) -> Option<PairFrame<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (frame, rest) = split(self.rest).ok()?;
        self.rest = rest;
        Some(frame)
    }
}

/// Returns the first frame of a datagram, and the rest behind its padding. The last frame may come without padding.
fn split(datagram: &[u8]) -> Result<(PairFrame<'_>, &[u8]), InvalidSecureFrame> {
    let header = prefix::<SealedHeader>(PAIR, datagram)?;
    let base: &FrameHeader = &header.header;
    if base.frame_type() != PAIR {
        return Err(InvalidSecureFrame::Type(base.frame_type().0));
    }
    if base.version != 0 {
        return Err(InvalidSecureFrame::Version(base.version));
    }
    if base.flags != 0 {
        return Err(InvalidSecureFrame::Flags(base.flags));
    }
    let frame_length = base.frame_length.get();
    let invalid = InvalidSecureFrame::FrameLength {
        frame_length,
        length: datagram.len(),
    };
    let length = usize::try_from(frame_length).map_err(|_| invalid)?;
    if length < PAIR_OVERHEAD || length > datagram.len() {
        return Err(invalid);
    }
    let end = length.next_multiple_of(ALIGNMENT).min(datagram.len());
    zero(&datagram[length..end])?;
    let bytes = &datagram[..length];
    let header = SealedHeader::ref_from_prefix(bytes)
        .expect("the length is at least that of the header")
        .0;
    Ok((PairFrame { bytes, header }, &datagram[end..]))
}
