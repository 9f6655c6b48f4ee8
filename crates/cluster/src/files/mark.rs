// SPDX-License-Identifier: Apache-2.0
//! Mark files: settings, heartbeat and error log of a component of a node (`docs/spec/cluster.md` §6.4).
//!
//! A lock, which the owner of the directory holds, decides among components of ours; the activity timestamp tells them of official
//! ones, which take no lock. The file is shared memory, because official tools and components map it: it goes through [`Storage`].

use std::io;
use std::path::{Path, PathBuf};

use taran_core::error_log::{ErrorLog, ErrorObservation, read};
use taran_core::memory::{CreateOptions, MemoryError, Region, Storage};
use taran_core::sync::Ordering;
use thiserror::Error;

/// Length in bytes of the header of a mark file.
pub const MARK_HEADER_LENGTH: usize = 8192;
/// Lowest length in bytes of the error log.
pub const MARK_ERROR_LOG_LENGTH_MIN: usize = 1 << 20;
/// Age in milliseconds at which a heartbeat counts no more.
pub const MARK_LIVENESS_TIMEOUT_MS: i64 = 10_000;

/// Version 0.3.0.
const VERSION: i32 = 0x00_0300;
/// Version of a component whose start failed.
const FAILED: i32 = -1;
/// Activity timestamp after an orderly end.
const RELEASED: i64 = -1;

const TEMPLATE_ID: u16 = 200;
const SCHEMA_ID: u16 = 110;
const SCHEMA_VERSION: u16 = 2;
const BLOCK_LENGTH: u16 = 128;
/// Longest mark file that is read, in bytes.
const LENGTH_MAX: usize = 1 << 30;

/// Mixed into copies of start timestamp and pid of an owner with a lock, so that values of official components never match them by
/// chance.
const OWNER: i64 = 0x5461_7261_6e4c_6f63;

/// Offsets in the file.
mod at {
    pub(super) const BODY: usize = 8;
    pub(super) const VERSION: usize = BODY;
    pub(super) const COMPONENT: usize = BODY + 4;
    pub(super) const ACTIVITY: usize = BODY + 8;
    pub(super) const START: usize = BODY + 16;
    pub(super) const PID: usize = BODY + 24;
    pub(super) const CANDIDATE_TERM: usize = BODY + 32;
    pub(super) const ARCHIVE_STREAM: usize = BODY + 40;
    pub(super) const SERVICE_STREAM: usize = BODY + 44;
    pub(super) const MODULE_STREAM: usize = BODY + 48;
    pub(super) const INGRESS_STREAM: usize = BODY + 52;
    pub(super) const MEMBER: usize = BODY + 56;
    pub(super) const SERVICE: usize = BODY + 60;
    pub(super) const HEADER_LENGTH: usize = BODY + 64;
    pub(super) const ERROR_LENGTH: usize = BODY + 68;
    pub(super) const CLUSTER: usize = BODY + 72;
    /// Unused by Aeron: the copies of an owner with a lock.
    pub(super) const OWNER_START: usize = BODY + 104;
    pub(super) const OWNER_PID: usize = BODY + 112;
    pub(super) const TEXTS: usize = BODY + 128;
}

/// Component that owns a mark file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum MarkComponent {
    /// Consensus module.
    ConsensusModule = 1,
    /// Container of a service.
    Container = 2,
    /// Backup.
    Backup = 3,
    /// Standby.
    Standby = 4,
}

impl MarkComponent {
    const fn from_value(value: i32) -> Option<Self> {
        match value {
            1 => Some(Self::ConsensusModule),
            2 => Some(Self::Container),
            3 => Some(Self::Backup),
            4 => Some(Self::Standby),
            _ => None,
        }
    }

    /// Returns true if this component may use the file of that one.
    fn may_replace(self, other: Self) -> bool {
        self == other || (self == Self::ConsensusModule && other == Self::Backup)
    }
}

