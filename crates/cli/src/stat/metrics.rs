// SPDX-License-Identifier: Apache-2.0
//! The counters as metrics.
//!
//! Each system counter is a metric family. Counters of streams, channels and clients are grouped into families by their
//! meaning, with labels that identify their owner. The label `counter_id` distinguishes the samples of a family.
//! Counters of unknown types, from users and other components, are samples of `aeron_counter`.

use std::path::PathBuf;

use taran::limit::{LimitedBy, PublicationPosition, StreamPositions};
use taran_core::counters::{CounterMeta, CountersReader};
use taran_protocol::counter::{
    ChannelKey, HeartbeatKey, MetricKind, MetricUnit, SocketKey, StreamKey, SystemCounter, type_id,
};

use super::exposition::{DIRECTORY, Families, Family, Format, Label, family};
use super::filter::Filter;
use crate::attach::{AttachError, Attached, DriverState};
use crate::backlog::verdict::log_state;
use crate::client_label::ClientLabel;
use crate::streams::model::channel;

/// Returns all metrics of one driver.
pub(super) fn report(attached: &Attached, filter: &Filter, format: Format) -> String {
    let mut families = Families::new();
    add(&mut families, attached, filter);
    families.finish(format)
}

/// Returns all metrics of several drivers, whose samples differ in the label `directory`. A driver that cannot be read, with
/// the reason, has the sample `driver_alive` 0 only.
pub(super) fn report_all(
    drivers: &[(PathBuf, Result<Attached, AttachError>)],
    filter: &Filter,
    format: Format,
) -> String {
    let mut families = Families::new();
    for (directory, attached) in drivers {
        families.begin_driver(&directory.display().to_string());
        match attached {
            Ok(attached) => add(&mut families, attached, filter),
            Err(_) => families.sample(ALIVE, &[], "0"),
        }
    }
    families.finish(format)
}

fn add(families: &mut Families, attached: &Attached, filter: &Filter) {
    add_driver(families, attached);
    add_counters(families, &attached.counters(), filter);
    add_limits(families, attached, filter);
}

const DRIVER: Family = family("driver", "info", "", "The driver.");
const ALIVE: Family = family(
    "driver_alive",
    "gauge",
    "",
    "1 while the driver is alive: its last heartbeat is recent.",
);
const HEARTBEAT_AGE: Family = family(
    "driver_heartbeat_age_seconds",
    "gauge",
    "seconds",
    "Time since the last heartbeat of the driver.",
);
const POSITION: Family = family(
    "stream_position_bytes",
    "gauge",
    "bytes",
    "Position or position limit of a stream in bytes since the start of the stream.",
);
const BACK_PRESSURE: Family = family(
    "stream_back_pressure_events",
    "counter",
    "",
    "Times that flow control stopped a sender although it had data to send.",
);
const NAKS_RECEIVED: Family = family(
    "stream_naks_received",
    "counter",
    "",
    "NAKs received for a publication.",
);
const NAKS_SENT: Family = family("stream_naks_sent", "counter", "", "NAKs sent for an image.");
const RECEIVERS: Family = family(
    "stream_receivers",
    "gauge",
    "",
    "Receivers tracked by the flow control of a publication.",
);
const CONGESTION: Family = family(
    "stream_congestion_control",
    "gauge",
    "",
    "Congestion control state of an image.",
);
const CHANNEL: Family = family(
    "channel_status",
    "gauge",
    "",
    "Channel status: 1 active, 2 closing, 0 initialising, -1 errored.",
);
const DESTINATIONS: Family = family(
    "channel_destinations",
    "gauge",
    "",
    "Destinations of a multi-destination-cast publication.",
);
const SOCKET: Family = family(
    "local_socket_status",
    "gauge",
    "",
    "1 while the channel's socket is bound to the address.",
);
const HEARTBEAT: Family = family(
    "client_heartbeat_timestamp_seconds",
    "gauge",
    "seconds",
    "Time of the last heartbeat of a client, in seconds since the Unix epoch.",
);
const CLIENT: Family = family("client", "info", "", "A client of the driver.");
const LIMITED: Family = family(
    "publication_limited",
    "gauge",
    "",
    "1 while a publication is limited by what the label limited_by says, 0 while only its publisher limits it.",
);
const OTHER: Family = family(
    "counter",
    "unknown",
    "",
    "Counters of types unknown to this exporter, such as those of applications.",
);

