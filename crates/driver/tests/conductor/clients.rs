// SPDX-License-Identifier: Apache-2.0
//! Client liveness, orderly close and death (docs/spec/shared-memory.md §10.2).

use std::time::Duration;

use taran_core::ring::many_to_one::Producer;
use taran_protocol::command::Command;
use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::response::Response;

use crate::fixture::DriverFixture;

#[test]
fn driver_updates_heartbeat_and_resets_it_on_close() {
    use taran_core::agent::Agent;

    let mut driver = DriverFixture::new();
    let first = driver.commands.consumer_heartbeat_ms();
    assert_eq!(first, driver.now().epoch_millis);
    driver.run_for(Duration::from_secs(3));
    assert!(driver.commands.consumer_heartbeat_ms() >= first + 2000);
    driver.parts.conductor.on_close();
    assert_eq!(driver.commands.consumer_heartbeat_ms(), -1);
}

#[test]
fn client_close_frees_resources_without_timeout() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    driver.add_publication(client_id, "aeron:ipc", 10).unwrap();
    driver.add_subscription(client_id, "aeron:ipc", 10).unwrap();
    driver.ask(&Command::ClientClose {
        client_id,
        correlation_id: -1,
    });
    driver.run_for(Duration::from_secs(6));
    let messages = driver.messages();
    assert!(
        !messages
            .iter()
            .any(|m| matches!(m.get(), Response::ClientTimeout { .. }))
    );
    assert!(messages.iter().any(
        |m| matches!(m.get(), Response::UnavailableCounter { registration_id, .. } if registration_id == client_id)
    ));
    assert_eq!(driver.system(SystemCounter::ClientTimeouts), 0);
    assert!(driver.counters().is_empty(), "{:?}", driver.labels());
    assert!(driver.log_files().is_empty());
}

#[test]
fn dead_client_times_out_and_leaves_no_resources() {
    let mut driver = DriverFixture::new();
    let (dying, living) = (driver.client(), driver.client());
    for channel in ["aeron:ipc", "aeron:udp?endpoint=localhost:40123"] {
        driver.add_publication(dying, channel, 10).unwrap();
        driver.add_subscription(dying, channel, 10).unwrap();
    }
    let counter = driver.id();
    driver.ask(&Command::AddCounter {
        client_id: dying,
        correlation_id: counter,
        counter_type_id: 1001,
        key: b"",
        label: "c",
    });
    driver.add_subscription(living, "aeron:ipc", 99).unwrap();
    driver.kill(dying);
    driver.run_for(Duration::from_secs(9));
    assert_eq!(driver.system(SystemCounter::ClientTimeouts), 0);
    driver.messages();
    // Two timer intervals after the timeout at the latest.
    driver.run_for(Duration::from_secs(3));
    assert_eq!(driver.system(SystemCounter::ClientTimeouts), 1);
    assert!(!driver.labels().values().any(|label| label == "c"));
    // Publications linger, and then their images do.
    driver.run_for(Duration::from_secs(37));
    let messages = driver.messages();
    let position = |wanted: fn(&Response<'_>, i64, i64) -> bool| {
        messages
            .iter()
            .position(|m| wanted(&m.get(), dying, counter))
            .unwrap()
    };
    let timeout = position(
        |r, dying, _| matches!(r, Response::ClientTimeout { client_id } if *client_id == dying),
    );
    let heartbeat = position(
        |r, dying, _| matches!(r, Response::UnavailableCounter { registration_id, .. } if *registration_id == dying),
    );
    let own = position(
        |r, _, counter| matches!(r, Response::UnavailableCounter { registration_id, .. } if *registration_id == counter),
    );
    assert!(timeout < heartbeat && heartbeat < own);
    let left: Vec<i32> = driver.counters().iter().map(|meta| meta.type_id).collect();
    assert_eq!(left, [type_id::CLIENT_HEARTBEAT], "{:?}", driver.labels());
    assert!(driver.log_files().is_empty());
    assert!(driver.network.open_ports().is_empty());
    // cnc.dat and the loss report.
    assert_eq!(
        driver.system(SystemCounter::BytesCurrentlyMapped),
        48_238_592 + 1_048_576
    );
}

