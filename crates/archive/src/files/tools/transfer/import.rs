// SPDX-License-Identifier: Apache-2.0
use std::io::{self, Read};
use std::sync::Arc;

use taran_protocol::frame::{DATA_HEADER_LENGTH, DataHeader};
use taran_protocol::position::align32;
use taran_storage::{DiskFile, SyncKind};
use thiserror::Error;
use zerocopy::FromBytes;

use super::super::super::SyncLevel;
use super::super::super::catalog::{AddError, CatalogError, EntryState};
use super::super::super::checksum::Checksum;
use super::super::super::descriptor::{Descriptor, InvalidDescriptor, NewRecording};
use super::super::super::layout::RecordingLayout;
use super::super::super::segments::{FrameFault, SegmentCreator, SegmentName, check_header};
use super::super::{StoppedArchive, ToolError};
use super::{DESCRIPTION_MAX, MAGIC, VERSION};

/// Bytes that are read at once, so that memory grows with what is there, not with what a length says.
const CHUNK: u64 = 1 << 20;

/// Result of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// Id of the recording in this archive.
    pub recording_id: i64,
    /// Id of the recording in the archive that it comes from.
    pub source_id: i64,
    /// Start position.
    pub start: i64,
    /// Stop position.
    pub end: i64,
    /// Number of frames, padding included.
    pub frames: u64,
}