fn add_driver(families: &mut Families, attached: &Attached) {
    let software = attached
        .counters()
        .label(SystemCounter::AeronVersion.id())
        .and_then(|label| Some(label.as_str().split_once(": ")?.1.to_owned()))
        .unwrap_or_default();
    families.sample(
        DRIVER,
        &[
            (DIRECTORY, &attached.directory.display().to_string()),
            ("pid", &attached.pid().to_string()),
            ("cnc_version", &attached.version().to_string()),
            ("software", &software),
        ],
        "1",
    );
    let alive = u8::from(attached.state() == DriverState::Alive);
    families.sample(ALIVE, &[], &alive.to_string());
    if let Some(age_ms) = attached.heartbeat_age_ms() {
        families.sample(HEARTBEAT_AGE, &[], &scaled(age_ms.max(0), 3));
    }
}

fn add_counters(families: &mut Families, counters: &CountersReader, filter: &Filter) {
    counters.for_each(|meta| {
        if filter.passes(meta)
            && let Some(value) = counters.value(meta.id)
        {
            add_counter(families, meta, value);
        }
    });
}

fn add_counter(families: &mut Families, meta: &CounterMeta, value: i64) {
    if meta.type_id == type_id::SYSTEM
        && let Some(counter) = SystemCounter::from_id(meta.id)
    {
        return add_system(families, counter, value);
    }
    let id = meta.id.to_string();
    let owner = meta.owner_id.to_string();
    let plain = value.to_string();
    match meta.type_id {
        type_id::SEND_CHANNEL_STATUS
        | type_id::RECEIVE_CHANNEL_STATUS
        | type_id::MDC_DESTINATIONS => {
            let Some(key) = ChannelKey::decode(&meta.key) else {
                return add_other(families, meta, &plain);
            };
            let channel = channel(meta, &key.channel);
            let labels: &[Label<'_>] = &[
                ("counter", name(meta)),
                ("counter_id", &id),
                ("channel", &channel),
            ];
            let family = match meta.type_id {
                type_id::MDC_DESTINATIONS => DESTINATIONS,
                _ => CHANNEL,
            };
            families.sample(family, labels, &plain);
        }
        type_id::LOCAL_SOCKET_ADDRESS => match SocketKey::decode(&meta.key) {
            Some(key) => families.sample(
                SOCKET,
                &[
                    ("counter", name(meta)),
                    ("counter_id", &id),
                    ("address", &key.address),
                    ("channel_counter_id", &key.channel_status_id.to_string()),
                ],
                &plain,
            ),
            None => add_other(families, meta, &plain),
        },
        type_id::CLIENT_HEARTBEAT => match HeartbeatKey::decode(&meta.key) {
            Some(key) => families.sample(
                HEARTBEAT,
                &[
                    ("counter_id", &id),
                    ("client_id", &key.client_id.to_string()),
                    ("label", meta.label.as_str()),
                ],
                &scaled(value, 3),
            ),
            None => add_other(families, meta, &plain),
        },
        type_id => match (stream_family(type_id), StreamKey::decode(&meta.key)) {
            (Some(family), Some(key)) => families.sample(
                family,
                &[
                    ("counter", name(meta)),
                    ("counter_id", &id),
                    ("registration_id", &key.registration_id.to_string()),
                    ("client_id", &owner),
                    ("session_id", &key.session_id.to_string()),
                    ("stream_id", &key.stream_id.to_string()),
                    ("channel", &channel(meta, &key.channel)),
                ],
                &plain,
            ),
            _ => add_other(families, meta, &plain),
        },
    }
}

/// Returns the family of a stream counter.
fn stream_family(type_id: i32) -> Option<Family> {
    Some(match type_id {
        type_id::PUBLISHER_LIMIT
        | type_id::SENDER_POSITION
        | type_id::RECEIVER_HIGH_WATER_MARK
        | type_id::SUBSCRIBER_POSITION
        | type_id::RECEIVER_POSITION
        | type_id::SENDER_LIMIT
        | type_id::PUBLISHER_POSITION => POSITION,
        type_id::SENDER_BACK_PRESSURE_EVENTS => BACK_PRESSURE,
        type_id::SENDER_NAKS_RECEIVED => NAKS_RECEIVED,
        type_id::RECEIVER_NAKS_SENT => NAKS_SENT,
        type_id::FLOW_CONTROL_RECEIVERS => RECEIVERS,
        type_id::PER_IMAGE => CONGESTION,
        _ => return None,
    })
}

