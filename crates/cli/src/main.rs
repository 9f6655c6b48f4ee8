// SPDX-License-Identifier: Apache-2.0
//! The `taran` command: one module for each subcommand.

#![forbid(unsafe_code)]

mod archive;
mod attach;
mod backlog;
mod bench;
mod client_label;
mod cluster;
mod config;
mod console;
mod date;
mod doctor;
mod driver;
mod driver_info;
mod error_log;
mod errors;
mod failure;
mod fix;
mod generate;
mod help;
mod http;
mod input;
mod interrupt;
#[cfg(feature = "secure")]
mod keys;
mod live;
mod log;
mod loss;
mod members;
mod output;
mod printable;
mod recordings;
mod sbe;
mod scale;
mod start_line;
mod stat;
mod streams;
mod top;
mod values;
mod version;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand};

/// Low-latency messaging compatible with Aeron: media driver, benchmarks and tools.
#[derive(Parser, Debug)]
#[command(name = "taran", version = version::VERSION, max_term_width = 120, after_help = "\
'taran COMMAND --help' explains each command.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a media driver
    Driver(driver::Arguments),
    /// Run an archive, which records streams and replays them
    Archive(archive::Arguments),
    /// Check whether this machine is fit for low latency
    Doctor(doctor::Arguments),
    /// Run a member of a cluster
    Cluster(cluster::Arguments),
    /// Measure latency and throughput
    Bench(bench::Arguments),
    /// Show the counters of a driver, live
    Stat(Box<stat::Arguments>),
    /// Show the streams of a driver on a live screen, with rates, lags and losses
    Top(top::Arguments),
    /// Show drivers on a web page: who publishes to whom, rates, lags, losses, and what needs attention
    Console(console::Arguments),
    /// Show the distinct errors of a driver
    Errors(errors::Arguments),
    /// Show the streams of a driver with all their counters
    Streams(streams::Arguments),
    /// Show how far each part of each stream lags behind
    Backlog(backlog::Arguments),
    /// Show the loss observed by a driver, per stream
    Loss(loss::Arguments),
    /// Show the contents of a log buffer
    Log(log::Arguments),
    /// Show the identity and state of a driver, or terminate it
    DriverInfo(driver_info::Arguments),
    /// Show, record, replay, copy and repair the recordings of an archive
    Recordings(recordings::Arguments),
    /// Show and control a member of a cluster
    Members(members::Arguments),
    /// Explain options and print their values
    Config(config::Arguments),
    /// Manage the keys of drivers
    #[cfg(feature = "secure")]
    Keys(keys::Arguments),
    /// Validate, describe and compare Simple Binary Encoding schemas, generate Rust code, decode messages
    Sbe(sbe::Arguments),
    /// Check, describe and compare FIX dictionaries, generate Rust code, print FIX logs
    Fix(fix::Arguments),
    /// Print the completions of a shell
    Completions(generate::Completions),
    /// Write the manual pages of all commands
    Manual(generate::Manual),
    /// Show the versions of this program and of the protocols it supports
    Version(version::Arguments),
}

impl Command {
    /// Returns true if the command handles SIGINT and SIGTERM itself, to end in an orderly way.
    fn handles_signals(&self) -> bool {
        matches!(
            self,
            Self::Driver(_)
                | Self::Archive(_)
                | Self::Cluster(_)
                | Self::Bench(_)
                | Self::Recordings(_)
                | Self::Top(_)
        )
    }
}

fn main() -> ExitCode {
    let arguments = arguments(std::env::args_os().collect());
    let parsed = help::command()
        .try_get_matches_from(&arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    if !cli.command.handles_signals()
        && let Err(error) = interrupt::exit_as_init()
    {
        eprintln!("taran: cannot register signal handlers: {error}");
        return ExitCode::FAILURE;
    }
    match cli.command {
        Command::Driver(arguments) => driver::run(&arguments),
        Command::Archive(arguments) => archive::run(&arguments),
        Command::Doctor(arguments) => failure::exit_code(doctor::run(&arguments)),
        Command::Cluster(arguments) => cluster::run(&arguments),
        Command::Bench(arguments) => failure::exit_code(bench::run(&arguments)),
        Command::Stat(arguments) => failure::exit_code(stat::run(&arguments)),
        Command::Top(arguments) => failure::exit_code(top::run(&arguments)),
        Command::Console(arguments) => failure::exit_code(console::run(&arguments)),
        Command::Errors(arguments) => failure::exit_code(errors::run(&arguments)),
        Command::Streams(arguments) => failure::exit_code(streams::run(&arguments)),
        Command::Backlog(arguments) => failure::exit_code(backlog::run(&arguments)),
        Command::Loss(arguments) => failure::exit_code(loss::run(&arguments)),
        Command::Log(arguments) => failure::exit_code(log::run(&arguments)),
        Command::DriverInfo(arguments) => failure::exit_code(driver_info::run(&arguments)),
        Command::Recordings(arguments) => failure::exit_code(recordings::run(&arguments)),
        Command::Members(arguments) => failure::exit_code(members::run(&arguments)),
        Command::Config(arguments) => failure::exit_code(config::run(&arguments)),
        #[cfg(feature = "secure")]
        Command::Keys(arguments) => failure::exit_code(keys::run(&arguments)),
        Command::Sbe(arguments) => failure::exit_code(sbe::run(&arguments)),
        Command::Fix(arguments) => failure::exit_code(fix::run(&arguments)),
        Command::Completions(arguments) => generate::completions(&arguments),
        Command::Manual(arguments) => failure::exit_code(generate::manual(&arguments)),
        Command::Version(arguments) => failure::exit_code(version::run(&arguments)),
    }
}

/// Name of the official driver. If the program is invoked by this name, it runs as a driver.
const OFFICIAL_DRIVER: &str = "aeronmd";

/// Inserts the argument `driver` if the program is invoked by the name of the official driver.
fn arguments(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if is_official_name() {
        arguments.insert(1, "driver".into());
    }
    arguments
}

/// Returns true if the program is invoked by the name of the official driver.
fn is_official_name() -> bool {
    std::env::args_os()
        .next()
        .is_some_and(|program| Path::new(&program).file_stem() == Some(OFFICIAL_DRIVER.as_ref()))
}

/// Prints help on standard output with status 0, or incorrect usage on standard error with status 2 (1 for a program that is
/// invoked as `aeronmd`, like that).
fn usage(error: &clap::Error) -> ExitCode {
    // If printing fails, there is no other output to report it on.
    let _ = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    ExitCode::from(if is_official_name() {
        1
    } else {
        failure::USAGE
    })
}