/// Content of a mark file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Component.
    pub component: MarkComponent,
    /// Time of the last heartbeat in epoch milliseconds; -1 after an orderly end.
    pub activity_timestamp: i64,
    /// Time of the start in epoch milliseconds.
    pub start_timestamp: i64,
    /// Process id.
    pub pid: i64,
    /// Stream id of requests to the local archive.
    pub archive_stream_id: i32,
    /// Stream id from the consensus module to services.
    pub service_stream_id: i32,
    /// Stream id from services to the consensus module.
    pub consensus_module_stream_id: i32,
    /// Stream id of requests of clients; -1 for a container.
    pub ingress_stream_id: i32,
    /// Id of the member; -1 where it is not known.
    pub member_id: i32,
    /// Id of the service; -1 for other components.
    pub service_id: i32,
    /// Id of the cluster.
    pub cluster_id: i32,
    /// Directory of the media driver.
    pub aeron_directory: String,
    /// Channel between consensus module and services.
    pub control_channel: String,
    /// Channel of requests of clients; empty for a container.
    pub ingress_channel: String,
    /// Name of the service; empty for other components.
    pub service_name: String,
    /// Class of the authenticator; empty if there is none.
    pub authenticator: String,
    /// Directory where services have their mark files; empty if it is that of the consensus module.
    pub services_directory: String,
    /// Length in bytes of the error log, at least [`MARK_ERROR_LOG_LENGTH_MIN`].
    pub error_log_length: usize,
}

