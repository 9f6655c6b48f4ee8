// SPDX-License-Identifier: Apache-2.0
//! Inspects a driver from outside.

use std::path::Path;
use std::time::Duration;

use taran::DriverView;
use taran_protocol::counter::SystemCounter;

use crate::fixture::{await_true, builder};
use crate::resources::Resources;

/// A view of a driver, and its process id.
pub(crate) struct Observer {
    driver: DriverView,
    pid: u32,
}

impl Observer {
    pub(crate) fn of(directory: &Path, pid: u32) -> Observer {
        let driver = builder(directory).inspect_driver().unwrap();
        Observer { driver, pid }
    }

    pub(crate) fn resources(&self) -> Resources {
        Resources::of(self.driver.aeron_dir(), self.pid, &self.driver.counters())
    }

    #[track_caller]
    pub(crate) fn await_resources(&self, expected: &Resources) {
        let mut last = self.resources();
        let reached = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            await_true("the driver to give everything back", || {
                last = self.resources();
                last == *expected
            });
        }));
        assert!(reached.is_ok(), "{last:?} in place of {expected:?}");
    }

    /// Waits until two consecutive readings of the resources are equal.
    pub(crate) fn await_settled(&self) {
        let mut last = self.resources();
        await_true("the driver to settle", || {
            let now = self.resources();
            let settled = now == last;
            last = now;
            settled
        });
    }

    /// Returns the time since the driver's last heartbeat.
    pub(crate) fn heartbeat_age(&self) -> Duration {
        self.driver.heartbeat_age().unwrap_or_default()
    }

    pub(crate) fn for_each_error(&self, mut inspect: impl FnMut(&str)) {
        self.driver.for_each_error(0, |error| inspect(&error.text));
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
