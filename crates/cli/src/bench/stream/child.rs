// SPDX-License-Identifier: Apache-2.0
//! The subscribing child process of a throughput run. It writes `READY` to standard output once its subscription is
//! registered, and its report at the end, one line each. It ends when its standard input reaches end of file.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use taran_bench::stream::{StreamConfig, subscribe};

use crate::failure::Failure;

use super::super::failure;
use super::side;

/// Line written once the subscription is registered.
pub(super) const READY: &str = "READY";

/// Subscribes and writes the report.
pub(super) fn serve(config: &StreamConfig, stop: &Arc<AtomicBool>) -> Result<ExitCode, Failure> {
    stop_at_end_of_stdin(Arc::clone(stop));
    let mut side = side(config, stop)?;
    let report = subscribe(config, &mut side, || {
        // If the parent has ended, the stop flag is set.
        let _ = write_line(READY);
    })
    .map_err(failure)?;
    write_line(&report.to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn write_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Sets `stop` at the end of standard input. The parent writes nothing to it, and the kernel closes it if the parent
/// dies.
fn stop_at_end_of_stdin(stop: Arc<AtomicBool>) {
    thread::spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        stop.store(true, Ordering::Relaxed);
    });
}
