//! Measures the message rate of a single-producer single-consumer ring between two cores. It is the reference for
//! streams over shared memory.
//!
//!     cargo run --release -p taran-bench --example ring [PRODUCER'S CORE] [CONSUMER'S CORE]
//!
//! Messages are written and checked as in `taran bench`. Two ring sizes are measured: one that fits into the cache, and
//! one as long as the three terms of a log of 16 MiB each. The output is the median of seven runs in millions of
//! messages per second, with the minimum and the maximum.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran_bench::payload;
use taran_core::affinity;
use taran_core::memory::Region;
use taran_core::ring::TRAILER_LENGTH;
use taran_core::ring::one_to_one::{Consumer, Producer};

const RUNS: usize = 7;
const WARM_UP: Duration = Duration::from_millis(500);
const MEASURED: Duration = Duration::from_secs(1);
/// Payload bytes of a message.
const LENGTHS: [usize; 2] = [32, 288];
/// Length of a ring in bytes, and its description.
const RINGS: [(usize, &str); 2] = [
    (256 * 1024, "in the cache"),
    (64 * 1024 * 1024, "through 64 MiB"),
];
/// Messages between two checks of the end flag, and between two releases of read messages.
const BURST: usize = 256;
const TYPE: i32 = 1;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let mut cores = [0, 1];
    for (core, argument) in cores.iter_mut().zip(std::env::args().skip(1)) {
        *core = argument.parse()?;
    }
    for length in LENGTHS {
        for (capacity, description) in RINGS {
            let runs: Result<Vec<f64>, Failure> =
                (0..RUNS).map(|_| run(capacity, length, cores)).collect();
            let mut runs = runs?;
            runs.sort_by(f64::total_cmp);
            let [min, median, max] = [runs[0], runs[RUNS / 2], runs[RUNS - 1]];
            println!("{length} B, {description}: {median:.1} ({min:.1} to {max:.1})");
        }
    }
    Ok(())
}

/// Returns millions of messages per second.
fn run(capacity: usize, length: usize, cores: [usize; 2]) -> Result<f64, Failure> {
    let region = Region::anonymous(capacity + TRAILER_LENGTH)?;
    let (mut producer, mut consumer) = (Producer::open(&region)?, Consumer::open(&region)?);
    let (read, is_over) = (&AtomicU64::new(0), &AtomicBool::new(false));
    thread::scope(|scope| {
        let writing = scope.spawn(move || -> Result<(), Failure> {
            affinity::pin_current_thread(cores[0])?;
            let mut sequence = 0;
            while !is_over.load(Ordering::Relaxed) {
                for _ in 0..BURST {
                    let fill = |message: &mut [u8]| payload::write(message, 0, sequence);
                    if producer.write_with(TYPE, length, fill).is_err() {
                        break;
                    }
                    sequence += 1;
                }
            }
            Ok(())
        });
        let reading = scope.spawn(move || -> Result<(), Failure> {
            affinity::pin_current_thread(cores[1])?;
            let (mut expected, mut damaged) = (0, false);
            while !is_over.load(Ordering::Relaxed) && !damaged {
                consumer.read(BURST, |_, message| {
                    damaged |= payload::read(message, length) != Ok((0, expected));
                    expected += 1;
                })?;
                read.store(expected, Ordering::Relaxed);
            }
            if damaged {
                return Err("a message differs from the one that was written".into());
            }
            Ok(())
        });
        thread::sleep(WARM_UP);
        let (began, before) = (Instant::now(), read.load(Ordering::Relaxed));
        thread::sleep(MEASURED);
        let messages = read.load(Ordering::Relaxed) - before;
        let took = began.elapsed().as_secs_f64();
        is_over.store(true, Ordering::Relaxed);
        writing.join().map_err(|_| "the producer panicked")??;
        reading.join().map_err(|_| "the consumer panicked")??;
        Ok(messages as f64 / took / 1e6)
    })
}
