// SPDX-License-Identifier: Apache-2.0
//! Benchmarks of our client or the official C client on a running driver.

mod c;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Parser, ValueEnum};
use taran_bench::side::{Side, launch_embedded};
use taran_peers::bench::{self, End, Found, conclude, end_with_parent};

#[derive(Parser)]
struct Arguments {
    /// Implementation of the client
    #[arg(long, value_enum, default_value = "taran")]
    client: Implementation,
    #[command(subcommand)]
    end: End,
}

#[derive(Clone, Copy, ValueEnum)]
enum Implementation {
    Taran,
    C,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    conclude(run(&arguments, end_with_parent()))
}

fn run(arguments: &Arguments, stop: Arc<AtomicBool>) -> Found {
    let end = &arguments.end;
    match arguments.client {
        Implementation::Taran => bench::run(
            end,
            &mut Side::start(&end.common().side(launch_embedded, stop))?,
        ),
        Implementation::C => bench::run(end, &mut c::Client::connect(end.common(), stop)?),
    }
}
