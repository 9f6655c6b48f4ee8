// SPDX-License-Identifier: Apache-2.0
//! Configuration of an archive: values of all options, and the rules between them (`docs/spec/archive.md` §8.1).
//!
//! Options are declared in `taran_protocol::option`; [`ArchiveConfig::new`] checks what concerns more than one of them.

use std::path::PathBuf;

use taran_core::idle::{IdleError, IdleSpec};
use taran_protocol::event::ArchiveEventSet;
use taran_protocol::option::OptionSet;
use taran_protocol::uri::{ChannelUri, Media, Param, UriError};
use thiserror::Error;

use crate::files::{Checksum, SyncLevel};
use crate::retention::{RetentionError, RetentionRule};

/// Agents that share a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchiveThreadingMode {
    /// Conductor, recorder and replayer have a thread each.
    #[default]
    Dedicated,
    /// One thread runs all agents.
    Shared,
    /// The caller runs all agents.
    Invoker,
}

impl ArchiveThreadingMode {
    /// Returns the name of the mode, as in the option.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dedicated => "DEDICATED",
            Self::Shared => "SHARED",
            Self::Invoker => "INVOKER",
        }
    }

    fn parse(name: &str) -> Self {
        // The option accepts only these texts.
        match name {
            "SHARED" => Self::Shared,
            "INVOKER" => Self::Invoker,
            _ => Self::Dedicated,
        }
    }
}

/// Behaviour of a recording while its file system is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskFullPolicy {
    /// It holds its publisher back, and goes on when there is space.
    #[default]
    Hold,
    /// It stops, as a recording of the official archive.
    Stop,
}

/// A stream of the archive's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    /// Channel.
    pub channel: ChannelUri,
    /// Stream id.
    pub stream_id: i32,
}

