// SPDX-License-Identifier: Apache-2.0
//! The mark file: settings, heartbeat and error log of an archive (`docs/spec/archive.md` §3.7).
//!
//! The lock of the archive's directory decides whether an archive of ours runs; the activity timestamp tells it of official
//! archives, which take no lock. The file is shared memory, because official tools and archives map it: it goes through
//! [`Storage`].

mod info;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Local};
use taran_archive_client::codecs::mark::mark_file_header::MarkFileHeaderEncoder;
use taran_core::error_log::{ErrorLog, ErrorObservation};
use taran_core::memory::{CreateOptions, MemoryError, Region, Storage};
use taran_core::sync::Ordering;
use taran_storage::{Disk, DiskError, DiskLock};
use thiserror::Error;

use super::FILES_VERSION;
use super::descriptor::ascii;

pub use info::{MarkFileError, MarkFileInfo};

/// Name of the mark file.
pub const MARK_FILE: &str = "archive-mark.dat";
/// Name of the file in the archive's directory that has the directory of the mark file, if that is another one.
pub const LINK_FILE: &str = "archive-mark.lnk";
/// Length in bytes of the header of the mark file.
pub const HEADER_LENGTH: usize = 8192;
/// Lowest length in bytes of the error log.
pub const ERROR_LOG_LENGTH_MIN: usize = 1 << 20;
/// Age in milliseconds at which a heartbeat counts no more.
pub const LIVENESS_TIMEOUT_MS: i64 = 10_000;

/// Activity timestamp after a regular end.
const RELEASED: i64 = -1;
/// Activity timestamp while an archive starts.
const CLAIMED: i64 = i64::MAX;
const SBE_HEADER: usize = 8;

/// Offsets in the file.
mod at {
    pub(super) const VERSION: usize = 8;
    pub(super) const ACTIVITY: usize = 16;
    pub(super) const START: usize = 24;
    /// Unused by Aeron: start timestamp and pid of an owner with a lock, each with [`super::OWNER`] mixed in.
    pub(super) const OWNER_START: usize = 120;
    pub(super) const OWNER_PID: usize = 128;
}

/// Mixed into the copies of start timestamp and pid, so that an official archive's values never match them by chance.
const OWNER: i64 = 0x5461_7261_6e4c_6f63;

/// Settings in a mark file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkSettings {
    /// Id of the archive.
    pub archive_id: i64,
    /// Process id.
    pub pid: i64,
    /// Stream id for control requests.
    pub control_stream_id: i32,
    /// Stream id for local control requests.
    pub local_control_stream_id: i32,
    /// Stream id for recording events.
    pub events_stream_id: i32,
    /// Channel for control requests; empty if there is none.
    pub control_channel: String,
    /// Channel for local control requests.
    pub local_control_channel: String,
    /// Channel for recording events; empty if there is none.
    pub events_channel: String,
    /// Directory of the media driver.
    pub aeron_directory: String,
    /// Length in bytes of the error log, at least [`ERROR_LOG_LENGTH_MIN`].
    pub error_log_length: usize,
    /// Page size of the driver's files in bytes, a power of two.
    pub page_size: usize,
}

/// The mark file was not claimed. An earlier archive's mark file is as it was, or released.
#[derive(Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// An archive of ours runs in the directory.
    #[error(
        "another running archive uses the directory {}: stop it, or choose another aeron.archive.dir", directory.display()
    )]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// The activity timestamp is young: an official archive runs, or ended less than 10 s ago without cleaning up.
    #[error(
        "{} shows an active archive: pid={pid}, last heartbeat {age_ms} ms ago (limit {LIVENESS_TIMEOUT_MS}); stop \
         that archive, or wait until the limit has passed", path.display()
    )]
    Active {
        /// The file.
        path: PathBuf,
        /// The process id in it.
        pid: i64,
        /// Age of the heartbeat in milliseconds; negative if it is in the future.
        age_ms: i64,
    },
    /// The activity timestamp is that of a start that never ended.
    #[error(
        "{} was claimed by an archive (pid={pid}) that never finished its start; if no archive runs in that directory, \
         remove the file", path.display()
    )]
    ClaimedForever {
        /// The file.
        path: PathBuf,
        /// The process id in it.
        pid: i64,
    },
    /// Another archive claimed the file at the same time.
    #[error("another archive claimed {} at the same time; start one of them only", path.display())]
    Raced {
        /// The file.
        path: PathBuf,
    },
    /// The file has another major version.
    #[error(
        "{} has version {}.{}.{}, and this archive uses version 3: migrate it (ArchiveTool migrate of Aeron), or use the \
         archive that wrote it", path.display(), version >> 16, version >> 8 & 0xff, version & 0xff
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version.
        version: i32,
    },
    /// The file is no mark file.
    #[error("{} is no mark file of an archive: {reason}; remove it if no archive runs in that directory", path.display())]
    Contents {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The settings do not fit the header.
    #[error(
        "the channels and the Aeron directory need {needed} bytes in the mark file, which has {limit} for them: shorten \
         the channels"
    )]
    TooLong {
        /// Needed bytes.
        needed: usize,
        /// Bytes there are.
        limit: usize,
    },
    /// The error log is too short.
    #[error(
        "the error buffer length {length} is less than {ERROR_LOG_LENGTH_MIN} (aeron.archive.error.buffer.length)"
    )]
    ErrorLogLength {
        /// Length in bytes.
        length: usize,
    },
    /// The file cannot be created or mapped.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The directory cannot be locked.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A file beside the mark file cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

