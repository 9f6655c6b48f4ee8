// SPDX-License-Identifier: Apache-2.0
//! Prints a progress line per second on standard error, from its own thread so that the measured threads never format.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Counts updated by the measured thread.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
}

/// Progress printer; stops when dropped.
pub(super) struct Progress {
    counts: Arc<Counts>,
    running: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts the printing thread if `shown`. The counts exist in either case.
    pub(super) fn start(shown: bool) -> Progress {
        let counts = Arc::new(Counts::default());
        let running = Arc::new(AtomicBool::new(true));
        let thread = shown.then(|| {
            let (counts, running) = (Arc::clone(&counts), Arc::clone(&running));
            thread::spawn(move || print(&counts, &running))
        });
        Progress {
            counts,
            running,
            thread,
        }
    }

    /// Returns the counts, to be written by the measured thread with relaxed stores.
    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.running.store(false, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn print(counts: &Counts, running: &AtomicBool) {
    let start = Instant::now();
    let mut before = 0;
    while running.load(Ordering::Relaxed) {
        thread::park_timeout(Duration::from_secs(1));
        if !running.load(Ordering::Relaxed) {
            return;
        }
        let sent = counts.sent.load(Ordering::Relaxed);
        let received = counts.received.load(Ordering::Relaxed);
        if sent > 0 {
            eprintln!(
                "{:>4} s  sent {sent:>12}  received {received:>12}  {:>10} msg/s",
                start.elapsed().as_secs(),
                sent.saturating_sub(before),
            );
        }
        before = sent;
    }
}
