// SPDX-License-Identifier: Apache-2.0
//! Conversion of text offsets to lines and columns.

use std::sync::Arc;

use crate::model::Position;

/// Position lookup. Lookups in ascending order take one pass over the text in total.
pub(super) struct Places<'text> {
    file: Arc<str>,
    text: &'text str,
    offset: usize,
    line: u32,
    column: u32,
}

impl<'text> Places<'text> {
    pub(super) fn new(file: &str, text: &'text str) -> Self {
        Self {
            file: file.into(),
            text,
            offset: 0,
            line: 1,
            column: 1,
        }
    }

    pub(super) fn at(&mut self, offset: usize) -> Position {
        if offset < self.offset {
            (self.offset, self.line, self.column) = (0, 1, 1);
        }
        for character in self.text[self.offset..].chars() {
            if self.offset >= offset {
                break;
            }
            self.offset += character.len_utf8();
            if character == '\n' {
                self.line = self.line.saturating_add(1);
                self.column = 1;
            } else {
                self.column = self.column.saturating_add(1);
            }
        }
        Position {
            file: Arc::clone(&self.file),
            line: self.line,
            column: self.column,
        }
    }
}
