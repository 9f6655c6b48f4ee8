//! Victims, many at once: each slot starts one, kills it, and starts the next.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::victim::{Death, Order};

/// How long a victim may go on once it is where it wants to be.
const LONGEST_LIFE: Duration = Duration::from_millis(150);

/// Kills to come and kills that were.
#[derive(Debug)]
pub(crate) struct Pool {
    /// What all victims are told.
    order: Order,
    kills: u64,
    next: AtomicU64,
    outcome: Mutex<Outcome>,
}

/// What became of the victims.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// How many died of what.
    pub(crate) deaths: BTreeMap<Death, u64>,
    /// Victims that the machine left no time to live, before they were killed.
    pub(crate) starved: u64,
    /// What victims saw that must not be, by number.
    pub(crate) failures: Vec<String>,
}

impl Pool {
    /// `order` is for all victims, but for number and seed, which follow from its seed.
    pub(crate) fn new(order: Order, kills: u64) -> Pool {
        Pool {
            order,
            kills,
            next: AtomicU64::new(0),
            outcome: Mutex::default(),
        }
    }

    /// Kills in `slots` threads until all are dead; `look` is called after each death with the number of the dead.
    pub(crate) fn run(&self, slots: u64, look: impl Fn(u64) + Sync) -> Outcome {
        thread::scope(|scope| {
            for _ in 0..slots {
                scope.spawn(|| {
                    while let Some(order) = self.next_order() {
                        self.live_and_die(&order);
                        look(order.number);
                    }
                });
            }
        });
        self.outcome.lock().unwrap().clone()
    }

    fn next_order(&self) -> Option<Order> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let failed = !self.outcome.lock().unwrap().failures.is_empty();
        (number < self.kills && !failed).then(|| Order {
            number,
            seed: self.order.seed.wrapping_add(number),
            ..self.order.clone()
        })
    }

    fn live_and_die(&self, order: &Order) {
        let mut random = fastrand::Rng::with_seed(!order.seed);
        let victim = Victim::start(order);
        let (mut said, life) = match order.death() {
            Death::Starting => (String::new(), LONGEST_LIFE / 4),
            Death::Roaming => (victim.until("READY"), LONGEST_LIFE),
            _ => (victim.until("HERE"), Duration::ZERO),
        };
        // The moment of death is what is random here; nothing is waited for.
        thread::sleep(life.mul_f64(random.f64()));
        said += &victim.kill();
        let mut outcome = self.outcome.lock().unwrap();
        *outcome.deaths.entry(order.death()).or_default() += 1;
        outcome.starved += u64::from(said.contains("STARVED"));
        if said.contains("FAILED") || said.contains("panicked") {
            outcome.failures.push(format!(
                "victim {} with seed {} ({:?}):\n{said}",
                order.number,
                order.seed,
                order.death()
            ));
        }
    }
}

/// One process. What it says is read here; what it complains about as it dies is, too.
struct Victim {
    child: Mutex<Child>,
    output: Mutex<BufReader<ChildStdout>>,
}

impl Victim {
    fn start(order: &Order) -> Victim {
        let mut child = order
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        Victim {
            child: Mutex::new(child),
            output: Mutex::new(BufReader::new(output)),
        }
    }

    /// Reads until it says this, or that it failed, or nothing more.
    fn until(&self, word: &str) -> String {
        let mut said = String::new();
        let mut output = self.output.lock().unwrap();
        loop {
            let mut line = String::new();
            if output.read_line(&mut line).unwrap_or(0) == 0 {
                return said + "FAILED: ended too soon";
            }
            said += &line;
            if [word, "FAILED", "STARVED"]
                .iter()
                .any(|word| line.starts_with(word))
            {
                return said;
            }
        }
    }

    /// `kill -9`; what it had said meanwhile.
    fn kill(self) -> String {
        let mut child = self.child.into_inner().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let mut said = String::new();
        let _ = self.output.into_inner().unwrap().read_to_string(&mut said);
        if let Some(mut errors) = child.stderr.take() {
            let _ = errors.read_to_string(&mut said);
        }
        said
    }
}
