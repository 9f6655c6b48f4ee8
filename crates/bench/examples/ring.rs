// SPDX-License-Identifier: Apache-2.0
//! Measures the message rate of a single-producer single-consumer ring between two cores. It is the reference for
//! streams over shared memory.
//!
//!     cargo run --release -p taran-bench --example ring [PRODUCER'S CORE] [CONSUMER'S CORE]
//!
//! Messages are written and checked as in `taran bench`. Two ring sizes are measured: one that fits into the cache, and
//! one as long as the three terms of a log of 16 MiB each. The output is the median of seven runs in millions of
//! messages per second, with the minimum and the maximum.

use std::error::Error;
use std::time::Duration;

use taran_bench::ring::{self, RingConfig};

const RUNS: usize = 7;
/// Payload bytes of a message.
const LENGTHS: [usize; 2] = [32, 288];
/// Length of a ring in bytes, and its description.
const RINGS: [(usize, &str); 2] = [
    (256 * 1024, "in the cache"),
    (64 * 1024 * 1024, "through 64 MiB"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut cores = [0, 1];
    for (core, argument) in cores.iter_mut().zip(std::env::args().skip(1)) {
        *core = argument.parse()?;
    }
    for length in LENGTHS {
        for (capacity, description) in RINGS {
            let config = RingConfig {
                capacity,
                length,
                cores,
                warmup: Duration::from_millis(500),
                duration: Duration::from_secs(1),
            };
            let runs: Result<Vec<f64>, _> = (0..RUNS).map(|_| ring::run(&config)).collect();
            let mut runs = runs?;
            runs.sort_by(f64::total_cmp);
            let [min, median, max] =
                [runs[0], runs[RUNS / 2], runs[RUNS - 1]].map(|rate| rate / 1e6);
            println!("{length} B, {description}: {median:.1} ({min:.1} to {max:.1})");
        }
    }
    Ok(())
}
