//! A driver of whoever's choice: below our client, or alone. Its options come by the environment.

mod c;
mod idle;

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

/// How often a driver that is alone looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Parser)]
struct Arguments {
    /// Whose driver
    #[arg(long, value_enum, default_value = "taran")]
    driver: Whose,
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Copy, ValueEnum)]
enum Whose {
    Taran,
    C,
}

#[derive(Subcommand)]
enum What {
    /// Be a driver, until the standard input ends
    Run,
    /// Round trips at a fixed rate, both sides in this process
    Echo {
        #[command(flatten)]
        common: Common,
        /// Messages a second
        #[arg(long, default_value_t = 100_000)]
        rate: u64,
    },
    /// Publications on which nothing happens beside an end that is busy
    Beside {
        /// How many of them, or of subscriptions to them
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
    conclude(match &arguments.what {
        What::Run => run(arguments.driver, &stop).map(|()| None),
        What::Echo { common, rate } => {
            let config = common.echo(*rate, embed(arguments.driver));
            echo::run(&config, &stop).map(|report| report.as_ref().map(bench::echoed))
        }
        What::Beside { idle, end } => beside(*idle, end, arguments.driver, stop),
        What::End(end) => beside(0, end, arguments.driver, stop),
    })
}

fn run(whose: Whose, stop: &AtomicBool) -> Result<(), RunError> {
    match whose {
        Whose::Taran => {
            let _driver = MediaDriver::launch(DriverContext::from_environment()?)?;
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(LOOK);
            }
            Ok(())
        }
        Whose::C => c::run(stop),
    }
}

fn beside(idle: u16, end: &End, whose: Whose, stop: Arc<AtomicBool>) -> Found {
    let mut side = Side::start(&end.common().side(embed(whose), stop))?;
    let _idle = idle::open(idle, end, &mut side)?;
    bench::run(end, &mut side)
}

fn embed(whose: Whose) -> LaunchDriver {
    match whose {
        Whose::Taran => ours,
        Whose::C => c::embed,
    }
}

fn ours(spec: &SideSpec) -> Result<Box<dyn EmbeddedDriver>, RunError> {
    let context =
        DriverContext::from_environment()?.option("aeron.threading.mode", &spec.threading);
    Ok(Box::new(MediaDriver::launch_embedded(context)?))
}
