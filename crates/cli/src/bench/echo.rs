// SPDX-License-Identifier: Apache-2.0
//! `taran bench echo`: round-trip latency at a fixed rate.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use taran_bench::echo::{EchoConfig, Role};
use taran_bench::report::EchoReport;
use taran_bench::{echo, hgrm};

use crate::failure::{Failure, INTERRUPTED};

use super::output::HistogramFile;
use super::values::{Cores, Cpus, bytes, duration, rate};
use super::{DriverChoice, failure};
use crate::interrupt;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(
    args_override_self = true,
    after_help = "\
The client sends messages on a fixed schedule, the server sends them back. A round trip is measured from the time at
which its message was due, so a stall counts against every message that it delays (no coordinated omission). Progress is
printed on standard error each second, the result table on standard output; the histogram is written to a file for the
HdrHistogram plotter.

  taran bench echo                                       288 bytes at 100,000/s over UDP loopback
  taran bench echo --rate 500k --duration 30s
  taran bench echo --channel aeron:ipc
  taran bench echo --aeron-dir /dev/shm/aeron-me         use a running driver

On two machines, start the server first (A echoes, B measures):
  A: taran bench echo --role server --channel 'aeron:udp?endpoint=A:20121' --reply-channel 'aeron:udp?endpoint=B:20123'
  B: taran bench echo --role client --channel 'aeron:udp?endpoint=A:20121' --reply-channel 'aeron:udp?endpoint=B:20123'

Exit status: 0 rate held and nothing lost, 3 messages lost or damaged, 4 rate not held, 5 no reply was received, 1 the
benchmark could not run, 2 incorrect usage, 130 interrupted."
)]
pub(super) struct Arguments {
    /// Sides to run in this process
    #[arg(long, value_enum, default_value = "both")]
    role: RoleName,

    /// Channel from the client to the server
    #[arg(long, value_name = "URI", default_value_t = EchoConfig::default().channel)]
    channel: String,

    /// Channel from the server to the client; required for a UDP CHANNEL other than the default
    #[arg(long, value_name = "URI")]
    reply_channel: Option<String>,

    /// Messages per second (k = 1,000)
    #[arg(long, value_name = "RATE", default_value = "100k", value_parser = rate)]
    rate: u64,

    /// Payload length of a message in bytes (k = 1024)
    #[arg(long, value_name = "BYTES", default_value = "288", value_parser = bytes)]
    length: usize,

    /// Messages that are due at the same time
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,

    /// Duration of an iteration
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    duration: Duration,

    /// Duration of the unmeasured run at the same rate before the first iteration
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    warmup: Duration,

    /// Number of iterations; all are recorded in one histogram
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,

    #[command(flatten)]
    driver: DriverChoice,

    /// Cores of client and server: numbers, auto, or none
    #[arg(long, value_name = "LIST", default_value = "auto")]
    cpus: Cpus,

    /// Time to wait for the connection, and for the last messages at the end
    #[arg(long = "patience", value_name = "TIME", default_value = "10s", value_parser = duration)]
    timeout: Duration,

    /// File for the histogram
    #[arg(long, value_name = "FILE", default_value = "taran-echo.hgrm")]
    output: PathBuf,

    /// Print no progress
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoleName {
    /// Both sides, each on its own core
    Both,
    /// Send and measure
    Client,
    /// Echo until interrupted
    Server,
}

/// Runs the benchmark.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let config = config(arguments)?;
    config.check().map_err(Failure::Usage)?;
    let stop = interrupt::flag().map_err(|error| Failure::Other(error.to_string()))?;
    let file = match config.role {
        Role::Server => None,
        Role::Both | Role::Client => Some(HistogramFile::open(&arguments.output)?),
    };
    print_setup(arguments, &config)?;
    let report = echo::run(&config, &stop).map_err(failure)?;
    match (report, file) {
        (Some(report), Some(file)) => write_results(&report, file),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn config(arguments: &Arguments) -> Result<EchoConfig, Failure> {
    Ok(EchoConfig {
        role: match arguments.role {
            RoleName::Both => Role::Both,
            RoleName::Client => Role::Client,
            RoleName::Server => Role::Server,
        },
        channel: arguments.channel.clone(),
        reply_channel: reply_channel(arguments)?,
        rate: arguments.rate,
        length: arguments.length,
        batch: arguments.batch,
        duration: arguments.duration,
        iterations: arguments.iterations,
        warmup: arguments.warmup,
        aeron_dir: arguments.driver.aeron_dir.clone(),
        driver_options: arguments.driver.driver_options.clone(),
        threading: arguments.driver.threading(),
        cpus: arguments.cpus.resolve(),
        timeout: arguments.timeout,
        progress: !arguments.quiet,
        ..EchoConfig::default()
    })
}

/// Returns the reply channel. If none is given, IPC uses the same channel in both directions; two UDP endpoints must
/// differ.
fn reply_channel(arguments: &Arguments) -> Result<String, Failure> {
    let default = EchoConfig::default();
    match &arguments.reply_channel {
        Some(channel) => Ok(channel.clone()),
        None if arguments.channel.starts_with("aeron:ipc") => Ok(arguments.channel.clone()),
        None if arguments.channel == default.channel => Ok(default.reply_channel),
        None => Err(Failure::Usage(format!(
            "--channel {} requires --reply-channel with the endpoint on which the client receives",
            arguments.channel
        ))),
    }
}

/// Prints what is measured, as a record with the results.
fn print_setup(arguments: &Arguments, config: &EchoConfig) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let (to, back) = (&config.channel, &config.reply_channel);
    let driver = arguments.driver.describe();
    let cores = Cores(&config.cpus);
    if config.role == Role::Server {
        writeln!(
            out,
            "echoing {to} to {back} until interrupted; {driver}, {cores}"
        )?;
    } else {
        writeln!(
            out,
            "echo of {} bytes at {}/s, {} at a time; warm-up {:?}, then {} x {:?}",
            config.length,
            config.rate,
            config.batch,
            config.warmup,
            config.iterations,
            config.duration
        )?;
        writeln!(out, "to {to}, back {back}; {driver}, {cores}")?;
    }
    out.flush()
}

fn write_results(report: &EchoReport, file: HistogramFile) -> Result<ExitCode, Failure> {
    // The file comes first: the reader of standard output may have closed it.
    let path = file.write(|out| hgrm::write(&report.histogram, out))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{report}")?;
    writeln!(out, "histogram: {}", path.display())?;
    out.flush()?;
    if report.is_interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(ExitCode::from(report.verdict() as u8))
}
