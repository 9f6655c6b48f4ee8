//! The life of a driver's process.

use std::io;
use std::time::Duration;

use taran_core::idle::IdleError;
use taran_driver::{DriverContext, DriverError, MediaDriver, Termination};
use taran_protocol::counter::SystemCounter;
use taran_protocol::option::{IdleRole, OptionSet, ThreadingMode};

use super::stop::{Signals, Stop};

/// How often to look whether an agent has failed. Everything else ends the wait at once.
const CHECK: Duration = Duration::from_secs(1);

/// Why a driver could not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("signals cannot be handled: {0}")]
    Signals(#[from] io::Error),
    #[error(transparent)]
    Idle(#[from] IdleError),
    #[error(transparent)]
    Launch(DriverError),
    #[error("{0}; the driver has shut down, see 'taran errors'")]
    Failed(String),
    #[error(transparent)]
    Close(DriverError),
}

impl RunError {
    /// What the driver was doing, in the words of `aeronmd`.
    pub(super) fn stage(&self) -> &'static str {
        match self {
            RunError::Signals(_) | RunError::Idle(_) => "context init",
            RunError::Launch(_) => "driver init",
            RunError::Failed(_) => "driver run",
            RunError::Close(_) => "driver close",
        }
    }
}

/// Runs a driver until something stops it, then closes it.
pub(super) fn run(options: OptionSet) -> Result<Stop, RunError> {
    // Before the driver, so that a signal which comes while it starts closes it in an orderly way.
    let mut signals = Signals::register()?;
    let mut bell = signals.bell()?;
    let mode = options.threading_mode();
    let idle = options.idle(IdleRole::Shared)?;
    let context = DriverContext::from_options(options).termination_hook(move || bell.ring());
    let mut driver = MediaDriver::launch(context).map_err(RunError::Launch)?;
    let status = SystemCounter::ControllableIdleStrategy.id();
    let mut idle = match driver.counters().counter(status) {
        Some(status) => idle.build_controlled(&status),
        None => idle.build(),
    };

    let stop = loop {
        if let Some(stop) = stopped(&driver, &signals) {
            break stop;
        }
        if mode == ThreadingMode::Invoker {
            let work = driver.invoke();
            idle.idle(work, &mut |longest| driver.park(longest));
        } else {
            signals.wait(CHECK)?;
        }
    };
    say_farewell();
    driver.close().map_err(RunError::Close)?;
    stop
}

fn stopped(driver: &MediaDriver, signals: &Signals) -> Option<Result<Stop, RunError>> {
    if let Some(stop) = signals.received() {
        return Some(Ok(stop));
    }
    driver.termination().map(|termination| match termination {
        Termination::Requested => Ok(Stop::Requested),
        Termination::Failed(text) => Err(RunError::Failed(text)),
    })
}

/// Nobody may be listening any more; that is no reason not to close.
fn say_farewell() {
    use std::io::Write;
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "Shutting down driver...");
    let _ = out.flush();
}
