//! SIGINT and SIGTERM end a command in an orderly way, so that embedded drivers delete their files and replays end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::signal::{SIGINT, SIGTERM};
use signal_hook::flag;

/// A flag that the first signal sets.
pub(crate) type Interrupt = Arc<AtomicBool>;

/// Returns a flag that the first signal sets. The second signal ends the process at once.
pub(crate) fn flag() -> io::Result<Interrupt> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the first signal finds the flag unset, then sets it.
        flag::register_conditional_default(signal, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
