//! Both sides, or one of them, with threads and drivers as asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::config::{EchoConfig, Role};
use super::{client, server};
use crate::report::EchoReport;
use crate::side::{RunError, Side, SideSpec};

/// Runs the benchmark. A [`Role::Server`] runs until `stop` is raised and reports nothing.
///
/// # Errors
/// [`RunError`] where a driver, a connection or an option is at fault; lost messages and a rate that was not held are
/// not errors but part of the report.
pub fn run(config: &EchoConfig, stop: &Arc<AtomicBool>) -> Result<Option<EchoReport>, RunError> {
    config.check().map_err(RunError::Config)?;
    match config.role {
        Role::Client => measure(config).map(Some),
        Role::Server => {
            let mut side = Side::start(&spec(config, 0))?;
            server::run(config, &mut side, stop).map(|()| None)
        }
        Role::Both => both(config, stop).map(Some),
    }
}

fn both(config: &EchoConfig, stop: &Arc<AtomicBool>) -> Result<EchoReport, RunError> {
    let echoing = {
        let (config, stop) = (config.clone(), Arc::clone(stop));
        thread::Builder::new()
            .name("echo-server".to_owned())
            .spawn(move || {
                let mut side = Side::start(&spec(&config, 1))?;
                server::run(&config, &mut side, &stop)
            })
            .map_err(|error| RunError::Config(format!("no thread for the echoing side: {error}")))?
    };
    let report = measure(config);
    stop.store(true, Ordering::Relaxed);
    let echoed = echoing
        .join()
        .unwrap_or_else(|_| Err(RunError::Config("the echoing side panicked".to_owned())));
    // Where both sides failed, the echoing one is the likelier cause.
    echoed?;
    report
}

fn measure(config: &EchoConfig) -> Result<EchoReport, RunError> {
    let mut side = Side::start(&spec(config, 0))?;
    client::run(config, &mut side)
}

fn spec(config: &EchoConfig, index: usize) -> SideSpec {
    SideSpec {
        aeron_dir: config.aeron_dir.clone(),
        threading: config.threading.clone(),
        driver_options: config.driver_options.clone(),
        cpu: config.cpus.get(index).copied(),
    }
}
