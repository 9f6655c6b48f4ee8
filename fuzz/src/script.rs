// SPDX-License-Identifier: Apache-2.0
//! Scripts: inputs that are read as a sequence of operations and values.
//!
//! [`Script`] reads scripts and [`Composer`] writes them, so that seeds can be composed of real frames and commands. Reading
//! never fails: zeros follow the end, so that every input is a valid script.

/// Reader of the rest of an input.
#[derive(Clone, Debug)]
pub struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    /// Creates a reader of a whole input.
    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// Returns true if nothing is left.
    pub fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the unread bytes.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Reads up to `length` bytes.
    pub fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Reads bytes with a two-byte length prefix.
    pub fn chunk(&mut self) -> &'a [u8] {
        let length = self.u16();
        self.take(length.into())
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.take(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    /// A byte.
    pub fn u8(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    /// Two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// Four bytes.
    pub fn i32(&mut self) -> i32 {
        i32::from_le_bytes(self.array())
    }

    /// Eight bytes.
    pub fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.array())
    }

    /// Reads a byte as an index below `count` (1 to 256).
    pub fn below(&mut self, count: usize) -> usize {
        usize::from(self.u8()) % count
    }

    /// Reads a byte that selects a known value; its highest bits request a value near it, or any value.
    pub fn near(&mut self, known: &[i64]) -> i64 {
        let choice = self.u8();
        let chosen = known[usize::from(choice & 0x3F) % known.len()];
        match choice >> 6 {
            0 | 1 => chosen,
            2 => chosen.wrapping_add(i64::from(self.u8() as i8) * 32),
            _ => self.i64(),
        }
    }
}

/// Writes scripts.
#[derive(Clone, Debug, Default)]
pub struct Composer {
    bytes: Vec<u8>,
}

impl Composer {
    /// An empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the script.
    pub fn done(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes bytes without a length.
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Writes at most 65,535 bytes with a length prefix.
    pub fn chunk(self, bytes: &[u8]) -> Self {
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.u16(length).raw(&bytes[..length.into()])
    }

    /// A byte.
    pub fn u8(self, byte: u8) -> Self {
        self.raw(&[byte])
    }

    /// Two bytes.
    pub fn u16(self, number: u16) -> Self {
        self.raw(&number.to_le_bytes())
    }

    /// Four bytes.
    pub fn i32(self, number: i32) -> Self {
        self.raw(&number.to_le_bytes())
    }

    /// Eight bytes.
    pub fn i64(self, number: i64) -> Self {
        self.raw(&number.to_le_bytes())
    }

    /// Writes the byte that [`Script::near`] reads as the known value of that index.
    pub fn known(self, index: u8) -> Self {
        self.u8(index & 0x3F)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_reads_composed_values() {
        let bytes = Composer::new()
            .u8(3)
            .chunk(b"abc")
            .i64(-7)
            .known(1)
            .i32(9)
            .done();
        let mut script = Script::new(&bytes);
        assert_eq!(
            (script.u8(), script.chunk(), script.i64()),
            (3, &b"abc"[..], -7)
        );
        assert_eq!((script.near(&[5, 6]), script.i32()), (6, 9));
        assert!(script.is_over());
        assert_eq!(
            (script.u8(), script.chunk(), script.i64()),
            (0, &b""[..], 0)
        );
    }
}
