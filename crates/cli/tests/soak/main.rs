//! A day in the life of a network, in minutes: our drivers and the official one on two machines, our clients and official
//! ones, streams of every kind that come and go, and a cable that loses and repeats datagrams.
//!
//! `cargo xtask soak --minutes M` runs it; by itself the test says so and does nothing. It needs root and a JDK.
//!
//! * `machines`, from the tests between namespaces: the two machines; `weather`: what their cable does.
//! * `drivers`: what runs on them; `flows`: the streams, each a story that is told over and over.
//! * `traffic` and `official`: how a round of a story is told by our clients, and by official ones.
//! * `watch`: what must not grow, and what must not be recorded.

#![expect(clippy::unwrap_used, reason = "a test says by a panic what went wrong")]

#[allow(dead_code, reason = "shared with the tests of the command")]
#[path = "../command/process.rs"]
mod process;

#[allow(dead_code, reason = "shared with the tests between namespaces")]
#[path = "../namespaces/machines.rs"]
mod machines;

#[allow(dead_code, reason = "shared with the interop tests")]
#[path = "../interop/program.rs"]
mod program;

mod drivers;
mod flows;
mod official;
mod tally;
mod traffic;
mod watch;
mod weather;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use drivers::Drivers;
use tally::Tally;
use watch::Watch;

/// Set by `cargo xtask soak`.
const SECONDS: &str = "TARAN_SOAK_SECONDS";

/// How long a driver may need to forget clients that are gone: longer than all of its timeouts.
const AFTERMATH: Duration = Duration::from_secs(30);

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
    let weather = [
        weather::begin(&here, "10.9.1.2"),
        weather::begin(&there, "10.9.1.1"),
    ];
    println!("soak: {} seconds; the cable {}", time.as_secs(), weather[0]);
    let drivers = Drivers::start(&here, &there);
    let mut watch = Watch::begin(&drivers, time);
    let tally = Arc::new(Tally::default());
    let until = started + time;
    let flows: Vec<_> = flows::all(&drivers)
        .into_iter()
        .map(|flow| {
            let tally = Arc::clone(&tally);
            thread::spawn(move || flow.run(until, &tally))
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
        // A flow that failed has said why in the tally.
        let _ = flow.join();
    }
    watch.look(&drivers, started.elapsed());
    println!(
        "{}",
        watch.report(started.elapsed(), &tally, [&here, &there])
    );
    println!(
        "soak: all clients are gone; the drivers have {} s to forget them",
        AFTERMATH.as_secs()
    );
    thread::sleep(AFTERMATH);
    let mut complaints = tally.complaints();
    complaints.extend(tally.starvation());
    complaints.extend(watch::idle_flows(&tally));
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
