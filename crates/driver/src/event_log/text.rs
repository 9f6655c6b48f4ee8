// SPDX-License-Identifier: Apache-2.0
//! Text form of events.

use std::fmt::Write;

use chrono::{DateTime, Local};
use taran_protocol::command::Command;
use taran_protocol::event::{EventCode, EventSpec, FieldKind};
use taran_protocol::response::Response;

use super::EventClock;
use super::frame_text;
use super::record::{DecodedValue, RecordReader};

/// Returns the first line of a log.
pub(super) fn start(clock: EventClock, now_ns: i64, epoch_ms: i64) -> String {
    let date = match DateTime::from_timestamp_millis(epoch_ms) {
        Some(utc) => utc
            .with_timezone(&Local)
            .format("%Y-%m-%d %H:%M:%S%.3f%z")
            .to_string(),
        None => epoch_ms.to_string(),
    };
    format!(
        "{}log started {date}, enabled loggers: {{DRIVER: version={} commit=taran}}\n",
        time(clock, now_ns),
        env!("CARGO_PKG_VERSION"),
    )
}

/// Returns the line that reports dropped events.
pub(super) fn lost(clock: EventClock, now_ns: i64, count: u64, capacity: usize) -> String {
    format!(
        "{}DRIVER: {count} events lost: more came than could be written, raise aeron.event.buffer.length={capacity} or log \
         fewer events\n",
        time(clock, now_ns)
    )
}

/// Appends the line of an event: `[<time>] DRIVER: <name> [<captured>/<length>]: <values>`.
pub(super) fn append(text: &mut String, clock: EventClock, number: i32, record: &[u8]) {
    let Some(event) = EventCode::from_number(number) else {
        return;
    };
    let spec = event.spec();
    let Some((time_ns, values)) = RecordReader::new(record, spec.fields) else {
        return;
    };
    let line_start = text.len();
    text.push_str(&time(clock, time_ns));
    text.push_str("DRIVER: ");
    text.push_str(spec.name);
    let sizes_at = text.len();
    let mut sizes = (record.len() - TIME_LENGTH, record.len() - TIME_LENGTH);
    for (field, value) in values {
        text.push(' ');
        append_value(text, spec, field.name, field.kind, &value);
        match value {
            DecodedValue::Message(_, length, captured) | DecodedValue::Frame(length, captured) => {
                sizes = (captured.len(), length);
            }
            _ => {}
        }
    }
    text.insert_str(sizes_at, &format!(" [{}/{}]:", sizes.0, sizes.1));
    debug_assert!(!text[line_start..].contains('\n'));
    text.push('\n');
}

const TIME_LENGTH: usize = 8;

fn append_value(
    text: &mut String,
    spec: &EventSpec,
    name: &'static str,
    kind: FieldKind,
    value: &DecodedValue<'_>,
) {
    // Writing to a string does not fail.
    let _ = match *value {
        DecodedValue::Int(n) => write!(text, "{name}={n}"),
        DecodedValue::Long(n) => write!(text, "{name}={n}"),
        DecodedValue::Address(Some(address)) => write!(text, "{name}={address}"),
        DecodedValue::Address(None) => write!(text, "{name}=unknown"),
        // An event that consists of one text has no field name.
        DecodedValue::Text(bytes) if spec.fields.len() == 1 && spec.code == EventCode::TextData => {
            write!(text, "{}", bytes.escape_ascii())
        }
        DecodedValue::Text(bytes) => write!(text, "{name}={}", bytes.escape_ascii()),
        DecodedValue::Message(type_id, length, captured) => {
            append_message(text, kind, type_id, length, captured);
            Ok(())
        }
        DecodedValue::Frame(_, captured) => {
            frame_text::append(text, captured);
            Ok(())
        }
    };
}

fn append_message(
    text: &mut String,
    kind: FieldKind,
    type_id: i32,
    length: usize,
    captured: &[u8],
) {
    let shown = match kind {
        FieldKind::Command => Command::decode(type_id, captured).map(|message| message.to_string()),
        _ => Response::decode(type_id, captured).map(|message| message.to_string()),
    };
    match shown {
        Ok(shown) => text.push_str(&shown),
        Err(_) if captured.len() < length => text.push_str("too long to be shown"),
        Err(error) => text.push_str(&error.to_string()),
    }
}

/// Formats a timestamp: `[<date> <time>.<nanoseconds><zone>] ` of the wall clock, else `[<seconds>.<nanoseconds>] `.
fn time(clock: EventClock, now_ns: i64) -> String {
    const SECOND: i64 = 1_000_000_000;
    match clock {
        EventClock::Wall => DateTime::from_timestamp_nanos(now_ns)
            .with_timezone(&Local)
            .format("[%Y-%m-%d %H:%M:%S%.9f%z] ")
            .to_string(),
        EventClock::Monotonic => {
            format!("[{}.{:09}] ", now_ns / SECOND, (now_ns % SECOND).abs())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_wall_clock_has_date_nanoseconds_and_zone() {
        let text = time(EventClock::Wall, 1_700_000_000_123_456_789);
        assert!(
            text.starts_with("[2023-11-1") && text.ends_with("] "),
            "{text}"
        );
        assert!(text.contains(":20.123456789"), "{text}");
        assert_eq!(time(EventClock::Monotonic, 5_000_000_007), "[5.000000007] ");
    }
}
