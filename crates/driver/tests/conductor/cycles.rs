//! What one duty cycle does at most: the next one begins soon, whatever is asked for.

use std::time::Duration;

use taran_core::agent::Agent;
use taran_protocol::command::Command;
use taran_protocol::response::Response;

use crate::bench::Bench;

/// Commands of the ring, or of those that waited, in one cycle.
const COMMANDS: usize = 4;
/// Of `aeron.driver.resource.free.limit`.
const LOGS: usize = 10;

/// A cycle of the conductor: how many counters it made.
fn cycle(bench: &mut Bench) -> usize {
    let now = bench.now();
    bench.parts.conductor.do_work(now);
    let messages = bench.messages();
    messages
        .iter()
        .filter(|message| matches!(message.get(), Response::CounterReady { .. }))
        .count()
}

fn add_counters(bench: &Bench, client_id: i64, count: usize) {
    for _ in 0..count {
        bench.send(&Command::AddCounter {
            client_id,
            correlation_id: bench.id(),
            counter_type_id: 2_000,
            key: b"",
            label: "",
        });
    }
}

#[test]
fn a_cycle_takes_four_commands() {
    let mut bench = Bench::new();
    let client_id = bench.client();
    // With its first command comes the counter of the client itself.
    add_counters(&bench, client_id, 1);
    assert_eq!(cycle(&mut bench), 2);
    add_counters(&bench, client_id, 10 * COMMANDS);
    for _ in 0..10 {
        assert_eq!(cycle(&mut bench), COMMANDS);
    }
    assert_eq!(cycle(&mut bench), 0);
}

#[test]
fn a_cycle_takes_four_commands_of_those_that_waited() {
    let mut bench = Bench::new();
    let (patient, other) = (bench.client(), bench.client());
    for client_id in [patient, other] {
        add_counters(&bench, client_id, 1);
    }
    bench.send(&Command::AddPublication {
        client_id: patient,
        correlation_id: bench.id(),
        stream_id: 10,
        channel: "aeron:udp?endpoint=server:40123",
    });
    add_counters(&bench, patient, 5 * COMMANDS);
    bench.settle();
    bench.messages();
    let answer = Ok(vec!["10.0.0.7".parse().unwrap()]);
    bench.hosts.answer("server", &answer);
    add_counters(&bench, other, 5 * COMMANDS);
    let made: Vec<usize> = (0..20).map(|_| cycle(&mut bench)).collect();
    // The publication is one of them, and waits for its log once more; the commands of the ring are others.
    assert!(made.iter().all(|&made| made <= 2 * COMMANDS), "{made:?}");
    assert!(made.contains(&(2 * COMMANDS)), "{made:?}");
    assert_eq!(made.iter().sum::<usize>(), 2 * 5 * COMMANDS);
}

#[test]
fn a_cycle_frees_ten_logs() {
    let mut bench = Bench::new();
    let client_id = bench.client();
    let count = 3 * LOGS + 5;
    for stream_id in 0..count as i32 {
        bench
            .add_publication(client_id, "aeron:ipc", stream_id)
            .unwrap();
    }
    bench.kill(client_id);
    bench.send(&Command::ClientClose {
        client_id,
        correlation_id: bench.id(),
    });
    let mut there = bench.log_files().len();
    assert_eq!(there, count);
    let mut most = 0;
    for _ in 0..1_000 {
        // Two cycles.
        bench.run_for(Duration::from_millis(5));
        let left = bench.log_files().len();
        most = most.max(there - left);
        there = left;
    }
    assert_eq!((there, most), (0, 2 * LOGS));
}
