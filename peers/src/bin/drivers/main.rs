// SPDX-License-Identifier: Apache-2.0
//! Our driver or the official C driver, alone or embedded under our client. Driver options are environment variables.

mod c;
mod first;
mod idle;
mod keys;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use taran_bench::echo;
use taran_bench::side::{EmbeddedDriver, LaunchDriver, RunError, Side, SideSpec};
use taran_driver::{DriverContext, MediaDriver};
use taran_peers::bench::{self, Common, End, Found, conclude, end_with_parent};

/// Interval at which a driver that runs alone checks the stop flag.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Parser)]
struct Arguments {
    /// Implementation of the driver
    #[arg(long, value_enum, default_value = "taran")]
    driver: Implementation,
    #[command(subcommand)]
    task: Task,
}

#[derive(Clone, Copy, ValueEnum)]
enum Implementation {
    Taran,
    C,
}

#[derive(Subcommand)]
enum Task {
    /// Run a driver until the end of standard input
    Run,
    /// Write a key pair that trusts itself into a directory
    Keys { directory: PathBuf },
    /// Measure round trips at a fixed rate, with both ends in this process
    Echo {
        #[command(flatten)]
        common: Common,
        /// Messages per second
        #[arg(long, default_value_t = 100_000)]
        rate: u64,
    },
    /// Measure the time to the first message of new channels
    First {
        #[command(flatten)]
        common: Common,
    },
    /// Run an end of a benchmark next to idle streams
    Beside {
        /// Number of idle publications or subscriptions
        #[arg(long)]
        idle: u16,
        #[command(subcommand)]
        end: End,
    },
    #[command(flatten)]
    End(End),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let stop = end_with_parent();
    conclude(match &arguments.task {
        Task::Run => run(arguments.driver, &stop).map(|()| None),
        Task::Keys { directory } => keys::write(directory).map(|()| None),
        Task::Echo { common, rate } => {
            let config = common.echo(*rate, embed(arguments.driver));
            echo::run(&config, &stop).map(|report| report.as_ref().map(bench::echoed))
        }
        Task::First { common } => {
            let spec = common.side(embed(arguments.driver), stop);
            first::run(&spec, Duration::from_millis(common.measure_ms))
        }
        Task::Beside { idle, end } => beside(*idle, end, arguments.driver, stop),
        Task::End(end) => beside(0, end, arguments.driver, stop),
    })
}

fn run(implementation: Implementation, stop: &AtomicBool) -> Result<(), RunError> {
    match implementation {
        Implementation::Taran => {
            let _driver = MediaDriver::launch(DriverContext::from_environment()?)?;
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(STOP_CHECK_INTERVAL);
            }
            Ok(())
        }
        Implementation::C => c::run(stop),
    }
}

fn beside(idle: u16, end: &End, implementation: Implementation, stop: Arc<AtomicBool>) -> Found {
    let mut side = Side::start(&end.common().side(embed(implementation), stop))?;
    let _idle = idle::open(idle, end, &mut side)?;
    bench::run(end, &mut side)
}

fn embed(implementation: Implementation) -> LaunchDriver {
    match implementation {
        Implementation::Taran => ours,
        Implementation::C => c::embed,
    }
}

fn ours(spec: &SideSpec) -> Result<Box<dyn EmbeddedDriver>, RunError> {
    let context =
        DriverContext::from_environment()?.option("aeron.threading.mode", &spec.threading);
    Ok(Box::new(MediaDriver::launch_embedded(context)?))
}
