// SPDX-License-Identifier: Apache-2.0
//! Text values, which are not guaranteed to be valid text.

use core::fmt;
use core::str::Utf8Error;

/// Text of variable length.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    /// Wraps the bytes of a text.
    #[inline]
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    #[inline]
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the text.
    ///
    /// # Errors
    ///
    /// If it is not valid UTF-8, of which ASCII is a subset.
    pub const fn to_str(self) -> Result<&'a str, Utf8Error> {
        core::str::from_utf8(self.0)
    }
}

/// Text in a field of `N` bytes; ends at the first zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FixedText<'a, const N: usize>(&'a [u8; N]);

impl<'a, const N: usize> FixedText<'a, N> {
    /// Wraps the bytes of the field.
    #[inline]
    #[must_use]
    pub const fn new(field: &'a [u8; N]) -> Self {
        Self(field)
    }

    /// Returns the whole field, including the zeros and the bytes after them.
    #[inline]
    #[must_use]
    pub const fn field(self) -> &'a [u8; N] {
        self.0
    }

    /// Returns the bytes of the text.
    #[inline]
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(N);
        self.0.get(..end).unwrap_or(self.0)
    }

    /// Returns the text.
    ///
    /// # Errors
    ///
    /// If it is not valid UTF-8, of which ASCII is a subset.
    pub fn to_str(self) -> Result<&'a str, Utf8Error> {
        core::str::from_utf8(self.as_bytes())
    }
}

/// Invalid bytes are shown as `U+FFFD`, so that formatting a message cannot fail.
fn lossy(bytes: &[u8], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    for chunk in bytes.utf8_chunks() {
        fmt::Write::write_str(out, chunk.valid())?;
        if !chunk.invalid().is_empty() {
            fmt::Write::write_char(out, char::REPLACEMENT_CHARACTER)?;
        }
    }
    Ok(())
}

fn quoted(bytes: &[u8], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    use fmt::Write;
    out.write_char('"')?;
    for chunk in bytes.utf8_chunks() {
        write!(out, "{}", chunk.valid().escape_debug())?;
        write!(out, "{}", chunk.invalid().escape_ascii())?;
    }
    out.write_char('"')
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        lossy(self.0, out)
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        quoted(self.0, out)
    }
}

impl<const N: usize> fmt::Display for FixedText<'_, N> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        lossy(self.as_bytes(), out)
    }
}

impl<const N: usize> fmt::Debug for FixedText<'_, N> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        quoted(self.as_bytes(), out)
    }
}

impl AsRef<[u8]> for Text<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0
    }
}

impl<const N: usize> AsRef<[u8]> for FixedText<'_, N> {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl<const N: usize> PartialEq<str> for FixedText<'_, N> {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> PartialEq<&str> for FixedText<'_, N> {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

/// Value of an optional text of fixed length: bytes, or an `Option` of bytes.
pub trait TextOrNull {
    /// Returns the text, or `None` for null.
    fn bytes(&self) -> Option<&[u8]>;
}

impl<T: AsRef<[u8]> + ?Sized> TextOrNull for &T {
    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        Some((*self).as_ref())
    }
}

impl<T: AsRef<[u8]>> TextOrNull for Option<T> {
    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        self.as_ref().map(AsRef::as_ref)
    }
}

impl<const N: usize> TextOrNull for [u8; N] {
    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        Some(self)
    }
}

impl TextOrNull for Text<'_> {
    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        Some(self.0)
    }
}

impl<const N: usize> TextOrNull for FixedText<'_, N> {
    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        Some(self.as_bytes())
    }
}

/// Formatter of a set: shows the names of the choices that are set, and the unnamed bits as a number.
#[expect(missing_debug_implementations, reason = "it is how others are shown")]
pub struct SetDisplay<'a, 'b> {
    bits: u64,
    shown: fmt::DebugSet<'a, 'b>,
}

impl<'a, 'b> SetDisplay<'a, 'b> {
    /// Creates a formatter for these bits.
    pub fn new(bits: u64, out: &'a mut fmt::Formatter<'b>) -> Self {
        let shown = out.debug_set();
        Self { bits, shown }
    }

    /// Shows a choice if its bit is set and has not been shown.
    pub fn flag(&mut self, name: &str, bit: u64) {
        if self.bits & bit != 0 {
            self.shown.entry(&format_args!("{name}"));
            self.bits &= !bit;
        }
    }

    /// Shows the unnamed bits.
    ///
    /// # Errors
    ///
    /// Errors of the formatter.
    pub fn finish(mut self) -> fmt::Result {
        if self.bits != 0 {
            self.shown.entry(&format_args!("{:#x}", self.bits));
        }
        self.shown.finish()
    }
}
