//! The counters as OpenMetrics text (version 1.0.0 of the format).
//!
//! Each system counter is a metric family. Counters of streams, channels and clients are grouped into families by their
//! meaning, with labels that identify their owner. The label `counter_id` distinguishes the samples of a family.
//! Counters of unknown types, from users and other components, are samples of `aeron_counter`.

use std::fmt::Write;

use taran::limit::{LimitedBy, PublicationPosition, StreamPositions};
use taran_core::counters::{CounterMeta, CountersReader};
use taran_protocol::counter::{
    ChannelKey, HeartbeatKey, MetricKind, MetricUnit, SocketKey, StreamKey, SystemCounter, type_id,
};

use super::filter::Filter;
use crate::attach::{Attached, DriverState};
use crate::backlog::verdict::log_state;
use crate::printable;
use crate::streams::model::channel;

/// HTTP content type of this text.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Prefix of every metric name.
const PREFIX: &str = "aeron_";

/// Returns all metric families of a driver.
pub(super) fn report(attached: &Attached, filter: &Filter) -> String {
    let mut families = Families::default();
    add_driver(&mut families, attached);
    add_counters(&mut families, &attached.counters(), filter);
    add_limits(&mut families, attached, filter);
    families.finish()
}

/// Properties common to all samples of a metric.
#[derive(Clone, Copy, Debug)]
struct Family {
    /// Name without the prefix, and without the suffix `_total` of counters.
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    help: &'static str,
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

const fn family(
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    help: &'static str,
) -> Family {
    Family {
        name,
        kind,
        unit,
        help,
    }
}

/// Metric families. The samples of a family must be contiguous.
#[derive(Debug, Default)]
struct Families {
    entries: Vec<(Family, String)>,
}

/// Name and value of a label.
type Label<'a> = (&'static str, &'a str);

impl Families {
    fn sample(&mut self, family: Family, labels: &[Label<'_>], value: &str) {
        let known = self
            .entries
            .iter()
            .position(|(present, _)| present.name == family.name);
        let index = known.unwrap_or_else(|| {
            self.entries.push((family, String::new()));
            self.entries.len() - 1
        });
        let samples = &mut self.entries[index].1;
        samples.push_str(PREFIX);
        samples.push_str(family.name);
        samples.push_str(match family.kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        });
        if !labels.is_empty() {
            samples.push('{');
            for (index, (name, value)) in labels.iter().enumerate() {
                let separator = if index > 0 { "," } else { "" };
                // Writing to a string cannot fail, here and below.
                let _ = write!(samples, "{separator}{name}=\"{}\"", escaped(value));
            }
            samples.push('}');
        }
        let _ = writeln!(samples, " {value}");
    }

    fn finish(self) -> String {
        let mut text = String::new();
        for (family, samples) in self.entries {
            let Family {
                name,
                kind,
                unit,
                help,
            } = family;
            let _ = writeln!(text, "# TYPE {PREFIX}{name} {kind}");
            if !unit.is_empty() {
                let _ = writeln!(text, "# UNIT {PREFIX}{name} {unit}");
            }
            let _ = writeln!(text, "# HELP {PREFIX}{name} {}", escaped(help));
            text.push_str(&samples);
        }
        text.push_str("# EOF\n");
        text
    }
}

/// Escapes a text for use between quotes. Control characters, which the format allows, are replaced, because the text
/// is also read on terminals.
fn escaped(text: &str) -> String {
    printable::one_line(text)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
}

fn add_driver(families: &mut Families, attached: &Attached) {
    let software = attached
        .counters()
        .label(SystemCounter::AeronVersion.id())
        .and_then(|label| Some(label.as_str().split_once(": ")?.1.to_owned()))
        .unwrap_or_default();
    families.sample(
        DRIVER,
        &[
            ("directory", &attached.directory.display().to_string()),
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

/// The parts of the label of a client's heartbeat; empty if absent.
#[derive(Debug, Default, PartialEq, Eq)]
struct ClientLabel<'a> {
    name: &'a str,
    version: &'a str,
    commit: &'a str,
}

impl<'a> ClientLabel<'a> {
    /// Parses `client-heartbeat: id=7 name=risk version=1.51.0 commit=abc`.
    fn parse(label: &'a str) -> Self {
        let part = |text: &'a str, key| text.split_once(key).map_or((text, ""), |parts| parts);
        let (rest, commit) = part(label, " commit=");
        let (rest, version) = part(rest, " version=");
        let (_, name) = part(rest, " name=");
        Self {
            name,
            version,
            commit,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_label_is_split_into_its_parts() {
        let label = "client-heartbeat: id=7 name=risk engine version=1.51.0 commit=abc";
        let expected = ClientLabel {
            name: "risk engine",
            version: "1.51.0",
            commit: "abc",
        };
        assert_eq!(ClientLabel::parse(label), expected);
        let unnamed = ClientLabel::parse("client-heartbeat: id=7");
        assert_eq!(unnamed, ClientLabel::default());
    }
}
