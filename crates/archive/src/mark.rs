// SPDX-License-Identifier: Apache-2.0
//! Keeping the mark file of a running archive up to date (`docs/spec/archive.md` §3.7).

use crate::files::MarkFile;

/// Interval of activity timestamps in milliseconds.
const HEARTBEAT_INTERVAL_MS: i64 = 1_000;

/// Upkeep of the mark of an archive by its conductor.
pub(crate) trait MarkKeeper: Send {
    /// Called in each duty cycle.
    fn on_duty_cycle(&mut self, now_ms: i64);

    /// Called once, when all recordings are stopped.
    fn on_end(&mut self);

    /// Called in place of [`on_end`](Self::on_end) if writes are still under way: the directory stays claimed until the process
    /// ends.
    fn on_abandon(&mut self);
}

/// The mark file of an archive.
#[derive(Debug)]
pub(crate) struct KeptMarkFile {
    file: Option<MarkFile>,
    last_ms: i64,
}

impl KeptMarkFile {
    pub(crate) fn new(file: MarkFile) -> Self {
        Self {
            file: Some(file),
            last_ms: 0,
        }
    }
}

impl MarkKeeper for KeptMarkFile {
    fn on_duty_cycle(&mut self, now_ms: i64) {
        // The wall clock may be set back.
        let is_due =
            now_ms.wrapping_sub(self.last_ms) >= HEARTBEAT_INTERVAL_MS || now_ms < self.last_ms;
        if is_due && let Some(file) = &self.file {
            self.last_ms = now_ms;
            file.heartbeat(now_ms);
        }
    }

    fn on_end(&mut self) {
        // Dropping it releases the claim.
        self.file = None;
    }

    fn on_abandon(&mut self) {
        // The system releases the lock.
        std::mem::forget(self.file.take());
    }
}
