//! What a machine takes away from whoever needs its cores all the time: no percentile of a round trip can be better than that.
//!
//!     cargo run --release -p taran-bench --example gaps [SECONDS] [CORES, separated by commas]
//!
//! A thread on each core does nothing but read the clock. A gap between two readings is time that somebody else had: other
//! threads, interrupts, or the host of a virtual machine. The share of time within gaps longer than a bound is the share of
//! evenly spaced messages that meet one.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use taran_core::affinity;

/// Gaps are counted from these lengths on.
const BOUNDS: [Duration; 4] = [
    Duration::from_micros(20),
    Duration::from_micros(100),
    Duration::from_millis(1),
    Duration::from_millis(3),
];

type Failure = Box<dyn Error + Send + Sync>;

/// The gaps of one core.
#[derive(Default)]
struct Gaps {
    /// How many were at least as long as each bound, and for how long these were in all.
    from: [(u32, Duration); BOUNDS.len()],
    longest: Duration,
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let cores = arguments.next().unwrap_or_else(|| "0,1".to_owned());
    let cores: Result<Vec<usize>, _> = cores.split(',').map(str::parse).collect();
    let time = Duration::from_secs(seconds);
    let threads: Vec<_> = cores?
        .into_iter()
        .map(|core| (core, thread::spawn(move || watch(core, time))))
        .collect();
    for (core, thread) in threads {
        let gaps = thread.join().map_err(|_| "a thread panicked")??;
        println!("core {core}, {seconds} s, longest gap {:?}", gaps.longest);
        for (bound, (count, lost)) in BOUNDS.iter().zip(gaps.from) {
            let share = 100.0 * lost.as_secs_f64() / time.as_secs_f64().max(1e-9);
            println!("  from {bound:?} on: {count} gaps, {share:.2} per cent of the time");
        }
    }
    Ok(())
}

fn watch(core: usize, time: Duration) -> Result<Gaps, Failure> {
    affinity::pin_current_thread(core)?;
    let mut gaps = Gaps::default();
    let begin = Instant::now();
    let mut last = begin;
    while last - begin < time {
        let now = Instant::now();
        gaps.note(now - last);
        last = now;
    }
    Ok(gaps)
}

impl Gaps {
    fn note(&mut self, gap: Duration) {
        for (bound, (count, lost)) in BOUNDS.iter().zip(&mut self.from) {
            if gap >= *bound {
                *count += 1;
                *lost += gap;
            }
        }
        self.longest = self.longest.max(gap);
    }
}
