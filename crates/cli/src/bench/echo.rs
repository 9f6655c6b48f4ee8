//! `taran bench echo`: round trips at a fixed rate.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use taran_bench::echo::{EchoConfig, Role};
use taran_bench::report::EchoReport;
use taran_bench::{echo, hgrm};

use crate::failure::Failure;

use super::output::Output;
use super::values::{Cores, Cpus, bytes, duration, rate};
use super::{DriverChoice, failure, interrupt};

/// The arguments.
#[derive(Args, Debug)]
#[command(
    args_override_self = true,
    after_help = "\
One side sends messages by schedule, the other sends them back. A round trip counts from the moment at which its message
was due, so a stall is charged to every message that it held up (no coordinated omission). Progress goes to standard
error each second, the table to standard output, the histogram to a file for the HdrHistogram plotter.

  taran bench echo                                       288 bytes at 100,000/s over UDP loopback
  taran bench echo --rate 500k --duration 30s
  taran bench echo --channel aeron:ipc
  taran bench echo --aeron-dir /dev/shm/aeron-me         through a driver that runs already

On two machines, the server first (A echoes, B measures):
  A: taran bench echo --role server --channel 'aeron:udp?endpoint=A:20121' --reply-channel 'aeron:udp?endpoint=B:20123'
  B: taran bench echo --role client --channel 'aeron:udp?endpoint=A:20121' --reply-channel 'aeron:udp?endpoint=B:20123'

Exit status: 0 rate held and nothing lost, 3 messages lost or damaged, 4 rate not held, 5 nothing came back, 1 the
benchmark could not run, 2 wrong usage, 130 interrupted."
)]
pub(super) struct Arguments {
    /// Which side to run here
    #[arg(long, value_enum, default_value = "both")]
    role: RoleName,

    /// Channel from client to server
    #[arg(long, value_name = "URI", default_value_t = EchoConfig::default().channel)]
    channel: String,

    /// Channel back; needed for a UDP channel of your own, else as fits CHANNEL
    #[arg(long, value_name = "URI")]
    reply_channel: Option<String>,

    /// Messages a second (k = 1,000)
    #[arg(long, value_name = "RATE", default_value = "100k", value_parser = rate)]
    rate: u64,

    /// Payload bytes of a message (k = 1024)
    #[arg(long, value_name = "BYTES", default_value = "288", value_parser = bytes)]
    length: usize,

    /// Messages that are due together
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,

    /// Length of an iteration
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    duration: Duration,

    /// Time at the same rate before measuring
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    warmup: Duration,

    /// Iterations; all go into one histogram
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,

    #[command(flatten)]
    driver: DriverChoice,

    /// Cores of client and server: numbers, auto, or none
    #[arg(long, value_name = "LIST", default_value = "auto")]
    cpus: Cpus,

    /// How long to wait for the other side, and for the last messages
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    patience: Duration,

    /// File for the histogram
    #[arg(long, value_name = "FILE", default_value = "taran-echo.hgrm")]
    output: PathBuf,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoleName {
    /// Both, each on a core of its own
    Both,
    /// Send and measure
    Client,
    /// Echo until interrupted
    Server,
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let config = config(arguments)?;
    config.check().map_err(Failure::Usage)?;
    let stop = interrupt::flag().map_err(|error| Failure::Other(error.to_string()))?;
    let output = match config.role {
        Role::Server => None,
        Role::Both | Role::Client => Some(Output::open(&arguments.output)?),
    };
    announce(arguments, &config)?;
    let report = echo::run(&config, &stop).map_err(failure)?;
    match (report, output) {
        (Some(report), Some(output)) => conclude(&report, output),
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
        patience: arguments.patience,
        progress: !arguments.quiet,
        ..EchoConfig::default()
    })
}

/// The way back, where it was not given: IPC goes back through the same memory, but two UDP endpoints cannot be one.
fn reply_channel(arguments: &Arguments) -> Result<String, Failure> {
    let default = EchoConfig::default();
    match &arguments.reply_channel {
        Some(channel) => Ok(channel.clone()),
        None if arguments.channel.starts_with("aeron:ipc") => Ok(arguments.channel.clone()),
        None if arguments.channel == default.channel => Ok(default.reply_channel),
        None => Err(Failure::Usage(format!(
            "--channel {} needs a --reply-channel with another endpoint, at which the client receives",
            arguments.channel
        ))),
    }
}

/// What runs, for whoever reads the figures later.
fn announce(arguments: &Arguments, config: &EchoConfig) -> io::Result<()> {
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

fn conclude(report: &EchoReport, output: Output) -> Result<ExitCode, Failure> {
    // First the file: whoever reads standard output may have gone.
    let path = output.write(|out| hgrm::write(&report.histogram, out))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{report}")?;
    writeln!(out, "histogram: {}", path.display())?;
    out.flush()?;
    Ok(ExitCode::from(report.verdict() as u8))
}
