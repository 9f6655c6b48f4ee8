// SPDX-License-Identifier: Apache-2.0
use std::io::{self, Write};
use std::ops::{ControlFlow, Range};
use std::path::Path;

use taran_protocol::frame::{DataHeader, FrameType};
use taran_protocol::position::align32;
use taran_storage::Disk;
use thiserror::Error;
use zerocopy::IntoBytes;

use super::super::super::checksum::Checksum;
use super::super::super::descriptor::Descriptor;
use super::super::DumpError;
use super::super::dump::walk_range;
use super::{BLOCK, MAGIC, VERSION};

/// Result of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// Position of the first frame.
    pub start: i64,
    /// Position behind the last frame.
    pub end: i64,
    /// Number of frames, padding included.
    pub frames: u64,
}

/// A recording was not exported.
#[derive(Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] DumpError),
    /// The output cannot be written.
    #[error("cannot write the export: {0}")]
    Write(#[from] io::Error),
}

taran_core::debug_is_display!(ExportError);

/// Writes the frames of a recording from the one that contains the first position to the end of the range, or of the
/// recording. Calls `progress` with the position that is reached, for each block.
///
/// # Errors
///
/// The recording cannot be read completely, or `out` failed. What was written is no complete file then, and
/// [`import`](super::super::StoppedArchive::import) refuses it.
pub fn export(
    disk: &dyn Disk,
    directory: &Path,
    descriptor: &Descriptor,
    positions: Range<i64>,
    out: &mut dyn Write,
    mut progress: impl FnMut(i64),
) -> Result<Exported, ExportError> {
    let mut writer = ExportWriter::new(out, descriptor);
    let mut failure = None;
    walk_range(
        disk,
        directory,
        descriptor,
        positions,
        |position, frame, bytes| {
            let blocks = writer.blocks;
            if let Err(error) = writer.add(position, &frame.header, bytes) {
                failure = Some(error);
                return ControlFlow::Break(());
            }
            if writer.blocks != blocks {
                progress(writer.end);
            }
            ControlFlow::Continue(())
        },
    )?;
    match failure {
        Some(error) => Err(error.into()),
        None => Ok(writer.finish()?),
    }
}

/// Writes an export from frames in order, for instance those of a replay.
///
/// Contract: [`add`](Self::add) for each frame, then [`finish`](Self::finish). Without it, the file is incomplete.
pub struct ExportWriter<'a> {
    out: &'a mut dyn Write,
    descriptor: &'a Descriptor,
    /// Of the first frame; `None` before it.
    start: Option<i64>,
    end: i64,
    frames: u64,
    blocks: u64,
    block_start: i64,
    block: Vec<u8>,
}

impl std::fmt::Debug for ExportWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExportWriter")
            .field("start", &self.start)
            .field("end", &self.end)
            .field("frames", &self.frames)
            .finish_non_exhaustive()
    }
}

impl<'a> ExportWriter<'a> {
    /// Creates a writer of a recording with this description, whose start position the first frame replaces.
    pub fn new(out: &'a mut dyn Write, descriptor: &'a Descriptor) -> Self {
        Self {
            out,
            descriptor,
            start: None,
            end: descriptor.start_position,
            frames: 0,
            blocks: 0,
            block_start: 0,
            block: Vec::new(),
        }
    }

    /// Returns the position behind the last frame.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.end
    }

    /// Adds a frame. `bytes` are payload and alignment; those of padding are left out.
    ///
    /// # Errors
    ///
    /// The output failed.
    pub fn add(&mut self, position: i64, header: &DataHeader, bytes: &[u8]) -> io::Result<()> {
        if self.start.is_none() {
            self.begin(position)?;
        }
        if self.block.is_empty() {
            self.block_start = position;
        }
        self.block.extend_from_slice(header.as_bytes());
        if header.header.frame_type() != FrameType::PAD {
            self.block.extend_from_slice(bytes);
        }
        self.end = position + i64::from(align32(header.header.frame_length.get()));
        self.frames += 1;
        if self.block.len() < BLOCK {
            return Ok(());
        }
        self.flush_block()
    }

    /// Writes the description.
    fn begin(&mut self, start: i64) -> io::Result<()> {
        self.start = Some(start);
        let mut described = self.descriptor.clone();
        described.start_position = start;
        let length = described.encoded_length();
        let mut head = Vec::with_capacity(length + 16);
        head.extend_from_slice(&MAGIC);
        head.extend_from_slice(&VERSION.to_le_bytes());
        // Texts come from messages or a catalog, which are shorter than 4 GiB.
        head.extend_from_slice(&(length as u32).to_le_bytes());
        let at = head.len();
        head.resize(at + length, 0);
        described.encode(&mut head[at..]);
        self.out.write_all(&head)?;
        self.out
            .write_all(&Checksum::Crc32c.compute(&head).to_le_bytes())
    }

    fn flush_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let position = self.block_start.to_le_bytes();
        let mut digest = Checksum::Crc32c.digest();
        digest.update(&position);
        digest.update(&self.block);
        // A block has at most its limit and a frame, which is at most a term of 1 GiB.
        self.out
            .write_all(&(self.block.len() as u32).to_le_bytes())?;
        self.out.write_all(&digest.finish().to_le_bytes())?;
        self.out.write_all(&position)?;
        self.out.write_all(&self.block)?;
        self.block.clear();
        self.blocks += 1;
        Ok(())
    }

    /// Writes the end, and flushes the output.
    ///
    /// # Errors
    ///
    /// The output failed.
    pub fn finish(mut self) -> io::Result<Exported> {
        if self.start.is_none() {
            self.begin(self.descriptor.start_position)?;
        }
        self.flush_block()?;
        let mut end = Vec::with_capacity(16);
        end.extend_from_slice(&self.end.to_le_bytes());
        end.extend_from_slice(&self.frames.to_le_bytes());
        self.out.write_all(&0_u32.to_le_bytes())?;
        self.out
            .write_all(&Checksum::Crc32c.compute(&end).to_le_bytes())?;
        self.out.write_all(&end)?;
        self.out.flush()?;
        Ok(Exported {
            start: self.start.unwrap_or(self.descriptor.start_position),
            end: self.end,
            frames: self.frames,
        })
    }
}
