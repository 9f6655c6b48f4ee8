// SPDX-License-Identifier: Apache-2.0
//! Message rate of a single-producer single-consumer ring between two cores: what a machine allows for streams over
//! shared memory.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran_core::affinity;
use taran_core::memory::Region;
use taran_core::ring::TRAILER_LENGTH;
use taran_core::ring::one_to_one::{Consumer, Producer};

use crate::payload;
use crate::side::RunError;

/// Messages between two checks of the end flag, and between two releases of read messages.
const BURST: usize = 256;
const TYPE: i32 = 1;

/// Configuration of a run.
#[derive(Debug, Clone)]
pub struct RingConfig {
    /// Length of the ring in bytes, a power of two.
    pub capacity: usize,
    /// Payload bytes of a message, at least [`payload::MIN_LENGTH`].
    pub length: usize,
    /// Core of the producer, and core of the consumer.
    pub cores: [usize; 2],
    /// Duration of the unmeasured run.
    pub warmup: Duration,
    /// Duration of the measurement.
    pub duration: Duration,
}

/// Writes and checks messages as the stream benchmark does. Returns messages per second.
///
/// # Errors
/// [`RunError::Config`] if the ring or a core is not available, or if a message differs from the one that was written.
pub fn run(config: &RingConfig) -> Result<f64, RunError> {
    let region = Region::anonymous(config.capacity + TRAILER_LENGTH).map_err(failure)?;
    let mut producer = Producer::open(&region).map_err(failure)?;
    let mut consumer = Consumer::open(&region).map_err(failure)?;
    let (read, is_over) = (&AtomicU64::new(0), &AtomicBool::new(false));
    let [producer_core, consumer_core] = config.cores;
    let length = config.length;
    thread::scope(|scope| {
        let writing = scope.spawn(move || -> Result<(), RunError> {
            affinity::pin_current_thread(producer_core).map_err(failure)?;
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
        let reading = scope.spawn(move || -> Result<(), RunError> {
            affinity::pin_current_thread(consumer_core).map_err(failure)?;
            let (mut expected, mut damaged) = (0, false);
            while !is_over.load(Ordering::Relaxed) && !damaged {
                consumer
                    .read(BURST, |_, message| {
                        damaged |= payload::read(message, length) != Ok((0, expected));
                        expected += 1;
                    })
                    .map_err(failure)?;
                read.store(expected, Ordering::Relaxed);
            }
            if damaged {
                return Err(failure("a message differs from the one that was written"));
            }
            Ok(())
        });
        thread::sleep(config.warmup);
        let (began, before) = (Instant::now(), read.load(Ordering::Relaxed));
        thread::sleep(config.duration);
        let messages = read.load(Ordering::Relaxed) - before;
        let elapsed = began.elapsed().as_secs_f64();
        is_over.store(true, Ordering::Relaxed);
        let panicked = |_| failure("a thread of the ring panicked");
        writing.join().map_err(panicked)??;
        reading.join().map_err(panicked)??;
        Ok(messages as f64 / elapsed)
    })
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "`map_err` passes the error by value"
)]
fn failure(error: impl ToString) -> RunError {
    RunError::Config(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_of_a_small_ring_moves_messages() {
        let rate = run(&RingConfig {
            capacity: 64 * 1024,
            length: 32,
            cores: [0, 0],
            warmup: Duration::ZERO,
            duration: Duration::from_millis(50),
        });
        assert!(rate.is_ok_and(|rate| rate > 0.0));
    }

    #[test]
    fn run_on_a_missing_core_fails() {
        let result = run(&RingConfig {
            capacity: 64 * 1024,
            length: 32,
            cores: [0, 100_000],
            warmup: Duration::ZERO,
            duration: Duration::ZERO,
        });
        assert!(matches!(result, Err(RunError::Config(_))), "{result:?}");
    }
}
