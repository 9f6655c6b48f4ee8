// SPDX-License-Identifier: Apache-2.0
//! The longest time without an answer while leadership changes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use taran_peers::bench::Found;
use taran_peers::measured::Measured;

use crate::session::{Load, Session, TIMEOUT, peer};

/// Time for which answers have to come from the new leader.
const STEADY: Duration = Duration::from_secs(1);

/// Sends messages at a fixed rate. After the warm-up it prints the leader, whose leadership the parent process then ends, and
/// measures until the successor has answered for a while. The result is in milliseconds. Messages and answers that are on their
/// way while leadership changes may be lost; a repeated or damaged answer is a defect.
pub(crate) fn measure(load: &Load, stop: Arc<AtomicBool>) -> Found {
    let mut session = Session::open(load, stop)?;
    session.schedule(load.rate, u64::MAX);
    let start_ns = session.now_ns();
    let until_ns = start_ns + i64::try_from(load.warmup_ms).map_err(peer)? * 1_000_000;
    while session.now_ns() < until_ns {
        session.step(|_| {})?;
    }
    let old = session.leader();
    println!("LEADER {old}");
    let begin_ns = session.now_ns();
    let deadline_ns = begin_ns + TIMEOUT.as_nanos() as i64;
    let (mut last_ns, mut longest_ns) = (begin_ns, 0);
    let mut changed_ns = None;
    loop {
        let mut answered_ns = None;
        session.step(|answer| {
            longest_ns = longest_ns.max(answer.received_ns - last_ns);
            last_ns = answer.received_ns;
            answered_ns = Some(answer.received_ns);
        })?;
        if session.leader() != old
            && let Some(answered_ns) = answered_ns
        {
            let since = *changed_ns.get_or_insert(answered_ns);
            if answered_ns - since > STEADY.as_nanos() as i64 {
                break;
            }
        }
        if session.now_ns() > deadline_ns {
            return Err(peer(format!(
                "no member has led and answered within {TIMEOUT:?} after member {old}"
            )));
        }
    }
    let defects = session.wrong();
    session.close()?;
    Ok(Some(Measured {
        defects,
        ..Measured::of(longest_ns as f64 / 1e6)
    }))
}
