// SPDX-License-Identifier: Apache-2.0
//! `taran bench`: the benchmarks of the load generator.

mod echo;
mod output;
mod stream;
mod values;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use taran_bench::side::RunError;
use taran_protocol::option::Define;

use crate::failure::Failure;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand, Debug)]
enum Benchmark {
    /// Measure round-trip latency at a fixed rate
    Echo(Box<echo::Arguments>),
    /// Measure throughput between two processes
    Stream(Box<stream::Arguments>),
}

/// Runs a benchmark.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.benchmark {
        Benchmark::Echo(arguments) => echo::run(arguments),
        Benchmark::Stream(arguments) => stream::run(arguments),
    }
}

/// Selects the driver of a benchmark.
#[derive(Args, Clone, Debug)]
struct DriverChoice {
    /// Use the running driver with this directory (Taran or official Aeron) instead of embedded ones
    #[arg(short = 'd', long, value_name = "DIR", conflicts_with_all = ["threading", "driver_options"])]
    aeron_dir: Option<PathBuf>,

    /// Threading mode of an embedded driver; with INVOKER it runs on the measuring thread
    #[arg(
        long, value_name = "MODE", default_value = "INVOKER", ignore_case = true,
        value_parser = ["INVOKER", "SHARED", "SHARED_NETWORK", "DEDICATED"]
    )]
    threading: String,

    /// Set an option of embedded drivers, like 'taran driver -D'; may be repeated
    #[arg(long = "driver-option", value_name = "NAME=VALUE", value_parser = values::define)]
    driver_options: Vec<Define>,
}

impl DriverChoice {
    /// Returns the official spelling of the mode; the argument is case-insensitive.
    fn threading(&self) -> String {
        self.threading.to_ascii_uppercase()
    }

    /// Returns a description for the output.
    fn describe(&self) -> String {
        match &self.aeron_dir {
            Some(directory) => format!("driver in {}", directory.display()),
            None => format!("embedded driver, {}", self.threading()),
        }
    }
}

/// Converts the error of a benchmark that did not complete.
fn failure(error: RunError) -> Failure {
    match error {
        RunError::Interrupted => Failure::Interrupted,
        error => Failure::Other(error.to_string()),
    }
}
