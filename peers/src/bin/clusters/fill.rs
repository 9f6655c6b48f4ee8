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
/// Time without an answer after which the last one is lost: the service drops answers behind too many that wait for room, and messages
/// to a leader that fails have none.
const SILENCE: Duration = Duration::from_secs(1);

/// Sends messages until the log has grown by this many bytes, and waits for the last answer; if that is lost, for the answer to one
/// message more. Fails if an answer is damaged or repeated.
pub(crate) fn run(load: &Load, bytes: u64, stop: Arc<AtomicBool>) -> Result<(), RunError> {
    let mut session = Session::open(load, stop)?;
    let each = (load.length as u64 + HEADERS).next_multiple_of(32);
    let count = bytes.div_ceil(each);
    session.schedule(load.rate, count);
    let deadline = Instant::now() + TIMEOUT;
    let (mut received, mut heard) = (0, Instant::now());
    while !session.is_answered() {
        session.step(|_| {})?;
        let now = Instant::now();
        if received != session.received() || !session.is_sent() {
            (received, heard) = (session.received(), now);
        } else if now - heard > SILENCE {
            heard = now;
            session.schedule(load.rate, 1);
        }
        if now > deadline {
            return Err(peer(format!(
                "not all of {count} messages have an answer after {TIMEOUT:?}"
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
