// SPDX-License-Identifier: Apache-2.0
//! Support for decoders.

use super::{DecodeError, fault};

/// Result of reading a group or data element: its value, and the decoder in its next state.
pub type Then<T, Next> = Result<(T, Next), DecodeError>;

/// Standard content of a message header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Block length.
    pub block_length: u64,
    /// Template id.
    pub template_id: u64,
    /// Schema id.
    pub schema_id: u64,
    /// Acting version: the schema version of the sender.
    pub version: u64,
}

/// Checks the schema id of a message.
///
/// # Errors
///
/// [`DecodeError::WrongSchema`] if it is another one.
#[inline]
pub const fn schema_is(expected: u64, header: &Header) -> Result<(), DecodeError> {
    if header.schema_id == expected {
        return Ok(());
    }
    Err(fault::wrong_schema(expected, header.schema_id))
}

/// Checks the template id of a message.
///
/// # Errors
///
/// [`DecodeError::WrongTemplate`] if it is another one.
#[inline]
pub const fn template_is(expected: u64, header: &Header) -> Result<(), DecodeError> {
    if header.template_id == expected {
        return Ok(());
    }
    Err(fault::wrong_template(expected, header.template_id))
}

/// Returns `LEN` bytes of a block at offset `AT`. The bounds are checked when the codec is compiled.
#[inline]
#[must_use]
pub const fn part<const AT: usize, const LEN: usize, const N: usize>(
    block: &[u8; N],
) -> &[u8; LEN] {
    const { assert!(AT + LEN <= N, "a field lies outside of its block") };
    match block.split_at(AT).1.first_chunk() {
        Some(part) => part,
        None => unreachable!(),
    }
}

/// Returns the bytes of a field added in a later version, or `None` if the sender's version does not include it.
#[inline]
#[must_use]
pub fn added<const LEN: usize>(
    version: u64,
    since: u64,
    bytes: &[u8],
    at: usize,
) -> Option<&[u8; LEN]> {
    if version < since {
        return None;
    }
    bytes.get(at..)?.first_chunk()
}

/// Decodes the numbers of an array.
#[inline]
#[must_use]
pub fn numbers<T, const SIZE: usize, const N: usize, const LEN: usize>(
    bytes: &[u8; LEN],
    read: impl Fn([u8; SIZE]) -> T,
) -> [T; N] {
    const { assert!(SIZE * N == LEN, "an array takes what its numbers take") };
    let (numbers, _) = bytes.as_chunks();
    core::array::from_fn(|index| read(numbers.get(index).copied().unwrap_or([0; SIZE])))
}

/// Block split into the part that exists in every version, the part added by later versions, and the bytes after the
/// block.
pub type Cut<'a, const N: usize> = (&'a [u8; N], &'a [u8], &'a [u8]);

/// Splits a block of the sender's block length off the front of `bytes`.
///
/// # Errors
///
/// If there are fewer bytes, or the block is shorter than in its first version.
#[inline]
pub fn block<'a, const N: usize>(
    bytes: &'a [u8],
    block_length: u64,
    what: &'static str,
) -> Result<Cut<'a, N>, DecodeError> {
    let cut = usize::try_from(block_length)
        .ok()
        .and_then(|length| bytes.split_at_checked(length));
    let Some((block, rest)) = cut else {
        return Err(fault::short(what, block_length, bytes.len()));
    };
    let Some((fixed, added)) = block.split_first_chunk() else {
        return Err(fault::block_too_short(what, N, block_length));
    };
    Ok((fixed, added, rest))
}

/// Maximum number of group entries that take no bytes, that is, whose block length is 0 and that contain no groups or
/// data in the sender's version. Prevents a few bytes of input from causing unbounded work. Encoders apply the same
/// limit.
pub const MAX_EMPTY_ENTRIES: u64 = 1_024;

/// Checks the number of group entries; `are_empty` is true if they take no bytes.
///
/// # Errors
///
/// [`DecodeError::BadCount`] if the schema does not allow the count, or if empty entries exceed [`MAX_EMPTY_ENTRIES`].
#[inline]
pub const fn count(
    count: u64,
    limits: (u64, u64),
    are_empty: bool,
    what: &'static str,
) -> Result<u64, DecodeError> {
    let (min, mut max) = limits;
    if are_empty && max > MAX_EMPTY_ENTRIES {
        max = MAX_EMPTY_ENTRIES;
    }
    if min <= count && count <= max {
        return Ok(count);
    }
    Err(fault::bad_count(what, (min, max), count))
}

/// Returns the bytes of entries that contain only fields, and the block length of an entry.
///
/// # Errors
///
/// If there are fewer bytes than the entries need, or the block is shorter than in its first version.
#[inline]
pub fn entries<'a>(
    tail: &mut Tail<'a>,
    count: u64,
    block_length: u64,
    least: usize,
    what: &'static str,
) -> Result<(&'a [u8], usize), DecodeError> {
    if count == 0 {
        // With no entries, the block length is irrelevant.
        return Ok((&[], least));
    }
    if block_length < least as u64 {
        return Err(fault::block_too_short(what, least, block_length));
    }
    let bytes = tail.bytes(count.saturating_mul(block_length), what)?;
    // At most the number of available bytes.
    Ok((bytes, usize::try_from(block_length).unwrap_or(usize::MAX)))
}

/// Bytes after a block, with the read position.
#[derive(Debug, Clone, Copy)]
pub struct Tail<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Tail<'a> {
    /// Returns the bytes with the read position at their start.
    #[inline]
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            all: bytes,
            rest: bytes,
        }
    }

    /// Returns the same bytes with the read position at their start.
    #[inline]
    #[must_use]
    pub const fn from_start(self) -> Self {
        Self::new(self.all)
    }

    /// Returns the unread bytes.
    #[inline]
    #[must_use]
    pub const fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Sets the unread bytes, after an element was read from a copy of them.
    #[inline]
    pub const fn leave(&mut self, rest: &'a [u8]) {
        self.rest = rest;
    }

    /// Reads `length` bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`] if there are fewer.
    #[inline]
    pub fn bytes(&mut self, length: u64, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let cut = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length));
        let Some((bytes, rest)) = cut else {
            return Err(fault::short(what, length, self.rest.len()));
        };
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads a fixed number of bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`] if there are fewer.
    #[inline]
    pub const fn chunk<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<&'a [u8; N], DecodeError> {
        let Some((chunk, rest)) = self.rest.split_first_chunk() else {
            return Err(fault::short(what, N as u64, self.rest.len()));
        };
        self.rest = rest;
        Ok(chunk)
    }

    /// Reads data of the given length.
    ///
    /// # Errors
    ///
    /// If it is longer than the schema allows, or than the remaining bytes.
    #[inline]
    pub fn data(
        &mut self,
        length: u64,
        max: u64,
        what: &'static str,
    ) -> Result<&'a [u8], DecodeError> {
        if length > max {
            return Err(fault::too_long(what, max, length));
        }
        self.bytes(length, what)
    }
}
