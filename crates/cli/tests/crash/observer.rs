//! Looking at a driver from outside.

use std::path::Path;
use std::time::Duration;

use taran::DriverView;
use taran_protocol::counter::SystemCounter;

use crate::bench::{await_true, context};
use crate::level::Level;

/// Looks at the driver from outside.
pub(crate) struct Observer {
    driver: DriverView,
    pid: u32,
}

impl Observer {
    pub(crate) fn of(directory: &Path, pid: u32) -> Observer {
        let driver = context(directory).inspect_driver().unwrap();
        Observer { driver, pid }
    }

    pub(crate) fn level(&self) -> Level {
        Level::of(self.driver.aeron_dir(), self.pid, &self.driver.counters())
    }

    #[track_caller]
    pub(crate) fn await_level(&self, expected: &Level) {
        let mut last = self.level();
        let reached = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            await_true("the driver to give everything back", || {
                last = self.level();
                last == *expected
            });
        }));
        assert!(reached.is_ok(), "{last:?} in place of {expected:?}");
    }

    /// Waits until the driver holds the same twice in a row.
    pub(crate) fn await_settled(&self) {
        let mut last = self.level();
        await_true("the driver to settle", || {
            let now = self.level();
            let settled = now == last;
            last = now;
            settled
        });
    }

    /// Time since the driver's last sign of life.
    pub(crate) fn heartbeat_age(&self) -> Duration {
        self.driver.heartbeat_age().unwrap_or_default()
    }

    pub(crate) fn for_each_error(&self, mut look: impl FnMut(&str)) {
        self.driver.for_each_error(0, |error| look(&error.text));
    }

    pub(crate) fn count(&self, counter: SystemCounter) -> i64 {
        self.driver.counters().value(counter.id()).unwrap()
    }

    pub(crate) fn counts(&self) -> String {
        let counters = [
            SystemCounter::ClientTimeouts,
            SystemCounter::UnblockedCommands,
            SystemCounter::UnblockedPublications,
        ];
        counters
            .map(|counter| format!("{counter:?} {}", self.count(counter)))
            .join(", ")
    }
}
