// SPDX-License-Identifier: Apache-2.0
//! The times at which a publication may send SETUPs.
//!
//! **Input**: [`restart`](SetupSchedule::restart) where receivers may be about to join, [`on_request`](SetupSchedule::on_request),
//! and [`on_sent`](SetupSchedule::on_sent). **Output**: [`is_due`](SetupSchedule::is_due).
//!
//! Official drivers send SETUPs at intervals of 100 ms, and a receiver that misses the first one waits for the next. Here the
//! interval begins with 1 ms and doubles until it is that of official drivers: a receiver that comes some time after the begin
//! waits for about that time at most, and seven SETUPs more are sent than at the fixed interval.

/// The interval between SETUPs that stays.
const LONGEST_INTERVAL_NS: i64 = 100_000_000;
/// The first interval.
const SHORTEST_INTERVAL_NS: i64 = 1_000_000;
/// Time without a SETUP after which a request restarts the schedule. Requests without end get ten SETUPs per second, as from
/// official drivers.
const QUIET_NS: i64 = 1_000_000_000;

/// Schedule of the SETUPs of one publication.
#[derive(Debug)]
pub(super) struct SetupSchedule {
    sent_ns: i64,
    /// From the last SETUP to the next.
    interval_ns: i64,
    /// From the next SETUP to the one after it.
    next_interval_ns: i64,
}

impl SetupSchedule {
    /// Creates a schedule with a SETUP that is due.
    pub(super) const fn new() -> Self {
        Self {
            sent_ns: i64::MIN,
            interval_ns: SHORTEST_INTERVAL_NS,
            next_interval_ns: SHORTEST_INTERVAL_NS,
        }
    }

    /// Goes on with the first interval.
    pub(super) const fn restart(&mut self) {
        self.interval_ns = SHORTEST_INTERVAL_NS;
        self.next_interval_ns = SHORTEST_INTERVAL_NS;
    }

    /// Takes a receiver's request for a SETUP.
    pub(super) const fn on_request(&mut self, now_ns: i64) {
        if now_ns.saturating_sub(self.sent_ns) > QUIET_NS {
            self.restart();
        }
    }

    /// Returns true if more than the interval has passed since the last SETUP.
    pub(super) const fn is_due(&self, now_ns: i64) -> bool {
        now_ns.saturating_sub(self.sent_ns) > self.interval_ns
    }

    /// Returns the time from which on the next SETUP is due.
    pub(super) const fn deadline_ns(&self) -> i64 {
        self.sent_ns.saturating_add(self.interval_ns + 1)
    }

    /// Records that a SETUP is sent.
    pub(super) fn on_sent(&mut self, now_ns: i64) {
        self.sent_ns = now_ns;
        self.interval_ns = self.next_interval_ns;
        self.next_interval_ns = (2 * self.interval_ns).min(LONGEST_INTERVAL_NS);
    }
}
