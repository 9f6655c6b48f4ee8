//! Clients that live, say goodbye, or die (docs/spec/shared-memory.md §10.2).

use std::time::Duration;

use taran_core::ring::many_to_one::Producer;
use taran_protocol::command::Command;
use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::response::Response;

use crate::bench::Bench;

#[test]
fn the_driver_gives_signs_of_life_and_takes_leave() {
    use taran_core::agent::Agent;

    let mut bench = Bench::new();
    let first = bench.commands.consumer_heartbeat_ms();
    assert_eq!(first, bench.now().epoch_millis);
    bench.run_for(Duration::from_secs(3));
    assert!(bench.commands.consumer_heartbeat_ms() >= first + 2000);
    bench.parts.conductor.on_close();
    assert_eq!(bench.commands.consumer_heartbeat_ms(), -1);
}

#[test]
fn a_client_that_says_goodbye_goes_without_a_timeout() {
    let mut bench = Bench::new();
    let client_id = bench.client();
    bench.add_publication(client_id, "aeron:ipc", 10).unwrap();
    bench.add_subscription(client_id, "aeron:ipc", 10).unwrap();
    bench.ask(&Command::ClientClose {
        client_id,
        correlation_id: -1,
    });
    bench.run_for(Duration::from_secs(6));
    let messages = bench.messages();
    assert!(
        !messages
            .iter()
            .any(|m| matches!(m.get(), Response::ClientTimeout { .. }))
    );
    assert!(messages.iter().any(
        |m| matches!(m.get(), Response::UnavailableCounter { registration_id, .. } if registration_id == client_id)
    ));
    assert_eq!(bench.system(SystemCounter::ClientTimeouts), 0);
    assert!(bench.counters().is_empty(), "{:?}", bench.labels());
    assert!(bench.log_files().is_empty());
}

#[test]
fn a_client_that_dies_is_noticed_and_leaves_nothing() {
    let mut bench = Bench::new();
    let (dying, living) = (bench.client(), bench.client());
    for channel in ["aeron:ipc", "aeron:udp?endpoint=localhost:40123"] {
        bench.add_publication(dying, channel, 10).unwrap();
        bench.add_subscription(dying, channel, 10).unwrap();
    }
    let counter = bench.id();
    bench.ask(&Command::AddCounter {
        client_id: dying,
        correlation_id: counter,
        counter_type_id: 1001,
        key: b"",
        label: "c",
    });
    bench.add_subscription(living, "aeron:ipc", 99).unwrap();
    bench.kill(dying);
    bench.run_for(Duration::from_secs(9));
    assert_eq!(bench.system(SystemCounter::ClientTimeouts), 0);
    bench.messages();
    // Two timer intervals after the timeout at the latest.
    bench.run_for(Duration::from_secs(3));
    assert_eq!(bench.system(SystemCounter::ClientTimeouts), 1);
    assert!(!bench.labels().values().any(|label| label == "c"));
    // Publications linger, and then the images of them.
    bench.run_for(Duration::from_secs(37));
    let messages = bench.messages();
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
    let left: Vec<i32> = bench.counters().iter().map(|meta| meta.type_id).collect();
    assert_eq!(left, [type_id::CLIENT_HEARTBEAT], "{:?}", bench.labels());
    assert!(bench.log_files().is_empty());
    assert!(bench.wires.open_ports().is_empty());
    // cnc.dat and the loss report.
    assert_eq!(
        bench.system(SystemCounter::BytesCurrentlyMapped),
        48_238_592 + 1_048_576
    );
}

#[test]
fn a_keepalive_command_is_a_sign_of_life() {
    let mut bench = Bench::new();
    let client_id = bench.client();
    bench.add_subscription(client_id, "aeron:ipc", 10).unwrap();
    bench.kill(client_id);
    for _ in 0..3 {
        bench.run_for(Duration::from_secs(9));
        bench.ask(&Command::ClientKeepalive {
            client_id,
            correlation_id: 0,
        });
    }
    assert_eq!(bench.system(SystemCounter::ClientTimeouts), 0);
    bench.run_for(Duration::from_secs(13));
    assert_eq!(bench.system(SystemCounter::ClientTimeouts), 1);
}

