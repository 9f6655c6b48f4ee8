//! Drivers that are killed while clients use them, in the middle of whatever they do, and started anew over what they left.

use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use taran::{AddError, Client, CloseReason, Lost};

use crate::bench::{PORT, carry, context, number};
use crate::observer::Observer;
use crate::own_address::own_address;
use crate::process::{Directory, Driver, Process, signal, taran};

const STREAM: i32 = 78;
/// A driver that lives answers within it, on a machine that has other things to do.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A driver is killed within it, from when it was started, or from when a client began to keep it busy.
const STARTING: Duration = Duration::from_millis(30);
const BUSY: Duration = Duration::from_millis(200);

const OPTIONS: [&str; 2] = ["aeron.driver.timeout=5000", "aeron.timer.interval=100ms"];

/// How many (`TARAN_DRIVER_KILLS`, from `TARAN_KILLS_SEED`), each while it makes and removes streams; before every second one,
/// one is killed that was just starting, so that there may be anything in the directory. Every client learns that its driver
/// is lost, and by what; those that connect anew are served by the next driver, which begins with nothing.
#[test]
fn a_killed_driver_is_a_typed_event_and_the_next_one_begins_anew() {
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
        // In place of one that was killed: at once by leave to delete what it left, or when its heart has stood still.
        let mut options = OPTIONS.to_vec();
        if kill % 2 == 1 {
            options.push("aeron.dir.delete.on.start=true");
            // It may have got as far as to have a heart, which the next one would have to let stand still.
            kill_while_it_starts(directory.path(), &mut random);
        }
        let driver = Driver::start(directory.path(), &options);
        let observer = Observer::of(directory.path(), driver.pid());
        observer.await_settled();
        let level = observer.level();
        assert_eq!(fresh.get_or_insert_with(|| level.clone()), &level);
        let (tell, told) = channel();
        let clients: Vec<Client> = (0..3)
            .map(|_| {
                let tell = tell.clone();
                context(directory.path())
                    .driver_timeout(TIMEOUT)
                    .on_error(|_| ())
                    .on_close(move |end| tell.send(end).unwrap())
                    .connect()
                    .unwrap()
            })
            .collect();
        exchange(&clients[0], &channels, random.u64(10..300));
        let seed = random.u64(..);
        let asked = thread::scope(|scope| {
            let busy = scope.spawn(|| keep_busy(&clients[1], &channels, seed));
            // The moment of death is what is random here; nothing is waited for.
            thread::sleep(BUSY.mul_f64(random.f64()));
            signal(driver.pid(), "KILL");
            busy.join().unwrap()
        });
        for _ in &clients {
            let end = told.recv_timeout(crate::bench::PATIENCE).unwrap();
            assert!(
                matches!(
                    end,
                    CloseReason::Lost(Lost::DriverTimeout {
                        timeout: TIMEOUT,
                        ..
                    })
                ),
                "{end:?}"
            );
        }
        let ended = Instant::now();
        assert_eq!(driver.wait().code, None, "killed");
        println!(
            "killed driver {kill}, of whom {asked} things were asked; buried after {:.1?}",
            ended.elapsed()
        );
    }
    let driver = Driver::start(directory.path(), &OPTIONS);
    let client = context(directory.path()).connect().unwrap();
    exchange(&client, &channels, 100);
    drop(client);
    driver.stop("TERM").assert_code(15).assert_silent();
}

/// Messages over each channel, every byte compared. The publications stay open.
fn exchange(client: &Client, channels: &[String], messages: u64) {
    for channel in channels {
        let mut subscription = client.add_subscription(channel, STREAM).unwrap();
        let publication = client.add_publication(channel, STREAM).unwrap();
        carry(&publication, &mut subscription, messages);
        // Stays open: it goes with its client.
        std::mem::forget(publication);
    }
}

/// Streams and counters come and go until the driver answers no more; how many were asked for.
fn keep_busy(client: &Client, channels: &[String], seed: u64) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut asked = 0;
    let mut ask = || -> Result<(), AddError> {
        let channel = &channels[random.usize(..channels.len())];
        let stream_id = random.i32(1..4);
        asked += 1;
        let subscription = client.add_subscription(channel, stream_id)?;
        asked += 1;
        let mut exclusive = client.add_exclusive_publication(channel, stream_id)?;
        asked += 1;
        let shared = client.add_publication(channel, stream_id)?;
        for _ in 0..random.u32(..20) {
            let message = [7; 1_000];
            let _ = (exclusive.offer(&message), shared.offer(&message));
        }
        // Half of them stay, until the client goes.
        if random.bool() {
            std::mem::forget((subscription, exclusive, shared));
        }
        Ok(())
    };
    while ask().is_ok() {}
    asked
}

/// A driver that does not get far.
fn kill_while_it_starts(directory: &Path, random: &mut fastrand::Rng) {
    let mut command = taran(&["driver"]);
    let options = OPTIONS.map(|option| format!("-D{option}"));
    let process = Process::start(command.args(options).env("AERON_DIR", directory));
    thread::sleep(STARTING.mul_f64(random.f64()));
    process.signal("KILL");
    assert_eq!(process.wait().code, None, "killed");
}
