//! Logs that nobody needs any more, kept mapped for a while.
//!
//! A log stays mapped as long as any handle on it lives, so keeping it is no matter of safety. It is one of time: unmapping
//! hundreds of megabytes takes milliseconds, which the client conductor has and the thread that drops the last handle
//! may not.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use taran_core::clock::saturating_nanos;
use taran_protocol::log::LogBuffers;

#[derive(Debug)]
pub(crate) struct Lingering {
    time_ns: i64,
    logs: Mutex<VecDeque<Kept>>,
}

#[derive(Debug)]
struct Kept {
    /// When the conductor first saw it; its time runs from there.
    since_ns: Option<i64>,
    _log: Arc<LogBuffers>,
}

impl Lingering {
    pub(crate) fn new(time: Duration) -> Self {
        Self {
            time_ns: saturating_nanos(time),
            logs: Mutex::default(),
        }
    }

    /// Keeps a log from being unmapped by whoever drops the last handle on it.
    pub(crate) fn keep(&self, log: Arc<LogBuffers>) {
        if self.time_ns > 0 {
            self.lock().push_back(Kept {
                since_ns: None,
                _log: log,
            });
        }
    }

    /// Lets go of the logs whose time is over.
    pub(crate) fn release(&self, now_ns: i64) {
        let over: Vec<Kept> = {
            let mut logs = self.lock();
            // Those that are new are the last ones.
            for log in logs.iter_mut().rev() {
                if log.since_ns.is_some() {
                    break;
                }
                log.since_ns = Some(now_ns);
            }
            let is_over = |log: &Kept| {
                log.since_ns
                    .is_some_and(|since| now_ns.saturating_sub(since) >= self.time_ns)
            };
            let count = logs.iter().take_while(|log| is_over(log)).count();
            logs.drain(..count).collect()
        };
        // Unmapped here, not under the lock.
        drop(over);
    }

    /// Lets go of all.
    pub(crate) fn release_all(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Kept>> {
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
    fn a_log_lingers_from_when_the_conductor_sees_it() {
        let lingering = Lingering::new(Duration::from_secs(3));
        let ((first, weak_first), (second, weak_second)) = (log(), log());
        lingering.keep(first);
        lingering.release(10 * SECOND);
        lingering.keep(second);
        lingering.release(12 * SECOND);
        lingering.release(13 * SECOND - 1);
        assert!(is_mapped(&weak_first) && is_mapped(&weak_second));
        lingering.release(13 * SECOND);
        assert!(!is_mapped(&weak_first) && is_mapped(&weak_second));
        lingering.release_all();
        assert!(!is_mapped(&weak_second));
    }

    #[test]
    fn without_time_nothing_lingers() {
        let lingering = Lingering::new(Duration::ZERO);
        let (log, weak) = log();
        lingering.keep(log);
        assert!(!is_mapped(&weak));
    }

    #[test]
    fn a_log_in_use_stays() {
        let lingering = Lingering::new(Duration::from_secs(1));
        let (log, weak) = log();
        lingering.keep(Arc::clone(&log));
        lingering.release(0);
        lingering.release(SECOND);
        assert!(is_mapped(&weak));
        drop(log);
        assert!(!is_mapped(&weak));
    }
}
