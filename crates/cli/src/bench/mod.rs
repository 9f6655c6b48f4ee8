//! `taran bench`: what the load-test rig can measure, from the command line.

mod echo;
mod interrupt;
mod output;
mod stream;
mod values;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use taran_bench::side::RunError;
use taran_protocol::option::Define;

use crate::failure::Failure;

/// The arguments.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand, Debug)]
enum Benchmark {
    /// Measure round trips at a fixed rate
    Echo(Box<echo::Arguments>),
    /// Measure throughput from one process to another
    Stream(Box<stream::Arguments>),
}

/// Runs a benchmark.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.benchmark {
        Benchmark::Echo(arguments) => echo::run(arguments),
        Benchmark::Stream(arguments) => stream::run(arguments),
    }
}

/// Which driver a benchmark uses.
#[derive(Args, Clone, Debug)]
struct DriverChoice {
    /// Use the driver that runs in this directory, ours or an official one, in place of embedded ones
    #[arg(short = 'd', long, value_name = "DIR", conflicts_with_all = ["threading", "driver_options"])]
    aeron_dir: Option<PathBuf>,

    /// Threads of an embedded driver; with INVOKER it runs on the thread that measures
    #[arg(
        long, value_name = "MODE", default_value = "INVOKER", ignore_case = true,
        value_parser = ["INVOKER", "SHARED", "SHARED_NETWORK", "DEDICATED"]
    )]
    threading: String,

    /// Set an option of embedded drivers, as 'taran driver -D' does; may be repeated
    #[arg(long = "driver-option", value_name = "NAME=VALUE", value_parser = values::define)]
    driver_options: Vec<Define>,
}

impl DriverChoice {
    /// The official spelling of the mode, whatever case it was given in.
    fn threading(&self) -> String {
        self.threading.to_ascii_uppercase()
    }

    /// For people.
    fn describe(&self) -> String {
        match &self.aeron_dir {
            Some(directory) => format!("driver in {}", directory.display()),
            None => format!("embedded driver, {}", self.threading()),
        }
    }
}

/// A benchmark that did not come to its end.
fn failure(error: RunError) -> Failure {
    match error {
        RunError::Interrupted => Failure::Interrupted,
        error => Failure::Other(error.to_string()),
    }
}