/// Sets the clock while a client is silent for less than its timeout, and for more.
#[test]
fn a_clock_that_is_set_kills_no_client_and_keeps_none() {
    let hour = 3_600_000;
    for step_ms in [hour, -hour] {
        let mut bench = Bench::new();
        let (silent, living) = (bench.client(), bench.client());
        for client_id in [silent, living] {
            bench.add_publication(client_id, "aeron:ipc", 10).unwrap();
        }
        bench.kill(silent);
        bench.run_for(Duration::from_secs(1));
        bench.set_clock_by(step_ms);
        bench.run_for(Duration::from_secs(8));
        assert_eq!(bench.system(SystemCounter::ClientTimeouts), 0);
        bench.run_for(Duration::from_secs(5));
        assert_eq!(bench.system(SystemCounter::ClientTimeouts), 1);
        bench.run_for(Duration::from_secs(60));
        assert_eq!(bench.system(SystemCounter::ClientTimeouts), 1);
    }
}

#[test]
fn freed_counter_ids_rest_before_they_are_used_again() {
    let mut bench = Bench::new();
    let client_id = bench.client();
    bench.add_subscription(client_id, "aeron:ipc", 10).unwrap();
    let add = |bench: &mut Bench| {
        let correlation_id = bench.id();
        let answers = bench.ask(&Command::AddCounter {
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
    let (registration_id, first) = add(&mut bench);
    bench.ask(&Command::RemoveCounter {
        client_id,
        correlation_id: bench.id(),
        registration_id,
    });
    let (_, second) = add(&mut bench);
    assert_ne!(first, second);
    bench.run_for(Duration::from_secs(2));
    let (_, third) = add(&mut bench);
    assert_eq!(first, third);
}

#[test]
fn a_client_that_dies_within_a_command_does_not_stop_the_others() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench.add_subscription(client, "aeron:ipc", 10).unwrap();
    let claimed = {
        let producer = Producer::open(&bench.cnc.to_driver).unwrap();
        std::mem::forget(producer.try_claim(1, 64).unwrap());
        bench.id()
    };
    bench.send(&Command::AddSubscription {
        client_id: client,
        correlation_id: claimed,
        stream_id: 11,
        channel: "aeron:ipc",
    });
    bench.run_for(Duration::from_secs(5));
    assert_eq!(bench.system(SystemCounter::UnblockedCommands), 0);
    bench.run_for(Duration::from_secs(10));
    assert_eq!(bench.system(SystemCounter::UnblockedCommands), 1);
    assert!(bench.messages().iter().any(
        |m| matches!(m.get(), Response::SubscriptionReady { correlation_id, .. } if correlation_id == claimed)
    ));
}

/// The sender takes one command in a turn, so most of these wait for room on the way to it.
#[test]
fn a_client_that_leaves_with_all_it_has_leaves_nothing_behind() {
    let mut bench = Bench::with(&[
        ("aeron.publication.linger.timeout", "1ms"),
        ("aeron.counters.free.to.reuse.timeout", "0"),
    ]);
    let client_id = bench.client();
    let channel = "aeron:udp?endpoint=localhost:40123";
    for stream_id in 0..400 {
        bench
            .add_publication(client_id, channel, stream_id)
            .unwrap();
    }
    assert_eq!(bench.log_files().len(), 400);
    bench.kill(client_id);
    bench.send(&Command::ClientClose {
        client_id,
        correlation_id: bench.id(),
    });
    bench.run_for(Duration::from_secs(10));
    assert!(
        bench.system(SystemCounter::SenderProxyFails) > 0,
        "nothing waited"
    );
    assert_eq!(bench.log_files().len(), 0);
    assert!(bench.counters().is_empty(), "{:?}", bench.labels());
    assert!(bench.wires.open_ports().is_empty());
}
