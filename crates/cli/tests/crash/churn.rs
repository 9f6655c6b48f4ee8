//! Publications by the thousand, opened and closed again and again: the driver ends where it began.

use std::collections::VecDeque;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, Counter, Pending, Publication};
use taran_protocol::counter::SystemCounter;

use crate::bench::{PATIENCE, PORT, context, number};
use crate::level::{Level, private_memory_kib, total_memory_kib};
use crate::observer::Observer;
use crate::own_address::own_address;
use crate::process::{Directory, Driver};

/// Clients that open and close at the same time. The commands of one go one after the other, and each waits for its file.
const CLIENTS: usize = 8;
/// Commands of each that wait for their answers at once.
const AT_ONCE: usize = 64;
/// Between two looks at answers that have not come.
const NAP: Duration = Duration::from_millis(1);
/// What an allocator may keep of what it once had.
const SLACK_KIB: u64 = 2_048;
/// What the driver holds when all are open is looked at once in so many rounds: it takes as long as opening some thousand.
const LOOK: u64 = 50;

/// The usual table of counters has room for more, with much to spare.
const MANY: u64 = 1_000;
/// Room for their counters. Of their logs only the pages that are used are taken: to fill and empty 2 GB of memory in each
/// round takes most of the time, and says little of the driver.
const OPTIONS_OF_MANY: [&str; 2] = [
    "aeron.counters.buffer.length=32m",
    "aeron.perform.storage.checks=false",
];

/// The driver gives things back soon, and its agents sleep when they have nothing to do: so many handings over from one to
/// the other would otherwise be spent spinning.
const OPTIONS: [&str; 8] = [
    "aeron.conductor.idle.strategy=sleep-ms",
    "aeron.sender.idle.strategy=sleep-ms",
    "aeron.receiver.idle.strategy=sleep-ms",
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
        options.extend(OPTIONS_OF_MANY);
    }
    let driver = Driver::start(directory.path(), &options);
    let observer = Observer::of(directory.path(), driver.pid());
    let mut crowd = Crowd::connect(directory.path());
    let level = observer.level();
    let mapped_bytes = observer.count(SystemCounter::BytesCurrentlyMapped);
    let mut memory = Memory::default();
    for round in 1..=rounds {
        let begun = Instant::now();
        crowd.open(publications);
        let opened = begun.elapsed();
        let full = (round % LOOK == 1).then(|| observer.level());
        if let Some(full) = &full {
            assert_eq!(full.logs as u64, publications);
        }
        crowd.close(&observer, &level, mapped_bytes);
        println!(
            "round {round}: opened {publications} in {opened:.1?}, all closed after {:.1?}; {}now {level}; {}",
            begun.elapsed(),
            full.map_or_else(String::new, |full| format!("at most {full}; ")),
            memory.look(driver.pid())
        );
    }
    if let Some(grown) = memory.grown_kib() {
        println!(
            "private memory grew by {grown} KiB in {} openings",
            publications * (rounds - 2)
        );
    }
    drop(crowd);
    driver.stop("TERM").assert_code(15).assert_silent();
}

/// The clients, driven by the test's own thread, and what they have.
struct Crowd {
    clients: Vec<Member>,
    channels: [String; 2],
}

struct Member {
    client: Client,
    _first: Counter,
    pending: VecDeque<Pending<Publication>>,
    open: Vec<Publication>,
}

impl Crowd {
    fn connect(directory: &Path) -> Crowd {
        let clients = (0..CLIENTS).map(|_| {
            let context = context(directory)
                .invoker(true)
                .resource_linger(Duration::ZERO);
            let client = context.connect().unwrap();
            // With its first command comes the counter of the client's own heartbeat.
            let first = client.add_counter(2_000, &[], "first").unwrap();
            Member {
                client,
                _first: first,
                pending: VecDeque::new(),
                open: Vec::new(),
            }
        });
        let address = own_address();
        Crowd {
            clients: clients.collect(),
            channels: [
                "aeron:ipc?term-length=64k".to_owned(),
                format!("aeron:udp?endpoint={address}:{PORT}|term-length=64k"),
            ],
        }
    }

    /// Opens so many publications, and has them all answered.
    fn open(&mut self, count: u64) {
        let mut patience = Patience::new(0);
        let (mut asked, mut opened) = (0, 0);
        while opened < count {
            assert!(patience.is_left(opened), "{opened} of {count} are open");
            let mut news = 0;
            for member in &mut self.clients {
                while asked < count && member.pending.len() < AT_ONCE {
                    let channel = &self.channels[asked as usize % self.channels.len()];
                    let stream_id = 1_000 + asked as i32;
                    let pending = member.client.async_add_publication(channel, stream_id);
                    member.pending.push_back(pending.unwrap());
                    asked += 1;
                }
                member.client.invoke();
                // They are answered in the order in which they were asked.
                while let Some(answer) = member.pending.front_mut().and_then(Pending::poll) {
                    member.pending.pop_front();
                    member.open.push(answer.unwrap());
                    news += 1;
                }
            }
            opened += news;
            if news < CLIENTS as u64 {
                thread::sleep(NAP);
            }
        }
    }

    /// Closes them all, and waits until the driver holds what it held before.
    fn close(&mut self, observer: &Observer, level: &Level, mapped_bytes: i64) {
        for member in &mut self.clients {
            member.open.clear();
        }
        let mapped = || observer.count(SystemCounter::BytesCurrentlyMapped);
        let mut patience = Patience::new(mapped());
        while mapped() > mapped_bytes {
            assert!(patience.is_left(mapped()), "{:?}", observer.level());
            for member in &mut self.clients {
                member.client.invoke();
            }
            thread::sleep(NAP);
        }
        observer.await_level(level);
    }
}

/// Waits as long as something goes on: the machine may have other things to do.
struct Patience<T> {
    last: T,
    deadline: Instant,
}

impl<T: PartialEq> Patience<T> {
    fn new(last: T) -> Self {
        let deadline = Instant::now() + PATIENCE;
        Self { last, deadline }
    }

    /// Whether it has gone on lately, from the last look to `now`.
    fn is_left(&mut self, now: T) -> bool {
        if now != self.last {
            *self = Self::new(now);
        }
        Instant::now() < self.deadline
    }
}

/// The driver's private memory, held to what it was after the second round.
#[derive(Default)]
struct Memory {
    rounds: u64,
    settled_kib: u64,
    now_kib: u64,
}

impl Memory {
    /// Looks, and says what was seen.
    fn look(&mut self, pid: u32) -> String {
        self.rounds += 1;
        self.now_kib = private_memory_kib(pid);
        if self.rounds <= 2 {
            self.settled_kib = self.now_kib;
        }
        assert!(
            self.now_kib <= self.settled_kib + SLACK_KIB,
            "the driver has grown from {} to {} KiB",
            self.settled_kib,
            self.now_kib
        );
        format!(
            "{} KiB private, {} KiB in all",
            self.now_kib,
            total_memory_kib(pid)
        )
    }

    fn grown_kib(&self) -> Option<i64> {
        (self.rounds > 2).then(|| self.now_kib as i64 - self.settled_kib as i64)
    }
}
