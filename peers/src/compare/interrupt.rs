//! What ends a comparison early, so that nothing of it is left behind.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// How long a signal may wait to be noticed.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

static RAISED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on signals are noticed instead of ending the process.
pub(crate) fn watch() -> Result<(), String> {
    let flag = RAISED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(flag))
            .map_err(|error| format!("signals cannot be handled: {error}"))?;
    }
    Ok(())
}

/// An error once there was a signal.
pub(crate) fn check() -> Result<(), String> {
    match RAISED.get() {
        Some(flag) if flag.load(Ordering::Relaxed) => Err("interrupted".to_owned()),
        _ => Ok(()),
    }
}

/// Waits for so long.
pub(crate) fn pause(duration: Duration) -> Result<(), String> {
    let end = Instant::now() + duration;
    while Instant::now() < end {
        check()?;
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}
