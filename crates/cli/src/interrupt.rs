// SPDX-License-Identifier: Apache-2.0
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
        if is_init() {
            flag::register_conditional_shutdown(signal, status(signal), Arc::clone(&stop))?;
        } else {
            flag::register_conditional_default(signal, Arc::clone(&stop))?;
        }
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Makes SIGINT and SIGTERM end this process if it is the first one of a container. The kernel ignores them for process 1
/// unless it has handlers.
pub(crate) fn exit_as_init() -> io::Result<()> {
    if !is_init() {
        return Ok(());
    }
    for signal in [SIGINT, SIGTERM] {
        let always = Arc::new(AtomicBool::new(true));
        flag::register_conditional_shutdown(signal, status(signal), always)?;
    }
    Ok(())
}

/// Returns true if this process is the first one of its PID namespace.
fn is_init() -> bool {
    std::process::id() == 1
}

/// Returns the exit status after a signal, as shells report it.
fn status(signal: i32) -> i32 {
    128 + signal
}
