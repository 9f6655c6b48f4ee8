//! The `taran` command: one module for each subcommand.

#![forbid(unsafe_code)]

mod attach;
mod backlog;
mod bench;
mod config;
mod date;
mod driver;
mod driver_info;
mod errors;
mod failure;
mod input;
mod log;
mod loss;
mod output;
mod printable;
mod sbe;
mod stat;
mod streams;
mod values;
mod version;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Low-latency messaging that speaks Aeron: media driver, benchmarks and tools.
#[derive(Parser, Debug)]
#[command(name = "taran", version = version::VERSION, max_term_width = 120, after_help = "\
'taran COMMAND --help' says more about each.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a media driver
    Driver(driver::Arguments),
    /// Measure latency and throughput
    Bench(bench::Arguments),
    /// Show a driver's counters, live
    Stat(Box<stat::Arguments>),
    /// Show a driver's distinct errors
    Errors(errors::Arguments),
    /// Show the streams of a driver with all their counters
    Streams(streams::Arguments),
    /// Show how far behind each part of each stream is
    Backlog(backlog::Arguments),
    /// Show what streams lost on their way here
    Loss(loss::Arguments),
    /// Show what a log buffer holds
    Log(log::Arguments),
    /// Show who a driver is and how it is, or end it
    DriverInfo(driver_info::Arguments),
    /// Explain and print options
    Config(config::Arguments),
    /// Check, describe and compare schemas of Simple Binary Encoding, generate Rust from them, decode by them
    Sbe(sbe::Arguments),
    /// Show what this program is and what it speaks
    Version(version::Arguments),
}

fn main() -> ExitCode {
    let arguments = arguments(std::env::args_os().collect());
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, &arguments),
    };
    match cli.command {
        Command::Driver(arguments) => driver::run(&arguments),
        Command::Bench(arguments) => failure::exit_code(bench::run(&arguments)),
        Command::Stat(arguments) => failure::exit_code(stat::run(&arguments)),
        Command::Errors(arguments) => failure::exit_code(errors::run(&arguments)),
        Command::Streams(arguments) => failure::exit_code(streams::run(&arguments)),
        Command::Backlog(arguments) => failure::exit_code(backlog::run(&arguments)),
        Command::Loss(arguments) => failure::exit_code(loss::run(&arguments)),
        Command::Log(arguments) => failure::exit_code(log::run(&arguments)),
        Command::DriverInfo(arguments) => failure::exit_code(driver_info::run(&arguments)),
        Command::Config(arguments) => failure::exit_code(config::run(&arguments)),
        Command::Sbe(arguments) => failure::exit_code(sbe::run(&arguments)),
        Command::Version(arguments) => failure::exit_code(version::run(&arguments)),
    }
}

/// The name of the official driver. Called by it, this program is a driver.
const OFFICIAL_DRIVER: &str = "aeronmd";

/// The arguments as they are, or `driver` before them where the program goes by the name of the official driver.
fn arguments(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments
        .first()
        .and_then(|program| Path::new(program).file_stem());
    if name.is_some_and(|name| name == OFFICIAL_DRIVER) {
        arguments.insert(1, "driver".into());
    }
    arguments
}

/// Help on standard output with status 0; wrong usage on standard error with status 2, or 1 where `aeronmd` has that.
fn usage(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    // Where even that cannot be printed there is nobody left to tell.
    let _ = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    let is_driver = arguments.get(1).is_some_and(|command| command == "driver");
    ExitCode::from(if is_driver { 1 } else { failure::USAGE })
}
