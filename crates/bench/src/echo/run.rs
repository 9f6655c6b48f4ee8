// SPDX-License-Identifier: Apache-2.0
//! Runs both sides or one of them, with the configured threads and drivers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::config::{EchoConfig, Role};
use super::{client, server};
use crate::report::EchoReport;
use crate::side::{RunError, Side, SideSpec};

/// Runs the benchmark. A [`Role::Server`] runs until `stop` is set and returns no report; the other roles return
/// [`RunError::Interrupted`] when `stop` is set.
///
/// # Errors
/// [`RunError`] if a driver, a connection or an option fails. Lost messages and a missed rate are not errors; the
/// report contains them.
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
    // Set when the client side has ended, with or without an error.
    let done = Arc::new(AtomicBool::new(false));
    let mut server = spec(config, 1, &done);
    if config.is_ipc() {
        server.aeron_dir = Some(side.aeron_dir().to_path_buf());
    }
    let server = {
        let config = config.clone();
        thread::Builder::new()
            .name("echo-server".to_owned())
            .spawn(move || {
                let mut side = Side::start(&server)?;
                server::run(&config, &mut side)
            })
            .map_err(|error| {
                RunError::Config(format!(
                    "cannot start the thread of the echo server: {error}"
                ))
            })?
    };
    let report = client::run(config, &mut side);
    done.store(true, Ordering::Relaxed);
    // If the server side waits for the driver of this side, that driver must keep running until the server has ended.
    while !server.is_finished() && side.duty_cycle().is_ok() {}
    let server_result = server
        .join()
        .unwrap_or_else(|_| Err(RunError::Config("the echo server panicked".to_owned())));
    // If both sides failed, the server is the likelier cause.
    server_result?;
    report
}

fn spec(config: &EchoConfig, index: usize, stop: &Arc<AtomicBool>) -> SideSpec {
    SideSpec {
        aeron_dir: config.aeron_dir.clone(),
        threading: config.threading.clone(),
        driver_options: config.driver_options.clone(),
        launch_driver: config.launch_driver,
        cpu: config.cpus.get(index).copied(),
        idle: config.idle,
        stop: Arc::clone(stop),
    }
}
