// SPDX-License-Identifier: Apache-2.0
//! Soak test: Taran drivers and an official one on two machines, Taran and official clients, streams of every kind that
//! start and end repeatedly, and a link that loses and duplicates datagrams.
//!
//! `cargo xtask soak --minutes M` runs it; otherwise the test is skipped with a message. It requires root and a JDK.
//!
//! * `machines`, shared with the namespace tests: the two machines; `link_faults`: faults of their link.
//! * `drivers`: the drivers on them; `flows`: the streams, each run in repeated rounds.
//! * `traffic`, `responses` and `official`: a round with Taran clients, with responses, and with official clients;
//!   `endpoints` and `message`: publishing and receiving sides and their messages; `waiting`: time limits.
//! * `resource_monitor`: limits on resources and recorded errors.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

#[allow(dead_code, reason = "shared with the tests of the command")]
#[path = "../command/process.rs"]
mod process;

#[allow(dead_code, reason = "shared with the tests between namespaces")]
#[path = "../namespaces/machines.rs"]
mod machines;

#[allow(dead_code, reason = "not all of it is used here")]
#[path = "../shared/own_namespaces.rs"]
mod own_namespaces;

#[allow(dead_code, reason = "shared with the interop tests")]
#[path = "../interop/program.rs"]
mod program;

mod drivers;
mod endpoints;
mod flows;
mod link_faults;
mod message;
mod official;
mod resource_monitor;
mod responses;
mod tally;
mod traffic;
mod waiting;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use drivers::Drivers;
use flows::Flow;
use resource_monitor::ResourceMonitor;
use tally::Tally;

/// Duration of the test in seconds, set by `cargo xtask soak`.
const SECONDS: &str = "TARAN_SOAK_SECONDS";

/// Time limit for the drivers to release the resources of ended clients.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(90);

#[test]
fn soak() {
    let Some(seconds) = std::env::var(SECONDS).ok() else {
        eprintln!("SKIPPED soak: it is run by cargo xtask soak --minutes M");
        return;
    };
    let time = Duration::from_secs(seconds.parse().unwrap());
    machines::in_own_namespaces("soak", || run(time));
}

fn run(time: Duration) {
    let started = Instant::now();
    let (here, there) = (
        machines::Machine::new("here"),
        machines::Machine::new("there"),
    );
    here.join("10.9.1.1/24", &there, "10.9.1.2/24", "path");
    let is_ipv6_there = [(&here, "fd09::1/64"), (&there, "fd09::2/64")]
        .into_iter()
        .all(|(machine, address)| takes_ipv6(machine, address));
    let faults = [
        link_faults::apply(&here, ["10.9.1.2", "fd09::2"]),
        link_faults::apply(&there, ["10.9.1.1", "fd09::1"]),
    ];
    println!("soak: {} seconds; the cable {}", time.as_secs(), faults[0]);
    if !is_ipv6_there {
        println!("soak: LEFT OUT: there is no IPv6 here, nor are its flows");
    }
    let drivers = Drivers::start(&here, &there);
    let mut monitor = ResourceMonitor::begin(&drivers, time);
    let tally = Arc::new(Tally::default());
    let until = started + time;
    let starvation = drivers.starvation();
    let flows = flows::all(&drivers, is_ipv6_there);
    let names: Vec<&str> = flows.iter().map(Flow::name).collect();
    let losing = flows.iter().filter(|flow| flow.may_lose());
    let losing: Vec<&str> = losing.map(Flow::name).collect();
    let flows: Vec<_> = flows
        .into_iter()
        .map(|flow| {
            let (tally, starvation) = (Arc::clone(&tally), starvation.clone());
            thread::spawn(move || flow.run(until, &tally, &starvation))
        })
        .collect();
    while Instant::now() < until && !tally.has_failed() {
        thread::sleep(Duration::from_secs(1).min(until.saturating_duration_since(Instant::now())));
        if monitor.is_due(started.elapsed()) {
            monitor.sample(&drivers, started.elapsed());
            println!(
                "{}",
                monitor.report(started.elapsed(), &tally, [&here, &there])
            );
        }
    }
    for flow in flows {
        flow.join().expect("a flow records its errors in the tally");
    }
    monitor.sample(&drivers, started.elapsed());
    println!(
        "{}",
        monitor.report(started.elapsed(), &tally, [&here, &there])
    );
    let gone = Instant::now();
    while !monitor.is_over(&drivers) && gone.elapsed() < RELEASE_TIMEOUT {
        thread::sleep(Duration::from_millis(100));
    }
    println!(
        "soak: {} s after the last client has gone",
        gone.elapsed().as_secs()
    );
    let mut errors = tally.errors();
    errors.extend(tally.starvation());
    errors.extend(tally.flows_without_rounds(&names));
    errors.extend(tally.flows_without_loss(&losing));
    errors.extend(monitor.end(&drivers));
    errors.extend(link_faults::check_losses([&here, &there]));
    errors.extend(drivers.stop());
    let verdict = if errors.is_empty() {
        "PASSED"
    } else {
        "FAILED"
    };
    println!(
        "soak: {verdict} after {} s: {tally}",
        started.elapsed().as_secs()
    );
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

/// Adds an IPv6 address to a machine's end of the link. Returns true if the kernel supports IPv6.
fn takes_ipv6(machine: &machines::Machine, address: &str) -> bool {
    // No duplicate address detection: the address is usable at once.
    let add = ["-6", "addr", "add", address, "dev", "path", "nodad"];
    let output = machine.command("ip").args(add).output();
    output.is_ok_and(|output| output.status.success())
}
