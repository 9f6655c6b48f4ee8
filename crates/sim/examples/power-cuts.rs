//! Cuts the power under the log writer of `taran_sim::log_writer` until a number of cuts is reached, and prints the time; or
//! searches for a planted defect. `cargo xtask power-cuts`.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use taran_sim::log_writer::{Defect, Scenario};

/// Random power cuts under a log writer.
#[derive(Parser)]
struct Arguments {
    /// Power cuts, at least.
    #[arg(long, default_value_t = 1_000_000)]
    cuts: u64,
    /// First seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Then searches for each planted defect, and prints the shortest scenario that shows it.
    #[arg(long)]
    defects: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let start = Instant::now();
    let (mut cuts, mut recoveries, mut acknowledged, mut seed) = (0, 0, 0, arguments.seed);
    while cuts < arguments.cuts {
        let scenario = Scenario::random(seed, None);
        match scenario.run() {
            Ok(outcome) => {
                cuts += outcome.power_cuts;
                recoveries += outcome.recoveries;
                acknowledged += outcome.acknowledged;
            }
            Err(failure) => {
                println!("seed {seed}: {failure}\n{}", scenario.shrink());
                return ExitCode::FAILURE;
            }
        }
        seed += 1;
    }
    println!(
        "{cuts} power cuts, {recoveries} recoveries, {acknowledged} records acknowledged in {} scenarios: {:.1} s",
        seed - arguments.seed,
        start.elapsed().as_secs_f64()
    );
    if arguments.defects {
        for defect in Defect::ALL {
            let start = Instant::now();
            let failing = (arguments.seed..)
                .map(|seed| Scenario::random(seed, Some(defect)))
                .find(|scenario| scenario.run().is_err());
            let found = start.elapsed();
            let Some(failing) = failing else {
                return ExitCode::FAILURE;
            };
            println!(
                "{defect:?}: found by seed {} in {found:.1?}, shrunk from {} steps to",
                failing.seed,
                failing.steps.len(),
            );
            println!("{}", failing.shrink());
        }
    }
    ExitCode::SUCCESS
}
