// SPDX-License-Identifier: Apache-2.0
//! Reading the frames of a recording in order.

use std::ops::{ControlFlow, Range};
use std::path::Path;

use taran_protocol::frame::DATA_HEADER_LENGTH as HEADER;
use taran_storage::{Disk, DiskError, OpenOptions};
use thiserror::Error;

use super::super::descriptor::{Descriptor, InvalidDescriptor};
use super::super::segments::{Frame, FrameFault, ScanTarget, SegmentDirectory};

/// The frames of a recording were not all read.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DumpError {
    /// The entry contradicts itself.
    #[error("recording {recording_id} cannot be read: {reason}")]
    Descriptor {
        /// The recording.
        recording_id: i64,
        /// The reason.
        reason: InvalidDescriptor,
    },
    /// A segment file is missing.
    #[error("recording {recording_id} has no segment file for position {position}")]
    Missing {
        /// The recording.
        recording_id: i64,
        /// The position.
        position: i64,
    },
    /// A frame is damaged.
    #[error("recording {recording_id} is damaged at position {position}: {fault}")]
    Fault {
        /// The recording.
        recording_id: i64,
        /// Position of the frame.
        position: i64,
        /// The reason.
        fault: FrameFault,
    },
    /// The frames end before the stop position.
    #[error(
        "recording {recording_id} ends at position {position}, before its stop position {stop}"
    )]
    Ends {
        /// The recording.
        recording_id: i64,
        /// Position behind the last frame.
        position: i64,
        /// The stop position.
        stop: i64,
    },
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

taran_core::debug_is_display!(DumpError);

/// Calls `visit` with position, frame and payload of each frame of a recording, in order, until it breaks or the recording
/// ends; an active recording ends where its frames do. The payload of padding is empty.
///
/// # Errors
///
/// A segment is missing, a frame is damaged, or the disk failed.
pub fn dump(
    disk: &dyn Disk,
    directory: &Path,
    descriptor: &Descriptor,
    visit: impl FnMut(i64, &Frame, &[u8]) -> ControlFlow<()>,
) -> Result<(), DumpError> {
    dump_range(disk, directory, descriptor, 0..i64::MAX, visit)
}

/// Like [`dump`], from the frame that contains the first of the positions up to the end of the last one, or of the recording.
/// Of an active recording, frames up to the end of the range must be there, unless it is [`i64::MAX`].
///
/// # Errors
///
/// As for [`dump`].
pub fn dump_range(
    disk: &dyn Disk,
    directory: &Path,
    descriptor: &Descriptor,
    positions: Range<i64>,
    mut visit: impl FnMut(i64, &Frame, &[u8]) -> ControlFlow<()>,
) -> Result<(), DumpError> {
    let whole = |position, frame: &Frame, bytes: &[u8]| {
        // Alignment bytes follow the payload.
        let length = if frame.is_padding {
            0
        } else {
            (frame.length - HEADER).unsigned_abs() as usize
        };
        visit(position, frame, &bytes[..length.min(bytes.len())])
    };
    walk_range(disk, directory, descriptor, positions, whole)
}

/// Like [`dump_range`]; the bytes are payload and alignment as they are in the file.
pub(super) fn walk_range(
    disk: &dyn Disk,
    directory: &Path,
    descriptor: &Descriptor,
    positions: Range<i64>,
    mut visit: impl FnMut(i64, &Frame, &[u8]) -> ControlFlow<()>,
) -> Result<(), DumpError> {
    let recording_id = descriptor.recording_id;
    let layout = descriptor
        .validate()
        .map_err(|reason| DumpError::Descriptor {
            recording_id,
            reason,
        })?;
    let names = SegmentDirectory::list(disk, directory)?;
    let target = ScanTarget {
        disk,
        directory,
        layout,
        stream_id: descriptor.stream_id,
        checksum: None,
    };
    let stop = if descriptor.is_active() {
        (positions.end != i64::MAX).then_some(positions.end)
    } else {
        Some(descriptor.stop_position.min(positions.end))
    };
    // Frames are found from the start of their segment.
    let first = layout.start_position();
    let mut position = first.max(layout.base_of(positions.start));
    let mut bytes = Vec::new();
    while stop.is_none_or(|stop| position < stop) {
        let base = layout.base_of(position);
        let name = names
            .of(recording_id)
            .iter()
            .find(|name| name.base() == base);
        let Some(name) = name else {
            return match stop {
                None => Ok(()),
                Some(_) => Err(DumpError::Missing {
                    recording_id,
                    position,
                }),
            };
        };
        let file = disk.open(&name.path(directory), OpenOptions::read())?;
        let mut walker = target.walker(&*file, *name, position)?;
        while stop.is_none_or(|stop| position < stop)
            && let Some(frame) = walker.next_frame()?
        {
            let end = base + frame.end().cast_signed();
            if end > positions.start {
                let length = if frame.is_padding {
                    0
                } else {
                    frame.end() - frame.offset - u64::from(HEADER.unsigned_abs())
                };
                // A frame is at most a term long. A file that was cut may end in the alignment of its last frame.
                bytes.clear();
                bytes.resize(usize::try_from(length).unwrap_or(0), 0);
                file.read_at(&mut bytes, frame.offset + u64::from(HEADER.unsigned_abs()))?;
                if visit(position, &frame, &bytes).is_break() {
                    return Ok(());
                }
            }
            position = end;
        }
        if let Some(fault) = walker.fault() {
            return Err(DumpError::Fault {
                recording_id,
                position,
                fault,
            });
        }
        let is_segment_end = layout.base_of(position) != base;
        match stop {
            Some(stop) if position < stop && !is_segment_end => {
                return Err(DumpError::Ends {
                    recording_id,
                    position,
                    stop,
                });
            }
            None if !is_segment_end => return Ok(()),
            _ => (),
        }
    }
    Ok(())
}
