// SPDX-License-Identifier: Apache-2.0
//! The driver's options as used by the agents: typed, validated, in nanoseconds and bytes.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use taran_core::directory::default_directory;
use taran_protocol::option::{OptionId, OptionSet, Source};
use taran_protocol::uri::{CongestionControl, PublicationDefaults, SubscriptionDefaults};

use super::names::NameSettings;

/// Values of all options except threads and idle strategies. Built and validated once, then shared.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The Aeron directory.
    pub directory: DirectorySettings,
    /// Lengths of the sections of `cnc.dat` and of the loss report.
    pub buffers: BufferSettings,
    /// `aeron.file.page.size`: file lengths are multiples of it.
    pub file_page_size: i32,
    /// `aeron.perform.storage.checks`: compare a log's length with the usable space before creating it.
    pub perform_storage_checks: bool,
    /// `aeron.low.file.store.warning.threshold` in bytes.
    pub low_storage_warning: u64,
    /// Defaults for parameters that the channel of a publication does not set.
    pub publication_defaults: PublicationDefaults,
    /// Defaults for parameters that the channel of a subscription does not set.
    pub subscription_defaults: SubscriptionDefaults,
    /// Publication settings that channels cannot override.
    pub publication: PublicationSettings,
    /// Image settings that channels cannot override.
    pub receiver: ReceiverSettings,
    /// Sockets.
    pub sockets: SocketSettings,
    /// Intervals and limits of the conductor.
    pub timers: TimerSettings,
    /// Name resolution.
    pub names: NameSettings,
}

/// The Aeron directory (docs/spec/uri-and-configuration.md §2.2).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DirectorySettings {
    /// Absolute path.
    pub path: PathBuf,
    /// Delete the contents at start, without checking for a live driver.
    pub delete_on_start: bool,
    /// Delete the directory at shutdown.
    pub delete_on_shutdown: bool,
    /// Warn if the directory exists.
    pub warn_if_exists: bool,
    /// Age of the heartbeat beyond which a driver is considered dead.
    pub driver_timeout_ms: i64,
    /// Directory for the errors of earlier drivers; `None` means beside `path`.
    pub errors_dir: Option<PathBuf>,
    /// Number of files with errors of earlier drivers that are kept.
    pub errors_kept: usize,
}

/// Lengths in bytes (docs/spec/uri-and-configuration.md §2.3).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct BufferSettings {
    /// To-driver ring, including its trailer.
    pub to_driver: usize,
    /// To-clients broadcast buffer, including its trailer.
    pub to_clients: usize,
    /// Counter values; the metadata is four times as long.
    pub counter_values: usize,
    /// Distinct error log.
    pub error_log: usize,
    /// Loss report, already a multiple of the page size.
    pub loss_report: usize,
}

/// Publication settings that channels cannot override.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PublicationSettings {
    /// Time after which unfinished frames are unblocked with padding.
    pub unblock_timeout_ns: i64,
    /// Time without a status message after which a receiver is considered gone.
    pub connection_timeout_ns: i64,
    /// Session ids that are never generated.
    pub reserved_session_ids: RangeInclusive<i32>,
    /// Delay of retransmissions.
    pub retransmit_delay_ns: i64,
    /// Time for which repeated NAKs are ignored.
    pub retransmit_linger_ns: i64,
    /// Maximum datagrams of one publication per send call, if limited; a duty cycle may make several calls.
    pub max_datagrams_per_send: Option<i32>,
}

/// Image settings that channels cannot override.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReceiverSettings {
    /// Time without a frame after which an image is removed.
    pub image_liveness_ns: i64,
    /// Maximum interval of status messages.
    pub status_message_timeout_ns: i64,
    /// Maximum images of one stream per endpoint.
    pub stream_session_limit: usize,
    /// Maximum bytes of images of one source address that have received nothing yet.
    pub pending_images_per_source: u64,
    /// Maximum bytes of images of one stream that have received nothing yet.
    pub pending_images_per_stream: u64,
    /// Factor from the delay of the first NAK to that of repetitions.
    pub nak_retry_ratio: i64,
    /// Maximum NAK delay with multiple receivers.
    pub nak_max_backoff_ns: i64,
    /// Assumed number of receivers for that delay.
    pub nak_group_size: u32,
    /// Congestion control of all images, regardless of their channels; `None` if channels decide.
    pub congestion_control: Option<CongestionControl>,
    /// Parameters of CUBIC.
    pub cubic: CubicSettings,
}