/// A recording was not imported; nothing of it is left.
#[derive(Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The first bytes are others.
    #[error("this is no export of a recording: it does not begin with TARANREC")]
    Magic,
    /// The version is another one.
    #[error(
        "the export has version {0}, and this program reads version {VERSION}: use a newer one"
    )]
    Version(u32),
    /// The description is longer than any.
    #[error(
        "the description has {0} bytes, more than any ({DESCRIPTION_MAX}): the export is damaged"
    )]
    Description(u32),
    /// A checksum is wrong.
    #[error("the export is damaged at byte {at}: its checksum is wrong")]
    Checksum {
        /// Offset of the part.
        at: u64,
    },
    /// The input ends before the end of the export.
    #[error("the export is cut off: it ends at byte {at}; export the recording again")]
    Cut {
        /// Length of the input in bytes.
        at: u64,
    },
    /// More bytes follow the end.
    #[error("bytes follow the end of the export at byte {at}: import one recording at a time")]
    Trailing {
        /// Offset of the first one.
        at: u64,
    },
    /// The fields of the description contradict each other.
    #[error("the description cannot be used: {0}")]
    Descriptor(#[from] InvalidDescriptor),
    /// The description cannot be decoded.
    #[error("the description cannot be decoded: {0}")]
    Decode(String),
    /// A frame is none of the recording.
    #[error("the frame at position {position} is damaged: {fault}")]
    Frame {
        /// Position of the frame.
        position: i64,
        /// The reason.
        fault: FrameFault,
    },
    /// Blocks do not follow each other.
    #[error("position {expected} is missing: position {found} follows")]
    Position {
        /// The position that has to follow.
        expected: i64,
        /// The position that follows.
        found: i64,
    },
    /// The end names another number of frames.
    #[error("the export has {found} frames, and its end names {expected}")]
    Frames {
        /// Number that the end names.
        expected: u64,
        /// Number of frames.
        found: u64,
    },
    /// The input cannot be read.
    #[error("cannot read the export: {0}")]
    Read(io::Error),
    /// The catalog cannot take the recording.
    #[error(transparent)]
    Add(#[from] AddError),
    /// The files cannot be written.
    #[error(transparent)]
    Tool(#[from] ToolError),
}

taran_core::debug_is_display!(ImportError);

impl From<taran_storage::DiskError> for ImportError {
    fn from(error: taran_storage::DiskError) -> Self {
        Self::Tool(error.into())
    }
}

impl From<CatalogError> for ImportError {
    fn from(error: CatalogError) -> Self {
        Self::Tool(error.into())
    }
}

impl StoppedArchive {
    /// Adds a recording from a file of [`export`](super::export), under a new id. The frames are checked and durable when this
    /// returns. Calls `progress` with the position that is reached, for each block.
    ///
    /// # Errors
    ///
    /// The input is no complete export, or the disk failed. Nothing of the recording is left then, but its id is used up.
    pub fn import(
        &mut self,
        input: &mut dyn Read,
        now_ms: i64,
        progress: impl FnMut(i64),
    ) -> Result<Imported, ImportError> {
        let mut input = Input { input, at: 0 };
        let source = read_description(&mut input)?;
        let layout = source.validate()?;
        let new = NewRecording {
            start_timestamp: source.start_timestamp,
            start_position: source.start_position,
            initial_term_id: source.initial_term_id,
            segment_file_length: source.segment_file_length,
            term_buffer_length: source.term_buffer_length,
            mtu_length: source.mtu_length,
            session_id: source.session_id,
            stream_id: source.stream_id,
            stripped_channel: &source.texts.stripped_channel,
            original_channel: &source.texts.original_channel,
            source_identity: &source.texts.source_identity,
        };
        let (recording_id, change) = self.catalog.add(&new)?;
        self.apply(&change)?;
        let imported = self
            .import_frames(&mut input, recording_id, layout, source.stream_id, progress)
            .and_then(|(end, frames)| {
                let stopped = if source.is_active() {
                    now_ms
                } else {
                    source.stop_timestamp
                };
                let change = self
                    .catalog
                    .stop(recording_id, end, stopped)
                    .map_err(ToolError::from)?;
                self.apply(&change)?;
                Ok(Imported {
                    recording_id,
                    source_id: source.recording_id,
                    start: source.start_position,
                    end,
                    frames,
                })
            });
        if imported.is_err() {
            // The first error says more than one of the removal, whose rest is found as orphaned files.
            let _ = self.purge(recording_id);
        }
        imported
    }

    fn import_frames(
        &mut self,
        input: &mut Input<'_>,
        recording_id: i64,
        layout: RecordingLayout,
        stream_id: i32,
        mut progress: impl FnMut(i64),
    ) -> Result<(i64, u64), ImportError> {
        // An interrupted import leaves an INVALID recording, which compaction removes.
        let change = self
            .catalog
            .set_state(recording_id, EntryState::Invalid)
            .map_err(ToolError::from)?;
        self.apply(&change)?;
        let mut writer = FrameWriter {
            creator: SegmentCreator {
                disk: &*self.disk,
                directory: &self.directory,
                sync: SyncLevel::Data,
            },
            recording_id,
            layout,
            stream_id,
            position: layout.start_position(),
            frames: 0,
            open: None,
        };
        loop {
            let at = input.at;
            let length = input.u32()?;
            let checksum = input.u32()?;
            let position = input.array()?;
            if length == 0 {
                let frames = input.array()?;
                let mut digest = Checksum::Crc32c.digest();
                digest.update(&position);
                digest.update(&frames);
                if digest.finish() != checksum.cast_signed() {
                    return Err(ImportError::Checksum { at });
                }
                writer.check_position(i64::from_le_bytes(position))?;
                let expected = u64::from_le_bytes(frames);
                if expected != writer.frames {
                    return Err(ImportError::Frames {
                        expected,
                        found: writer.frames,
                    });
                }
                if input.has_more()? {
                    return Err(ImportError::Trailing { at: input.at });
                }
                break;
            }
            let block = input.bytes(u64::from(length))?;
            let mut digest = Checksum::Crc32c.digest();
            digest.update(&position);
            digest.update(&block);
            if digest.finish() != checksum.cast_signed() {
                return Err(ImportError::Checksum { at });
            }
            writer.check_position(i64::from_le_bytes(position))?;
            writer.write_block(&block)?;
            progress(writer.position);
        }
        writer.sync()?;
        let (end, frames) = (writer.position, writer.frames);
        self.disk.sync_directory(&self.directory)?;
        let change = self
            .catalog
            .set_state(recording_id, EntryState::Valid)
            .map_err(ToolError::from)?;
        self.apply(&change)?;
        Ok((end, frames))
    }
}

/// Writes frames to segment files.
struct FrameWriter<'a> {
    creator: SegmentCreator<'a>,
    recording_id: i64,
    layout: RecordingLayout,
    stream_id: i32,
    position: i64,
    frames: u64,
    /// The segment file that is written, and its base position.
    open: Option<(i64, Box<dyn DiskFile>)>,
}

impl FrameWriter<'_> {
    fn check_position(&self, found: i64) -> Result<(), ImportError> {
        let expected = self.position;
        if found == expected {
            Ok(())
        } else {
            Err(ImportError::Position { expected, found })
        }
    }

    /// Writes frames that follow each other in as few writes as segments and padding allow.
    fn write_block(&mut self, block: &[u8]) -> Result<(), ImportError> {
        // Bytes that are not written yet, and their position.
        let (mut run, mut run_position) = (0, self.position);
        let mut at = 0;
        while at < block.len() {
            let position = self.position;
            let fault = |fault| ImportError::Frame { position, fault };
            let (header, _) = DataHeader::read_from_prefix(&block[at..]).map_err(|_| {
                fault(FrameFault::Cut {
                    len: block.len() as u64,
                })
            })?;
            let is_padding =
                check_header(&self.layout, self.stream_id, position, &header).map_err(fault)?;
            // At least the length of a header, at most that of a term.
            let aligned = align32(header.header.frame_length.get());
            let stored = if is_padding {
                DATA_HEADER_LENGTH
            } else {
                aligned
            };
            let next = at + stored.unsigned_abs() as usize;
            if next > block.len() {
                return Err(fault(FrameFault::Cut {
                    len: block.len() as u64,
                }));
            }
            at = next;
            self.position += i64::from(aligned);
            self.frames += 1;
            let is_last = at == block.len();
            if is_padding
                || is_last
                || self.layout.base_of(self.position) != self.layout.base_of(position)
            {
                self.write(run_position, &block[run..at])?;
                (run, run_position) = (at, self.position);
            }
        }
        Ok(())
    }

    /// Writes bytes that are in one segment.
    fn write(&mut self, position: i64, bytes: &[u8]) -> Result<(), ImportError> {
        let base = self.layout.base_of(position);
        if self.open.as_ref().is_none_or(|(open, _)| *open != base) {
            self.sync()?;
            let name = SegmentName::new(self.recording_id, base);
            // Ids and positions of a valid description are not negative.
            let name = name.ok_or(ImportError::Position {
                expected: 0,
                found: base,
            })?;
            let file = self.creator.create(name, self.layout.segment_length())?;
            self.open = Some((base, file));
        }
        if let Some((_, file)) = &self.open {
            file.write_at(bytes, self.layout.offset_of(position))?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), ImportError> {
        if let Some((_, file)) = &self.open {
            file.sync(SyncKind::Data)?;
        }
        Ok(())
    }
}

/// The input, with the number of bytes read.
struct Input<'a> {
    input: &'a mut dyn Read,
    at: u64,
}

