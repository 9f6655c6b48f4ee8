// SPDX-License-Identifier: Apache-2.0
//! Clients are killed at random moments and at the worst ones. No other client receives a wrong byte or waits for long,
//! and the driver recovers all resources.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use taran_protocol::counter::SystemCounter;

use crate::fixture::{OPTIONS, number, streams};
use crate::observer::Observer;
use crate::own_address::own_address;
use crate::pool::{Outcome, Pool};
use crate::process::{Directory, Driver};
use crate::resources::private_memory_kib;
use crate::survivor::{SurvivorReport, exchange_on_streams, send_commands};
use crate::victim::{KillPoint, VictimSpec};

/// Number of IPC streams, and of UDP streams.
const STREAMS: usize = 8;
/// Allowance for memory that the allocator retains.
const SLACK_KIB: u64 = 4_096;

/// Kills `TARAN_KILLS` clients, `TARAN_KILLS_AT_ONCE` at a time, with the seed `TARAN_KILLS_SEED`.
#[test]
fn killed_clients_leak_nothing() {
    let kills = number("TARAN_KILLS", 48);
    let at_once = number("TARAN_KILLS_AT_ONCE", 6);
    let seed = number("TARAN_KILLS_SEED", u64::from(std::process::id()) << 32);
    println!("{kills} clients will be killed, {at_once} at once, from TARAN_KILLS_SEED={seed}");
    let started = Instant::now();
    let directory = Directory::new("kills");
    let driver = Driver::start(directory.path(), &OPTIONS);
    let observer = Observer::of(directory.path(), driver.pid());
    let spec = VictimSpec {
        directory: directory.path().to_path_buf(),
        address: own_address(),
        streams: STREAMS,
        number: 0,
        seed,
    };
    let empty = observer.resources();
    let memory = PrivateMemory::new(driver.pid(), kills);
    let (outcome, report) = with_survivors(&spec, || {
        Pool::new(spec.clone(), kills).run(at_once, |n| memory.inspect(n))
    });
    for failure in &outcome.failures {
        eprintln!("{failure}");
    }
    assert!(outcome.failures.is_empty(), "victims have failed");
    // Victims that starved in one stall of the machine, and few others. More would mean that the driver times live
    // clients out, or that the machine is too busy for this test.
    let starved_most = at_once + kills / 1_000;
    assert!(
        outcome.starved <= starved_most,
        "{} of {kills} victims timed out before they were killed",
        outcome.starved
    );
    observer.await_resources(&empty);
    memory.assert_bounded();
    assert_counts(&observer, &outcome);
    println!(
        "killed {} clients in {:.0?}: {:?}, {} of them starved",
        outcome.kills_by_point.values().sum::<u64>(),
        started.elapsed(),
        outcome.kills_by_point,
        outcome.starved
    );
    println!("witnesses: {report}");
    println!("driver: {}; {memory}", observer.resources());
    println!("counts: {}", observer.counts());
    driver.stop("TERM").assert_code(15).assert_silent();
}

/// Runs the surviving clients during `act`.
fn with_survivors(spec: &VictimSpec, act: impl FnOnce() -> Outcome) -> (Outcome, SurvivorReport) {
    let over = AtomicBool::new(false);
    let streams = streams(spec.address, spec.streams);
    thread::scope(|scope| {
        let (ready, is_ready) = channel();
        let watching = scope.spawn(|| {
            exchange_on_streams(&spec.directory, &streams, &over, move || {
                let _ = ready.send(());
            })
        });
        is_ready.recv().expect("the witness of streams lives");
        let asking = scope.spawn(|| send_commands(&spec.directory, &over));
        let outcome = act();
        over.store(true, Ordering::Relaxed);
        let report = watching.join().expect("the witness of streams lives");
        let requested = asking.join().expect("the witness of commands lives");
        let report = SurvivorReport {
            longest_command: requested.longest_command,
            commands: requested.commands,
            ..report
        };
        (outcome, report)
    })
}

/// Checks that the driver has handled the deaths that required an action, and has recorded no error.
fn assert_counts(observer: &Observer, outcome: &Outcome) {
    let killed_at = |kill_point: KillPoint| {
        outcome
            .kills_by_point
            .get(&kill_point)
            .copied()
            .unwrap_or(0)
    };
    if killed_at(KillPoint::PartialCommand) > 0 {
        assert!(observer.count(SystemCounter::UnblockedCommands) > 0);
    }
    if killed_at(KillPoint::SharedClaim) > 0 {
        assert!(observer.count(SystemCounter::UnblockedPublications) > 0);
    }
    if killed_at(KillPoint::RandomOps) > 0 {
        assert!(observer.count(SystemCounter::ClientTimeouts) > 0);
    }
    observer.for_each_error(|text| {
        // A command of a killed client may be processed after its resources are released, if it was behind a partial
        // command.
        let is_late = text.contains(") unknown ");
        assert!(is_late, "the driver has recorded an error: {text}");
    });
}

/// The driver's private memory. It may grow with the number of simultaneous clients, not with the number of killed
/// ones.
struct PrivateMemory {
    pid: u32,
    /// Number of kills after which the driver has reached its normal memory.
    warm: u64,
    warm_kib: AtomicU64,
}

impl PrivateMemory {
    fn new(pid: u32, kills: u64) -> PrivateMemory {
        PrivateMemory {
            pid,
            warm: (kills / 4).min(1_000),
            warm_kib: AtomicU64::new(0),
        }
    }

    fn inspect(&self, number: u64) {
        if number <= self.warm {
            let now = private_memory_kib(self.pid);
            self.warm_kib.fetch_max(now, Ordering::Relaxed);
        }
    }

    fn warm_kib(&self) -> u64 {
        self.warm_kib.load(Ordering::Relaxed)
    }

    fn assert_bounded(&self) {
        let (warm, now) = (self.warm_kib(), private_memory_kib(self.pid));
        assert!(
            now <= warm + SLACK_KIB,
            "the driver grew from {warm} to {now} KiB"
        );
    }
}

impl std::fmt::Display for PrivateMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (now, warm) = (private_memory_kib(self.pid), self.warm_kib());
        write!(
            f,
            "{now} KiB of private memory, {warm} at most up to kill {}",
            self.warm
        )
    }
}
