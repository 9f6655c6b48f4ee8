// SPDX-License-Identifier: Apache-2.0
//! Cuts the power under the log writer of `taran_sim::log_writer` until a number of cuts is reached, and prints the time; or
//! searches for a planted defect. `cargo xtask power-cuts`.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use taran_sim::log_writer::{Defect, suite};
use taran_sim::scenario::{self, Coverage, Failure, Scenario, Suite};

/// Highest number of scenarios run to shrink a failed one.
const ATTEMPTS: u64 = 100_000;

/// Scenarios that are searched for a planted defect: a core-minute is enough for several times as many.
const SEARCHED: usize = 20_000;

/// Random power cuts under a log writer.
#[derive(Parser)]
struct Arguments {
    /// Power cuts, at least.
    #[arg(long, default_value_t = 1_000_000)]
    cuts: u64,
    /// First seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Then searches for each planted defect, and prints the shortest scenario that shows it. Fails if one is not found.
    #[arg(long)]
    defects: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    scenario::silence_panics();
    let (start, correct) = (Instant::now(), suite(None));
    let (mut happened, mut seed) = (Coverage::default(), arguments.seed);
    while happened.get("power cut") < arguments.cuts {
        let scenario = correct.random(seed);
        match correct.run(&scenario) {
            Ok(coverage) => happened.merge(&coverage),
            Err(failure) => {
                println!("seed {seed}: {}", failure.text);
                print_shrunk(&correct, &scenario, &failure);
                return ExitCode::FAILURE;
            }
        }
        seed += 1;
    }
    println!(
        "{happened}\n{} power cuts in {} scenarios: {:.1} s",
        happened.get("power cut"),
        seed - arguments.seed,
        start.elapsed().as_secs_f64()
    );
    if arguments.defects {
        let found = Defect::ALL.map(|defect| find(defect, arguments.seed));
        if found.contains(&false) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Searches for a defect, and prints the shortest scenario that shows it. Returns true if it was found.
fn find(defect: Defect, seed: u64) -> bool {
    let (start, suite) = (Instant::now(), suite(Some(defect)));
    let fails = |scenario: Scenario| Some((suite.run(&scenario).err()?, scenario));
    let mut scenarios = (seed..).map(|seed| suite.random(seed)).take(SEARCHED);
    let Some((failure, scenario)) = scenario::without_panic_output(|| scenarios.find_map(fails))
    else {
        println!(
            "{defect:?}: NOT FOUND in {SEARCHED} scenarios from seed {seed} on, in {:.1?}",
            start.elapsed()
        );
        return false;
    };
    println!(
        "{defect:?}: found in {:.1?}, with {} operations",
        start.elapsed(),
        scenario.ops.len()
    );
    print_shrunk(&suite, &scenario, &failure);
    true
}

fn print_shrunk(suite: &Suite, scenario: &Scenario, failure: &Failure) {
    let start = Instant::now();
    let shrunk = suite.shrink(scenario, failure, |attempts| attempts > ATTEMPTS);
    println!(
        "shrunk by {} attempts in {:.1?} to\n{}  {}",
        shrunk.attempts,
        start.elapsed(),
        shrunk.scenario.to_text(),
        shrunk.failure.text.lines().next().unwrap_or_default()
    );
}