/// Reason why options do not make a configuration.
#[derive(Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An option without a default is not set.
    #[error("{option} is not set: {remedy}")]
    Missing {
        /// Property.
        option: &'static str,
        /// Value to set.
        remedy: &'static str,
    },
    /// A channel is malformed.
    #[error("{option}: {source}")]
    Channel {
        /// Property.
        option: &'static str,
        /// Reason.
        source: UriError,
    },
    /// A channel has the wrong media.
    #[error("{option}={channel} is not possible: needs a channel that starts with aeron:{needed}")]
    Media {
        /// Property.
        option: &'static str,
        /// Its value.
        channel: String,
        /// Media needed.
        needed: &'static str,
    },
    /// The catalog would be less durable than the recordings that it describes.
    #[error(
        "aeron.archive.catalog.file.sync.level={catalog} is less than aeron.archive.file.sync.level={file}: raise the \
         first to {file}, because a recording is lost without its catalog entry"
    )]
    SyncLevels {
        /// Level of the catalog.
        catalog: i64,
        /// Level of segment files.
        file: i64,
    },
    /// The endpoint of the control channel cannot be used for responses of other archives.
    #[error(
        "{option}={channel} has no endpoint=host:port, from which the channel for responses of other archives is \
         derived: add it, or set aeron.archive.control.response.channel"
    )]
    Endpoint {
        /// Property.
        option: &'static str,
        /// Its value.
        channel: String,
    },
    /// The arguments of an idle strategy are invalid.
    #[error(transparent)]
    Idle(#[from] IdleError),
    /// A rule of retention is malformed.
    #[error(transparent)]
    Retention(#[from] RetentionError),
}

taran_core::debug_is_display!(ConfigError);

/// Validated configuration of an archive.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ArchiveConfig {
    /// A planted defect: files are removed although replays need them.
    #[cfg(test)]
    pub(crate) is_blind_to_replays: bool,
    /// Directory of catalog and recordings.
    pub dir: PathBuf,
    /// Directory of the mark file.
    pub mark_file_dir: PathBuf,
    /// Delete the directory at start.
    pub delete_dir_on_start: bool,
    /// Directory of the driver; `None` for its default.
    pub aeron_dir: Option<PathBuf>,
    /// Id of the archive; `None`: the next correlation id of the driver.
    pub archive_id: Option<i64>,
    /// Stream of requests over UDP; `None` if disabled.
    pub control: Option<StreamConfig>,
    /// Stream of requests over IPC.
    pub local_control: StreamConfig,
    /// Stream of recording events; `None` if disabled.
    pub recording_events: Option<StreamConfig>,
    /// Default channel of replays to this archive.
    pub replication_channel: ChannelUri,
    /// Channel for responses of other archives.
    pub replication_response_channel: Option<String>,
    /// Stream id for responses of other archives.
    pub replication_response_stream_id: i32,
    /// Time limit of each step of a replication, in nanoseconds.
    pub message_timeout_ns: i64,
    /// Term length of response streams in bytes.
    pub control_term_length: usize,
    /// Pages of response streams are reserved as they proceed.
    pub control_term_sparse: bool,
    /// Maximum frame length of response streams in bytes.
    pub control_mtu: usize,
    /// Length of segment files of new recordings in bytes.
    pub segment_length: usize,
    /// Maximum length of one read or write in bytes.
    pub io_max_length: usize,
    /// Durability of recorded data.
    pub file_sync_level: SyncLevel,
    /// Durability of the catalog.
    pub catalog_sync_level: SyncLevel,
    /// Initial length of the catalog in bytes.
    pub catalog_capacity: usize,
    /// Usable space at or below which no recording starts, in bytes.
    pub low_storage_threshold: u64,
    /// Maximum number of active recordings.
    pub max_recordings: usize,
    /// Maximum number of active replays.
    pub max_replays: usize,
    /// Time limit of connections and responses in nanoseconds.
    pub connect_timeout_ns: i64,
    /// Interval of pings in nanoseconds.
    pub liveness_check_interval_ns: i64,
    /// Linger of replay publications in nanoseconds.
    pub replay_linger_ns: i64,
    /// Checksum written into frames and catalog entries.
    pub record_checksum: Option<Checksum>,
    /// Checksum verified by replays.
    pub replay_checksum: Option<Checksum>,
    /// Threading mode.
    pub threading_mode: ArchiveThreadingMode,
    /// Idle strategy of the conductor.
    pub idle: IdleSpec,
    /// Idle strategy of the recorder.
    pub recorder_idle: IdleSpec,
    /// Idle strategy of the replayer.
    pub replayer_idle: IdleSpec,
    /// Duty cycle of the conductor above which it is counted, in nanoseconds.
    pub conductor_cycle_threshold_ns: i64,
    /// Duty cycle of the recorder above which it is counted, in nanoseconds.
    pub recorder_cycle_threshold_ns: i64,
    /// Duty cycle of the replayer above which it is counted, in nanoseconds.
    pub replayer_cycle_threshold_ns: i64,
    /// Length of the error log in bytes.
    pub error_buffer_length: usize,
    /// True if every request is denied.
    pub deny_all: bool,
    /// Behaviour of recordings on a full disk.
    pub disk_full: DiskFullPolicy,
    /// Rules by which segments are purged.
    pub retention: Vec<RetentionRule>,
    /// Time between two passes of retention in nanoseconds.
    pub retention_interval_ns: i64,
    /// Time between entries of time indexes in nanoseconds; 0 for none.
    pub time_index_interval_ns: i64,
    /// Bytes per second that verification in the background reads; 0 for no verification.
    pub verify_rate: u64,
    /// Time between two passes of verification in nanoseconds.
    pub verify_interval_ns: i64,
    /// True if a recording that verification finds damaged becomes INVALID.
    pub verify_invalidates: bool,
    /// Events to log.
    pub events: ArchiveEventSet,
    /// File of the event log; `None` for standard output.
    pub event_log_file: Option<PathBuf>,
}

