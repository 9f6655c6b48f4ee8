//! A run of whole frames, and where it lies in the log's file.

use std::fs::File;
use std::ops::Deref;
use std::path::PathBuf;

use super::{Block, Image, ImageView};
use crate::Position;

/// A [`Block`] with its place in the file of the log: for sending it on, or storing it, by the kernel and without a copy
/// through this process.
///
/// The bytes stay as they are until the block is consumed, which is when the handler has returned.
#[derive(Clone, Copy, Debug)]
pub struct RawBlock<'a> {
    block: &'a Block<'a>,
    file: &'a File,
    file_offset: u64,
}

impl<'a> RawBlock<'a> {
    /// The file of the log, opened for reading.
    #[must_use]
    pub fn file(&self) -> &'a File {
        self.file
    }

    /// Where in the file the block begins.
    #[must_use]
    pub fn file_offset(&self) -> u64 {
        self.file_offset
    }

    /// Bytes in the block, a multiple of 32.
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

/// The file of a log can not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the log {} can not be opened as a file: {reason}. The driver deletes it after the end of the stream; poll without \
     the file (`block_poll`)",
    .path.display()
)]
pub struct LogFileError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub reason: String,
}

impl Image {
    /// As [`block_poll`](Self::block_poll), and says where in the file of the log the block lies. The file is opened by
    /// the first call.
    ///
    /// # Errors
    /// The file can not be opened; nothing was consumed.
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
            None => open(&self.view)?,
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

fn open(view: &ImageView) -> Result<File, LogFileError> {
    File::open(view.log_path()).map_err(|error| LogFileError {
        path: view.log_path().to_path_buf(),
        reason: error.to_string(),
    })
}
