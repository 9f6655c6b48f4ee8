// SPDX-License-Identifier: Apache-2.0
//! The latency that an event in the cluster adds.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hdrhistogram::Histogram;
use taran_bench::side::RunError;
use taran_peers::bench::Found;
use taran_peers::measured::Measured;

use crate::session::{Load, Session, peer};

/// Upper bound of recorded times in nanoseconds.
const LONGEST: u64 = 100_000_000_000;

/// Sends messages at a fixed rate. After warm-up and measurement it prints the leader, and goes on until the end of standard input.
/// The result is by how much the longest round trip since then exceeds the median of the measurement, in milliseconds.
pub(crate) fn measure(load: &Load, stop: Arc<AtomicBool>) -> Found {
    let mut session = Session::open(load, stop)?;
    session.schedule(load.rate, u64::MAX);
    let nanos = |ms: u64| i64::try_from(u128::from(ms) * 1_000_000).map_err(peer);
    let from_ns = session.now_ns() + nanos(load.warmup_ms)?;
    let until_ns = from_ns + nanos(load.measure_ms)?;
    let mut calm = Histogram::<u64>::new_with_bounds(1, LONGEST, 3).map_err(peer)?;
    while session.now_ns() < until_ns {
        session.step(|answer| {
            if answer.due_ns >= from_ns {
                calm.saturating_record((answer.received_ns - answer.due_ns).unsigned_abs());
            }
        })?;
    }
    println!("LEADER {}", session.leader());
    let mut longest_ns = 0;
    loop {
        let step = session.step(|answer| {
            longest_ns = longest_ns.max((answer.received_ns - answer.due_ns).unsigned_abs());
        });
        match step {
            Err(RunError::Interrupted) => break,
            other => drop(other?),
        }
    }
    let added_ns = longest_ns.saturating_sub(calm.value_at_quantile(0.5));
    Ok(Some(Measured {
        defects: session.wrong(),
        ..Measured::of(added_ns as f64 / 1e6)
    }))
}
