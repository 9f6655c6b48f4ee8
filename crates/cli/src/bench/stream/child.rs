//! The subscriber's side of the talk between the two processes of a run: it says `READY` once its subscription stands,
//! and its report at the end, a line each. When its standard input ends, so does it.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use taran_bench::stream::{StreamConfig, subscribe};

use crate::failure::Failure;

use super::super::failure;
use super::side;

/// What is said once the subscription stands.
pub(super) const READY: &str = "READY";

/// Subscribes and reports.
pub(super) fn serve(config: &StreamConfig, stop: &Arc<AtomicBool>) -> Result<ExitCode, Failure> {
    end_with_parent(Arc::clone(stop));
    let mut side = side(config, stop)?;
    let report = subscribe(config, &mut side, || {
        // A parent that is gone raises the flag.
        let _ = say(READY);
    })
    .map_err(failure)?;
    say(&report.to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Nothing comes from the parent but, however it ends, the end.
fn end_with_parent(stop: Arc<AtomicBool>) {
    thread::spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        stop.store(true, Ordering::Relaxed);
    });
}
