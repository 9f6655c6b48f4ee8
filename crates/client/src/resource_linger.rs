// SPDX-License-Identifier: Apache-2.0
//! Keeps the logs of closed publications and ended images mapped for the resource linger time.
//!
//! This is not needed for safety: a log stays mapped while any handle refers to it. Unmapping hundreds of megabytes
//! takes milliseconds, so it is moved from the thread that drops the last handle to the client conductor.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use taran_core::clock::saturating_nanos;
use taran_protocol::log::LogBuffers;

/// Logs that linger, in the order in which they were added.
#[derive(Debug)]
pub(crate) struct ResourceLinger {
    time_ns: i64,
    logs: Mutex<VecDeque<LingeringLog>>,
}

#[derive(Debug)]
struct LingeringLog {
    /// Time at which the conductor first saw the log; the linger time starts there.
    since_ns: Option<i64>,
    _log: Arc<LogBuffers>,
}

impl ResourceLinger {
    pub(crate) fn new(time: Duration) -> Self {
        Self {
            time_ns: saturating_nanos(time),
            logs: Mutex::default(),
        }
    }

    /// Keeps a log mapped until its linger time is over. Does nothing if the linger time is 0.
    pub(crate) fn add(&self, log: Arc<LogBuffers>) {
        if self.time_ns > 0 {
            self.lock().push_back(LingeringLog {
                since_ns: None,
                _log: log,
            });
        }
    }

    /// Releases the logs whose linger time is over.
    pub(crate) fn release_expired(&self, now_ns: i64) {
        let expired: Vec<LingeringLog> = {
            let mut logs = self.lock();
            // Logs that have no start time yet are at the end.
            for log in logs.iter_mut().rev() {
                if log.since_ns.is_some() {
                    break;
                }
                log.since_ns = Some(now_ns);
            }
            let is_expired = |log: &LingeringLog| {
                log.since_ns
                    .is_some_and(|since| now_ns.saturating_sub(since) >= self.time_ns)
            };
            let count = logs.iter().take_while(|log| is_expired(log)).count();
            logs.drain(..count).collect()
        };
        // Unmapped after the lock was released.
        drop(expired);
    }

    /// Releases all logs.
    pub(crate) fn release_all(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<LingeringLog>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use taran_core::memory::Region;
    use taran_protocol::log::{LogKind, LogSpec, file_length};

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn log() -> (Arc<LogBuffers>, Weak<LogBuffers>) {
        let spec = LogSpec::new(LogKind::Concurrent, 1, 2, 3, 64 * 1024);
        let region = Region::anonymous(file_length(spec.term_length, spec.page_size)).unwrap();
        let log = Arc::new(LogBuffers::create(&region, &spec, 0).unwrap());
        let weak = Arc::downgrade(&log);
        (log, weak)
    }

    fn is_mapped(log: &Weak<LogBuffers>) -> bool {
        log.strong_count() != 0
    }

    #[test]
    fn log_is_released_linger_time_after_first_conductor_cycle() {
        let linger = ResourceLinger::new(Duration::from_secs(3));
        let ((first, weak_first), (second, weak_second)) = (log(), log());
        linger.add(first);
        linger.release_expired(10 * SECOND);
        linger.add(second);
        linger.release_expired(12 * SECOND);
        linger.release_expired(13 * SECOND - 1);
        assert!(is_mapped(&weak_first) && is_mapped(&weak_second));
        linger.release_expired(13 * SECOND);
        assert!(!is_mapped(&weak_first) && is_mapped(&weak_second));
        linger.release_all();
        assert!(!is_mapped(&weak_second));
    }

    #[test]
    fn zero_linger_time_keeps_nothing() {
        let linger = ResourceLinger::new(Duration::ZERO);
        let (log, weak) = log();
        linger.add(log);
        assert!(!is_mapped(&weak));
    }

    #[test]
    fn log_in_use_stays_mapped_after_release() {
        let linger = ResourceLinger::new(Duration::from_secs(1));
        let (log, weak) = log();
        linger.add(Arc::clone(&log));
        linger.release_expired(0);
        linger.release_expired(SECOND);
        assert!(is_mapped(&weak));
        drop(log);
        assert!(!is_mapped(&weak));
    }
}
