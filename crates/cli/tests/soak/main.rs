//! A day in the life of a network, in minutes: our drivers and the official one on two machines, our clients and official
//! ones, streams of every kind that come and go, and a cable that loses and repeats datagrams.
//!
//! `cargo xtask soak --minutes M` runs it; by itself the test says so and does nothing. It needs root and a JDK.
//!
//! * `machines`, from the tests between namespaces: the two machines; `weather`: what their cable does.
//! * `drivers`: what runs on them; `flows`: the streams, each a story that is told over and over.
//! * `traffic`, `responses` and `official`: how a round of a story is told by our clients, and by official ones; `ends`
//!   and `message`: who writes and reads what; `waiting`: for how long.
//! * `watch`: what must not grow, and what must not be recorded.

#![expect(clippy::unwrap_used, reason = "a test says by a panic what went wrong")]

#[allow(dead_code, reason = "shared with the tests of the command")]
#[path = "../command/process.rs"]
mod process;

#[allow(dead_code, reason = "shared with the tests between namespaces")]
#[path = "../namespaces/machines.rs"]
mod machines;

#[allow(dead_code, reason = "not all of it is wanted here")]
#[path = "../shared/own_namespaces.rs"]
mod own_namespaces;

#[allow(dead_code, reason = "shared with the interop tests")]
#[path = "../interop/program.rs"]
mod program;

mod drivers;
mod ends;
mod flows;
mod message;
mod official;
mod responses;
mod tally;
mod traffic;
mod waiting;
mod watch;
mod weather;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use drivers::Drivers;
use flows::Flow;
use tally::Tally;
use watch::Watch;

/// Set by `cargo xtask soak`.
const SECONDS: &str = "TARAN_SOAK_SECONDS";

/// A driver may need some seconds to forget clients that are gone; one that needs so long never will.
const AFTERMATH: Duration = Duration::from_secs(90);

#[test]
fn soak() {
    let Some(seconds) = std::env::var(SECONDS).ok() else {
        eprintln!("SKIPPED soak: it is run by cargo xtask soak --minutes M");
        return;
    };
    let time = Duration::from_secs(seconds.parse().unwrap());
    machines::in_own_world("soak", || run(time));
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
    let weather = [
        weather::begin(&here, ["10.9.1.2", "fd09::2"]),
        weather::begin(&there, ["10.9.1.1", "fd09::1"]),
    ];
    println!("soak: {} seconds; the cable {}", time.as_secs(), weather[0]);
    if !is_ipv6_there {
        println!("soak: LEFT OUT: there is no IPv6 here, nor are its flows");
    }
    let drivers = Drivers::start(&here, &there);
    let mut watch = Watch::begin(&drivers, time);
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
        if watch.is_due(started.elapsed()) {
            watch.look(&drivers, started.elapsed());
            println!(
                "{}",
                watch.report(started.elapsed(), &tally, [&here, &there])
            );
        }
    }
    for flow in flows {
        flow.join().expect("what a flow says is in the tally");
    }
    watch.look(&drivers, started.elapsed());
    println!(
        "{}",
        watch.report(started.elapsed(), &tally, [&here, &there])
    );
    let gone = Instant::now();
    while !watch.is_over(&drivers) && gone.elapsed() < AFTERMATH {
        thread::sleep(Duration::from_millis(100));
    }
    println!(
        "soak: {} s after the last client has gone",
        gone.elapsed().as_secs()
    );
    let mut complaints = tally.complaints();
    complaints.extend(tally.starvation());
    complaints.extend(tally.idle(&names));
    complaints.extend(tally.spared(&losing));
    complaints.extend(watch.end(&drivers));
    complaints.extend(weather::calm([&here, &there]));
    complaints.extend(drivers.stop());
    let verdict = if complaints.is_empty() {
        "PASSED"
    } else {
        "FAILED"
    };
    println!(
        "soak: {verdict} after {} s: {tally}",
        started.elapsed().as_secs()
    );
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Gives a machine's end of the cable, which lies, an address of IPv6. Whether this kernel has such.
fn takes_ipv6(machine: &machines::Machine, address: &str) -> bool {
    // Nobody else has it: the kernel need not ask around before it can be used.
    let add = ["-6", "addr", "add", address, "dev", "path", "nodad"];
    let output = machine.command("ip").args(add).output();
    output.is_ok_and(|output| output.status.success())
}
