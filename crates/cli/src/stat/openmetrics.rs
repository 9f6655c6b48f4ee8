//! The counters as OpenMetrics text (version 1.0.0 of the format).
//!
//! System counters are families of their own; the counters of streams, channels and clients are put together by what they
//! mean, with labels that say whose they are. The label `counter_id` keeps samples of a family apart. What nobody here
//! knows, counters of users and of other components, is `aeron_counter`.

use std::fmt::Write;

use taran_core::counters::{CounterMeta, CountersReader};
use taran_protocol::counter::{
    ChannelKey, HeartbeatKey, MetricKind, MetricUnit, SocketKey, StreamKey, SystemCounter, type_id,
};

use super::filter::Filter;
use crate::attach::{Attached, Life};
use crate::printable;
use crate::streams::model::channel;

/// What an HTTP answer with this text has to call it.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What every name begins with.
const PREFIX: &str = "aeron_";

/// All families of a driver.
pub(super) fn report(attached: &Attached, filter: &Filter) -> String {
    let mut families = Families::default();
    of_driver(&mut families, attached);
    of_counters(&mut families, &attached.counters(), filter);
    families.finish()
}

/// What stays the same in all samples of a metric.
#[derive(Clone, Copy, Debug)]
struct Family {
    /// Without prefix, and without the `_total` of counters.
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
    "1 while the driver gives signs of life.",
);
const HEARTBEAT_AGE: Family = family(
    "driver_heartbeat_age_seconds",
    "gauge",
    "seconds",
    "Time since the driver's last sign of life.",
);
const POSITION: Family = family(
    "stream_position_bytes",
    "gauge",
    "bytes",
    "How far a part of a stream is, or may go, since the stream's beginning.",
);
const BACK_PRESSURE: Family = family(
    "stream_back_pressure_events",
    "counter",
    "",
    "How often a sender was held back by its receivers.",
);
const NAKS_RECEIVED: Family = family(
    "stream_naks_received",
    "counter",
    "",
    "NAKs that came for a publication.",
);
const NAKS_SENT: Family = family(
    "stream_naks_sent",
    "counter",
    "",
    "NAKs that were sent for an image.",
);
const RECEIVERS: Family = family(
    "stream_receivers",
    "gauge",
    "",
    "Receivers that a flow control counts.",
);
const CONGESTION: Family = family(
    "stream_congestion_control",
    "gauge",
    "",
    "Values of a congestion control.",
);
const CHANNEL: Family = family(
    "channel_status",
    "gauge",
    "",
    "1 active, 2 closing, 0 being set up, -1 failed.",
);
const DESTINATIONS: Family = family(
    "channel_destinations",
    "gauge",
    "",
    "Destinations of a publication with several.",
);
const SOCKET: Family = family(
    "local_socket_status",
    "gauge",
    "",
    "1 while a channel is bound to the address.",
);
const HEARTBEAT: Family = family(
    "client_heartbeat_timestamp_seconds",
    "gauge",
    "seconds",
    "When a client gave its last sign of life, since 1970.",
);
const OTHER: Family = family(
    "counter",
    "unknown",
    "",
    "Counters of users and of other components.",
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

/// Families with their samples, which must stand together.
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

/// A text as it may stand between quotes; without control characters, which the format would let pass, for it is read
/// on terminals too.
fn escaped(text: &str) -> String {
    printable::one_line(text)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
}

fn of_driver(families: &mut Families, attached: &Attached) {
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
    let alive = u8::from(attached.life() == Life::Alive);
    families.sample(ALIVE, &[], &alive.to_string());
    if let Some(age_ms) = attached.heartbeat_age_ms() {
        families.sample(HEARTBEAT_AGE, &[], &scaled(age_ms.max(0), 3));
    }
}

fn of_counters(families: &mut Families, counters: &CountersReader, filter: &Filter) {
    counters.for_each(|meta| {
        if filter.passes(meta)
            && let Some(value) = counters.value(meta.id)
        {
            of_counter(families, meta, value);
        }
    });
}

fn of_counter(families: &mut Families, meta: &CounterMeta, value: i64) {
    if meta.type_id == type_id::SYSTEM
        && let Some(counter) = SystemCounter::from_id(meta.id)
    {
        return of_system(families, counter, value);
    }
    let id = meta.id.to_string();
    let owner = meta.owner_id.to_string();
    let plain = value.to_string();
    match meta.type_id {
        type_id::SEND_CHANNEL_STATUS
        | type_id::RECEIVE_CHANNEL_STATUS
        | type_id::MDC_DESTINATIONS => {
            let Some(key) = ChannelKey::decode(&meta.key) else {
                return of_other(families, meta, &plain);
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
            None => of_other(families, meta, &plain),
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
            None => of_other(families, meta, &plain),
        },
        type_id => match (of_stream(type_id), StreamKey::decode(&meta.key)) {
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
            _ => of_other(families, meta, &plain),
        },
    }
}

/// The family of a stream's counter.
fn of_stream(type_id: i32) -> Option<Family> {
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

fn of_system(families: &mut Families, counter: SystemCounter, value: i64) {
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
        // The official label names the unit of the counter, not of the metric.
        help: counter.base_label().trim_end_matches(" in ns"),
    };
    let value = match metric.unit {
        MetricUnit::Seconds => scaled(value, 9),
        MetricUnit::None | MetricUnit::Bytes => value.to_string(),
    };
    families.sample(family, &[], &value);
}

fn of_other(families: &mut Families, meta: &CounterMeta, value: &str) {
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

/// What the label says before its first colon.
fn name(meta: &CounterMeta) -> &str {
    meta.label.as_str().split(':').next().unwrap_or("")
}

/// A number of thousandths or billionths as a decimal number, without rounding.
fn scaled(value: i64, digits: u32) -> String {
    let unit = 10_u64.pow(digits);
    let sign = if value < 0 { "-" } else { "" };
    let magnitude = value.unsigned_abs();
    let (whole, part) = (magnitude / unit, magnitude % unit);
    format!("{sign}{whole}.{part:0width$}", width = digits as usize)
}
