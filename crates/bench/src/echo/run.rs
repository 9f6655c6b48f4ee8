//! Both sides, or one of them, with threads and drivers as asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::config::{EchoConfig, Role};
use super::{client, server};
use crate::report::EchoReport;
use crate::side::{RunError, Side, SideSpec};

/// Runs the benchmark. A [`Role::Server`] runs until `stop` is raised and reports nothing; the other roles end early
/// with [`RunError::Interrupted`] when it is.
///
/// # Errors
/// [`RunError`] where a driver, a connection or an option is at fault; lost messages and a rate that was not held are
/// not errors but part of the report.
pub fn run(config: &EchoConfig, stop: &Arc<AtomicBool>) -> Result<Option<EchoReport>, RunError> {
    config.check().map_err(RunError::Config)?;
    match config.role {
        Role::Client => {
            let mut side = Side::start(&spec(config, 0, stop))?;
            client::run(config, &mut side).map(Some)
        }
        Role::Server => {
            let mut side = Side::start(&spec(config, 0, stop))?;
            server::run(config, &mut side).map(|()| None)
        }
        Role::Both => both(config, stop).map(Some),
    }
}

fn both(config: &EchoConfig, stop: &Arc<AtomicBool>) -> Result<EchoReport, RunError> {
    let mut side = Side::start(&spec(config, 0, stop))?;
    // Raised when the measuring side is done, for whatever reason.
    let done = Arc::new(AtomicBool::new(false));
    let mut echoing = spec(config, 1, &done);
    if config.is_ipc() {
        echoing.aeron_dir = Some(side.aeron_dir().to_path_buf());
    }
    let echoing = {
        let config = config.clone();
        thread::Builder::new()
            .name("echo-server".to_owned())
            .spawn(move || {
                let mut side = Side::start(&echoing)?;
                server::run(&config, &mut side)
            })
            .map_err(|error| RunError::Config(format!("no thread for the echoing side: {error}")))?
    };
    let report = client::run(config, &mut side);
    done.store(true, Ordering::Relaxed);
    // An echoing side that waits for the driver of this one needs it to go on.
    while !echoing.is_finished() && side.turn().is_ok() {}
    let echoed = echoing
        .join()
        .unwrap_or_else(|_| Err(RunError::Config("the echoing side panicked".to_owned())));
    // Where both sides failed, the echoing one is the likelier cause.
    echoed?;
    report
}

fn spec(config: &EchoConfig, index: usize, stop: &Arc<AtomicBool>) -> SideSpec {
    SideSpec {
        aeron_dir: config.aeron_dir.clone(),
        threading: config.threading.clone(),
        driver_options: config.driver_options.clone(),
        embed: config.embed,
        cpu: config.cpus.get(index).copied(),
        stop: Arc::clone(stop),
    }
}
