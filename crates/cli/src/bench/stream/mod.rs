// SPDX-License-Identifier: Apache-2.0
//! `taran bench stream`: throughput between two processes.

mod child;
mod subscriber;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use taran_bench::client_idle::ClientIdle;
use taran_bench::payload::MIN_LENGTH;
use taran_bench::side::{Side, SideSpec, launch_embedded};
use taran_bench::stream::{StreamConfig, StreamReport, publish, subscribe};

use crate::failure::{Failure, INTERRUPTED};

use super::values::{Cores, Cpus, bytes, duration};
use super::{DriverChoice, failure};
use crate::interrupt;
use subscriber::Subscriber;

/// Stream id of both sides.
const STREAM_ID: i32 = 1_001;
/// Time that a publisher stays open after its last message, so that messages in flight arrive.
const LINGER: Duration = Duration::from_secs(1);
/// Exit status if messages were missing, duplicated or damaged.
const LOST: u8 = 3;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(
    args_override_self = true,
    after_help = "\
One process publishes as fast as flow control allows, another one receives, counts and checks. With --role both, this
process publishes and starts the subscriber as a child. Over IPC both use the same driver, over UDP each has its own.

  taran bench stream                                               288 bytes over IPC
  taran bench stream --channel 'aeron:udp?endpoint=127.0.0.1:20130' --length 1344
  taran bench stream --aeron-dir /dev/shm/aeron-me                 use a running driver

On two machines, start the subscriber first (A receives, B sends):
  A: taran bench stream --role subscriber --channel 'aeron:udp?endpoint=A:20130'
  B: taran bench stream --role publisher --channel 'aeron:udp?endpoint=A:20130'

Exit status: 0 nothing lost, 3 messages missing or damaged, 1 the benchmark could not run, 2 incorrect usage, 130
interrupted."
)]
pub(super) struct Arguments {
    /// Side to run in this process
    #[arg(long, value_enum, default_value = "both")]
    role: RoleName,

    /// Channel of both sides
    #[arg(long, value_name = "URI", default_value = "aeron:ipc")]
    channel: String,

    /// Payload length of a message in bytes (k = 1024)
    #[arg(long, value_name = "BYTES", default_value = "288", value_parser = bytes)]
    length: usize,

    /// Duration of the measurement
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    duration: Duration,

    /// Duration of the unmeasured run before it
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    warmup: Duration,

    #[command(flatten)]
    driver: DriverChoice,

    /// Cores of publisher and subscriber: numbers, auto, or none
    #[arg(long, value_name = "LIST", default_value = "auto")]
    cpus: Cpus,

    /// Time to wait for the connection
    #[arg(long = "patience", value_name = "TIME", default_value = "10s", value_parser = duration)]
    timeout: Duration,

    /// Run as the child of another benchmark process: exchange lines on standard streams, end when standard input ends
    #[arg(long = "for-parent", hide = true)]
    is_child: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoleName {
    /// Publish here and start a child process that subscribes
    Both,
    /// Publish
    Publisher,
    /// Subscribe
    Subscriber,
}

/// Runs the benchmark.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let cpus = arguments.cpus.resolve();
    let config = StreamConfig {
        channels: vec![arguments.channel.clone()],
        stream_id: STREAM_ID,
        streams: 1,
        trickle: false,
        length: arguments.length,
        duration: arguments.duration,
        warmup: arguments.warmup,
        aeron_dir: arguments.driver.aeron_dir.clone(),
        driver_options: arguments.driver.driver_options.clone(),
        threading: arguments.driver.threading(),
        cpu: cpus.first().copied(),
        timeout: arguments.timeout,
    };
    check(&config)?;
    let stop = interrupt::flag().map_err(|error| Failure::Other(error.to_string()))?;
    if !arguments.is_child {
        print_setup(arguments, &cpus)?;
    }
    match arguments.role {
        RoleName::Both => both(&config, &cpus, &stop),
        RoleName::Publisher => {
            let mut side = side(&config, &stop)?;
            let report = publish(&config, &mut side).map_err(failure)?;
            if !is_interrupted(&stop) {
                linger(&mut side)?;
            }
            print_sent(&report)?;
            Ok(exit_code(ExitCode::SUCCESS, &stop))
        }
        RoleName::Subscriber if arguments.is_child => child::serve(&config, &stop),
        RoleName::Subscriber => {
            let mut side = side(&config, &stop)?;
            let report = subscribe(&config, &mut side, || {}).map_err(failure)?;
            Ok(exit_code(print_received(&report)?, &stop))
        }
    }
}

