// SPDX-License-Identifier: Apache-2.0
//! The catch-up of a member that was started again, as its driver's counters show it.

use std::path::Path;
use std::time::{Duration, Instant};

use taran::ClientBuilder;
use taran_cluster::module::type_id;

use crate::members::ELECTION_CLOSED;

/// Interval between two looks at the counters.
const INTERVAL: Duration = Duration::from_millis(10);

/// Position of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Process of its driver.
    pid: u32,
    /// The member leads or follows: no election goes on.
    has_leader: bool,
    commit: i64,
}

impl Position {
    /// Reads the counters of a member in the directory of its driver; none if it has not started yet, or has ended.
    pub(super) fn read(driver_dir: &Path) -> Option<Self> {
        let driver = ClientBuilder::with_environment::<&str, &str>([])
            .aeron_dir(driver_dir)
            .inspect_driver()
            .ok()?;
        let counters = driver.counters();
        let value = |type_id| {
            let found = counters.find(|meta| meta.type_id == type_id)?;
            counters.value(found.id)
        };
        Some(Self {
            pid: u32::try_from(driver.pid()).ok()?,
            has_leader: value(type_id::ELECTION_STATE)? == ELECTION_CLOSED,
            commit: value(type_id::COMMIT_POSITION)?,
        })
    }
}

/// Watches a member until it has what was committed when it was started again.
///
/// Contract: while [`is_due`](Self::is_due), [`poll`](Self::poll) takes the positions of leader and member; it returns a result once,
/// at the end.
#[derive(Debug)]
pub(super) struct CatchUp {
    member: usize,
    pid: u32,
    begin: Instant,
    due: Instant,
    /// Commit position of the leader at the first look.
    target: Option<i64>,
}

impl CatchUp {
    /// Watches a member whose process was started now.
    pub(super) fn new(member: usize, pid: u32, now: Instant) -> Self {
        Self {
            member,
            pid,
            begin: now,
            due: now,
            target: None,
        }
    }

    pub(super) fn member(&self) -> usize {
        self.member
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// Takes positions. Returns that of the member, and the time since its start, once it follows with all that was committed.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        leader: Option<Position>,
        member: Option<Position>,
    ) -> Option<(i64, Duration)> {
        self.due = now + INTERVAL;
        self.target = self.target.or(leader.map(|leader| leader.commit));
        // The counters of the process that was killed are left until the next one has removed them.
        let member = member.filter(|member| member.pid == self.pid && member.has_leader)?;
        let has_all = self.target.is_some_and(|target| member.commit >= target);
        has_all.then(|| (member.commit, now.saturating_duration_since(self.begin)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(pid: u32, has_leader: bool, commit: i64) -> Option<Position> {
        Some(Position {
            pid,
            has_leader,
            commit,
        })
    }

    #[test]
    fn member_has_caught_up_when_its_new_process_follows_at_the_position_of_the_start() {
        let start = Instant::now();
        let mut catch_up = CatchUp::new(2, 20, start);
        let at = |ms| start + Duration::from_millis(ms);
        let leader = |commit| position(10, true, commit);
        assert!(catch_up.is_due(start));
        // The leader is not to be read, and the killed process looks complete.
        assert_eq!(catch_up.poll(at(0), None, position(19, true, 900)), None);
        assert!(!catch_up.is_due(at(1)));
        assert!(catch_up.is_due(at(10)));
        assert_eq!(catch_up.poll(at(10), leader(500), None), None);
        let electing = position(20, false, 600);
        assert_eq!(catch_up.poll(at(20), leader(700), electing), None);
        let behind = position(20, true, 499);
        assert_eq!(catch_up.poll(at(30), leader(700), behind), None);
        let complete = position(20, true, 500);
        let (reached, time) = catch_up.poll(at(40), leader(900), complete).unwrap();
        assert_eq!((reached, time), (500, Duration::from_millis(40)));
    }
}