impl ArchiveConfig {
    /// Validates options.
    ///
    /// # Errors
    /// A required option is not set, a channel is malformed or has the wrong media, or options contradict each other.
    pub fn new(options: &OptionSet) -> Result<Self, ConfigError> {
        let dir = PathBuf::from(options.archive_dir().unwrap_or("aeron-archive"));
        let mark_file_dir = options.archive_mark_file_dir().map(PathBuf::from);
        let file_sync_level = sync_level(options.archive_file_sync_level());
        let catalog_sync_level = sync_level(options.archive_catalog_file_sync_level());
        if catalog_sync_level < file_sync_level {
            return Err(ConfigError::SyncLevels {
                catalog: options.archive_catalog_file_sync_level(),
                file: options.archive_file_sync_level(),
            });
        }
        let idle = IdleSpec::parse(options.archive_idle_strategy().unwrap_or("backoff"), None)?;
        let idle_of = |name: Option<&str>| match name {
            Some(name) => IdleSpec::parse(name, None),
            None => Ok(idle),
        };
        let control_mtu = match options.archive_control_mtu_length() {
            0 => options.mtu_length(),
            mtu => mtu,
        };
        let control = control_stream(options)?;
        let replication_response_channel = options
            .archive_control_response_channel()
            .map(str::to_owned)
            .or_else(|| control.as_ref().and_then(derived_response_channel));
        Ok(Self {
            #[cfg(test)]
            is_blind_to_replays: false,
            mark_file_dir: mark_file_dir.unwrap_or_else(|| dir.clone()),
            dir,
            delete_dir_on_start: options.archive_dir_delete_on_start(),
            aeron_dir: options.dir().map(PathBuf::from),
            archive_id: options.archive_id(),
            replication_response_channel: match (&control, replication_response_channel) {
                (Some(control), None) => {
                    return Err(ConfigError::Endpoint {
                        option: CONTROL_CHANNEL,
                        channel: control.channel.to_string(),
                    });
                }
                (_, channel) => channel,
            },
            replication_response_stream_id: stream_id(options.archive_control_response_stream_id()),
            message_timeout_ns: options.archive_message_timeout_ns(),
            control,
            local_control: StreamConfig {
                channel: channel(
                    "aeron.archive.local.control.channel",
                    options.archive_local_control_channel().unwrap_or_default(),
                    Some(Media::Ipc),
                )?,
                stream_id: stream_id(options.archive_local_control_stream_id()),
            },
            recording_events: events_stream(options)?,
            replication_channel: match options.archive_replication_channel() {
                None => {
                    return Err(ConfigError::Missing {
                        option: REPLICATION_CHANNEL,
                        remedy: "set the channel on which this archive receives replays of others, for instance \
                                 aeron:udp?endpoint=localhost:0",
                    });
                }
                Some(text) => channel(REPLICATION_CHANNEL, text, None)?,
            },
            control_term_length: options.archive_control_term_buffer_length(),
            control_term_sparse: options.archive_control_term_buffer_sparse(),
            control_mtu,
            segment_length: options.archive_segment_file_length(),
            io_max_length: options.archive_file_io_max_length(),
            file_sync_level,
            catalog_sync_level,
            catalog_capacity: options.archive_catalog_capacity(),
            low_storage_threshold: options.archive_low_storage_space_threshold() as u64,
            max_recordings: count(options.archive_max_concurrent_recordings()),
            max_replays: count(options.archive_max_concurrent_replays()),
            connect_timeout_ns: options.archive_connect_timeout_ns(),
            liveness_check_interval_ns: options.archive_session_liveness_check_interval_ns(),
            replay_linger_ns: options
                .archive_replay_linger_timeout_ns()
                .unwrap_or_else(|| options.publication_linger_timeout_ns()),
            record_checksum: checksum(options.archive_record_checksum()),
            replay_checksum: checksum(options.archive_replay_checksum()),
            threading_mode: ArchiveThreadingMode::parse(options.archive_threading_mode_name()),
            recorder_idle: idle_of(options.archive_recorder_idle_strategy())?,
            replayer_idle: idle_of(options.archive_replayer_idle_strategy())?,
            idle,
            conductor_cycle_threshold_ns: options.archive_conductor_cycle_threshold_ns(),
            recorder_cycle_threshold_ns: options.archive_recorder_cycle_threshold_ns(),
            replayer_cycle_threshold_ns: options.archive_replayer_cycle_threshold_ns(),
            error_buffer_length: options.archive_error_buffer_length(),
            deny_all: options.archive_authorisation_service_supplier() == "DENY_ALL",
            disk_full: match options.archive_disk_full() {
                "stop" => DiskFullPolicy::Stop,
                _ => DiskFullPolicy::Hold,
            },
            retention: RetentionRule::parse_all(options.archive_retention().unwrap_or_default())?,
            retention_interval_ns: options.archive_retention_interval_ns(),
            time_index_interval_ns: options.archive_time_index_interval_ns(),
            verify_rate: options.archive_verify_rate() as u64,
            verify_interval_ns: options.archive_verify_interval_ns(),
            verify_invalidates: options.archive_verify_damage() == "invalidate",
            events: options.archive_events(),
            event_log_file: options.event_log_filename().map(PathBuf::from),
        })
    }
}