/// CUBIC congestion control (docs/spec/wire.md §5.7).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CubicSettings {
    /// Measure round-trip times.
    pub measures_round_trip: bool,
    /// Assumed round-trip time before the first measurement; also the minimum time between two window changes.
    pub initial_round_trip_ns: i64,
    /// Grow at least as fast as TCP.
    pub is_tcp_friendly: bool,
}

/// Sockets (docs/spec/uri-and-configuration.md §2.5).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SocketSettings {
    /// Network backend of channels that name none; `None` for the first one of the network.
    pub backend: Option<Box<str>>,
    /// `SO_SNDBUF`; `None` for the system default.
    pub send_buffer: Option<usize>,
    /// `SO_RCVBUF`; `None` for the system default.
    pub receive_buffer: Option<usize>,
    /// Receive buffers grow as needed, up to the system limit, because no length is configured.
    pub receive_buffers_grow: bool,
    /// Connect the sockets of publications that have a single destination.
    pub connect: bool,
    /// Multicast TTL; `None` for the system default.
    pub multicast_ttl: Option<u8>,
    /// Ports for publications with an explicit control address and port 0.
    pub sender_ports: Option<RangeInclusive<u16>>,
    /// Ports for subscriptions with port 0.
    pub receiver_ports: Option<RangeInclusive<u16>>,
    /// Maximum duty cycles of the sender between two polls of its control sockets.
    pub status_poll_ratio: u32,
}

/// Intervals and limits of the conductor (docs/spec/uri-and-configuration.md §2.8).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TimerSettings {
    /// Interval of liveness checks.
    pub interval_ns: i64,
    /// Time without a keepalive after which a client is removed.
    pub client_liveness_ns: i64,
    /// Time after which a freed counter id may be reused.
    pub counter_free_to_reuse_ns: i64,
    /// Maximum log files deleted per duty cycle.
    pub resource_free_limit: usize,
    /// Thresholds beyond which duty cycles are counted: conductor, sender, receiver.
    pub cycle_thresholds_ns: [i64; 3],
    /// Threshold beyond which name lookups are counted.
    pub name_resolver_threshold_ns: i64,
    /// Interval at which silent peers are checked for re-resolution; 0 disables the check.
    pub re_resolution_check_interval_ns: i64,
}

impl Settings {
    /// Reads the options. The range of each option was checked when it was set; conflicts among options are found by
    /// [`validate`](super::validate).
    pub fn from_options(options: &OptionSet) -> Self {
        let page_size = options.file_page_size();
        Self {
            directory: DirectorySettings {
                path: directory(options),
                delete_on_start: options.dir_delete_on_start(),
                delete_on_shutdown: options.dir_delete_on_shutdown(),
                warn_if_exists: options.dir_warn_if_exists(),
                driver_timeout_ms: options.driver_timeout_ms(),
                errors_dir: options.errors_dir().map(PathBuf::from),
                errors_kept: usize::try_from(options.errors_kept()).unwrap_or(1),
            },
            buffers: BufferSettings {
                to_driver: options.conductor_buffer_length(),
                to_clients: options.clients_buffer_length(),
                counter_values: options.counters_buffer_length(),
                error_log: options.error_buffer_length(),
                loss_report: options
                    .loss_report_buffer_length()
                    .next_multiple_of(page_size),
            },
            // At most 1 GiB, by the range of the option.
            file_page_size: page_size as i32,
            perform_storage_checks: options.perform_storage_checks(),
            low_storage_warning: options.low_file_store_warning_threshold() as u64,
            publication_defaults: options.publication_defaults(),
            subscription_defaults: options.subscription_defaults(),
            publication: PublicationSettings::from_options(options),
            receiver: ReceiverSettings::from_options(options),
            sockets: SocketSettings::from_options(options),
            timers: TimerSettings::from_options(options),
            names: NameSettings::from_options(options),
        }
    }
}

