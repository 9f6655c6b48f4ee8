// SPDX-License-Identifier: Apache-2.0
//! The agents of a driver: threads, cores, idle strategies and cycle times.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::process::{Directory, Driver, run, taran};
use crate::traffic::await_true;

/// Returns the value and the label of a system counter.
#[track_caller]
fn counter(directory: &Directory, id: i64) -> (i64, String) {
    let outcome = run(taran(&["stat", "--json", "-w", "false"]).env("AERON_DIR", directory.path()));
    outcome.assert_code(0).assert_silent();
    let stat: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let counter = stat["counters"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|counter| counter["id"] == id)
        .expect("the counter is there");
    (
        counter["value"].as_i64().expect("a number"),
        counter["label"].as_str().expect("a text").to_owned(),
    )
}

#[test]
fn long_duty_cycles_are_counted_for_each_agent() {
    // Every duty cycle takes more than a nanosecond, and none takes an hour.
    for (threshold, stalls) in [("1", true), ("3600s", false)] {
        for mode in ["DEDICATED", "SHARED"] {
            let directory = Directory::new("stalls");
            let driver = Driver::start(
                directory.path(),
                &[
                    &format!("aeron.threading.mode={mode}"),
                    &format!("aeron.driver.conductor.cycle.threshold={threshold}"),
                    &format!("aeron.driver.sender.cycle.threshold={threshold}"),
                    &format!("aeron.driver.receiver.cycle.threshold={threshold}"),
                ],
            );
            for (agent, longest, exceeded) in [
                ("Conductor", 26, 27),
                ("Sender", 28, 29),
                ("Receiver", 30, 31),
            ] {
                await_true("a duty cycle", || counter(&directory, longest).0 > 0);
                let (_, label) = counter(&directory, longest);
                assert_eq!(
                    label,
                    format!("{agent} max cycle time doing its work in ns: {mode}")
                );
                if stalls {
                    await_true("a stall", || counter(&directory, exceeded).0 > 0);
                }
                let (count, label) = counter(&directory, exceeded);
                assert_eq!(count > 0, stalls, "{agent} {mode}");
                let shown = if stalls { "1ns" } else { "3600s" };
                assert_eq!(
                    label,
                    format!(
                        "{agent} work cycle exceeded threshold count: threshold={shown} {mode}"
                    )
                );
            }
            driver.stop("TERM").assert_code(15).assert_silent();
        }
    }
}

/// Returns the names of a process's threads with the cores that each may use.
fn threads(pid: u32) -> BTreeMap<String, String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs");
    tasks
        .flatten()
        .filter_map(|task| {
            let status = fs::read_to_string(task.path().join("status")).ok()?;
            let field = |name: &str| {
                let line = status.lines().find(|line| line.starts_with(name))?;
                Some(line.split_once(':')?.1.trim().to_owned())
            };
            Some((field("Name")?, field("Cpus_allowed_list")?))
        })
        .collect()
}

/// Returns a core that this process may use.
fn allowed_core() -> String {
    let own = threads(std::process::id());
    let cores = own.values().next().expect("a thread").clone();
    cores.split(['-', ',']).next().expect("a number").to_owned()
}

#[test]
fn agents_run_on_named_threads_with_their_affinity() {
    let core = allowed_core();
    for (mode, names) in [
        ("DEDICATED", vec!["conductor", "sender", "receiver"]),
        // Linux truncates thread names to fifteen bytes.
        ("SHARED_NETWORK", vec!["conductor", "[sender, receiv"]),
        ("SHARED", vec!["[conductor, sen"]),
    ] {
        let directory = Directory::new("threads");
        let driver = Driver::start(
            directory.path(),
            &[
                &format!("aeron.threading.mode={mode}"),
                &format!("aeron.conductor.cpu.affinity={core}"),
                &format!("aeron.sender.cpu.affinity={core}"),
                &format!("aeron.receiver.cpu.affinity={core}"),
            ],
        );
        for name in names {
            await_true("a bound thread", || {
                threads(driver.pid()).get(name) == Some(&core)
            });
        }
        driver.stop("TERM").assert_code(15).assert_silent();
    }
}

#[test]
fn invalid_cpu_affinity_is_recorded_in_the_error_log() {
    let directory = Directory::new("no-core");
    let driver = Driver::start(directory.path(), &["aeron.receiver.cpu.affinity=1000"]);
    await_true("the error", || {
        let errors = run(taran(&["errors"]).env("AERON_DIR", directory.path()));
        errors.stdout.contains("cannot run on CPU 1000")
    });
    driver.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn every_idle_strategy_delivers_messages() {
    for (strategy, arguments) in [
        ("noop", ""),
        ("spin", ""),
        ("yield", ""),
        ("sleep-ns", "1us"),
        ("sleep-ms", ""),
        ("backoff", "10-20-1us-1ms"),
        ("adaptive", ""),
        ("controllable", ""),
        ("aeron_idle_strategy_busy_spinning", ""),
        ("org.agrona.concurrent.SleepingMillisIdleStrategy", ""),
    ] {
        let directory = Directory::new("idle");
        let mut command = taran(&["driver", "-Daeron.threading.mode=SHARED_NETWORK"]);
        command.env("AERON_DIR", directory.path());
        for thread in ["CONDUCTOR", "SHAREDNETWORK"] {
            command
                .env(format!("AERON_{thread}_IDLE_STRATEGY"), strategy)
                .env(format!("AERON_{thread}_IDLE_STRATEGY_INIT_ARGS"), arguments);
        }
        let driver = Driver::start_with(&mut command, directory.path());
        drop(crate::traffic::Traffic::over_udp(directory.path(), 1001, 3));
        driver.stop("TERM").assert_code(15).assert_silent();
    }
}
