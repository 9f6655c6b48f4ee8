// SPDX-License-Identifier: Apache-2.0
use std::io::Read as _;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use taran_protocol::command::Command;
use taran_protocol::event::{EventCode, FieldKind};
use taran_protocol::frame::{I32, IntoBytes, Nak};
use taran_protocol::response::Response;

#[test]
fn enabled_events_are_formatted_as_lines() {
    let (log, mut consumer) = EventLog::captured("all");
    let mut bytes = Vec::new();
    let add = Command::AddPublication {
        client_id: 3,
        correlation_id: 4,
        stream_id: 1001,
        channel: "aeron:ipc?alias=two\nlines",
    };
    let type_id = add.encode(&mut bytes);
    log.command(type_id, &bytes);
    let error = Response::Error {
        correlation_id: 4,
        error_code: 1,
        message: b"no",
    };
    let type_id = error.encode(&mut bytes);
    log.response(type_id, &bytes);
    log.log(
        EventCode::UntetheredSubscriptionStateChange,
        &[
            FieldValue::Long(9),
            FieldValue::Int(1001),
            FieldValue::Int(-5),
            FieldValue::Text("ACTIVE"),
            FieldValue::Text("LINGER"),
        ],
    );
    let nak = Nak {
        header: Nak::header(),
        session_id: I32::new(1),
        stream_id: I32::new(2),
        term_id: I32::new(3),
        term_offset: I32::new(64),
        length: I32::new(32),
    };
    log.log(
        EventCode::FrameIn,
        &[
            FieldValue::Address(Some("10.0.0.1:9".parse().unwrap())),
            FieldValue::Frame(nak.as_bytes()),
        ],
    );
    assert_eq!(
        consumer.lines(),
        "[5.000000007] DRIVER: CMD_IN_ADD_PUBLICATION [49/49]: client_id=3 correlation_id=4 stream_id=1001 \
         channel=aeron:ipc?alias=two\\nlines\n\
         [5.000000007] DRIVER: CMD_OUT_ERROR [18/18]: correlation_id=4 error_code=1 message=no\n\
         [5.000000007] DRIVER: UNTETHERED_SUBSCRIPTION_STATE_CHANGE [32/32]: subscription_id=9 stream_id=1001 \
         session_id=-5 from=ACTIVE to=LINGER\n\
         [5.000000007] DRIVER: FRAME_IN [28/28]: source=10.0.0.1:9 type=NAK flags=00000000 session_id=1 stream_id=2 \
         term_id=3 term_offset=64 length=32\n"
    );
}

#[test]
fn disabled_events_are_not_logged() {
    let (log, mut consumer) = EventLog::captured("CMD_OUT_ERROR");
    log.log(EventCode::TextData, &[FieldValue::Text("nothing")]);
    log.command(0x0B, &[0; 16]);
    EventLog::off().log(EventCode::TextData, &[FieldValue::Text("nothing")]);
    assert_eq!(consumer.lines(), "");
    assert_eq!(consumer.take_lost(), 0);
}

#[test]
fn full_queue_drops_and_counts_events() {
    let (log, mut consumer) = EventLog::captured("all");
    let text = "x".repeat(1000);
    for _ in 0..100 {
        log.log(EventCode::TextData, &[FieldValue::Text(&text)]);
    }
    let lost = consumer.take_lost();
    let written = consumer.lines().lines().count() as u64;
    assert!(lost > 0 && written > 0);
    assert_eq!(lost + written, 100);
    assert_eq!(consumer.take_lost(), 0);
    log.log(EventCode::TextData, &[FieldValue::Text("again")]);
    assert!(consumer.lines().ends_with("TEXT_DATA [7/7]: again\n"));
}

#[test]
fn every_event_is_logged_with_its_declared_values() {
    let (log, mut consumer) = EventLog::captured("all");
    for spec in EventCode::ALL {
        let values: Vec<FieldValue<'_>> = spec
            .fields
            .iter()
            .map(|field| match field.kind {
                FieldKind::Int => FieldValue::Int(1),
                FieldKind::Long => FieldValue::Long(2),
                FieldKind::Address => FieldValue::Address(None),
                FieldKind::Text => FieldValue::Text("text"),
                FieldKind::Command | FieldKind::Response => FieldValue::Message(-1, b"garbage"),
                FieldKind::Frame => FieldValue::Frame(b"garbage"),
            })
            .collect();
        log.log(spec.code, &values);
        let line = consumer.lines();
        assert!(line.contains(spec.name), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

#[test]
fn writer_appends_to_file_and_flushes_on_drop() {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let path = std::env::temp_dir().join(format!(
        "taran-events-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    ));
    std::fs::write(&path, "before\n").unwrap();
    let spec = EventWriterSpec {
        clock: EventClock::Monotonic,
        enabled: EventSet::parse("all").unwrap(),
        path: Some(path.clone()),
        capacity: 1 << 20,
    };
    let writer = EventWriter::start(spec).unwrap();
    let log = writer.log();
    for number in 0..1000 {
        log.log(
            EventCode::TextData,
            &[FieldValue::Text(&number.to_string())],
        );
    }
    drop(writer);
    let mut text = String::new();
    std::fs::File::open(&path)
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "before");
    assert!(
        lines[1].contains("] log started ") && lines[1].contains("enabled loggers: {DRIVER: "),
        "{}",
        lines[1]
    );
    assert_eq!(lines.len(), 1002);
    assert!(lines[1001].ends_with(": 999"), "{}", lines[1001]);
}

#[test]
fn unopenable_file_is_named_in_error() {
    let spec = EventWriterSpec {
        clock: EventClock::Monotonic,
        enabled: EventSet::parse("all").unwrap(),
        path: Some("/nowhere/events".into()),
        capacity: 1 << 20,
    };
    let error = EventWriter::start(spec).unwrap_err().to_string();
    assert!(
        error.contains("/nowhere/events") && error.contains("aeron.event.log.filename"),
        "{error}"
    );
}
