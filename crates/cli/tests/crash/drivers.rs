// SPDX-License-Identifier: Apache-2.0
//! Drivers that are killed at random moments while clients use them, and restarted in the same directory.

use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, CloseReason, CommandError, Lost};

use crate::fixture::{PORT, builder, exchange_messages, number};
use crate::observer::Observer;
use crate::own_address::own_address;
use crate::process::{Directory, Driver, Process, signal, taran};

const STREAM: i32 = 78;
/// Driver timeout that a live driver meets even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum delay before a driver is killed, from its start or from the start of the load.
const STARTING: Duration = Duration::from_millis(30);
const BUSY: Duration = Duration::from_millis(200);

const OPTIONS: [&str; 2] = ["aeron.driver.timeout=5000", "aeron.timer.interval=100ms"];

/// Kills `TARAN_DRIVER_KILLS` drivers with the seed `TARAN_KILLS_SEED`, each while it adds and removes streams. Before
/// every second one, a driver is killed during startup, so that the directory may have any state. Every client learns
/// that its driver is lost and why; new clients are served by the next driver, which starts without resources.
#[test]
fn killed_driver_is_reported_and_its_successor_starts_empty() {
    let kills = number("TARAN_DRIVER_KILLS", 3);
    let seed = number("TARAN_KILLS_SEED", u64::from(std::process::id()) << 32);
    println!("{kills} drivers will be killed, from TARAN_KILLS_SEED={seed}");
    let directory = Directory::new("driver-kills");
    let channels = [
        "aeron:ipc?term-length=64k".to_owned(),
        format!(
            "aeron:udp?endpoint={}:{PORT}|term-length=64k",
            own_address()
        ),
    ];
    let mut random = fastrand::Rng::with_seed(seed);
    let mut fresh = None;
    for kill in 0..kills {
        // The next driver either deletes the directory, or finds out that its owner is dead.
        let mut options = OPTIONS.to_vec();
        if kill % 2 == 1 {
            options.push("aeron.dir.delete.on.start=true");
            kill_during_startup(directory.path(), &mut random);
        }
        let driver = Driver::start(directory.path(), &options);
        let observer = Observer::of(directory.path(), driver.pid());
        observer.await_settled();
        let resources = observer.resources();
        assert_eq!(fresh.get_or_insert_with(|| resources.clone()), &resources);
        let (close_sender, close_receiver) = channel();
        let clients: Vec<Client> = (0..3)
            .map(|_| {
                let close_sender = close_sender.clone();
                builder(directory.path())
                    .driver_timeout(TIMEOUT)
                    .on_error(|_| ())
                    .on_close(move |end| close_sender.send(end).unwrap())
                    .connect()
                    .unwrap()
            })
            .collect();
        exchange(&clients[0], &channels, random.u64(10..300));
        let seed = random.u64(..);
        let requested = thread::scope(|scope| {
            let busy = scope.spawn(|| generate_load(&clients[1], &channels, seed));
            // The time of the kill is random; the sleep waits for nothing.
            thread::sleep(BUSY.mul_f64(random.f64()));
            signal(driver.pid(), "KILL");
            busy.join().unwrap()
        });
        for _ in &clients {
            let end = close_receiver
                .recv_timeout(crate::fixture::TIMEOUT)
                .unwrap();
            assert_eq!(end, CloseReason::Lost(Lost::DriverProcessEnded));
        }
        let ended = Instant::now();
        assert_eq!(driver.wait().code, None, "killed");
        println!(
            "killed driver {kill} after {requested} requests; reaped after {:.1?}",
            ended.elapsed()
        );
    }
    let driver = Driver::start(directory.path(), &OPTIONS);
    let client = builder(directory.path()).connect().unwrap();
    exchange(&client, &channels, 100);
    drop(client);
    driver.stop("TERM").assert_code(15).assert_silent();
}

/// Exchanges messages over each channel and compares every byte. The publications stay open.
fn exchange(client: &Client, channels: &[String], messages: u64) {
    for channel in channels {
        let mut subscription = client.add_subscription(channel, STREAM).unwrap();
        let publication = client.add_publication(channel, STREAM).unwrap();
        exchange_messages(&publication, &mut subscription, messages);
        // Stays open until its client ends.
        std::mem::forget(publication);
    }
}

/// Adds and removes streams and counters until the driver no longer responds; returns the number of requests.
fn generate_load(client: &Client, channels: &[String], seed: u64) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut requested = 0;
    let mut ask = || -> Result<(), CommandError> {
        let channel = &channels[random.usize(..channels.len())];
        let stream_id = random.i32(1..4);
        requested += 1;
        let subscription = client.add_subscription(channel, stream_id)?;
        requested += 1;
        let mut exclusive = client.add_exclusive_publication(channel, stream_id)?;
        requested += 1;
        let shared = client.add_publication(channel, stream_id)?;
        for _ in 0..random.u32(..20) {
            let message = [7; 1_000];
            let _ = (exclusive.offer(&message), shared.offer(&message));
        }
        // Half of them stay open until the client ends.
        if random.bool() {
            std::mem::forget((subscription, exclusive, shared));
        }
        Ok(())
    };
    while ask().is_ok() {}
    requested
}

/// Kills a driver during its startup.
fn kill_during_startup(directory: &Path, random: &mut fastrand::Rng) {
    let mut command = taran(&["driver"]);
    let options = OPTIONS.map(|option| format!("-D{option}"));
    let process = Process::start(command.args(options).env("AERON_DIR", directory));
    thread::sleep(STARTING.mul_f64(random.f64()));
    process.signal("KILL");
    assert_eq!(process.wait().code, None, "killed");
}
