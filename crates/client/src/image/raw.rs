// SPDX-License-Identifier: Apache-2.0
//! Raw polls: blocks of frames with their location in the log file.

use std::ops::Deref;
use std::path::PathBuf;

use taran_core::memory::StoredFile;

use super::{Block, Image, ImageView};
use crate::Position;

/// A [`Block`] with its location in the log file. The kernel can send or store it without a copy through this process,
/// unless the storage of the client is in memory.
///
/// The bytes do not change until the block is consumed, which is when the handler returns.
#[derive(Clone, Copy, Debug)]
pub struct RawBlock<'a> {
    block: &'a Block<'a>,
    file: &'a StoredFile,
    file_offset: u64,
}

impl<'a> RawBlock<'a> {
    /// Returns the log file, opened for reading.
    #[must_use]
    pub fn file(&self) -> &'a StoredFile {
        self.file
    }

    /// Returns the offset of the block in the file, in bytes.
    #[must_use]
    pub fn file_offset(&self) -> u64 {
        self.file_offset
    }

    /// Returns the length of the block in bytes, a multiple of 32.
    #[must_use]
    pub fn length(&self) -> usize {
        self.block.bytes().len()
    }
}

impl<'a> Deref for RawBlock<'a> {
    type Target = Block<'a>;

    fn deref(&self) -> &Block<'a> {
        self.block
    }
}

/// The error of opening a log file.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the log {} cannot be opened as a file: {reason}. The driver deletes it after the end of the stream; use \
     `block_poll`, which needs no file",
    .path.display()
)]
#[non_exhaustive]
pub struct LogFileError {
    /// Path of the file.
    pub path: PathBuf,
    /// Error of the storage.
    pub reason: String,
}

taran_core::debug_is_display!(LogFileError);

impl Image {
    /// Like [`block_poll`](Self::block_poll), and passes the location of the block in the log file. The first call
    /// opens the file.
    ///
    /// # Errors
    /// The file cannot be opened; nothing was consumed.
    pub fn raw_poll(
        &mut self,
        mut handler: impl FnMut(&RawBlock<'_>),
        limit_bytes: usize,
    ) -> Result<usize, LogFileError> {
        if self.is_closed() {
            return Ok(0);
        }
        let file = match self.file.take() {
            Some(file) => file,
            None => open_file(&self.view)?,
        };
        let term_begin = self.term_begin_in_file(self.position);
        let consumed = self.block_poll(
            |block| {
                handler(&RawBlock {
                    block,
                    file: &file,
                    // An offset in a term is not negative.
                    file_offset: term_begin + u64::from(block.term_offset().unsigned_abs()),
                });
            },
            limit_bytes,
        );
        self.file = Some(file);
        Ok(consumed)
    }

    fn term_begin_in_file(&self, position: Position) -> u64 {
        let geometry = self.view.geometry();
        geometry.partition(position) as u64 * u64::from(geometry.term_length().unsigned_abs())
    }
}

fn open_file(view: &ImageView) -> Result<StoredFile, LogFileError> {
    view.open_log().map_err(|error| LogFileError {
        path: view.log_path().to_path_buf(),
        reason: error.to_string(),
    })
}
