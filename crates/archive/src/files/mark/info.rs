// SPDX-License-Identifier: Apache-2.0
//! Reading a mark file.

use std::path::{Path, PathBuf};

use taran_archive_client::codecs::mark;
use taran_archive_client::codecs::mark::mark_file_header::MarkFileHeaderDecoder;
use taran_core::error_log::{ErrorObservation, read};
use taran_core::memory::Region;
use taran_storage::{Disk, DiskError, OpenOptions};
use thiserror::Error;

use super::{HEADER_LENGTH, LINK_FILE, MARK_FILE, OWNER, RELEASED, SBE_HEADER, at};

/// Longest mark file that is read, in bytes.
const LENGTH_MAX: u64 = 1 << 30;
/// Longest link file that is read, in bytes.
const LINK_MAX: u64 = 16 * 1024;

/// Contents of a mark file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MarkFileInfo {
    /// Version of the layout; 0 until the archive has started completely.
    pub version: i32,
    /// Time of the last heartbeat in epoch milliseconds; -1 after a regular end.
    pub activity_timestamp: i64,
    /// Start time in epoch milliseconds.
    pub start_timestamp: i64,
    /// Process id.
    pub pid: i64,
    /// Stream id for control requests.
    pub control_stream_id: i32,
    /// Stream id for local control requests.
    pub local_control_stream_id: i32,
    /// Stream id for recording events.
    pub events_stream_id: i32,
    /// Id of the archive, if the file has one.
    pub archive_id: Option<i64>,
    /// Channel for control requests; empty if there is none.
    pub control_channel: String,
    /// Channel for local control requests.
    pub local_control_channel: String,
    /// Channel for recording events; empty if there is none.
    pub events_channel: String,
    /// Directory of the media driver.
    pub aeron_directory: String,
    /// Offset and length of the error log.
    error_log: (usize, usize),
    /// The file has the layout of versions before 1.47, 8 bytes lower.
    pub(super) is_old_layout: bool,
    /// The owner holds the lock of the archive's directory while it runs.
    has_lock: bool,
}

