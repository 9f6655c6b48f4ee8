// SPDX-License-Identifier: Apache-2.0
//! Measures scheduling gaps: time during which a thread that never blocks does not run. They bound the percentiles of
//! any round trip measured on this machine.
//!
//!     cargo run --release -p taran-bench --example gaps [SECONDS] [CORES, separated by commas]
//!
//! A thread on each core only reads the clock. A gap between two readings is time that the core spent on something
//! else: other threads, interrupts, or the host of a virtual machine. The share of time in gaps longer than a bound
//! equals the share of evenly spaced messages that are delayed by such a gap.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use taran_core::affinity;

/// Lower bounds of the reported gap lengths.
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
    /// Number and total duration of the gaps that are at least as long as each bound.
    at_least: [(u32, Duration); BOUNDS.len()],
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
        for (bound, (count, lost)) in BOUNDS.iter().zip(gaps.at_least) {
            let share = 100.0 * lost.as_secs_f64() / time.as_secs_f64().max(1e-9);
            println!("  at least {bound:?}: {count} gaps, {share:.2} percent of the time");
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
        gaps.record(now - last);
        last = now;
    }
    Ok(gaps)
}

impl Gaps {
    fn record(&mut self, gap: Duration) {
        for (bound, (count, lost)) in BOUNDS.iter().zip(&mut self.at_least) {
            if gap >= *bound {
                *count += 1;
                *lost += gap;
            }
        }
        self.longest = self.longest.max(gap);
    }
}