impl PublicationSettings {
    fn from_options(options: &OptionSet) -> Self {
        let low = options.publication_reserved_session_id_low();
        let high = options.publication_reserved_session_id_high();
        // The C driver sends four datagrams per call by default, this one as many as pay off; an explicit value is
        // respected.
        let is_explicit = *options.source(OptionId::MaxMessagesPerSend) != Source::Default;
        let most = options.network_publication_max_messages_per_send();
        Self {
            unblock_timeout_ns: options.publication_unblock_timeout_ns(),
            connection_timeout_ns: options.publication_connection_timeout_ns(),
            reserved_session_ids: int32(low)..=int32(high),
            retransmit_delay_ns: options.retransmit_unicast_delay_ns(),
            retransmit_linger_ns: options.retransmit_unicast_linger_ns(),
            max_datagrams_per_send: is_explicit.then(|| int32(most)),
        }
    }
}

impl ReceiverSettings {
    fn from_options(options: &OptionSet) -> Self {
        Self {
            image_liveness_ns: options.image_liveness_timeout_ns(),
            status_message_timeout_ns: options.rcv_status_message_timeout_ns(),
            stream_session_limit: usize::try_from(options.stream_session_limit())
                .unwrap_or(usize::MAX),
            pending_images_per_source: options.pending_images_source_limit() as u64,
            pending_images_per_stream: options.pending_images_stream_limit() as u64,
            nak_retry_ratio: options.nak_unicast_retry_delay_ratio(),
            nak_max_backoff_ns: options.nak_multicast_max_backoff_ns(),
            nak_group_size: u32::try_from(options.nak_multicast_group_size()).unwrap_or(u32::MAX),
            congestion_control: options.congestion_control(),
            cubic: CubicSettings {
                measures_round_trip: options.cubic_measure_rtt(),
                initial_round_trip_ns: options.cubic_initial_rtt_ns(),
                is_tcp_friendly: options.cubic_tcp_mode(),
            },
        }
    }
}

impl SocketSettings {
    fn from_options(options: &OptionSet) -> Self {
        let given = |length: usize| (length > 0).then_some(length);
        let range = |(low, high): (u16, u16)| (high > 0).then_some(low..=high);
        Self {
            backend: options.network_backend().map(Box::from),
            send_buffer: given(options.socket_so_sndbuf()),
            receive_buffer: given(options.socket_so_rcvbuf()),
            receive_buffers_grow: *options.source(OptionId::SocketReceiveBuffer) == Source::Default,
            connect: options.driver_connect(),
            multicast_ttl: u8::try_from(options.socket_multicast_ttl())
                .ok()
                .filter(|&ttl| ttl > 0),
            sender_ports: range(options.sender_wildcard_port_range()),
            receiver_ports: range(options.receiver_wildcard_port_range()),
            status_poll_ratio: u32::try_from(options.send_to_status_poll_ratio())
                .unwrap_or(u32::MAX),
        }
    }
}

impl TimerSettings {
    fn from_options(options: &OptionSet) -> Self {
        Self {
            interval_ns: options.timer_interval_ns(),
            client_liveness_ns: options.client_liveness_timeout_ns(),
            counter_free_to_reuse_ns: options.counters_free_to_reuse_timeout_ns(),
            resource_free_limit: usize::try_from(options.driver_resource_free_limit())
                .unwrap_or(usize::MAX),
            cycle_thresholds_ns: [
                options.conductor_cycle_threshold_ns(),
                options.sender_cycle_threshold_ns(),
                options.receiver_cycle_threshold_ns(),
            ],
            name_resolver_threshold_ns: options.name_resolver_threshold_ns(),
            re_resolution_check_interval_ns: options.re_resolution_check_interval_ns(),
        }
    }
}

/// The ranges of these options are within 32 bits.
fn int32(n: i64) -> i32 {
    i32::try_from(n).unwrap_or(if n < 0 { i32::MIN } else { i32::MAX })
}

/// Returns the directory as an absolute path, so that clients can use it from any working directory.
fn directory(options: &OptionSet) -> PathBuf {
    let path = options.dir().map_or_else(default_directory, PathBuf::from);
    std::path::absolute(&path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive_buffers_grow_unless_length_is_configured() {
        let grows = |said: Option<&str>| {
            let mut options = OptionSet::driver();
            if let Some(text) = said {
                let id = OptionId::SocketReceiveBuffer;
                options.set(id, text, &Source::Environment).unwrap();
            }
            SocketSettings::from_options(&options).receive_buffers_grow
        };
        assert!(grows(None));
        for said in ["128k", "0", "2m"] {
            assert!(!grows(Some(said)), "{said}");
        }
    }
}
