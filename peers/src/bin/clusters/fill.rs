// SPDX-License-Identifier: Apache-2.0
//! A log that grows as fast as the cluster takes messages.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use taran_bench::side::RunError;

use crate::session::{Load, Session, peer};

/// Bytes that the log has for each message beside its payload: two headers, without padding (`docs/spec/cluster.md` §4).
const HEADERS: u64 = 64;
/// Time limit for all messages.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Sends messages until the log has grown by this many bytes, and waits for the last answer. Fails if an answer is damaged or
/// repeated.
pub(crate) fn run(load: &Load, bytes: u64, stop: Arc<AtomicBool>) -> Result<(), RunError> {
    let mut session = Session::open(load, stop)?;
    let each = (load.length as u64 + HEADERS).next_multiple_of(32);
    session.schedule(load.rate, bytes.div_ceil(each));
    let deadline = Instant::now() + TIMEOUT;
    while !session.is_answered() {
        session.step(|_| {})?;
        if Instant::now() > deadline {
            let sent = session.sent();
            return Err(peer(format!(
                "the cluster has taken {sent} messages in {TIMEOUT:?}, and not all of them have an answer"
            )));
        }
    }
    let wrong = session.wrong();
    session.close()?;
    if wrong > 0 {
        return Err(peer(format!("{wrong} answers are damaged or repeated")));
    }
    Ok(())
}
