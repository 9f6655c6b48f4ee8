//! Publications by the thousand, opened and closed again and again: the driver ends where it began.

use std::time::Instant;

use taran::{Client, Pending, Publication};

use crate::bench::{PORT, context, number, own_address};
use crate::level::{private_memory_kib, total_memory_kib};
use crate::observer::Observer;
use crate::process::{Directory, Driver};

/// Commands that wait for their answers at once.
const AT_ONCE: usize = 256;
/// What an allocator may keep of what it once had.
const SLACK_KIB: u64 = 2_048;

/// The usual table of counters has room for more, with much to spare.
const MANY: u64 = 1_000;

const OPTIONS: [&str; 5] = [
    "aeron.timer.interval=100ms",
    "aeron.publication.linger.timeout=1ms",
    "aeron.counters.free.to.reuse.timeout=0",
    "aeron.client.liveness.timeout=60s",
    "aeron.publication.unblock.timeout=70s",
];

/// How many (`TARAN_CHURN_PUBLICATIONS`), how often (`TARAN_CHURN_ROUNDS`): half over shared memory, half over the network.
#[test]
fn publications_come_and_go_and_nothing_grows() {
    let publications = number("TARAN_CHURN_PUBLICATIONS", 200);
    let rounds = number("TARAN_CHURN_ROUNDS", 4);
    let directory = Directory::new("churn");
    let mut options = OPTIONS.to_vec();
    if publications > MANY {
        options.push("aeron.counters.buffer.length=32m");
    }
    let driver = Driver::start(directory.path(), &options);
    let observer = Observer::of(directory.path(), driver.pid());
    let client = context(directory.path()).connect().unwrap();
    // With its first command comes the counter of the client's own heartbeat.
    let first = client.add_counter(2_000, &[], "first").unwrap();
    let address = own_address();
    let channels = [
        "aeron:ipc?term-length=64k".to_owned(),
        format!("aeron:udp?endpoint={address}:{PORT}|term-length=64k"),
    ];
    let level = observer.level();
    let mut after_second = None;
    for round in 1..=rounds {
        let begun = Instant::now();
        let open = add_all(&client, &channels, publications);
        let opened = begun.elapsed();
        let full = observer.level();
        assert_eq!(full.logs as u64, publications);
        drop(open);
        observer.await_level(&level);
        let (private, all) = (
            private_memory_kib(driver.pid()),
            total_memory_kib(driver.pid()),
        );
        println!(
            "round {round}: opened {publications} in {opened:.1?}, all closed after {:.1?}; at most {full}; now {}; \
             {private} KiB private, {all} KiB in all",
            begun.elapsed(),
            observer.level()
        );
        if round <= 2 {
            after_second = Some(private);
        }
        let bound = after_second.unwrap_or(private) + SLACK_KIB;
        assert!(private <= bound, "the driver has grown to {private} KiB");
    }
    drop((first, client));
    driver.stop("TERM").assert_code(15).assert_silent();
}

/// Opens them all, and has them answered.
fn add_all(client: &Client, channels: &[String], count: u64) -> Vec<Publication> {
    let mut open = Vec::new();
    let mut pending: Vec<Pending<Publication>> = Vec::new();
    for number in 0..count {
        let channel = &channels[number as usize % channels.len()];
        let stream_id = 1_000 + number as i32;
        pending.push(client.async_add_publication(channel, stream_id).unwrap());
        if pending.len() == AT_ONCE {
            open.extend(pending.drain(..).map(|pending| pending.wait().unwrap()));
        }
    }
    open.extend(pending.drain(..).map(|pending| pending.wait().unwrap()));
    open
}