/// The file is no mark file.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MarkFileError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The file is longer than any mark file.
    #[error("{} has {len} bytes: it is no mark file of an archive", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Length in bytes.
        len: u64,
    },
    /// The contents are none of a mark file.
    #[error("{} is no mark file of an archive, or it is incomplete: {reason}", path.display())]
    Contents {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

taran_core::debug_is_display!(MarkFileError);

impl MarkFileInfo {
    /// Parses the contents of a mark file of any version.
    ///
    /// # Errors
    ///
    /// Says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let word = |at: usize| {
            let part = bytes.get(at..at + 2)?;
            Some(u64::from(u16::from_le_bytes(part.try_into().ok()?)))
        };
        let has_header =
            word(2) == Some(MarkFileHeaderDecoder::TEMPLATE_ID) && word(4) == Some(mark::SCHEMA_ID);
        let (start, version) = if has_header {
            (SBE_HEADER, word(6).unwrap_or(0))
        } else {
            (0, mark::SCHEMA_VERSION)
        };
        let body = bytes.get(start..).unwrap_or_default();
        let decoder =
            MarkFileHeaderDecoder::wrap(body, MarkFileHeaderDecoder::BLOCK_LENGTH, version)
                .map_err(|error| error.to_string())?;
        let fields = decoder;
        let error = |error: taran_sbe::runtime::DecodeError| error.to_string();
        let (control, decoder) = decoder.control_channel().map_err(error)?;
        let (local, decoder) = decoder.local_control_channel().map_err(error)?;
        let (events, decoder) = decoder.events_channel().map_err(error)?;
        let (aeron, _) = decoder.aeron_directory().map_err(error)?;
        let length = |value: Option<i32>| usize::try_from(value.unwrap_or(0)).unwrap_or(0);
        let header_length = match length(fields.header_length()) {
            0 => HEADER_LENGTH,
            length => length,
        };
        let left = bytes.len().saturating_sub(header_length);
        let log_length = match length(fields.error_buffer_length()) {
            0 => left,
            length => length.min(left),
        };
        Ok(Self {
            version: fields.version(),
            activity_timestamp: fields.activity_timestamp(),
            start_timestamp: fields.start_timestamp(),
            pid: fields.pid(),
            control_stream_id: fields.control_stream_id(),
            local_control_stream_id: fields.local_control_stream_id(),
            events_stream_id: fields.events_stream_id(),
            archive_id: fields.archive_id(),
            control_channel: control.to_string(),
            local_control_channel: local.to_string(),
            events_channel: events.to_string(),
            aeron_directory: aeron.to_string(),
            error_log: (header_length.min(bytes.len()), log_length),
            is_old_layout: !has_header,
            has_lock: has_header
                && owner_value(bytes, at::OWNER_START) == Some(fields.start_timestamp())
                && owner_value(bytes, at::OWNER_PID) == Some(fields.pid()),
        })
    }

    /// Reads the mark file of an archive, where its link file leads if there is one. Returns its path, the contents and the
    /// errors in its log.
    ///
    /// # Errors
    ///
    /// There is no mark file, it cannot be read, or it is none.
    pub fn read(
        disk: &dyn Disk,
        archive_directory: &Path,
    ) -> Result<(PathBuf, Self, Vec<ErrorObservation>), MarkFileError> {
        let directory = mark_directory(disk, archive_directory)?;
        let path = directory.join(MARK_FILE);
        let bytes = read_file(disk, &path, LENGTH_MAX)?;
        let info = Self::parse(&bytes).map_err(|reason| MarkFileError::Contents {
            path: path.clone(),
            reason,
        })?;
        let errors = info.errors(&bytes);
        Ok((path, info, errors))
    }

    /// Returns the errors in the log of the contents that were parsed.
    #[must_use]
    pub fn errors(&self, bytes: &[u8]) -> Vec<ErrorObservation> {
        let (offset, length) = self.error_log;
        let mut errors = Vec::new();
        let log = bytes.get(offset..offset + length).unwrap_or_default();
        // The log ends at the first zero length; pages without records are not needed.
        let used = log
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        if used > 0
            && let Ok(region) = Region::anonymous(used)
        {
            region.write(0, &log[..used]);
            read(&region, i64::MIN, |error| errors.push(error.clone()));
        }
        errors
    }

    /// Returns true if the last owner holds the lock of the archive's directory while it runs. Official archives take none.
    #[must_use]
    pub fn has_lock(&self) -> bool {
        self.has_lock
    }

    /// Returns true if the archive has ended regularly.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.activity_timestamp == RELEASED
    }
}

/// Returns the directory of the mark file: the one in the link file, or that of the archive.
pub(super) fn mark_directory(
    disk: &dyn Disk,
    archive_directory: &Path,
) -> Result<PathBuf, MarkFileError> {
    match read_file(disk, &archive_directory.join(LINK_FILE), LINK_MAX) {
        Ok(bytes) => Ok(PathBuf::from(String::from_utf8_lossy(&bytes).trim())),
        Err(MarkFileError::Disk(error)) if error.is_not_found() => {
            Ok(archive_directory.to_path_buf())
        }
        Err(error) => Err(error),
    }
}

fn read_file(disk: &dyn Disk, path: &Path, limit: u64) -> Result<Vec<u8>, MarkFileError> {
    let file = disk.open(path, OpenOptions::read())?;
    let len = file.len()?;
    if len > limit {
        return Err(MarkFileError::TooLong {
            path: path.to_path_buf(),
            len,
        });
    }
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Returns the value whose copy an owner with a lock has stored.
fn owner_value(bytes: &[u8], at: usize) -> Option<i64> {
    let stored = i64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?);
    Some(stored ^ OWNER)
}
