//! Clients are killed at random moments and at the worst ones: nobody else sees a wrong byte or waits for long, and the
//! driver gets everything back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use taran_protocol::counter::SystemCounter;

use crate::bench::{OPTIONS, number, streams};
use crate::level::private_memory_kib;
use crate::observer::Observer;
use crate::own_address::own_address;
use crate::pool::{Outcome, Pool};
use crate::process::{Directory, Driver};
use crate::victim::{Death, Order};
use crate::witness::{Testimony, ask_for_things, watch_streams};

/// Streams of each kind: over shared memory and over the network.
const STREAMS: usize = 8;
/// What an allocator may keep of what it once had.
const SLACK_KIB: u64 = 4_096;

/// How many are killed (`TARAN_KILLS`), by how many hands (`TARAN_KILLS_AT_ONCE`), from which seed (`TARAN_KILLS_SEED`).
#[test]
fn killed_clients_leave_nothing_behind() {
    let kills = number("TARAN_KILLS", 48);
    let at_once = number("TARAN_KILLS_AT_ONCE", 6);
    let seed = number("TARAN_KILLS_SEED", u64::from(std::process::id()) << 32);
    println!("{kills} clients will be killed, {at_once} at once, from TARAN_KILLS_SEED={seed}");
    let begun = Instant::now();
    let directory = Directory::new("kills");
    let driver = Driver::start(directory.path(), &OPTIONS);
    let observer = Observer::of(directory.path(), driver.pid());
    let order = Order {
        directory: directory.path().to_path_buf(),
        address: own_address(),
        streams: STREAMS,
        number: 0,
        seed,
    };
    let empty = observer.level();
    let memory_of = MemoryOf::new(driver.pid(), kills);
    let (outcome, testimony) = with_witnesses(&order, || {
        Pool::new(order.clone(), kills).run(at_once, |n| memory_of.look(n))
    });
    for failure in &outcome.failures {
        eprintln!("{failure}");
    }
    assert!(outcome.failures.is_empty(), "victims saw what must not be");
    // All of a moment in which the machine stood still, and few besides: more are those of a driver that gives up the living,
    // or of a machine on which this says nothing.
    let starved_most = at_once + kills / 1_000;
    assert!(
        outcome.starved <= starved_most,
        "{} of {kills} victims were given up before they were killed",
        outcome.starved
    );
    observer.await_level(&empty);
    memory_of.assert_bounded();
    assert_accounts(&observer, &outcome);
    println!(
        "killed {} clients in {:.0?}: {:?}, {} of them starved",
        outcome.deaths.values().sum::<u64>(),
        begun.elapsed(),
        outcome.deaths,
        outcome.starved
    );
    println!("witnesses: {testimony}");
    println!("driver: {}; {memory_of}", observer.level());
    println!("counts: {}", observer.counts());
    driver.stop("TERM").assert_code(15).assert_silent();
}

/// Lets the witnesses do their part meanwhile.
fn with_witnesses(order: &Order, act: impl FnOnce() -> Outcome) -> (Outcome, Testimony) {
    let over = AtomicBool::new(false);
    let streams = streams(order.address, order.streams);
    thread::scope(|scope| {
        let (ready, is_ready) = channel();
        let watching = scope.spawn(|| {
            watch_streams(&order.directory, &streams, &over, move || {
                let _ = ready.send(());
            })
        });
        is_ready.recv().expect("the witness of streams lives");
        let asking = scope.spawn(|| ask_for_things(&order.directory, &over));
        let outcome = act();
        over.store(true, Ordering::Relaxed);
        let testimony = watching.join().expect("the witness of streams lives");
        let asked = asking.join().expect("the witness of commands lives");
        let testimony = Testimony {
            longest_command: asked.longest_command,
            commands: asked.commands,
            ..testimony
        };
        (outcome, testimony)
    })
}

/// The driver has noticed the deaths of which it had to do something about, and nothing went wrong.
fn assert_accounts(observer: &Observer, outcome: &Outcome) {
    let died_of = |death: Death| outcome.deaths.get(&death).copied().unwrap_or(0);
    if died_of(Death::HalfCommand) > 0 {
        assert!(observer.count(SystemCounter::UnblockedCommands) > 0);
    }
    if died_of(Death::SharedClaim) > 0 {
        assert!(observer.count(SystemCounter::UnblockedPublications) > 0);
    }
    if died_of(Death::Roaming) > 0 {
        assert!(observer.count(SystemCounter::ClientTimeouts) > 0);
    }
    observer.for_each_error(|text| {
        // What a client had asked for before it died may come up after its things are gone: behind a half command.
        let posthumous = text.contains(") unknown ");
        assert!(posthumous, "the driver has recorded an error: {text}");
    });
}

/// The driver's own memory while clients die. It may grow with how many there are at once, not with how many there were.
struct MemoryOf {
    pid: u32,
    /// After this one the driver has seen what there is.
    warm: u64,
    warm_kib: AtomicU64,
}

impl MemoryOf {
    fn new(pid: u32, kills: u64) -> MemoryOf {
        MemoryOf {
            pid,
            warm: (kills / 4).min(1_000),
            warm_kib: AtomicU64::new(0),
        }
    }

    fn look(&self, number: u64) {
        if number <= self.warm {
            let now = private_memory_kib(self.pid);
            self.warm_kib.fetch_max(now, Ordering::Relaxed);
        }
    }

    fn warm_kib(&self) -> u64 {
        self.warm_kib.load(Ordering::Relaxed)
    }

    fn assert_bounded(&self) {
        let (warm, now) = (self.warm_kib(), private_memory_kib(self.pid));
        assert!(
            now <= warm + SLACK_KIB,
            "the driver grew from {warm} to {now} KiB"
        );
    }
}

impl std::fmt::Display for MemoryOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (now, warm) = (private_memory_kib(self.pid), self.warm_kib());
        write!(
            f,
            "{now} KiB of private memory, {warm} at most up to kill {}",
            self.warm
        )
    }
}
