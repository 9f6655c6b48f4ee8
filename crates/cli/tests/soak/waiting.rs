// SPDX-License-Identifier: Apache-2.0
//! Time limits, and detection of starvation: a timeout on a machine that gave a process no CPU time proves nothing.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, CloseReason, CommandError, ErrorCode, Lost};
use taran_core::counters::CountersReader;
use taran_protocol::counter::SystemCounter;

/// Time limit for any wait in a round.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Interval between two polls.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A driver that was stalled for so long has lost datagrams, and possibly its peers.
const STALL: Duration = Duration::from_secs(4);

/// Number of clients that timed out because they were starved.
static STARVED: AtomicU64 = AtomicU64::new(0);

/// Reason why a round ended.
#[derive(Debug)]
pub(crate) enum RoundError {
    /// A failure that starvation of a peer may explain.
    Failed(String),
    /// A wrong message, which starvation cannot explain.
    Wrong(String),
}

impl RoundError {
    /// Adds a detail to the reason.
    pub(crate) fn and(self, more: &str) -> RoundError {
        match self {
            RoundError::Failed(why) => RoundError::Failed(format!("{why}: {more}")),
            RoundError::Wrong(why) => RoundError::Wrong(format!("{why}: {more}")),
        }
    }
}

impl From<String> for RoundError {
    fn from(why: String) -> RoundError {
        RoundError::Failed(why)
    }
}

/// Detects drivers and clients that were starved of CPU time.
#[derive(Clone)]
pub(crate) struct Starvation {
    drivers: Vec<CountersReader>,
}

impl Starvation {
    /// Creates a detector for these drivers.
    pub(crate) fn of(drivers: Vec<CountersReader>) -> Starvation {
        Starvation { drivers }
    }

    /// Returns values that change when a process is starved: the number of starved clients, and the maximum cycle time
    /// of each driver if it is a stall.
    pub(crate) fn so_far(&self) -> Vec<u64> {
        let longest = |counters: &CountersReader| {
            let longest = counters.value(SystemCounter::ConductorMaxCycleTime.id());
            let longest = longest.map_or(0, |nanoseconds| nanoseconds.max(0) as u64);
            if u128::from(longest) < STALL.as_nanos() {
                0
            } else {
                longest
            }
        };
        let clients = STARVED.load(Ordering::Relaxed);
        std::iter::once(clients)
            .chain(self.drivers.iter().map(longest))
            .collect()
    }
}

/// Connects a client to the driver in a directory.
pub(crate) fn connect(directory: &Path) -> Result<Client, String> {
    let builder = Client::builder().aeron_dir(directory);
    let builder = builder.on_close(|end| {
        if let CloseReason::Lost(Lost::ClientTimeout { .. } | Lost::ServiceInterval { .. }) = end {
            STARVED.fetch_add(1, Ordering::Relaxed);
        }
    });
    builder.connect().map_err(text)
}

/// Records that an official client was starved, according to its output.
pub(crate) fn record_starved_official_client() {
    STARVED.fetch_add(1, Ordering::Relaxed);
}

/// Retries a command while the resources of an earlier round are still being released.
pub(crate) fn retry<T>(mut explain: impl FnMut() -> Result<T, CommandError>) -> Result<T, String> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match explain() {
            Err(CommandError::Registration(refused))
                if refused.code == ErrorCode::ResourceTemporarilyUnavailable
                    && Instant::now() < deadline =>
            {
                thread::sleep(POLL_INTERVAL);
            }
            other => return other.map_err(text),
        }
    }
}

/// Waits until the condition is true.
pub(crate) fn await_all(
    what: &str,
    mut condition: impl FnMut() -> Result<bool, RoundError>,
) -> Result<(), RoundError> {
    let deadline = Instant::now() + TIMEOUT;
    while !condition()? {
        if Instant::now() > deadline {
            return Err(format!("timed out waiting for: {what}").into());
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
