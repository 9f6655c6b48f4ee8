// SPDX-License-Identifier: Apache-2.0
//! Round trips through a cluster at a fixed rate.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use taran_bench::report::{RATE_TOLERANCE, histogram_of_times};
use taran_peers::bench::Found;
use taran_peers::measured::Measured;

use crate::session::{Load, Session, peer};

/// Time for the last answers, and by which sending may fall behind its schedule: a cluster that needs more does not hold the rate.
const PATIENCE: Duration = Duration::from_secs(2);

/// Measures the times from when each message is due until its answer.
pub(crate) fn measure(load: &Load, stop: Arc<AtomicBool>) -> Found {
    let mut session = Session::open(load, stop)?;
    let per = |ms: u64| u64::try_from(u128::from(load.rate) * u128::from(ms) / 1_000);
    let skipped = per(load.warmup_ms).map_err(peer)?;
    let total = skipped + per(load.measure_ms).map_err(peer)?.max(1);
    session.schedule(load.rate, total);
    let from_ns = session.due_ns(skipped);
    let patience = PATIENCE.as_nanos() as i64;
    let end_ns = session.due_ns(total) + patience;
    let mut histogram = histogram_of_times();
    let (mut answered, mut sent_ns) = (0_u64, None);
    while session.received() < total {
        session.step(|answer| {
            if answer.due_ns >= from_ns {
                let time = (answer.received_ns - answer.due_ns).unsigned_abs();
                histogram.saturating_record(time);
                answered += 1;
            }
        })?;
        let now_ns = session.now_ns();
        if session.sent() == total {
            sent_ns.get_or_insert(now_ns);
        }
        if now_ns > end_ns {
            break;
        }
    }
    if answered == 0 {
        return Err(peer("the cluster has answered no message in time"));
    }
    // As for other round trips, the rate is that of sending. Of a cluster that does not take all messages it is that of answers.
    let (count, until_ns) = match sent_ns {
        Some(sent_ns) => (total - skipped, sent_ns),
        None => (answered, end_ns),
    };
    let rate = count as f64 / ((until_ns - from_ns).max(1) as f64 / 1e9);
    // Messages that were not sent in time are no defect: the rate is not held.
    let missing = session.sent().saturating_sub(session.received());
    let measured = Measured {
        defects: missing + session.wrong(),
        is_held: sent_ns.is_some() && rate >= RATE_TOLERANCE * load.rate as f64,
        ..Measured::of(rate).with_round_trips(&histogram)
    };
    session.close()?;
    Ok(Some(measured))
}
