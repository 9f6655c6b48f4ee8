//! The driver's options as the agents use them: typed, checked, in nanoseconds and bytes.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use taran_core::directory::default_directory;
use taran_protocol::option::{OptionId, OptionSet, Source};
use taran_protocol::uri::{CongestionControl, PublicationDefaults, SubscriptionDefaults};

use super::names::NameSettings;

/// What options say, besides threads and their idling. Built and validated once, then shared.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The Aeron directory.
    pub directory: DirectorySettings,
    /// Lengths of the sections of `cnc.dat` and of the loss report.
    pub buffers: BufferSettings,
    /// `aeron.file.page.size`: file lengths are multiples of it.
    pub file_page_size: i32,
    /// `aeron.perform.storage.checks`: compare a log's length with the usable space before it is made.
    pub perform_storage_checks: bool,
    /// `aeron.low.file.store.warning.threshold` in bytes.
    pub low_storage_warning: u64,
    /// What holds where the channel of a publication says nothing.
    pub publication_defaults: PublicationDefaults,
    /// What holds where the channel of a subscription says nothing.
    pub subscription_defaults: SubscriptionDefaults,
    /// Publications, beyond what channels can say.
    pub publication: PublicationSettings,
    /// Images, beyond what channels can say.
    pub receiver: ReceiverSettings,
    /// Sockets.
    pub sockets: SocketSettings,
    /// Intervals and limits of the conductor.
    pub timers: TimerSettings,
    /// Names of hosts and drivers.
    pub names: NameSettings,
}

/// The Aeron directory and what is done with it (docs/spec/uri-and-configuration.md §2.2).
#[derive(Debug, Clone)]
pub struct DirectorySettings {
    /// Where it is, absolute.
    pub path: PathBuf,
    /// Delete what is there, without a look whether a driver is alive.
    pub delete_on_start: bool,
    /// Delete it again at the end.
    pub delete_on_shutdown: bool,
    /// Say on standard error when it is there already.
    pub warn_if_exists: bool,
    /// Age of a heartbeat at which a driver counts as dead.
    pub driver_timeout_ms: i64,
}

/// Lengths in bytes (docs/spec/uri-and-configuration.md §2.3).
#[derive(Debug, Clone, Copy)]
pub struct BufferSettings {
    /// To-driver ring with its trailer.
    pub to_driver: usize,
    /// To-clients broadcast buffer with its trailer.
    pub to_clients: usize,
    /// Counter values; the metadata takes four times as much.
    pub counter_values: usize,
    /// Distinct error log.
    pub error_log: usize,
    /// Loss report, already a multiple of the page size.
    pub loss_report: usize,
}

/// Publications, beyond what channels can say.
#[derive(Debug, Clone)]
pub struct PublicationSettings {
    /// Unfinished frames are padded over after this.
    pub unblock_timeout_ns: i64,
    /// A receiver that is silent for so long is gone.
    pub connection_timeout_ns: i64,
    /// Session ids that are never generated.
    pub reserved_session_ids: RangeInclusive<i32>,
    /// Delay of retransmissions.
    pub retransmit_delay_ns: i64,
    /// How long repeated requests for retransmission are ignored.
    pub retransmit_linger_ns: i64,
    /// Most datagrams of one publication in one send, of which a duty cycle may have a few, if limited.
    pub max_datagrams_per_send: Option<i32>,
}

/// Images, beyond what channels can say.
#[derive(Debug, Clone)]
pub struct ReceiverSettings {
    /// A silent image is gone after this.
    pub image_liveness_ns: i64,
    /// Longest time between status messages.
    pub status_message_timeout_ns: i64,
    /// Images of one stream on one endpoint.
    pub stream_session_limit: usize,
    /// Repeated requests for retransmission wait this many times the delay of the first.
    pub nak_retry_ratio: i64,
    /// Longest delay of a request when there are many receivers.
    pub nak_max_backoff_ns: i64,
    /// How many receivers that reckons with.
    pub nak_group_size: u32,
    /// The congestion control of all images, whatever their channels say; `None` leaves it to them.
    pub congestion_control: Option<CongestionControl>,
    /// Where that is CUBIC.
    pub cubic: CubicSettings,
}

/// CUBIC congestion control (docs/spec/wire.md §5.7).
#[derive(Debug, Clone, Copy)]
pub struct CubicSettings {
    /// Ask senders for round trips.
    pub measures_round_trip: bool,
    /// What a round trip takes before one was measured; also the shortest time between two changes of a window.
    pub initial_round_trip_ns: i64,
    /// Grow at least as quickly as TCP would.
    pub is_tcp_friendly: bool,
}

/// Sockets (docs/spec/uri-and-configuration.md §2.5).
#[derive(Debug, Clone)]
pub struct SocketSettings {
    /// `SO_SNDBUF`; `None`: the system's default.
    pub send_buffer: Option<usize>,
    /// `SO_RCVBUF`; `None`: the system's default.
    pub receive_buffer: Option<usize>,
    /// Nobody has said how long receive buffers are to be: they become as long as is needed, within the system's limit.
    pub receive_buffers_grow: bool,
    /// Connect the sockets of publications to one address.
    pub connect: bool,
    /// Hops of what is sent to groups; `None`: the system's default.
    pub multicast_ttl: Option<u8>,
    /// Ports for publications with an explicit control address and port 0.
    pub sender_ports: Option<RangeInclusive<u16>>,
    /// Ports for subscriptions with port 0.
    pub receiver_ports: Option<RangeInclusive<u16>>,
    /// The sender polls its control sockets at least every so many duty cycles.
    pub status_poll_ratio: u32,
}

/// Intervals and limits of the conductor (docs/spec/uri-and-configuration.md §2.8).
#[derive(Debug, Clone)]
pub struct TimerSettings {
    /// Between two looks at lives.
    pub interval_ns: i64,
    /// A client that is silent for so long is gone.
    pub client_liveness_ns: i64,
    /// How long a freed counter id rests.
    pub counter_free_to_reuse_ns: i64,
    /// Log files deleted in one duty cycle.
    pub resource_free_limit: usize,
    /// Longer duty cycles are counted: conductor, sender, receiver.
    pub cycle_thresholds_ns: [i64; 3],
    /// Slower name look-ups are counted.
    pub name_resolver_threshold_ns: i64,
    /// How often peers are looked for that fell silent, as their names are to be looked up again; 0: never.
    pub reresolution_check_interval_ns: i64,
}

impl Settings {
    /// Reads what options say. Their own ranges have been checked when they were set; what they need of each other is for
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
            // At most 1 GiB, by the option's range.
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
        // The C driver takes four datagrams unless told otherwise, this one as many as are worth a call; an explicit
        // number is kept.
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
            reresolution_check_interval_ns: options.reresolution_check_interval_ns(),
        }
    }
}

/// The ranges of these options lie within 32 bits.
fn int32(n: i64) -> i32 {
    i32::try_from(n).unwrap_or(if n < 0 { i32::MIN } else { i32::MAX })
}

/// The directory as an absolute path, so that clients can use what they are told wherever they are.
fn directory(options: &OptionSet) -> PathBuf {
    let path = options.dir().map_or_else(default_directory, PathBuf::from);
    std::path::absolute(&path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive_buffers_grow_unless_somebody_said_how_long_they_are() {
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