const CONTROL_CHANNEL: &str = "aeron.archive.control.channel";
const REPLICATION_CHANNEL: &str = "aeron.archive.replication.channel";
const EVENTS_CHANNEL: &str = "aeron.archive.recording.events.channel";

fn control_stream(options: &OptionSet) -> Result<Option<StreamConfig>, ConfigError> {
    if !options.archive_control_channel_enabled() {
        return Ok(None);
    }
    let Some(text) = options.archive_control_channel() else {
        return Err(ConfigError::Missing {
            option: CONTROL_CHANNEL,
            remedy: "set the channel for requests, for instance aeron:udp?endpoint=localhost:8010, or \
                     aeron.archive.control.channel.enabled=false to accept requests over IPC only",
        });
    };
    Ok(Some(StreamConfig {
        channel: channel(CONTROL_CHANNEL, text, Some(Media::Udp))?,
        stream_id: stream_id(options.archive_control_stream_id()),
    }))
}

fn events_stream(options: &OptionSet) -> Result<Option<StreamConfig>, ConfigError> {
    if !options.archive_recording_events_enabled() {
        return Ok(None);
    }
    let Some(text) = options.archive_recording_events_channel() else {
        return Err(ConfigError::Missing {
            option: EVENTS_CHANNEL,
            remedy: "set the channel of recording events, for instance \
                     aeron:udp?control-mode=dynamic|control=localhost:8030, or \
                     aeron.archive.recording.events.enabled=false",
        });
    };
    Ok(Some(StreamConfig {
        channel: channel(EVENTS_CHANNEL, text, None)?,
        stream_id: stream_id(options.archive_recording_events_stream_id()),
    }))
}

/// Returns `aeron:udp?endpoint=<host of the control channel>:0`.
fn derived_response_channel(control: &StreamConfig) -> Option<String> {
    let endpoint = control.channel.get(Param::Endpoint)?;
    let (host, _) = endpoint.rsplit_once(':')?;
    Some(format!("aeron:udp?endpoint={host}:0"))
}

fn channel(
    option: &'static str,
    text: &str,
    media: Option<Media>,
) -> Result<ChannelUri, ConfigError> {
    let uri = ChannelUri::parse(text).map_err(|source| ConfigError::Channel { option, source })?;
    match media {
        Some(needed) if uri.media() != needed || uri.is_spy() => Err(ConfigError::Media {
            option,
            channel: text.to_owned(),
            needed: needed.as_str(),
        }),
        _ => Ok(uri),
    }
}