taran_core::debug_is_display!(ClaimError);

/// The claimed mark file of a running archive. Dropping it releases the claim, also when a start fails.
#[derive(Debug)]
pub struct MarkFile {
    region: Region,
    path: PathBuf,
    error_log_length: usize,
    unsaved: Option<UnsavedErrors>,
    _lock: DiskLock,
}

impl MarkFile {
    /// Takes the lock of an archive's directory, which archives of ours hold.
    ///
    /// # Errors
    ///
    /// One holds it, or the directory cannot be locked.
    pub fn lock(disk: &dyn Disk, archive_directory: &Path) -> Result<DiskLock, ClaimError> {
        disk.try_lock(archive_directory).map_err(|error| {
            if error.is_locked() {
                ClaimError::Locked {
                    directory: archive_directory.to_path_buf(),
                }
            } else {
                error.into()
            }
        })
    }

    /// Checks that no official archive is active, and writes nothing. The caller holds the [lock](Self::lock).
    ///
    /// # Errors
    ///
    /// One is active by the mark file in `mark_directory` or where the link file leads, or there is no telling.
    pub fn check_inactive(
        disk: &dyn Disk,
        storage: &dyn Storage,
        archive_directory: &Path,
        mark_directory: &Path,
        now_ms: i64,
    ) -> Result<(), ClaimError> {
        let linked =
            info::mark_directory(disk, archive_directory).map_err(|error| match error {
                MarkFileError::Disk(error) => error.into(),
                error => ClaimError::Contents {
                    path: archive_directory.join(LINK_FILE),
                    reason: error.to_string(),
                },
            })?;
        for directory in [mark_directory, &linked] {
            let path = directory.join(MARK_FILE);
            match storage.open(&path) {
                Ok(region) => {
                    examine(&region, &path, now_ms)?;
                }
                Err(MemoryError::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Claims the mark file of an archive, or creates it. Nothing is written if an official archive is active. Errors of the
    /// archive before are saved to `archive-<time>-error.log` beside the mark file, then the error log is emptied.
    ///
    /// The archive is marked as starting until [`set_ready`](Self::set_ready).
    ///
    /// # Errors
    ///
    /// Another archive runs, or the file cannot be created. No claim is left.
    pub fn claim(
        lock: DiskLock,
        storage: &dyn Storage,
        archive_directory: &Path,
        mark_directory: &Path,
        settings: &MarkSettings,
        now_ms: i64,
    ) -> Result<Self, ClaimError> {
        if settings.error_log_length < ERROR_LOG_LENGTH_MIN {
            return Err(ClaimError::ErrorLogLength {
                length: settings.error_log_length,
            });
        }
        let header = encode(settings, now_ms)?;
        let path = mark_directory.join(MARK_FILE);
        let page = settings.page_size.max(4096).next_power_of_two();
        let len = (HEADER_LENGTH + settings.error_log_length).next_multiple_of(page) as u64;
        let mut unsaved = None;
        let claimed = Self {
            region: match storage.open(&path) {
                Ok(region) => {
                    let old = take_over(&region, &path, now_ms)?;
                    unsaved = save(storage, &path, &old.errors, now_ms).err();
                    if !old.is_old_layout && region.len() as u64 >= len {
                        // The claim is ours now: an error must release it.
                        let guard = Release(&region);
                        storage.reserve(&path, &region, 0, region.len() as u64)?;
                        std::mem::forget(guard);
                        region
                    } else {
                        storage.remove(&path).map_err(|error| ClaimError::Io {
                            path: path.clone(),
                            error,
                        })?;
                        create(storage, &path, len)?
                    }
                }
                Err(MemoryError::NotFound { .. }) => create(storage, &path, len)?,
                // Created and never filled: its creator is dead, because its lock is ours, or it is an official one at work.
                Err(error) => return Err(error.into()),
            },
            path,
            error_log_length: settings.error_log_length,
            unsaved,
            _lock: lock,
        };
        claimed.fill(&header);
        link(storage, archive_directory, mark_directory)?;
        Ok(claimed)
    }

    /// Writes the header, but for version and activity timestamp, and empties the error log.
    fn fill(&self, header: &[u8]) {
        let region = &self.region;
        // Acquire and release are not needed: the version that publishes the header comes last.
        region.atomic_i32(at::VERSION).store(0, Ordering::Release);
        region
            .atomic_i64(at::ACTIVITY)
            .store(CLAIMED, Ordering::Release);
        region.write(0, &header[..at::VERSION]);
        region.write(at::START, &header[at::START..]);
        region.zero(HEADER_LENGTH, region.len() - HEADER_LENGTH);
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the errors of the archive before, if they could not be saved, and the reason.
    #[must_use]
    pub fn unsaved_errors(&self) -> Option<&UnsavedErrors> {
        self.unsaved.as_ref()
    }

    /// Returns the error log, which is empty. Call it once: a log has one writer.
    #[must_use]
    pub fn error_log(&self) -> ErrorLog {
        let len = self.error_log_length.min(self.region.len() - HEADER_LENGTH);
        // The file is long enough, and both offsets are multiples of 8.
        let region = self.region.sub(HEADER_LENGTH, len);
        ErrorLog::open(region.unwrap_or_else(|_| self.region.clone()))
    }

    /// Marks the archive as started.
    ///
    /// # Errors
    ///
    /// The file cannot be synced.
    pub fn set_ready(&self, now_ms: i64) -> io::Result<()> {
        self.heartbeat(now_ms);
        // Release: partner of the acquire load in readers, which then see the header.
        self.region
            .atomic_i32(at::VERSION)
            .store(FILES_VERSION, Ordering::Release);
        self.region.flush()
    }

    /// Stores a heartbeat. Due once a second.
    pub fn heartbeat(&self, now_ms: i64) {
        self.region
            .atomic_i64(at::ACTIVITY)
            .store(now_ms, Ordering::Release);
    }
}

impl Drop for MarkFile {
    fn drop(&mut self) {
        drop(Release(&self.region));
    }
}

/// Releases the claim of a mark file when it is dropped.
struct Release<'a>(&'a Region);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0
            .atomic_i64(at::ACTIVITY)
            .store(RELEASED, Ordering::Release);
        // The value is in shared memory in any case; after a power cut it is old enough by itself.
        let _ = self.0.flush();
    }
}

fn create(storage: &dyn Storage, path: &Path, len: u64) -> Result<Region, ClaimError> {
    storage
        .create(path, len, CreateOptions::RESERVED)
        .map_err(|error| match error {
            MemoryError::AlreadyExists { path } => ClaimError::Raced { path },
            error => error.into(),
        })
}

/// Contents of an existing mark file.
struct Previous {
    activity_timestamp: i64,
    errors: Vec<ErrorObservation>,
    is_old_layout: bool,
}

/// Errors of an earlier archive that are nowhere but here.
#[derive(Error)]
#[error("the errors of the archive before cannot be saved in {}: {error}. They were:\n{text}", path.display())]
pub struct UnsavedErrors {
    path: PathBuf,
    error: io::Error,
    text: String,
}

taran_core::debug_is_display!(UnsavedErrors);

/// Saves errors to a file beside the mark file, if there are any.
fn save(
    storage: &dyn Storage,
    mark_file: &Path,
    errors: &[ErrorObservation],
    now_ms: i64,
) -> Result<(), UnsavedErrors> {
    if errors.is_empty() {
        return Ok(());
    }
    let mut text = String::new();
    for error in errors {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{} observations from {} to {} (epoch ms):\n{}",
            error.count, error.first_ms, error.last_ms, error.text
        );
    }
    let time = DateTime::from_timestamp_millis(now_ms).map_or_else(
        || now_ms.to_string(),
        |utc| {
            let local = utc.with_timezone(&Local);
            local.format("%Y-%m-%d-%H-%M-%S-%3f%z").to_string()
        },
    );
    let path = mark_file.with_file_name(format!("archive-{time}-error.log"));
    match storage.write_file(&path, text.as_bytes()) {
        Ok(()) => Ok(()),
        Err(error) => Err(UnsavedErrors { path, error, text }),
    }
}

/// Claims an existing mark file, unless it has the old layout.
fn take_over(region: &Region, path: &Path, now_ms: i64) -> Result<Previous, ClaimError> {
    let previous = examine(region, path, now_ms)?;
    if !previous.is_old_layout {
        claim_value(region, path, previous.activity_timestamp)?;
    }
    Ok(previous)
}

/// Reads an existing mark file, and checks that its archive has ended.
fn examine(region: &Region, path: &Path, now_ms: i64) -> Result<Previous, ClaimError> {
    let contents = |reason: String| ClaimError::Contents {
        path: path.to_path_buf(),
        reason,
    };
    if region.len() < HEADER_LENGTH {
        return Err(contents(format!(
            "it has {} bytes, and its header {HEADER_LENGTH}",
            region.len()
        )));
    }
    let mut bytes = vec![0; region.len()];
    region.copy_racing_out(0, &mut bytes);
    if bytes.iter().all(|byte| *byte == 0) {
        // Its creator ended before it wrote anything.
        return Ok(Previous {
            activity_timestamp: 0,
            errors: Vec::new(),
            is_old_layout: false,
        });
    }
    let info = MarkFileInfo::parse(&bytes).map_err(contents)?;
    let (major, activity) = (info.version >> 16, info.activity_timestamp);
    if info.version != 0 && major != FILES_VERSION >> 16 {
        return Err(ClaimError::Version {
            path: path.to_path_buf(),
            version: info.version,
        });
    }
    // The owner held the lock that we hold now, so it has ended.
    let is_dead = info.has_lock();
    if !is_dead && activity == CLAIMED {
        return Err(ClaimError::ClaimedForever {
            path: path.to_path_buf(),
            pid: info.pid,
        });
    }
    let age_ms = now_ms.saturating_sub(activity);
    if !is_dead && activity != RELEASED && age_ms < LIVENESS_TIMEOUT_MS {
        return Err(ClaimError::Active {
            path: path.to_path_buf(),
            pid: info.pid,
            age_ms,
        });
    }
    Ok(Previous {
        activity_timestamp: activity,
        errors: info.errors(&bytes),
        is_old_layout: info.is_old_layout,
    })
}

/// Replaces the activity timestamp by the value of a starting archive, unless it has changed.
fn claim_value(region: &Region, path: &Path, activity: i64) -> Result<(), ClaimError> {
    region
        .atomic_i64(at::ACTIVITY)
        .compare_exchange(activity, CLAIMED, Ordering::AcqRel, Ordering::Acquire)
        .map(|_| ())
        .map_err(|_| ClaimError::Raced {
            path: path.to_path_buf(),
        })
}

/// Writes or removes the link file.
fn link(
    storage: &dyn Storage,
    archive_directory: &Path,
    mark_directory: &Path,
) -> Result<(), ClaimError> {
    let link = archive_directory.join(LINK_FILE);
    let result = if archive_directory == mark_directory {
        match storage.remove(&link) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    } else {
        storage.write_file(&link, mark_directory.to_string_lossy().as_bytes())
    };
    result.map_err(|error| ClaimError::Io { path: link, error })
}

/// Returns the header, with version and activity timestamp 0.
fn encode(settings: &MarkSettings, now_ms: i64) -> Result<Vec<u8>, ClaimError> {
    let mut bytes = vec![0; HEADER_LENGTH];
    let texts = [
        &settings.control_channel,
        &settings.local_control_channel,
        &settings.events_channel,
        &settings.aeron_directory,
    ]
    .map(|text| ascii(text));
    let fixed = SBE_HEADER + 128 + 4 * texts.len();
    let needed = texts.iter().map(|text| text.len()).sum::<usize>();
    let limit = HEADER_LENGTH - fixed;
    let too_long = ClaimError::TooLong { needed, limit };
    let encoded = MarkFileHeaderEncoder::encode(&mut bytes).and_then(|mut encoder| {
        encoder
            .start_timestamp(now_ms)
            .pid(settings.pid)
            .control_stream_id(settings.control_stream_id)
            .local_control_stream_id(settings.local_control_stream_id)
            .events_stream_id(settings.events_stream_id)
            .header_length(HEADER_LENGTH as i32)
            .error_buffer_length(i32::try_from(settings.error_log_length).unwrap_or(i32::MAX))
            .archive_id(settings.archive_id);
        let [control, local, events, aeron] = &texts;
        Ok(encoder
            .control_channel(&**control)?
            .local_control_channel(&**local)?
            .events_channel(&**events)?
            .aeron_directory(&**aeron)?
            .finish())
    });
    if encoded.is_err() {
        return Err(too_long);
    }
    bytes[at::OWNER_START..at::OWNER_START + 8].copy_from_slice(&(now_ms ^ OWNER).to_le_bytes());
    bytes[at::OWNER_PID..at::OWNER_PID + 8].copy_from_slice(&(settings.pid ^ OWNER).to_le_bytes());
    Ok(bytes)
}
