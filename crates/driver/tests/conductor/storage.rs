// SPDX-License-Identifier: Apache-2.0
//! Log files: paths, metadata and insufficient space (docs/spec/shared-memory.md §7.1, §7.7).

use taran_core::memory::MemoryStorage;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::log::LogSpec;

use crate::fixture::DriverFixture;

/// Bytes of `cnc.dat` and the loss report.
const FIXED: u64 = 48_238_592 + 1_048_576;
/// Bytes of a log with the shortest terms.
const LOG: u64 = 200_704;

#[test]
fn log_metadata_describes_the_publication() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let channel = "aeron:ipc?mtu=2048|term-length=128k|init-term-id=7|term-id=9|term-offset=64|session-id=5|tags=1,2|linger=1s|sparse=false";
    let ready = driver.add_exclusive(client, channel, 33).unwrap();
    assert_eq!(
        ready.log,
        format!("/aeron/publications/{}.logbuffer", ready.registration_id)
    );
    let log = driver.log(&ready.log);
    let start = 2 * 128 * 1024 + 64;
    assert_eq!(log.producer_position(), start);
    assert_eq!(driver.value(ready.limit_counter_id), start);
    let region = taran_core::memory::Storage::open(&driver.storage, ready.log.as_ref()).unwrap();
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
fn insufficient_space_is_reported_with_both_sizes() {
    for checks in ["true", "false"] {
        let storage = MemoryStorage::with_capacity(FIXED + LOG + 1000);
        let mut driver =
            DriverFixture::in_storage(storage, &[("aeron.perform.storage.checks", checks)]);
        let client = driver.client();
        driver
            .add_publication(client, "aeron:ipc?sparse=false", 10)
            .unwrap();
        let counters = driver.counters().len();
        for channel in [
            "aeron:ipc?sparse=false",
            "aeron:udp?endpoint=localhost:40123|sparse=false",
        ] {
            let refused = driver.add_publication(client, channel, 11).unwrap_err();
            assert_eq!(refused.code, ErrorCode::StorageSpace);
            assert!(
                refused.text.contains("needed=200704 available=1000"),
                "{}",
                refused.text
            );
            assert_eq!(driver.log_files().len(), 1);
            driver.settle();
            assert_eq!(driver.counters().len(), counters, "{:?}", driver.labels());
            assert!(driver.network.open_ports().is_empty());
        }
    }
}

#[test]
fn sparse_log_without_check_needs_space_for_its_first_term() {
    // With terms of 4 MiB.
    let first = (4 << 20) + 64 * 1024 + 4_096;
    for (checks, space, fits) in [
        ("true", first, false),
        ("false", first, true),
        ("false", first - 1, false),
        ("true", 3 * (4 << 20) + 4_096, true),
    ] {
        let storage = MemoryStorage::with_capacity(FIXED + space);
        let mut driver =
            DriverFixture::in_storage(storage, &[("aeron.perform.storage.checks", checks)]);
        let client = driver.client();
        let added = driver.add_publication(client, "aeron:ipc?term-length=4m|sparse=true", 10);
        assert_eq!(added.is_ok(), fits, "{added:?}");
        if let Err(refused) = added {
            assert_eq!(refused.code, ErrorCode::StorageSpace);
            assert_eq!(driver.log_files().len(), 0);
        }
    }
}

#[test]
fn low_space_is_a_warning() {
    let storage = MemoryStorage::with_capacity(FIXED + 3 * LOG);
    let mut driver = DriverFixture::in_storage(
        storage,
        &[("aeron.low.file.store.warning.threshold", "400k")],
    );
    let client = driver.client();
    driver.add_publication(client, "aeron:ipc", 10).unwrap();
    assert!(driver.errors().is_empty());
    driver.add_publication(client, "aeron:ipc", 11).unwrap();
    assert!(
        driver.errors()[0].0.contains("space is running low"),
        "{:?}",
        driver.errors()
    );
}

#[test]
fn full_counters_buffer_undoes_the_command() {
    let mut driver = DriverFixture::with(&[("aeron.counters.buffer.length", "1m")]);
    let client_id = driver.client();
    let add = |driver: &mut DriverFixture| {
        let correlation_id = driver.id();
        let answers = driver.ask(&taran_protocol::command::Command::AddCounter {
            client_id,
            correlation_id,
            counter_type_id: 1001,
            key: b"",
            label: "",
        });
        crate::fixture::error_response(answers.last().unwrap(), correlation_id)
    };
    let refused = loop {
        if let Some(refused) = add(&mut driver) {
            break refused;
        }
    };
    assert_eq!(refused.code, ErrorCode::GenericError);
    let in_use = driver.counters().len();
    for channel in ["aeron:ipc", "aeron:udp?endpoint=localhost:40123"] {
        let refused = driver.add_publication(client_id, channel, 10).unwrap_err();
        assert!(
            refused.text.contains("aeron.counters.buffer.length"),
            "{}",
            refused.text
        );
    }
    driver
        .add_subscription(client_id, "aeron:udp?endpoint=localhost:40123", 10)
        .unwrap_err();
    driver.settle();
    assert_eq!(driver.counters().len(), in_use);
    assert!(driver.log_files().is_empty());
    assert!(driver.network.open_ports().is_empty());
}
