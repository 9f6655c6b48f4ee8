//! Files: where they are, what they hold, and what happens when there is no room (docs/spec/shared-memory.md §7.1, §7.7).

use taran_core::memory::MemoryStorage;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::log::LogSpec;

use crate::bench::Bench;

/// Bytes of `cnc.dat` and the loss report.
const FIXED: u64 = 48_238_592 + 1_048_576;
/// Bytes of a log with the shortest terms.
const LOG: u64 = 200_704;

#[test]
fn a_log_says_everything_about_its_publication() {
    let mut bench = Bench::new();
    let client = bench.client();
    let channel = "aeron:ipc?mtu=2048|term-length=128k|init-term-id=7|term-id=9|term-offset=64|session-id=5|tags=1,2|linger=1s|sparse=false";
    let ready = bench.add_exclusive(client, channel, 33).unwrap();
    assert_eq!(
        ready.log,
        format!("/aeron/publications/{}.logbuffer", ready.registration_id)
    );
    let log = bench.log(&ready.log);
    let start = 2 * 128 * 1024 + 64;
    assert_eq!(log.producer_position(), start);
    assert_eq!(bench.value(ready.limit_counter_id), start);
    let region = taran_core::memory::Storage::open(&bench.storage, ready.log.as_ref()).unwrap();
    let spec = LogSpec::of(&region).unwrap();
    assert_eq!(
        (spec.session_id, spec.stream_id, spec.initial_term_id),
        (5, 33, 7)
    );
    assert_eq!(
        (spec.mtu, spec.term_length, spec.page_size),
        (2048, 128 * 1024, 4096)
    );
    assert_eq!(
        (
            spec.correlation_id,
            spec.entity_tag,
            spec.response_correlation_id
        ),
        (ready.registration_id, 2, -1)
    );
    assert_eq!(
        (spec.linger_timeout_ns, spec.publication_window),
        (1_000_000_000, 64 * 1024)
    );
    assert_eq!(
        (spec.is_sparse, spec.signals_end_of_stream, spec.max_resend),
        (false, true, 16)
    );
    assert_eq!(log.end_of_stream_position(), i64::MAX);
}

#[test]
fn too_little_room_is_told_with_both_numbers_and_leaves_nothing() {
    for checks in ["true", "false"] {
        let storage = MemoryStorage::with_capacity(FIXED + LOG + 1000);
        let mut bench = Bench::in_storage(storage, &[("aeron.perform.storage.checks", checks)]);
        let client = bench.client();
        bench
            .add_publication(client, "aeron:ipc?sparse=false", 10)
            .unwrap();
        let counters = bench.counters().len();
        for channel in [
            "aeron:ipc?sparse=false",
            "aeron:udp?endpoint=localhost:40123|sparse=false",
        ] {
            let refused = bench.add_publication(client, channel, 11).unwrap_err();
            assert_eq!(refused.code, ErrorCode::StorageSpace);
            assert!(
                refused.text.contains("needed=200704 available=1000"),
                "{}",
                refused.text
            );
            assert_eq!(bench.log_files().len(), 1);
            bench.settle();
            assert_eq!(bench.counters().len(), counters, "{:?}", bench.labels());
            assert!(bench.wires.open_ports().is_empty());
        }
    }
}

#[test]
fn a_sparse_log_may_be_longer_than_there_is_room_where_nobody_checks() {
    for (checks, fits) in [("true", false), ("false", true)] {
        let storage = MemoryStorage::with_capacity(FIXED + 1000);
        let mut bench = Bench::in_storage(storage, &[("aeron.perform.storage.checks", checks)]);
        let client = bench.client();
        let added = bench.add_publication(client, "aeron:ipc?sparse=true", 10);
        assert_eq!(added.is_ok(), fits, "{added:?}");
    }
}

#[test]
fn little_room_is_a_warning() {
    let storage = MemoryStorage::with_capacity(FIXED + 3 * LOG);
    let mut bench = Bench::in_storage(
        storage,
        &[("aeron.low.file.store.warning.threshold", "400k")],
    );
    let client = bench.client();
    bench.add_publication(client, "aeron:ipc", 10).unwrap();
    assert!(bench.errors().is_empty());
    bench.add_publication(client, "aeron:ipc", 11).unwrap();
    assert!(
        bench.errors()[0].0.contains("space is running low"),
        "{:?}",
        bench.errors()
    );
}

#[test]
fn no_room_for_counters_undoes_the_command() {
    let mut bench = Bench::with(&[("aeron.counters.buffer.length", "1m")]);
    let client_id = bench.client();
    let add = |bench: &mut Bench| {
        let correlation_id = bench.id();
        let answers = bench.ask(&taran_protocol::command::Command::AddCounter {
            client_id,
            correlation_id,
            counter_type_id: 1001,
            key: b"",
            label: "",
        });
        crate::bench::refusal(answers.last().unwrap(), correlation_id)
    };
    let refused = loop {
        if let Some(refused) = add(&mut bench) {
            break refused;
        }
    };
    assert_eq!(refused.code, ErrorCode::GenericError);
    let in_use = bench.counters().len();
    for channel in ["aeron:ipc", "aeron:udp?endpoint=localhost:40123"] {
        let refused = bench.add_publication(client_id, channel, 10).unwrap_err();
        assert!(
            refused.text.contains("aeron.counters.buffer.length"),
            "{}",
            refused.text
        );
    }
    bench
        .add_subscription(client_id, "aeron:udp?endpoint=localhost:40123", 10)
        .unwrap_err();
    bench.settle();
    assert_eq!(bench.counters().len(), in_use);
    assert!(bench.log_files().is_empty());
    assert!(bench.wires.open_ports().is_empty());
}
