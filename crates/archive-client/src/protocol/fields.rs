// SPDX-License-Identifier: Apache-2.0
//! Fields of messages as text.

use std::fmt::{self, Formatter, Write};

use super::{ControlResponseCode, ProtocolVersion, RecordingSignal, SourceLocation};

/// A field of a message that has a text.
pub(super) trait Show {
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result;
}

macro_rules! shown {
    ($format:literal: $($type:ty)*) => {
        $(
            impl Show for $type {
                fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
                    write!(f, $format, self)
                }
            }
        )*
    };
}

shown!("{}": i32 i64 bool ProtocolVersion);
shown!("{:?}": SourceLocation ControlResponseCode RecordingSignal);

impl Show for &str {
    /// Escapes what is no part of a line.
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.chars() {
            if c.is_control() {
                write!(f, "{}", c.escape_default())?;
            } else {
                f.write_char(c)?;
            }
        }
        Ok(())
    }
}

impl Show for &[u8] {
    /// Credentials and challenges are secrets: only the length is shown.
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "<{} bytes>", self.len())
    }
}

/// Writes fields with their names in the form of the schema.
pub(super) struct Fields<'a, 'b> {
    f: &'a mut Formatter<'b>,
    is_first: bool,
}

impl<'a, 'b> Fields<'a, 'b> {
    pub(super) fn new(f: &'a mut Formatter<'b>) -> Self {
        Self { f, is_first: true }
    }

    /// Writes a field; `name` has words separated by underscores.
    pub(super) fn field(&mut self, name: &str, value: &impl Show) -> fmt::Result {
        if !std::mem::take(&mut self.is_first) {
            self.f.write_str(", ")?;
        }
        let mut is_start = false;
        for c in name.chars() {
            match c {
                '_' => is_start = true,
                c if std::mem::take(&mut is_start) => self.f.write_char(c.to_ascii_uppercase())?,
                c => self.f.write_char(c)?,
            }
        }
        self.f.write_char('=')?;
        value.show(self.f)
    }
}