/// Converts a stream id, whose option has the range of `i32`.
fn stream_id(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// Converts a count, whose option is at most `i32::MAX`.
fn count(value: i64) -> usize {
    usize::try_from(value).unwrap_or(0)
}

/// Converts a level, whose option has the range 0 to 2.
fn sync_level(level: i64) -> SyncLevel {
    match level {
        0 => SyncLevel::None,
        1 => SyncLevel::Data,
        _ => SyncLevel::All,
    }
}

fn checksum(name: &str) -> Option<Checksum> {
    match name {
        "CRC-32" => Some(Checksum::Crc32),
        "CRC-32C" => Some(Checksum::Crc32c),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use taran_protocol::option::Source;

    use super::*;

    const CONTROL: (&str, &str) = (CONTROL_CHANNEL, "aeron:udp?endpoint=localhost:8010");
    const REPLICATION: (&str, &str) = (REPLICATION_CHANNEL, "aeron:udp?endpoint=localhost:0");

    fn configure(pairs: &[(&str, &str)]) -> Result<ArchiveConfig, ConfigError> {
        let mut options = OptionSet::archive();
        let unknown = options.apply(&Source::Code, pairs.iter().copied()).unwrap();
        assert!(unknown.is_empty(), "{unknown:?}");
        ArchiveConfig::new(&options)
    }

    #[test]
    fn config_with_required_options_only_has_the_documented_defaults() {
        let config = configure(&[CONTROL, REPLICATION]).unwrap();
        assert_eq!(config.dir, PathBuf::from("aeron-archive"));
        assert_eq!(config.mark_file_dir, config.dir);
        assert_eq!(config.control.unwrap().stream_id, 10);
        assert_eq!(
            (
                config.local_control.channel.as_str(),
                config.local_control.stream_id
            ),
            ("aeron:ipc?term-length=64k", 10)
        );
        assert_eq!(config.recording_events, None);
        assert_eq!(
            config.replication_response_channel.as_deref(),
            Some("aeron:udp?endpoint=localhost:0")
        );
        assert_eq!(
            (
                config.control_term_length,
                config.control_term_sparse,
                config.control_mtu
            ),
            (64 << 10, true, 1_408)
        );
        assert_eq!(
            (config.segment_length, config.io_max_length),
            (128 << 20, 1 << 20)
        );
        assert_eq!(
            (config.file_sync_level, config.catalog_sync_level),
            (SyncLevel::None, SyncLevel::None)
        );
        assert_eq!((config.max_recordings, config.max_replays), (20, 20));
        assert_eq!(
            (config.connect_timeout_ns, config.liveness_check_interval_ns),
            (5_000_000_000, 1_000_000_000)
        );
        assert_eq!(config.replay_linger_ns, 5_000_000_000);
        assert_eq!(
            (config.record_checksum, config.replay_checksum),
            (None, None)
        );
        assert_eq!(config.threading_mode, ArchiveThreadingMode::Dedicated);
        assert_eq!(config.archive_id, None);
        assert_eq!(config.low_storage_threshold, 128 << 20);
        assert!(!config.deny_all && !config.delete_dir_on_start);
    }

    #[test]
    fn config_takes_defaults_of_the_driver() {
        let config = configure(&[
            CONTROL,
            REPLICATION,
            ("aeron.mtu.length", "8k"),
            ("aeron.publication.linger.timeout", "1s"),
        ])
        .unwrap();
        assert_eq!(
            (config.control_mtu, config.replay_linger_ns),
            (8 << 10, 1_000_000_000)
        );
    }

    #[test]
    fn config_accepts_names_of_official_classes() {
        let config = configure(&[
            CONTROL,
            REPLICATION,
            (
                "aeron.archive.record.checksum",
                "io.aeron.archive.checksum.Crc32",
            ),
            (
                "aeron.archive.replay.checksum",
                "org.agrona.checksum.Crc32c",
            ),
            (
                "aeron.archive.authenticator.supplier",
                "io.aeron.security.DefaultAuthenticatorSupplier",
            ),
            ("aeron.archive.authorisation.service.supplier", "DENY_ALL"),
            ("aeron.archive.recorder.idle.strategy", "sleep-ns"),
        ])
        .unwrap();
        assert_eq!(
            (config.record_checksum, config.replay_checksum),
            (Some(Checksum::Crc32), Some(Checksum::Crc32c))
        );
        assert!(config.deny_all);
        assert_eq!(config.recorder_idle.name(), "sleep-ns");
        assert_eq!(config.replayer_idle.name(), config.idle.name());
    }

    #[test]
    fn config_with_contradictions_names_option_and_remedy() {
        let ipc = (CONTROL_CHANNEL, "aeron:ipc");
        for (pairs, text) in [
            (
                &[REPLICATION][..],
                "aeron.archive.control.channel is not set: ",
            ),
            (&[CONTROL], "aeron.archive.replication.channel is not set: "),
            (
                &[ipc, REPLICATION],
                "needs a channel that starts with aeron:udp",
            ),
            (
                &[(CONTROL_CHANNEL, "udp://x"), REPLICATION],
                "aeron.archive.control.channel: ",
            ),
            (
                &[
                    CONTROL,
                    REPLICATION,
                    ("aeron.archive.local.control.channel", "aeron:udp"),
                ],
                "needs a channel that starts with aeron:ipc",
            ),
            (
                &[
                    CONTROL,
                    REPLICATION,
                    ("aeron.archive.recording.events.enabled", "true"),
                ],
                "aeron.archive.recording.events.channel is not set: ",
            ),
            (
                &[CONTROL, REPLICATION, ("aeron.archive.file.sync.level", "1")],
                "raise the first to 1",
            ),
            (
                &[
                    (
                        CONTROL_CHANNEL,
                        "aeron:udp?control=a:1|control-mode=dynamic",
                    ),
                    REPLICATION,
                ],
                "has no endpoint=host:port",
            ),
        ] {
            let error = configure(pairs).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn config_without_control_channel_accepts_ipc_only() {
        let config = configure(&[
            ("aeron.archive.control.channel.enabled", "false"),
            REPLICATION,
        ])
        .unwrap();
        assert_eq!(
            (config.control, config.replication_response_channel),
            (None, None)
        );
    }
}
