// SPDX-License-Identifier: Apache-2.0
//! The latency that an event in the cluster adds.

use std::sync::atomic::{AtomicBool, Ordering};

use taran_bench::report::histogram_of_times;
use taran_bench::side::RunError;
use taran_peers::bench::Found;
use taran_peers::measured::Measured;

use crate::session::{Load, Session, TIMEOUT, peer};

/// Sends messages at a fixed rate. After warm-up and measurement it prints the leader, and goes on until the end of standard input,
/// and the answer of a message that is due then: those that the event has delayed have come before it. The result is by how much
/// the longest round trip from the line on exceeds the median of the measurement, in milliseconds. The leader stays the same, so
/// lost answers are defects, as repeated and damaged ones are.
pub(crate) fn measure(load: &Load, stop: &AtomicBool) -> Found {
    let mut session = Session::open_unless(load, stop)?;
    session.schedule(load.rate, u64::MAX);
    let nanos = |ms: u64| i64::try_from(u128::from(ms) * 1_000_000).map_err(peer);
    let from_ns = session.now_ns() + nanos(load.warmup_ms)?;
    let until_ns = from_ns + nanos(load.measure_ms)?;
    let mut calm = histogram_of_times();
    while session.now_ns() < until_ns {
        session.step(|answer| {
            if answer.due_ns >= from_ns {
                calm.saturating_record((answer.received_ns - answer.due_ns).unsigned_abs());
            }
        })?;
    }
    println!("LEADER {}", session.leader());
    let (mut longest_ns, mut due_ns) = (0, 0);
    let mut end_ns = None;
    while end_ns.is_none_or(|end_ns| due_ns < end_ns) {
        session.step(|answer| {
            due_ns = answer.due_ns;
            longest_ns = longest_ns.max((answer.received_ns - due_ns).unsigned_abs());
        })?;
        let now_ns = session.now_ns();
        if stop.load(Ordering::Relaxed) {
            end_ns.get_or_insert(now_ns);
        }
        if end_ns.is_some_and(|end_ns| now_ns - end_ns > TIMEOUT.as_nanos() as i64) {
            return Err(RunError::TimedOut(TIMEOUT, "an answer after the event"));
        }
    }
    let added_ns = longest_ns.saturating_sub(calm.value_at_quantile(0.5));
    let defects = session.wrong() + session.lost();
    session.close()?;
    Ok(Some(Measured {
        defects,
        ..Measured::of(added_ns as f64 / 1e6)
    }))
}
