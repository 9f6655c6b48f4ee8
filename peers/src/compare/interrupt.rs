// SPDX-License-Identifier: Apache-2.0
//! Handling of signals, so that an interrupted comparison cleans up its processes, namespaces and files.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Largest delay between a signal and its detection.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

static RAISED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Installs handlers for SIGINT, SIGTERM and SIGHUP that set a flag instead of ending the process.
pub(crate) fn watch() -> Result<(), String> {
    let flag = RAISED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(flag))
            .map_err(|error| format!("signals cannot be handled: {error}"))?;
    }
    Ok(())
}

/// Returns an error if a signal was received.
pub(crate) fn check() -> Result<(), String> {
    match RAISED.get() {
        Some(flag) if flag.load(Ordering::Relaxed) => Err("interrupted".to_owned()),
        _ => Ok(()),
    }
}

/// Sleeps, and returns early with an error if a signal is received.
pub(crate) fn pause(duration: Duration) -> Result<(), String> {
    let end = Instant::now() + duration;
    while Instant::now() < end {
        check()?;
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}