fn check(config: &StreamConfig) -> Result<(), Failure> {
    if config.length < MIN_LENGTH {
        return Err(Failure::Usage(format!(
            "length is {} bytes; the minimum is {MIN_LENGTH}, for the due time and the sequence number",
            config.length
        )));
    }
    if config.duration.is_zero() {
        return Err(Failure::Usage("duration must not be zero".to_owned()));
    }
    Ok(())
}

/// Publishes in this process while a child process subscribes.
fn both(
    config: &StreamConfig,
    cpus: &[usize],
    stop: &Arc<AtomicBool>,
) -> Result<ExitCode, Failure> {
    let mut side = side(config, stop)?;
    let subscriber = StreamConfig {
        aeron_dir: if is_ipc(config) {
            Some(side.aeron_dir().to_path_buf())
        } else {
            config.aeron_dir.clone()
        },
        cpu: cpus.get(1).copied(),
        ..config.clone()
    };
    let mut subscriber = Subscriber::start(&subscriber)?;
    subscriber.await_ready(&mut side)?;
    let sent = publish(config, &mut side).map_err(failure)?;
    let received = if is_interrupted(stop) {
        subscriber.interrupt()
    } else {
        subscriber.report(&mut side)
    };
    print_sent(&sent)?;
    Ok(exit_code(print_received(&received?)?, stop))
}

fn is_interrupted(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}

/// Returns the exit code of a run; that of an interrupted one does not depend on its results.
fn exit_code(code: ExitCode, stop: &AtomicBool) -> ExitCode {
    if is_interrupted(stop) {
        // A closed standard output is not an error here.
        let _ = writeln!(
            io::stdout(),
            "interrupted: the figures are those of the time before"
        );
        return ExitCode::from(INTERRUPTED);
    }
    code
}

fn is_ipc(config: &StreamConfig) -> bool {
    let mut channels = config.channels.iter();
    channels.any(|channel| channel.starts_with("aeron:ipc"))
}

fn side(config: &StreamConfig, stop: &Arc<AtomicBool>) -> Result<Side, Failure> {
    Side::start(&SideSpec {
        aeron_dir: config.aeron_dir.clone(),
        threading: config.threading.clone(),
        driver_options: config.driver_options.clone(),
        launch_driver: launch_embedded,
        cpu: config.cpu,
        idle: ClientIdle::Yield,
        stop: Arc::clone(stop),
    })
    .map_err(failure)
}

/// Runs an embedded driver a little longer, so that it sends the remaining messages.
fn linger(side: &mut Side) -> Result<(), Failure> {
    let end = Instant::now() + LINGER;
    while Instant::now() < end {
        side.duty_cycle().map_err(failure)?;
    }
    Ok(())
}

fn print_setup(arguments: &Arguments, cpus: &[usize]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "stream of {} bytes on {}; warm-up {:?}, then {:?}; {}, {}",
        arguments.length,
        arguments.channel,
        arguments.warmup,
        arguments.duration,
        arguments.driver.describe(),
        Cores(cpus)
    )?;
    out.flush()
}

fn print_sent(report: &StreamReport) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "sent, msg/s          {:>14.0}", report.rate())?;
    writeln!(out, "met back-pressure    {:>14}", report.troubles)?;
    out.flush()
}

#[allow(clippy::cast_precision_loss)] // counts of messages are far below 2^53
fn print_received(report: &StreamReport) -> Result<ExitCode, Failure> {
    const MIB: f64 = 1_048_576.0;
    let mut out = io::stdout().lock();
    writeln!(out, "messages received    {:>14}", report.messages)?;
    writeln!(out, "missing or damaged   {:>14}", report.troubles)?;
    writeln!(out, "received, msg/s      {:>14.0}", report.rate())?;
    writeln!(
        out,
        "received, MiB/s      {:>14.1}",
        report.bytes_rate() / MIB
    )?;
    out.flush()?;
    Ok(if report.troubles == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(LOST)
    })
}
