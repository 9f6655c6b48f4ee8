// SPDX-License-Identifier: Apache-2.0
//! Limits of the work of one duty cycle, so that the next one starts soon regardless of the load.

use std::time::Duration;

use taran_protocol::command::Command;
use taran_protocol::response::Response;

use crate::fixture::DriverFixture;

/// Largest number of commands, from the ring or deferred, in one cycle.
const COMMANDS: usize = 4;
/// Default of `aeron.driver.resource.free.limit`.
const LOGS: usize = 10;

/// Runs one cycle of the conductor and returns the number of created counters.
fn cycle(driver: &mut DriverFixture) -> usize {
    let now = driver.now();
    driver.parts.conductor.do_work(now);
    let messages = driver.messages();
    messages
        .iter()
        .filter(|message| matches!(message.get(), Response::CounterReady { .. }))
        .count()
}

fn add_counters(driver: &DriverFixture, client_id: i64, count: usize) {
    for _ in 0..count {
        driver.send(&Command::AddCounter {
            client_id,
            correlation_id: driver.id(),
            counter_type_id: 2_000,
            key: b"",
            label: "",
        });
    }
}

#[test]
fn cycle_executes_at_most_four_commands() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    // The first command also creates the heartbeat counter of the client.
    add_counters(&driver, client_id, 1);
    assert_eq!(cycle(&mut driver), 2);
    add_counters(&driver, client_id, 10 * COMMANDS);
    for _ in 0..10 {
        assert_eq!(cycle(&mut driver), COMMANDS);
    }
    assert_eq!(cycle(&mut driver), 0);
}

#[test]
fn cycle_executes_at_most_four_deferred_commands() {
    let mut driver = DriverFixture::new();
    let (patient, other) = (driver.client(), driver.client());
    for client_id in [patient, other] {
        add_counters(&driver, client_id, 1);
    }
    driver.send(&Command::AddPublication {
        client_id: patient,
        correlation_id: driver.id(),
        stream_id: 10,
        channel: "aeron:udp?endpoint=server:40123",
    });
    add_counters(&driver, patient, 5 * COMMANDS);
    driver.settle();
    driver.messages();
    let answer = Ok(vec!["10.0.0.7".parse().unwrap()]);
    driver.hosts.answer("server", &answer);
    add_counters(&driver, other, 5 * COMMANDS);
    let made: Vec<usize> = (0..20).map(|_| cycle(&mut driver)).collect();
    // One of them is the publication, which is deferred again for its log; commands of the ring are counted separately.
    assert!(made.iter().all(|&made| made <= 2 * COMMANDS), "{made:?}");
    assert!(made.contains(&(2 * COMMANDS)), "{made:?}");
    assert_eq!(made.iter().sum::<usize>(), 2 * 5 * COMMANDS);
}

#[test]
fn cycle_frees_at_most_ten_logs() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    let count = 3 * LOGS + 5;
    for stream_id in 0..count as i32 {
        driver
            .add_publication(client_id, "aeron:ipc", stream_id)
            .unwrap();
    }
    driver.kill(client_id);
    driver.send(&Command::ClientClose {
        client_id,
        correlation_id: driver.id(),
    });
    let mut there = driver.log_files().len();
    assert_eq!(there, count);
    let mut most = 0;
    for _ in 0..1_000 {
        // Two cycles.
        driver.run_for(Duration::from_millis(5));
        let left = driver.log_files().len();
        most = most.max(there - left);
        there = left;
    }
    assert_eq!((there, most), (0, 2 * LOGS));
}
