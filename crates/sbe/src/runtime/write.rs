// SPDX-License-Identifier: Apache-2.0
//! Support for encoders.

use super::EncodeError;

/// Returns `LEN` mutable bytes of a block at offset `AT`. The bounds are checked when the codec is compiled.
#[inline]
#[must_use]
pub const fn part_mut<const AT: usize, const LEN: usize, const N: usize>(
    block: &mut [u8; N],
) -> &mut [u8; LEN] {
    const { assert!(AT + LEN <= N, "a field lies outside of its block") };
    match block.split_at_mut(AT).1.first_chunk_mut() {
        Some(part) => part,
        None => unreachable!(),
    }
}

/// Writes a text into a field of fixed length, padded with zeros.
///
/// # Errors
///
/// [`EncodeError::TooLong`] if it is longer than the field.
#[inline]
pub fn fill<const N: usize>(
    field: &mut [u8; N],
    text: &[u8],
    what: &'static str,
) -> Result<(), EncodeError> {
    let Some((start, rest)) = field.split_at_mut_checked(text.len()) else {
        return Err(EncodeError::TooLong {
            what,
            max: N as u64,
            actual: text.len(),
        });
    };
    start.copy_from_slice(text);
    rest.fill(0);
    Ok(())
}

/// Encodes the numbers of an array.
#[inline]
pub fn set_numbers<T: Copy, const SIZE: usize, const N: usize, const LEN: usize>(
    field: &mut [u8; LEN],
    values: &[T; N],
    write: impl Fn(T) -> [u8; SIZE],
) {
    const { assert!(SIZE * N == LEN, "an array takes what its numbers take") };
    let (numbers, _) = field.as_chunks_mut();
    for (number, value) in numbers.iter_mut().zip(values) {
        *number = write(*value);
    }
}

/// Returns the length of data.
///
/// # Errors
///
/// [`EncodeError::TooLong`] if it is longer than the schema allows.
#[inline]
pub const fn length(data: &[u8], max: u64, what: &'static str) -> Result<u64, EncodeError> {
    let length = data.len() as u64;
    if length <= max {
        return Ok(length);
    }
    Err(EncodeError::TooLong {
        what,
        max,
        actual: data.len(),
    })
}

/// Buffer that is written from front to back.
#[derive(Debug)]
pub struct Writer<'a> {
    rest: &'a mut [u8],
    written: usize,
}

impl<'a> Writer<'a> {
    /// Creates a writer at the start of `buffer`.
    #[inline]
    #[must_use]
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self {
            rest: buffer,
            written: 0,
        }
    }

    /// Returns the number of bytes written.
    #[inline]
    #[must_use]
    pub const fn written(&self) -> usize {
        self.written
    }

    /// Returns the number of bytes left.
    #[inline]
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Checks the room before any bytes are taken, so that a smaller element can still be written after a failure.
    #[inline]
    const fn has_room(&self, needed: usize, what: &'static str) -> Result<(), EncodeError> {
        let actual = self.rest.len();
        if needed <= actual {
            return Ok(());
        }
        Err(EncodeError::Short {
            what,
            needed,
            actual,
        })
    }

    /// Reserves the next `N` bytes for the caller to write.
    ///
    /// # Errors
    ///
    /// [`EncodeError::Short`] if the buffer has fewer bytes left.
    #[inline]
    pub fn chunk<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<&'a mut [u8; N], EncodeError> {
        self.has_room(N, what)?;
        let Some((chunk, rest)) = core::mem::take(&mut self.rest).split_first_chunk_mut() else {
            unreachable!("there is room")
        };
        self.rest = rest;
        self.written += N;
        Ok(chunk)
    }

    /// Writes bytes. The caller has checked the length against the limit of the field.
    ///
    /// # Errors
    ///
    /// [`EncodeError::Short`] if the buffer has fewer bytes left.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8], what: &'static str) -> Result<(), EncodeError> {
        self.has_room(bytes.len(), what)?;
        let (here, rest) = core::mem::take(&mut self.rest).split_at_mut(bytes.len());
        here.copy_from_slice(bytes);
        self.rest = rest;
        self.written += bytes.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_without_room_leaves_writer_unchanged() {
        let mut buffer = [0; 5];
        let mut writer = Writer::new(&mut buffer);
        let short = |needed, actual| EncodeError::Short {
            what: "a",
            needed,
            actual,
        };
        assert_eq!(writer.chunk::<6>("a").map(|_| ()), Err(short(6, 5)));
        assert_eq!(writer.bytes(&[1; 6], "a"), Err(short(6, 5)));
        *writer.chunk("a").unwrap() = [7; 3];
        assert_eq!(writer.chunk::<3>("a").map(|_| ()), Err(short(3, 2)));
        assert_eq!(writer.bytes(&[1; 2], "a"), Ok(()));
        assert_eq!(writer.written(), 5);
        assert_eq!(buffer, [7, 7, 7, 1, 1]);
    }
}
