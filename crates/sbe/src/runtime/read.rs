//! Taking messages apart.

use super::{DecodeError, fault};

/// What reading a group or data gives: it, and the decoder that stands behind it.
pub type Then<T, Next> = Result<(T, Next), DecodeError>;

/// What the header of a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The length of the message's block, as its sender has it.
    pub block_length: u64,
    /// Which message it is.
    pub template_id: u64,
    /// Which schema it is from.
    pub schema_id: u64,
    /// Which version of the schema its sender has.
    pub version: u64,
}

/// Checks the schema of a message.
///
/// # Errors
///
/// [`DecodeError::WrongSchema`] when it is another one.
#[inline]
pub const fn schema_is(expected: u64, header: &Header) -> Result<(), DecodeError> {
    if header.schema_id == expected {
        return Ok(());
    }
    Err(fault::wrong_schema(expected, header.schema_id))
}

/// Checks which message it is.
///
/// # Errors
///
/// [`DecodeError::WrongTemplate`] when it is another one.
#[inline]
pub const fn template_is(expected: u64, header: &Header) -> Result<(), DecodeError> {
    if header.template_id == expected {
        return Ok(());
    }
    Err(fault::wrong_template(expected, header.template_id))
}

/// The `LEN` bytes at `AT` of a block. That they are inside of it is checked when the codec is compiled.
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

/// The bytes of a field that came in a later version: `None` in messages of senders who do not know it.
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

/// Reads each number of an array.
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

/// A block, cut: what it has in every version, what later versions added to it, and the bytes behind it.
pub type Cut<'a, const N: usize> = (&'a [u8; N], &'a [u8], &'a [u8]);

/// Takes a block off the front of `bytes`, as long as its sender says that it is.
///
/// # Errors
///
/// When there are fewer bytes than that, or when it is shorter than any version of it.
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

/// The most entries that a group may have where they take no bytes at all: blocks of length 0, with nothing behind them
/// that the sender knows. A few bytes shall not stand for endless work. Encoders keep to it too.
pub const MOST_EMPTY_ENTRIES: u64 = 1_024;

/// Checks how many entries a group has; `are_empty` tells whether they take no bytes.
///
/// # Errors
///
/// [`DecodeError::BadCount`] when the schema does not allow so many or so few, or when they are more than
/// [`MOST_EMPTY_ENTRIES`] and empty.
#[inline]
pub const fn count(
    count: u64,
    limits: (u64, u64),
    are_empty: bool,
    what: &'static str,
) -> Result<u64, DecodeError> {
    let (min, mut max) = limits;
    if are_empty && max > MOST_EMPTY_ENTRIES {
        max = MOST_EMPTY_ENTRIES;
    }
    if min <= count && count <= max {
        return Ok(count);
    }
    Err(fault::bad_count(what, (min, max), count))
}

/// The bytes of entries that are blocks and nothing else, and the length of each.
///
/// # Errors
///
/// When there are fewer bytes than the entries take, or when they are shorter than any version of them.
#[inline]
pub fn entries<'a>(
    tail: &mut Tail<'a>,
    count: u64,
    block_length: u64,
    least: usize,
    what: &'static str,
) -> Result<(&'a [u8], usize), DecodeError> {
    if count == 0 {
        // Who sends no entries may say anything of how long they are.
        return Ok((&[], least));
    }
    if block_length < least as u64 {
        return Err(fault::block_too_short(what, least, block_length));
    }
    let bytes = tail.bytes(count.saturating_mul(block_length), what)?;
    // No longer than the bytes.
    Ok((bytes, usize::try_from(block_length).unwrap_or(usize::MAX)))
}

/// What follows a block, and how much of it has been read.
#[derive(Debug, Clone, Copy)]
pub struct Tail<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Tail<'a> {
    /// All of it, and nothing read.
    #[inline]
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            all: bytes,
            rest: bytes,
        }
    }

    /// The same bytes, with nothing read.
    #[inline]
    #[must_use]
    pub const fn from_start(self) -> Self {
        Self::new(self.all)
    }

    /// What has not been read.
    #[inline]
    #[must_use]
    pub const fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Goes on with what is left behind something that was read from the rest.
    #[inline]
    pub const fn leave(&mut self, rest: &'a [u8]) {
        self.rest = rest;
    }

    /// Reads that many bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`] when there are fewer.
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
    /// [`DecodeError::Short`] when there are fewer.
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

    /// Reads data whose length has just been read.
    ///
    /// # Errors
    ///
    /// When it is longer than the schema allows, or than the bytes that there are.
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