#[test]
fn keepalive_command_keeps_client_alive() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    driver.add_subscription(client_id, "aeron:ipc", 10).unwrap();
    driver.kill(client_id);
    for _ in 0..3 {
        driver.run_for(Duration::from_secs(9));
        driver.ask(&Command::ClientKeepalive {
            client_id,
            correlation_id: 0,
        });
    }
    assert_eq!(driver.system(SystemCounter::ClientTimeouts), 0);
    driver.run_for(Duration::from_secs(13));
    assert_eq!(driver.system(SystemCounter::ClientTimeouts), 1);
}

/// Sets the wall clock while a client is silent for less and for more than its timeout.
#[test]
fn client_timeout_ignores_changes_of_the_wall_clock() {
    let hour = 3_600_000;
    for step_ms in [hour, -hour] {
        let mut driver = DriverFixture::new();
        let (silent, living) = (driver.client(), driver.client());
        for client_id in [silent, living] {
            driver.add_publication(client_id, "aeron:ipc", 10).unwrap();
        }
        driver.kill(silent);
        driver.run_for(Duration::from_secs(1));
        driver.set_clock_by(step_ms);
        driver.run_for(Duration::from_secs(8));
        assert_eq!(driver.system(SystemCounter::ClientTimeouts), 0);
        driver.run_for(Duration::from_secs(5));
        assert_eq!(driver.system(SystemCounter::ClientTimeouts), 1);
        driver.run_for(Duration::from_secs(60));
        assert_eq!(driver.system(SystemCounter::ClientTimeouts), 1);
    }
}

#[test]
fn freed_counter_ids_are_reused_after_the_timeout() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    driver.add_subscription(client_id, "aeron:ipc", 10).unwrap();
    let add = |driver: &mut DriverFixture| {
        let correlation_id = driver.id();
        let answers = driver.ask(&Command::AddCounter {
            client_id,
            correlation_id,
            counter_type_id: 1001,
            key: b"",
            label: "",
        });
        let Response::CounterReady { counter_id, .. } = answers[0].get() else {
            panic!()
        };
        (correlation_id, counter_id)
    };
    let (registration_id, first) = add(&mut driver);
    driver.ask(&Command::RemoveCounter {
        client_id,
        correlation_id: driver.id(),
        registration_id,
    });
    let (_, second) = add(&mut driver);
    assert_ne!(first, second);
    driver.run_for(Duration::from_secs(2));
    let (_, third) = add(&mut driver);
    assert_eq!(first, third);
}

#[test]
fn client_death_within_a_ring_claim_does_not_block_others() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    driver.add_subscription(client, "aeron:ipc", 10).unwrap();
    let claimed = {
        let producer = Producer::open(&driver.cnc.to_driver).unwrap();
        std::mem::forget(producer.try_claim(1, 64).unwrap());
        driver.id()
    };
    driver.send(&Command::AddSubscription {
        client_id: client,
        correlation_id: claimed,
        stream_id: 11,
        channel: "aeron:ipc",
    });
    driver.run_for(Duration::from_secs(5));
    assert_eq!(driver.system(SystemCounter::UnblockedCommands), 0);
    driver.run_for(Duration::from_secs(10));
    assert_eq!(driver.system(SystemCounter::UnblockedCommands), 1);
    assert!(driver.messages().iter().any(
        |m| matches!(m.get(), Response::SubscriptionReady { correlation_id, .. } if correlation_id == claimed)
    ));
}

/// The sender executes one command per duty cycle, so most of these commands wait in the overflow buffer of its queue.
#[test]
fn client_close_with_many_resources_leaves_none() {
    let mut driver = DriverFixture::with(&[
        ("aeron.publication.linger.timeout", "1ms"),
        ("aeron.counters.free.to.reuse.timeout", "0"),
    ]);
    let client_id = driver.client();
    let channel = "aeron:udp?endpoint=localhost:40123";
    for stream_id in 0..400 {
        driver
            .add_publication(client_id, channel, stream_id)
            .unwrap();
    }
    assert_eq!(driver.log_files().len(), 400);
    driver.kill(client_id);
    driver.send(&Command::ClientClose {
        client_id,
        correlation_id: driver.id(),
    });
    driver.run_for(Duration::from_secs(10));
    assert!(
        driver.system(SystemCounter::SenderProxyFails) > 0,
        "nothing waited"
    );
    assert_eq!(driver.log_files().len(), 0);
    assert!(driver.counters().is_empty(), "{:?}", driver.labels());
    assert!(driver.network.open_ports().is_empty());
}
