// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask consensus`: random schedules of the consensus core alone, with all invariants checked, or with `--states` the
//! searches from its stories; see docs/consensus.md.

use std::process::Command;

use crate::{at_least_one, run as run_command};

const USAGE: &str = "cargo xtask consensus [--seeds N] [--seed FIRST] | --states N";

/// Seed of the first schedule by default. `cargo test` uses those from 0 on.
const FIRST_SEED: u64 = 1_000_000;

/// Number of schedules by default.
const SEEDS: u64 = 100_000;

/// Builds the tests of the core with optimisation and debug assertions, and runs schedules of these seeds.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let mut tests = Command::new("cargo");
    tests.args(["test", "--quiet", "--profile", "sim"]).args([
        "--package",
        "taran-cluster",
        "--lib",
        "--",
    ]);
    if let [option, text] = arguments
        && option == "--states"
    {
        let states: u64 = at_least_one(option, text)?;
        return run_command(
            tests
                .args(["--nocapture", "--test-threads", "2", "exploration"])
                .env("TARAN_CONSENSUS_STATES", states.to_string()),
        );
    }
    let (first, count) = parse(arguments)?;
    run_command(
        tests
            .args(["--ignored", "--nocapture", "many_random_schedules"])
            .env("TARAN_CONSENSUS_SEED", first.to_string())
            .env("TARAN_CONSENSUS_SEEDS", count.to_string()),
    )
}

/// Returns the first seed, and the number of seeds.
fn parse(arguments: &[String]) -> Result<(u64, u64), String> {
    let (mut first, mut count) = (FIRST_SEED, SEEDS);
    for pair in arguments.chunks(2) {
        match pair {
            [option, text] if option == "--seed" => {
                first = text
                    .parse()
                    .map_err(|error| format!("--seed needs a number, not {text:?}: {error}"))?;
            }
            [option, text] if option == "--seeds" => count = at_least_one(option, text)?,
            _ => return Err(format!("usage: {USAGE}")),
        }
    }
    Ok((first, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_takes_seed_and_number_of_seeds() {
        let parse = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            parse(&words)
        };
        assert_eq!(parse(&[]), Ok((FIRST_SEED, SEEDS)));
        assert_eq!(parse(&["--seeds", "7", "--seed", "3"]), Ok((3, 7)));
        assert!(parse(&["--seeds", "0"]).is_err());
        assert!(parse(&["--seed"]).is_err());
    }
}
