// SPDX-License-Identifier: Apache-2.0
//! Opens and closes many publications repeatedly; the driver's resources return to their initial level.

use std::collections::VecDeque;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, Counter, Pending, Publication};
use taran_protocol::counter::SystemCounter;

use crate::fixture::{PORT, TIMEOUT, builder, number};
use crate::observer::Observer;
use crate::own_address::own_address;
use crate::process::{Directory, Driver};
use crate::resources::{Resources, private_memory_kib, total_memory_kib};

/// Clients that open and close concurrently. The driver handles the commands of one client in order, and each waits for
/// its log file.
const CLIENTS: usize = 8;
/// Outstanding commands per client.
const MAX_OUTSTANDING: usize = 64;
/// Interval between two polls for responses.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Allowance for memory that the allocator retains.
const SLACK_KIB: u64 = 2_048;
/// The resources are read with all publications open once in so many rounds: reading takes as long as opening some
/// thousand.
const INSPECT_EVERY: u64 = 50;

/// Number of publications whose counters fit the default buffers with much to spare.
const DEFAULT_CAPACITY: u64 = 1_000;
/// Options for more publications: a larger counters buffer, and sparse log files. Filling 2 GB of memory in each round
/// would take most of the time and reveal little about the driver.
const LARGE_OPTIONS: [&str; 2] = [
    "aeron.counters.buffer.length=32m",
    "aeron.perform.storage.checks=false",
];

/// Options for a quick release of resources. The agents sleep when idle; otherwise the many hand-overs between them
/// would be spent spinning.
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

/// Opens `TARAN_CHURN_PUBLICATIONS` publications `TARAN_CHURN_ROUNDS` times, half over IPC and half over UDP.
#[test]
fn opening_and_closing_publications_leaks_nothing() {
    let publications = number("TARAN_CHURN_PUBLICATIONS", 200);
    let rounds = number("TARAN_CHURN_ROUNDS", 4);
    let directory = Directory::new("churn");
    let mut options = OPTIONS.to_vec();
    if publications > DEFAULT_CAPACITY {
        options.extend(LARGE_OPTIONS);
    }
    let driver = Driver::start(directory.path(), &options);
    let observer = Observer::of(directory.path(), driver.pid());
    let mut group = ClientGroup::connect(directory.path());
    let resources = observer.resources();
    let mapped_bytes = observer.count(SystemCounter::BytesCurrentlyMapped);
    let mut memory = PrivateMemory::default();
    for round in 1..=rounds {
        let started = Instant::now();
        group.open(publications);
        let opened = started.elapsed();
        let full = (round % INSPECT_EVERY == 1).then(|| observer.resources());
        if let Some(full) = &full {
            assert_eq!(full.logs as u64, publications);
        }
        group.close(&observer, &resources, mapped_bytes);
        println!(
            "round {round}: opened {publications} in {opened:.1?}, all closed after {:.1?}; {}now {resources}; {}",
            started.elapsed(),
            full.map_or_else(String::new, |full| format!("at most {full}; ")),
            memory.inspect(driver.pid())
        );
    }
    if let Some(grown) = memory.grown_kib() {
        println!(
            "private memory grew by {grown} KiB in {} openings",
            publications * (rounds - 2)
        );
    }
    drop(group);
    driver.stop("TERM").assert_code(15).assert_silent();
}

/// Clients invoked by the thread of the test, and their publications.
struct ClientGroup {
    clients: Vec<ChurnClient>,
    channels: [String; 2],
}

struct ChurnClient {
    client: Client,
    _first: Counter,
    pending: VecDeque<Pending<Publication>>,
    open: Vec<Publication>,
}

impl ClientGroup {
    fn connect(directory: &Path) -> ClientGroup {
        let clients = (0..CLIENTS).map(|_| {
            let builder = builder(directory)
                .invoker(true)
                .resource_linger(Duration::ZERO);
            let client = builder.connect().unwrap();
            // The first command of a client also allocates its heartbeat counter.
            let first = client.add_counter(2_000, &[], "first").unwrap();
            ChurnClient {
                client,
                _first: first,
                pending: VecDeque::new(),
                open: Vec::new(),
            }
        });
        let address = own_address();
        ClientGroup {
            clients: clients.collect(),
            channels: [
                "aeron:ipc?term-length=64k".to_owned(),
                format!("aeron:udp?endpoint={address}:{PORT}|term-length=64k"),
            ],
        }
    }

    /// Opens `count` publications and waits for all responses.
    fn open(&mut self, count: u64) {
        let mut progress = ProgressTimeout::new(0);
        let (mut requested, mut opened) = (0, 0);
        while opened < count {
            assert!(progress.is_running(opened), "{opened} of {count} are open");
            let mut completed = 0;
            for client_state in &mut self.clients {
                while requested < count && client_state.pending.len() < MAX_OUTSTANDING {
                    let channel = &self.channels[requested as usize % self.channels.len()];
                    let stream_id = 1_000 + requested as i32;
                    let pending = client_state
                        .client
                        .async_add_publication(channel, stream_id);
                    client_state.pending.push_back(pending.unwrap());
                    requested += 1;
                }
                client_state.client.invoke();
                // Responses arrive in the order of the commands.
                while let Some(answer) = client_state.pending.front_mut().and_then(Pending::poll) {
                    client_state.pending.pop_front();
                    client_state.open.push(answer.unwrap());
                    completed += 1;
                }
            }
            opened += completed;
            if completed < CLIENTS as u64 {
                thread::sleep(POLL_INTERVAL);
            }
        }
    }

    /// Closes all publications, and waits until the driver's resources are back at their initial level.
    fn close(&mut self, observer: &Observer, resources: &Resources, mapped_bytes: i64) {
        for client_state in &mut self.clients {
            client_state.open.clear();
        }
        let mapped = || observer.count(SystemCounter::BytesCurrentlyMapped);
        let mut progress = ProgressTimeout::new(mapped());
        while mapped() > mapped_bytes {
            assert!(progress.is_running(mapped()), "{:?}", observer.resources());
            for client_state in &mut self.clients {
                client_state.client.invoke();
            }
            thread::sleep(POLL_INTERVAL);
        }
        observer.await_resources(resources);
    }
}

/// A timeout that restarts with each progress, because the machine may be busy.
struct ProgressTimeout<T> {
    last: T,
    deadline: Instant,
}

impl<T: PartialEq> ProgressTimeout<T> {
    fn new(last: T) -> Self {
        let deadline = Instant::now() + TIMEOUT;
        Self { last, deadline }
    }

    /// Returns true if the last progress is recent enough.
    fn is_running(&mut self, now: T) -> bool {
        if now != self.last {
            *self = Self::new(now);
        }
        Instant::now() < self.deadline
    }
}

/// Limits the driver's private memory to its level after the second round.
#[derive(Default)]
struct PrivateMemory {
    rounds: u64,
    settled_kib: u64,
    now_kib: u64,
}

impl PrivateMemory {
    /// Reads the memory and returns a description.
    fn inspect(&mut self, pid: u32) -> String {
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