/// Adds what limits each publication, and the names of the clients.
fn add_limits(families: &mut Families, attached: &Attached, filter: &Filter) {
    let counters = attached.counters();
    let positions = StreamPositions::read(&counters);
    counters.for_each(|meta| {
        if !filter.passes(meta) {
            return;
        }
        match meta.type_id {
            type_id::PUBLISHER_LIMIT => {
                let publication = StreamKey::decode(&meta.key)
                    .and_then(|key| positions.publication(key.registration_id));
                if let Some(publication) = publication {
                    add_limit(families, attached, &positions, meta, publication);
                }
            }
            type_id::CLIENT_HEARTBEAT => {
                if let Some(key) = HeartbeatKey::decode(&meta.key) {
                    let label = ClientLabel::parse(meta.label.as_str());
                    families.sample(
                        CLIENT,
                        &[
                            ("client_id", &key.client_id.to_string()),
                            ("client_name", label.name),
                            ("version", label.version),
                            ("commit", label.commit),
                        ],
                        "1",
                    );
                }
            }
            _ => {}
        }
    });
}

fn add_limit(
    families: &mut Families,
    attached: &Attached,
    positions: &StreamPositions,
    meta: &CounterMeta,
    publication: &PublicationPosition,
) {
    let log = log_state(&attached.directory, publication.registration_id);
    let limited_by = positions.limited_by(publication, log);
    let (subscriber, client, name) = match &limited_by {
        LimitedBy::Subscriber(subscriber) => (
            subscriber.registration_id.to_string(),
            subscriber.client_id.to_string(),
            subscriber.client_name.as_str(),
        ),
        _ => (String::new(), String::new(), ""),
    };
    let is_limited = !matches!(limited_by, LimitedBy::Publisher { .. });
    families.sample(
        LIMITED,
        &[
            ("registration_id", &publication.registration_id.to_string()),
            ("client_id", &meta.owner_id.to_string()),
            ("session_id", &publication.session_id.to_string()),
            ("stream_id", &publication.stream_id.to_string()),
            ("channel", &channel(meta, &publication.channel)),
            ("limited_by", limited_by.kind()),
            ("limiting_registration_id", &subscriber),
            ("limiting_client_id", &client),
            ("limiting_client_name", name),
        ],
        &u8::from(is_limited).to_string(),
    );
}

fn add_system(families: &mut Families, counter: SystemCounter, value: i64) {
    let metric = counter.metric();
    let family = Family {
        name: metric.name,
        kind: match metric.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        },
        unit: match metric.unit {
            MetricUnit::None => "",
            MetricUnit::Bytes => "bytes",
            MetricUnit::Seconds => "seconds",
        },
        // The official label gives the unit of the counter, which differs from that of the metric.
        help: counter.base_label().trim_end_matches(" in ns"),
    };
    let value = match metric.unit {
        MetricUnit::Seconds => scaled(value, 9),
        MetricUnit::None | MetricUnit::Bytes => value.to_string(),
    };
    families.sample(family, &[], &value);
}

fn add_other(families: &mut Families, meta: &CounterMeta, value: &str) {
    families.sample(
        OTHER,
        &[
            ("counter_id", &meta.id.to_string()),
            ("type_id", &meta.type_id.to_string()),
            ("registration_id", &meta.registration_id.to_string()),
            ("client_id", &meta.owner_id.to_string()),
            ("label", meta.label.as_str()),
        ],
        value,
    );
}

/// Returns the label up to its first colon.
fn name(meta: &CounterMeta) -> &str {
    meta.label.as_str().split(':').next().unwrap_or("")
}

/// Formats a number of thousandths or billionths as a decimal number, without rounding.
fn scaled(value: i64, digits: u32) -> String {
    let unit = 10_u64.pow(digits);
    let sign = if value < 0 { "-" } else { "" };
    let magnitude = value.unsigned_abs();
    let (whole, part) = (magnitude / unit, magnitude % unit);
    format!("{sign}{whole}.{part:0width$}", width = digits as usize)
}
