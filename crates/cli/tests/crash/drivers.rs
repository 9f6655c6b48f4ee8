//! Drivers that are killed while clients use them, and started anew in the same directory.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use taran::{Client, ClientEnd, Lost};

use crate::bench::{PORT, carry, context, number, own_address};
use crate::observer::Observer;
use crate::process::{Directory, Driver};
use crate::subject::signal;

const STREAM: i32 = 78;
/// A driver that lives answers within it, on a machine that has other things to do.
const TIMEOUT: Duration = Duration::from_secs(5);

const OPTIONS: [&str; 2] = ["aeron.driver.timeout=5000", "aeron.timer.interval=100ms"];

/// How many (`TARAN_DRIVER_KILLS`). Every client learns that its driver is lost, and by what; those that connect anew are
/// served by the next driver, which begins with nothing.
#[test]
fn a_killed_driver_is_a_typed_event_and_the_next_one_begins_anew() {
    let kills = number("TARAN_DRIVER_KILLS", 3);
    let directory = Directory::new("driver-kills");
    let channels = [
        "aeron:ipc?term-length=64k".to_owned(),
        format!(
            "aeron:udp?endpoint={}:{PORT}|term-length=64k",
            own_address()
        ),
    ];
    let mut random = fastrand::Rng::with_seed(kills);
    let mut fresh = None;
    for kill in 0..kills {
        // In place of one that was killed: at once by leave to delete what it left, or when its heart has stood still.
        let mut options = OPTIONS.to_vec();
        if kill % 2 == 1 {
            options.push("aeron.dir.delete.on.start=true");
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
        signal(driver.pid(), "KILL");
        for _ in &clients {
            let end = told.recv_timeout(crate::bench::PATIENCE).unwrap();
            assert!(
                matches!(
                    end,
                    ClientEnd::Lost(Lost::DriverTimeout {
                        timeout: TIMEOUT,
                        ..
                    })
                ),
                "{end:?}"
            );
        }
        let begun = Instant::now();
        assert_eq!(driver.wait().code, None, "killed");
        println!("killed driver {kill}; buried after {:.1?}", begun.elapsed());
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