/// The mark file was not claimed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MarkError {
    /// The activity timestamp is young: an official component runs, or ended less than 10 s ago without cleaning up.
    #[error(
        "active mark file detected: {} of pid={pid}, last heartbeat {age_ms} ms ago (limit {MARK_LIVENESS_TIMEOUT_MS}); stop that \
         process, or wait until the limit has passed", path.display()
    )]
    Active {
        /// The file.
        path: PathBuf,
        /// The process id in it.
        pid: i64,
        /// Age of the heartbeat in milliseconds.
        age_ms: i64,
    },
    /// The file is that of another component.
    #[error("{} is the mark file of a {found:?}, not of a {own:?}: choose another directory", path.display())]
    Component {
        /// The file.
        path: PathBuf,
        /// Component of the file.
        found: MarkComponent,
        /// Component that starts.
        own: MarkComponent,
    },
    /// The file is no mark file.
    #[error("{} is no mark file of a cluster: {reason}; remove it if nothing runs in that directory", path.display())]
    Contents {
        /// The file.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The settings do not fit the header.
    #[error(
        "channels and directories need {needed} bytes in the mark file, which has {limit} for them: shorten them"
    )]
    TooLong {
        /// Needed bytes.
        needed: usize,
        /// Bytes there are.
        limit: usize,
    },
    /// The file cannot be created or mapped.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A file cannot be written or removed.
    #[error("cannot write {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl Mark {
    /// Reads the content of a mark file.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() < MARK_HEADER_LENGTH || bytes.len() > LENGTH_MAX {
            return Err(format!("it has {} bytes", bytes.len()));
        }
        let i32_at = |at: usize| super::i32_at(bytes, at);
        let i64_at = |at: usize| super::i64_at(bytes, at);
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        if u16_at(2) != TEMPLATE_ID || u16_at(4) != SCHEMA_ID {
            return Err(format!(
                "it has template {} of schema {}, not {TEMPLATE_ID} of {SCHEMA_ID}",
                u16_at(2),
                u16_at(4)
            ));
        }
        let version = i32_at(at::VERSION);
        if version > 0 && version >> 16 != VERSION >> 16 {
            return Err(format!(
                "it has version {version:#x}, expected {VERSION:#x}"
            ));
        }
        let component = i32_at(at::COMPONENT);
        let component = MarkComponent::from_value(component)
            .ok_or_else(|| format!("it has the component {component}"))?;
        let mut next = at::BODY + usize::from(u16_at(0));
        let mut texts: [String; 6] = Default::default();
        for text in &mut texts {
            if next + 4 > MARK_HEADER_LENGTH {
                // Older files have fewer texts.
                break;
            }
            let length = usize::try_from(i32_at(next)).unwrap_or(usize::MAX);
            let end = (next + 4).saturating_add(length);
            if end > MARK_HEADER_LENGTH {
                return Err(format!("it has a text of {length} bytes at {next}"));
            }
            *text = String::from_utf8_lossy(&bytes[next + 4..end]).into_owned();
            next = end;
        }
        let [
            aeron_directory,
            control_channel,
            ingress_channel,
            service_name,
            authenticator,
            services_directory,
        ] = texts;
        let length = |at: usize| usize::try_from(i32_at(at)).unwrap_or(0);
        Ok(Self {
            component,
            activity_timestamp: i64_at(at::ACTIVITY),
            start_timestamp: i64_at(at::START),
            pid: i64_at(at::PID),
            archive_stream_id: i32_at(at::ARCHIVE_STREAM),
            service_stream_id: i32_at(at::SERVICE_STREAM),
            consensus_module_stream_id: i32_at(at::MODULE_STREAM),
            ingress_stream_id: i32_at(at::INGRESS_STREAM),
            member_id: i32_at(at::MEMBER),
            service_id: i32_at(at::SERVICE),
            cluster_id: i32_at(at::CLUSTER),
            aeron_directory,
            control_channel,
            ingress_channel,
            service_name,
            authenticator,
            services_directory,
            error_log_length: length(at::ERROR_LENGTH).min(bytes.len() - MARK_HEADER_LENGTH),
        })
    }

    /// Returns the errors in the log of a mark file.
    ///
    /// # Errors
    /// The bytes are no mark file.
    pub fn errors(bytes: &[u8]) -> Result<Vec<ErrorObservation>, String> {
        let mark = Self::parse(bytes)?;
        let log = &bytes[MARK_HEADER_LENGTH..MARK_HEADER_LENGTH + mark.error_log_length];
        let length = log.len().next_multiple_of(8);
        let region = Region::anonymous(length).map_err(|error| error.to_string())?;
        region.write(0, log);
        let mut errors = Vec::new();
        read(&region, 0, |error| errors.push(error.clone()));
        Ok(errors)
    }

    /// Returns the header, with version and activity timestamp 0.
    fn encode(&self) -> Result<Vec<u8>, MarkError> {
        let texts = [
            &self.aeron_directory,
            &self.control_channel,
            &self.ingress_channel,
            &self.service_name,
            &self.authenticator,
            &self.services_directory,
        ];
        let needed = texts.iter().map(|text| 4 + text.len()).sum::<usize>();
        let limit = MARK_HEADER_LENGTH - at::TEXTS;
        if needed > limit {
            return Err(MarkError::TooLong { needed, limit });
        }
        let mut bytes = vec![0; MARK_HEADER_LENGTH];
        for (at, value) in [
            (0, BLOCK_LENGTH),
            (2, TEMPLATE_ID),
            (4, SCHEMA_ID),
            (6, SCHEMA_VERSION),
        ] {
            bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        for (at, value) in [
            (at::COMPONENT, self.component as i32),
            (at::ARCHIVE_STREAM, self.archive_stream_id),
            (at::SERVICE_STREAM, self.service_stream_id),
            (at::MODULE_STREAM, self.consensus_module_stream_id),
            (at::INGRESS_STREAM, self.ingress_stream_id),
            (at::MEMBER, self.member_id),
            (at::SERVICE, self.service_id),
            (at::HEADER_LENGTH, MARK_HEADER_LENGTH as i32),
            (
                at::ERROR_LENGTH,
                i32::try_from(self.error_log_length).unwrap_or(i32::MAX),
            ),
            (at::CLUSTER, self.cluster_id),
        ] {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        for (at, value) in [
            (at::START, self.start_timestamp),
            (at::PID, self.pid),
            (at::CANDIDATE_TERM, -1),
            (at::OWNER_START, self.start_timestamp ^ OWNER),
            (at::OWNER_PID, self.pid ^ OWNER),
        ] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let mut next = at::TEXTS;
        for text in texts {
            // It fits: see above.
            bytes[next..next + 4].copy_from_slice(&(text.len() as u32).to_le_bytes());
            bytes[next + 4..next + 4 + text.len()].copy_from_slice(text.as_bytes());
            next += 4 + text.len();
        }
        Ok(bytes)
    }
}

/// A claimed mark file. Dropping it releases the claim, also when a start fails.
#[derive(Debug)]
pub struct MarkFile {
    region: Region,
    path: PathBuf,
    error_log_length: usize,
    previous_errors: Vec<ErrorObservation>,
}

impl MarkFile {
    /// Claims the mark file at `path`, or creates it. The caller holds the lock of the directory of the component. The error log is
    /// emptied; [`previous_errors`](Self::previous_errors) has what it held. The component is marked as starting until
    /// [`set_ready`](Self::set_ready).
    ///
    /// # Errors
    /// An official component is active, or the file is not one of this component. An earlier file is left as it was.
    pub fn claim(storage: &dyn Storage, path: &Path, mark: &Mark) -> Result<Self, MarkError> {
        let mut header = mark.encode()?;
        let length = mark.error_log_length.max(MARK_ERROR_LOG_LENGTH_MIN);
        let file_length = (MARK_HEADER_LENGTH + length).next_multiple_of(4096) as u64;
        let mut previous_errors = Vec::new();
        let region = match storage.open(path) {
            Ok(region) => {
                let bytes = check(&region, path, mark)?;
                if let Some(bytes) = bytes {
                    previous_errors = Mark::errors(&bytes).unwrap_or_default();
                    // Kept from before 1.41, when it was not in a file of its own.
                    header[at::CANDIDATE_TERM..at::CANDIDATE_TERM + 8]
                        .copy_from_slice(&bytes[at::CANDIDATE_TERM..at::CANDIDATE_TERM + 8]);
                }
                if region.len() as u64 >= file_length {
                    storage.reserve(path, &region, 0, region.len() as u64)?;
                    region
                } else {
                    storage.remove(path).map_err(|error| MarkError::Io {
                        path: path.to_path_buf(),
                        error,
                    })?;
                    storage.create(path, file_length, CreateOptions::RESERVED)?
                }
            }
            Err(MemoryError::NotFound { .. }) => {
                storage.create(path, file_length, CreateOptions::RESERVED)?
            }
            Err(error) => return Err(error.into()),
        };
        let claimed = Self {
            region,
            path: path.to_path_buf(),
            error_log_length: length,
            previous_errors,
        };
        claimed.fill(&header);
        Ok(claimed)
    }

    /// Writes the header, but for version and activity timestamp, and empties the error log.
    fn fill(&self, header: &[u8]) {
        let region = &self.region;
        // Release: a reader that sees another version than 0 later sees the header.
        region.atomic_i32(at::VERSION).store(0, Ordering::Release);
        region.write(0, &header[..at::VERSION]);
        region.write(at::COMPONENT, &header[at::COMPONENT..at::ACTIVITY]);
        region.write(at::START, &header[at::START..]);
        region.zero(MARK_HEADER_LENGTH, region.len() - MARK_HEADER_LENGTH);
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the errors that the log of the component before held.
    #[must_use]
    pub fn previous_errors(&self) -> &[ErrorObservation] {
        &self.previous_errors
    }

    /// Returns the error log, which is empty. Call it once: a log has one writer.
    #[must_use]
    pub fn error_log(&self) -> ErrorLog {
        let region = self.region.sub(MARK_HEADER_LENGTH, self.error_log_length);
        // The file is long enough, and both offsets are multiples of 8.
        ErrorLog::open(region.unwrap_or_else(|_| self.region.clone()))
    }

    /// Sets the id of the member, which a container learns later.
    pub fn set_member_id(&self, member_id: i32) {
        self.region
            .atomic_i32(at::MEMBER)
            .store(member_id, Ordering::Release);
    }

    /// Marks the component as started.
    pub fn set_ready(&self, now_ms: i64) {
        self.heartbeat(now_ms);
        // Release: partner of the acquire load in readers, which then see the header.
        self.region
            .atomic_i32(at::VERSION)
            .store(VERSION, Ordering::Release);
    }

    /// Marks the start of the component as failed.
    pub fn set_failed(&self) {
        self.region
            .atomic_i32(at::VERSION)
            .store(FAILED, Ordering::Release);
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
        self.heartbeat(RELEASED);
    }
}

/// Returns the content of an earlier file that may be replaced; none if it is empty.
fn check(region: &Region, path: &Path, own: &Mark) -> Result<Option<Vec<u8>>, MarkError> {
    let mut bytes = vec![0; region.len()];
    region.copy_racing_out(0, &mut bytes);
    if bytes.iter().all(|byte| *byte == 0) {
        // Its creator ended before it wrote anything.
        return Ok(None);
    }
    let found = Mark::parse(&bytes).map_err(|reason| MarkError::Contents {
        path: path.to_path_buf(),
        reason,
    })?;
    if !own.component.may_replace(found.component) {
        return Err(MarkError::Component {
            path: path.to_path_buf(),
            found: found.component,
            own: own.component,
        });
    }
    // The owner held the lock that the caller holds now, so it has ended.
    let has_lock = super::i64_at(&bytes, at::OWNER_START) ^ OWNER == found.start_timestamp
        && super::i64_at(&bytes, at::OWNER_PID) ^ OWNER == found.pid;
    let age_ms = own.start_timestamp.saturating_sub(found.activity_timestamp);
    if !has_lock && found.activity_timestamp > 0 && age_ms < MARK_LIVENESS_TIMEOUT_MS {
        return Err(MarkError::Active {
            path: path.to_path_buf(),
            pid: found.pid,
            age_ms,
        });
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use taran_core::memory::MemoryStorage;

    const NOW: i64 = 1_000_000_000;

    fn mark() -> Mark {
        Mark {
            component: MarkComponent::ConsensusModule,
            activity_timestamp: 0,
            start_timestamp: NOW,
            pid: 77,
            archive_stream_id: 10,
            service_stream_id: 104,
            consensus_module_stream_id: 105,
            ingress_stream_id: 101,
            member_id: 2,
            service_id: -1,
            cluster_id: 3,
            aeron_directory: "/dev/shm/aeron".to_owned(),
            control_channel: "aeron:ipc?term-length=128k".to_owned(),
            ingress_channel: "aeron:udp".to_owned(),
            service_name: String::new(),
            authenticator: "default".to_owned(),
            services_directory: "/srv".to_owned(),
            error_log_length: MARK_ERROR_LOG_LENGTH_MIN,
        }
    }

    fn content(storage: &MemoryStorage, path: &Path) -> Vec<u8> {
        let region = storage.open(path).unwrap();
        let mut bytes = vec![0; region.len()];
        region.copy_racing_out(0, &mut bytes);
        bytes
    }

    /// Overwrites the copies that tell of a lock, as a file of an official component has them.
    fn make_official(storage: &MemoryStorage, path: &Path) {
        let region = storage.open(path).unwrap();
        region.zero(at::OWNER_START, 16);
    }

    #[test]
    fn mark_file_has_its_settings_heartbeats_and_errors() {
        let storage = MemoryStorage::new();
        let path = Path::new("/mark/cluster-mark.dat");
        storage.create_dir_all(Path::new("/mark")).unwrap();
        let file = MarkFile::claim(&storage, path, &mark()).unwrap();
        file.set_ready(NOW + 5);
        let mut log = file.error_log();
        log.record(NOW, 1, "an error").unwrap();
        let bytes = content(&storage, path);
        let expected = Mark {
            activity_timestamp: NOW + 5,
            ..mark()
        };
        assert_eq!(Mark::parse(&bytes), Ok(expected));
        assert_eq!(super::super::i32_at(&bytes, at::VERSION), VERSION);
        drop(file);
        let after = Mark::parse(&content(&storage, path)).unwrap();
        assert_eq!(after.activity_timestamp, RELEASED);
        let again = MarkFile::claim(&storage, path, &mark()).unwrap();
        assert_eq!(again.previous_errors()[0].text, "an error");
    }

    #[test]
    fn mark_of_an_official_component_is_respected_until_its_heartbeat_is_old() {
        let storage = MemoryStorage::new();
        let path = Path::new("/mark/cluster-mark.dat");
        storage.create_dir_all(Path::new("/mark")).unwrap();
        let file = MarkFile::claim(&storage, path, &mark()).unwrap();
        file.set_ready(NOW - 9_999);
        // It was killed, but its lock is ours now.
        std::mem::forget(file);
        std::mem::forget(MarkFile::claim(&storage, path, &mark()).unwrap());
        storage
            .open(path)
            .unwrap()
            .atomic_i64(at::ACTIVITY)
            .store(NOW - 9_999, Ordering::Release);
        make_official(&storage, path);
        let error = MarkFile::claim(&storage, path, &mark()).unwrap_err();
        assert!(matches!(
            error,
            MarkError::Active {
                pid: 77,
                age_ms: 9_999,
                ..
            }
        ));
        let later = Mark {
            start_timestamp: NOW + 1,
            ..mark()
        };
        assert!(MarkFile::claim(&storage, path, &later).is_ok());
    }

    #[test]
    fn mark_file_of_another_component_or_with_garbage_is_refused() {
        let storage = MemoryStorage::new();
        let path = Path::new("/mark/cluster-mark.dat");
        storage.create_dir_all(Path::new("/mark")).unwrap();
        let container = Mark {
            component: MarkComponent::Container,
            ..mark()
        };
        drop(MarkFile::claim(&storage, path, &container).unwrap());
        let error = MarkFile::claim(&storage, path, &mark()).unwrap_err();
        assert!(matches!(error, MarkError::Component { .. }), "{error}");
        storage.open(path).unwrap().write(2, &[0xff; 4]);
        let error = MarkFile::claim(&storage, path, &mark()).unwrap_err();
        assert!(error.to_string().contains("is no mark file"), "{error}");
        let long = Mark {
            control_channel: "x".repeat(MARK_HEADER_LENGTH),
            ..mark()
        };
        let error = MarkFile::claim(&storage, Path::new("/mark/other"), &long).unwrap_err();
        assert!(matches!(error, MarkError::TooLong { .. }), "{error}");
    }
}