impl Input<'_> {
    fn bytes(&mut self, count: u64) -> Result<Vec<u8>, ImportError> {
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < count {
            let more = (count - bytes.len() as u64).min(CHUNK);
            let mut part = Read::take(&mut *self.input, more);
            let read = part.read_to_end(&mut bytes).map_err(ImportError::Read)?;
            self.at += read as u64;
            if (read as u64) < more {
                return Err(ImportError::Cut { at: self.at });
            }
        }
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ImportError> {
        let bytes = self.bytes(N as u64)?;
        let mut array = [0; N];
        array.copy_from_slice(&bytes);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32, ImportError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn has_more(&mut self) -> Result<bool, ImportError> {
        let mut one = Read::take(&mut *self.input, 1);
        let read = one.read_to_end(&mut Vec::new());
        Ok(read.map_err(ImportError::Read)? > 0)
    }
}

fn read_description(input: &mut Input<'_>) -> Result<Descriptor, ImportError> {
    let magic: [u8; 8] = match input.array() {
        Ok(magic) => magic,
        Err(ImportError::Cut { .. }) => return Err(ImportError::Magic),
        Err(error) => return Err(error),
    };
    if magic != MAGIC {
        return Err(ImportError::Magic);
    }
    let version = input.u32()?;
    if version != VERSION {
        return Err(ImportError::Version(version));
    }
    let length = input.u32()?;
    if length > DESCRIPTION_MAX {
        return Err(ImportError::Description(length));
    }
    let description = input.bytes(u64::from(length))?;
    let at = input.at;
    let checksum = input.u32()?;
    let mut digest = Checksum::Crc32c.digest();
    digest.update(&magic);
    digest.update(&version.to_le_bytes());
    digest.update(&length.to_le_bytes());
    digest.update(&description);
    if digest.finish() != checksum.cast_signed() {
        return Err(ImportError::Checksum { at });
    }
    let (descriptor, _) = Descriptor::decode(&description, |text| Arc::from(text))
        .map_err(|error| ImportError::Decode(error.to_string()))?;
    Ok(descriptor)
}
