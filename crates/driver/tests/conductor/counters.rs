// SPDX-License-Identifier: Apache-2.0
//! Counters as their readers see them (docs/spec/shared-memory.md §5.6 to §5.10).

use std::collections::BTreeMap;
use std::time::Duration;

use taran_protocol::counter::{SystemCounter, type_id};

use crate::fixture::DriverFixture;

const UDP: &str = "aeron:udp?endpoint=localhost:40123";

#[test]
fn system_counters_come_first_and_in_order() {
    let driver = DriverFixture::new();
    let reader = &driver.parts.counters;
    for counter in SystemCounter::ALL {
        let meta = reader.meta(counter.id()).unwrap();
        assert_eq!(
            (meta.type_id, meta.registration_id, meta.owner_id),
            (0, i64::from(counter.id()), -1)
        );
        assert_eq!(meta.key[..4], counter.id().to_le_bytes());
    }
    assert!(reader.meta(46).is_none());
    assert_eq!(driver.system(SystemCounter::AeronVersion), 78_592);
    assert_eq!(driver.system(SystemCounter::ControlProtocolVersion), 65_536);
    let label = |counter: SystemCounter| reader.label(counter.id()).unwrap().to_string();
    assert!(
        label(SystemCounter::Errors).starts_with("Errors: version=1.51.0 commit=9773cba37e taran=")
    );
    assert_eq!(
        label(SystemCounter::ConductorMaxCycleTime),
        "Conductor max cycle time doing its work in ns: DEDICATED"
    );
}

#[test]
fn first_client_id_is_not_zero() {
    assert!(DriverFixture::new().id() >= 1);
}

#[test]
fn network_stream_has_all_counters() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let publication = driver.add_publication(client, UDP, 10).unwrap();
    let (subscription, status) = driver.add_subscription(client, UDP, 10).unwrap();
    driver.run_for(Duration::from_secs(1));
    let by_type: BTreeMap<i32, taran_core::counters::CounterMeta> = driver
        .counters()
        .into_iter()
        .map(|meta| (meta.type_id, meta))
        .collect();
    let label = |type_id: i32| by_type[&type_id].label.to_string();
    let (id, session) = (publication.registration_id, publication.session_id);
    for (type_id, name) in [
        (type_id::PUBLISHER_POSITION, "pub-pos (concurrent)"),
        (type_id::PUBLISHER_LIMIT, "pub-lmt"),
        (type_id::SENDER_POSITION, "snd-pos"),
        (type_id::SENDER_LIMIT, "snd-lmt"),
        (type_id::SENDER_BACK_PRESSURE_EVENTS, "snd-bpe"),
        (type_id::SENDER_NAKS_RECEIVED, "snd-naks-received"),
    ] {
        assert_eq!(label(type_id), format!("{name}: {id} {session} 10 {UDP}"));
        assert_eq!(
            (
                by_type[&type_id].registration_id,
                by_type[&type_id].owner_id
            ),
            (id, client)
        );
    }
    let image = by_type[&type_id::RECEIVER_POSITION].registration_id;
    for (type_id, name) in [
        (type_id::RECEIVER_HIGH_WATER_MARK, "rcv-hwm"),
        (type_id::RECEIVER_POSITION, "rcv-pos"),
        (type_id::RECEIVER_NAKS_SENT, "rcv-naks-sent"),
    ] {
        assert_eq!(
            label(type_id),
            format!("{name}: {image} {session} 10 {UDP}")
        );
        assert_eq!(
            (
                by_type[&type_id].registration_id,
                by_type[&type_id].owner_id
            ),
            (image, client)
        );
    }
    assert_eq!(
        label(type_id::SUBSCRIBER_POSITION),
        format!("sub-pos: {subscription} {session} 10 {UDP} @0")
    );
    assert_eq!(by_type[&type_id::SUBSCRIBER_POSITION].reference_id, image);
    assert_eq!(
        label(type_id::RECEIVE_CHANNEL_STATUS),
        format!("rcv-channel: {UDP} 127.0.0.1:40123")
    );
    assert_eq!(
        label(type_id::SEND_CHANNEL_STATUS),
        format!("snd-channel: {UDP} 127.0.0.1:50000")
    );
    assert_eq!(by_type[&type_id::RECEIVE_CHANNEL_STATUS].id, status);
    assert_eq!(
        by_type[&type_id::SEND_CHANNEL_STATUS].id,
        publication.status_counter_id
    );
    assert_eq!(
        (
            driver.value(status),
            driver.value(publication.status_counter_id)
        ),
        (1, 1)
    );
    let sockets: Vec<String> = driver
        .counters()
        .iter()
        .filter(|meta| meta.type_id == type_id::LOCAL_SOCKET_ADDRESS)
        .map(|meta| format!("{} = {}", meta.label, driver.value(meta.id)))
        .collect();
    let expected = [
        format!(
            "snd-local-sockaddr: {} 127.0.0.1:50000 = 1",
            publication.status_counter_id
        ),
        format!("rcv-local-sockaddr: {status} 127.0.0.1:40123 = 1"),
    ];
    assert_eq!(sockets, expected);
    let logs: i64 = driver.log_files().len() as i64 * 200_704;
    assert_eq!(
        driver.system(SystemCounter::BytesCurrentlyMapped),
        48_238_592 + 1_048_576 + logs
    );
}

#[test]
fn freed_position_counter_of_agent_ignores_reuse_option() {
    let mut driver = DriverFixture::with(&[("aeron.counters.free.to.reuse.timeout", "0")]);
    let client = driver.client();
    driver.add_publication(client, UDP, 10).unwrap();
    let spy = format!("aeron-spy:{UDP}");
    for channel in [UDP, &spy] {
        let (subscription, _) = driver.add_subscription(client, channel, 10).unwrap();
        driver.run_for(Duration::from_secs(1));
        let position = |driver: &DriverFixture| {
            let mut counters = driver.counters().into_iter();
            let found = counters.find(|meta| {
                meta.type_id == type_id::SUBSCRIBER_POSITION && meta.registration_id == subscription
            });
            found.map(|meta| meta.id)
        };
        let id = position(&driver).unwrap();
        let correlation_id = driver.id();
        driver.ask(&taran_protocol::command::Command::RemoveSubscription {
            client_id: client,
            correlation_id,
            registration_id: subscription,
        });
        assert_eq!(position(&driver), None);
        let is_taken = |driver: &mut DriverFixture| {
            for _ in 0..10 {
                let correlation_id = driver.id();
                driver.ask(&taran_protocol::command::Command::AddCounter {
                    client_id: client,
                    correlation_id,
                    counter_type_id: 1001,
                    key: b"",
                    label: "another",
                });
            }
            driver.counters().iter().any(|meta| meta.id == id)
        };
        assert!(!is_taken(&mut driver), "{channel}");
        driver.run_for(Duration::from_millis(1_005));
        assert!(is_taken(&mut driver), "{channel}");
    }
}
