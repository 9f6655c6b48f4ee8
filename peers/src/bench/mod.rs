// SPDX-License-Identifier: Apache-2.0
//! Benchmarks, independent of the implementation of driver and client: arguments, runs and output.

mod arguments;

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use taran_bench::client_api::BenchClient;
use taran_bench::report::{EchoReport, RATE_TOLERANCE};
use taran_bench::side::RunError;
use taran_bench::{ping, stream};

pub use arguments::{Common, End, STREAM_ID, TIMEOUT};

use crate::measured::Measured;

/// Result of one end of a benchmark; `None` for ends that do not measure.
pub type Found = Result<Option<Measured>, RunError>;

/// Runs one end of a benchmark on a client.
///
/// # Errors
/// Returns the error of the benchmark.
pub fn run<H: BenchClient>(end: &End, side: &mut H) -> Found {
    match end {
        End::Publish(common) => {
            stream::publish(&common.stream(), side)?;
            Ok(None)
        }
        End::Subscribe(common) => {
            let report = stream::subscribe(&common.stream(), side, print_ready)?;
            Ok(Some(Measured {
                defects: report.troubles,
                ..Measured::of(report.rate())
            }))
        }
        End::Ping(common) => {
            let round_trips = ping::ping(&common.ping(), side)?;
            let seconds = Duration::from_millis(common.measure_ms).as_secs_f64();
            let rate = round_trips.len() as f64 / seconds;
            Ok(Some(Measured::of(rate).with_round_trips(&round_trips)))
        }
        End::Pong(common) => {
            ping::pong(&common.ping(), side, print_ready)?;
            Ok(None)
        }
    }
}

/// Converts the report of scheduled round trips.
#[must_use]
pub fn echoed(report: &EchoReport) -> Measured {
    let rate = report.achieved_rate();
    Measured {
        defects: report.sent.saturating_sub(report.received) + report.damaged,
        is_held: rate >= RATE_TOLERANCE * report.rate as f64,
        ..Measured::of(rate).with_round_trips(&report.histogram)
    }
}

/// Returns a flag that is set at the end of standard input, when the parent process closes it or dies.
#[must_use]
pub fn end_with_parent() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let raise = Arc::clone(&stop);
    thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        raise.store(true, Ordering::Relaxed);
    });
    stop
}

/// Prints the line that tells the parent process to start the other end.
pub fn print_ready() {
    println!("READY");
}

/// Prints the result and returns the exit code.
#[must_use]
pub fn conclude(found: Found) -> ExitCode {
    let line = match found {
        Ok(Some(measured)) => serde_json::to_string(&measured).map_err(|error| error.to_string()),
        // No result to print.
        Ok(None) | Err(RunError::Interrupted) => return ExitCode::SUCCESS,
        Err(error) => Err(error.to_string()),
    };
    match line {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}
