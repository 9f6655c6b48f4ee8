// SPDX-License-Identifier: Apache-2.0
//! Positions in schema files.

use std::fmt;
use std::sync::Arc;

/// Position in a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// File name, as passed to open it.
    pub file: Arc<str>,
    /// Line, starting at 1.
    pub line: u32,
    /// Column in characters, starting at 1.
    pub column: u32,
}

impl Position {
    /// Returns the position of the first character of a file.
    #[must_use]
    pub fn start_of(file: &str) -> Self {
        Self {
            file: file.into(),
            line: 1,
            column: 1,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", self.file, self.line, self.column)
    }
}
