//! Patience, and what to make of it when it ends: a machine that gives somebody no time proves nothing.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran::{AddError, Client, CloseReason, Context, ErrorCode, Lost};
use taran_core::counters::CountersReader;
use taran_protocol::counter::SystemCounter;

/// How long anything may take that a round waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at everything.
pub(crate) const STEP: Duration = Duration::from_millis(1);

/// A driver that did nothing for so long has lost what its peers send in that time, and may have lost its peers.
const STALL: Duration = Duration::from_secs(4);

/// Clients that had no time to show that they live.
static STARVED: AtomicU64 = AtomicU64::new(0);

/// What ended a round.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// A peer that had no time may be behind it.
    Failed(String),
    /// Something came that was never to come: no want of time explains it.
    Wrong(String),
}

impl Trouble {
    /// The same, with more to say.
    pub(crate) fn and(self, more: &str) -> Trouble {
        match self {
            Trouble::Failed(why) => Trouble::Failed(format!("{why}: {more}")),
            Trouble::Wrong(why) => Trouble::Wrong(format!("{why}: {more}")),
        }
    }
}

impl From<String> for Trouble {
    fn from(why: String) -> Trouble {
        Trouble::Failed(why)
    }
}

/// Sees which drivers and clients the machine gave no time.
#[derive(Clone)]
pub(crate) struct Starvation {
    drivers: Vec<CountersReader>,
}

impl Starvation {
    /// Of these drivers.
    pub(crate) fn of(drivers: Vec<CountersReader>) -> Starvation {
        Starvation { drivers }
    }

    /// What is not the same later if somebody starved meanwhile: the clients that ended so, and the longest time between
    /// two turns of each driver if that is a stall.
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

/// A client of the driver in a directory.
pub(crate) fn connect(directory: &Path) -> Result<Client, String> {
    let context = Context::new().aeron_dir(directory);
    let context = context.on_close(|end| {
        if let CloseReason::Lost(Lost::ClientTimeout { .. } | Lost::ServiceInterval { .. }) = end {
            STARVED.fetch_add(1, Ordering::Relaxed);
        }
    });
    context.connect().map_err(text)
}

/// An official client could not show that it lives: its program has said so.
pub(crate) fn an_official_client_starved() {
    STARVED.fetch_add(1, Ordering::Relaxed);
}

/// Asks, and asks again as long as what was closed a moment ago is about to go.
pub(crate) fn again<T>(mut ask: impl FnMut() -> Result<T, AddError>) -> Result<T, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match ask() {
            Err(AddError::Registration(refused))
                if refused.code == ErrorCode::ResourceTemporarilyUnavailable
                    && Instant::now() < deadline =>
            {
                thread::sleep(STEP);
            }
            other => return other.map_err(text),
        }
    }
}

/// Waits, with patience.
pub(crate) fn await_all(
    what: &str,
    mut is_so: impl FnMut() -> Result<bool, Trouble>,
) -> Result<(), Trouble> {
    let deadline = Instant::now() + PATIENCE;
    while !is_so()? {
        if Instant::now() > deadline {
            return Err(format!("waited in vain: {what}").into());
        }
        thread::sleep(STEP);
    }
    Ok(())
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
