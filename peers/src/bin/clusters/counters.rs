// SPDX-License-Identifier: Apache-2.0
//! Members, as their counters show and control them (`docs/spec/cluster.md` §9).

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, ClientBuilder};
use taran_bench::side::RunError;
use taran_cluster::module::{toggle, type_id};
use taran_core::counters::Counter;

use crate::session::{TIMEOUT, peer};

/// Interval between two looks at a counter.
const INTERVAL: Duration = Duration::from_millis(1);
/// Time limit for a member that reads a log.
const FOLLOW_TIMEOUT: Duration = Duration::from_secs(600);
/// State of a member that leads or follows: no election goes on.
const ELECTION_CLOSED: i64 = 17;

/// A toggle of a leader.
pub(crate) struct Toggle {
    counter: Counter,
    // Keeps the counters mapped.
    _client: Client,
}

impl Toggle {
    /// Finds the toggle of this type at a driver of a member.
    pub(crate) fn open(aeron_dir: &Path, type_id: i32) -> Result<Toggle, RunError> {
        let client = ClientBuilder::with_environment::<&str, &str>([])
            .aeron_dir(aeron_dir)
            .connect()?;
        let counters = client.counters();
        let found = counters.find(|meta| meta.type_id == type_id);
        let counter = found.and_then(|meta| counters.counter(meta.id));
        Ok(Toggle {
            counter: counter
                .ok_or_else(|| peer(format!("there is no counter of type {type_id}")))?,
            _client: client,
        })
    }

    /// Waits until the leader takes an action, and begins one.
    pub(crate) fn set(&self, action: i64) -> Result<(), RunError> {
        let deadline = Instant::now() + TIMEOUT;
        while self
            .counter
            .compare_exchange(toggle::NEUTRAL, action)
            .is_err()
        {
            check(deadline, TIMEOUT, "a leader that takes an action")?;
        }
        Ok(())
    }

    /// Returns true if the action has ended; fails if the member does not lead any more.
    pub(crate) fn is_done(&self) -> Result<bool, RunError> {
        match self.counter.get() {
            toggle::INACTIVE => Err(peer("the leader has lost its leadership during the action")),
            value => Ok(value == toggle::NEUTRAL),
        }
    }
}

/// Lets the leader take a snapshot, and waits for its end.
pub(crate) fn snapshot(aeron_dir: &Path) -> Result<(), RunError> {
    let toggle = Toggle::open(aeron_dir, type_id::CONTROL_TOGGLE)?;
    toggle.set(toggle::SNAPSHOT)?;
    let deadline = Instant::now() + TIMEOUT;
    while !toggle.is_done()? {
        check(deadline, TIMEOUT, "the snapshot")?;
    }
    Ok(())
}

/// Lets our leader hand leadership over to any member. Does not wait.
pub(crate) fn transfer(aeron_dir: &Path) -> Result<(), RunError> {
    let toggle = Toggle::open(aeron_dir, type_id::TRANSFER_TOGGLE)?;
    toggle.set(toggle::transfer_leadership(None))
}

/// Waits until a member whose driver has this process id follows, with all that the leader had committed at the begin.
pub(crate) fn follow(leader_dir: &Path, aeron_dir: &Path, pid: u32) -> Result<(), RunError> {
    let deadline = Instant::now() + FOLLOW_TIMEOUT;
    let (_, _, target) = look(leader_dir).ok_or_else(|| peer("the leader has no counters"))?;
    let is_complete =
        |(driver, is_closed, position)| i64::from(pid) == driver && is_closed && position >= target;
    while !look(aeron_dir).is_some_and(is_complete) {
        check(deadline, FOLLOW_TIMEOUT, "a member that follows")?;
    }
    Ok(())
}

/// Returns the process of a member's driver, whether no election goes on, and the commit position. None if the member has not
/// started yet.
fn look(aeron_dir: &Path) -> Option<(i64, bool, i64)> {
    let driver = ClientBuilder::with_environment::<&str, &str>([])
        .aeron_dir(aeron_dir)
        .inspect_driver()
        .ok()?;
    let counters = driver.counters();
    let value = |type_id| {
        let found = counters.find(|meta| meta.type_id == type_id)?;
        counters.value(found.id)
    };
    let is_closed = value(type_id::ELECTION_STATE)? == ELECTION_CLOSED;
    Some((driver.pid(), is_closed, value(type_id::COMMIT_POSITION)?))
}

/// Pauses before the next look. Fails after the deadline, and reports the limit that has led to it.
fn check(deadline: Instant, limit: Duration, what: &'static str) -> Result<(), RunError> {
    if Instant::now() > deadline {
        return Err(RunError::TimedOut(limit, what));
    }
    thread::sleep(INTERVAL);
    Ok(())
}
