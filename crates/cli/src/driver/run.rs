// SPDX-License-Identifier: Apache-2.0
//! Life cycle of the driver process.

use std::io;
use std::path::Path;
use std::time::Duration;

use taran_core::idle::IdleError;
use taran_driver::{DriverContext, DriverError, MediaDriver, Termination};
use taran_protocol::counter::SystemCounter;
use taran_protocol::option::{IdleRole, OptionSet, ThreadingMode};

use super::stop::{Signals, Stop};
use crate::is_official_name;
use crate::start_line::StartLine;

/// Interval of checks for failed agents. Signals and requests end the wait at once.
const FAILURE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Reason why a driver could not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("cannot register signal handlers: {0}")]
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
    /// Returns the stage of the driver in the words of `aeronmd`.
    pub(super) fn stage(&self) -> &'static str {
        match self {
            RunError::Signals(_) | RunError::Idle(_) => "context init",
            RunError::Launch(_) => "driver init",
            RunError::Failed(_) => "driver run",
            RunError::Close(_) => "driver close",
        }
    }
}

/// Runs a driver until it is stopped, then closes it.
pub(super) fn run(options: &OptionSet) -> Result<Stop, RunError> {
    // Registered before the driver starts, so that a signal during startup also closes it in an orderly way.
    let mut signals = Signals::register()?;
    let mut waker = signals.waker()?;
    #[cfg(feature = "secure")]
    if options.secure_mode_name() != "off" {
        signals.register_hangup()?;
    }
    let mode = options.threading_mode();
    let idle = options.idle(IdleRole::Shared)?;
    let context =
        DriverContext::from_options(options.clone()).termination_hook(move || waker.wake());
    let mut driver = MediaDriver::launch(context).map_err(RunError::Launch)?;
    // `aeronmd` prints nothing.
    if !is_official_name() {
        print_start_line(options, driver.aeron_dir());
    }
    let status = SystemCounter::ControllableIdleStrategy.id();
    let mut idle = match driver.counters().counter(status) {
        Some(status) => idle.build_controlled(&status),
        None => idle.build(),
    };

    let stop = loop {
        if let Some(stop) = stopped(&driver, &signals) {
            break stop;
        }
        #[cfg(feature = "secure")]
        if signals.take_hangup() {
            driver.reload_keys();
        }
        if mode == ThreadingMode::Invoker {
            let work = driver.invoke();
            idle.idle(work, &mut |longest| driver.park(longest));
        } else {
            signals.wait(FAILURE_CHECK_INTERVAL)?;
        }
    };
    print_shutdown_message();
    driver.close().map_err(RunError::Close)?;
    stop
}

fn stopped(driver: &MediaDriver, signals: &Signals) -> Option<Result<Stop, RunError>> {
    if let Some(stop) = signals.received() {
        return Some(Ok(stop));
    }
    driver.termination().map(|termination| match termination {
        Termination::Requested => Ok(Stop::Requested),
        failure => Err(RunError::Failed(failure.to_string())),
    })
}

fn print_start_line(options: &OptionSet, directory: &Path) {
    let mut line = StartLine::new("driver");
    line.add("directory", directory.display());
    line.add("threading", options.threading_mode_name());
    line.add_profile(options);
    line.print();
}

/// Standard output may be closed; the driver has to close all the same.
fn print_shutdown_message() {
    use std::io::Write;
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "Shutting down driver...");
    let _ = out.flush();
}
