// SPDX-License-Identifier: Apache-2.0
//! Tests of `crates/cli` with higher counts than in a normal test run: thousands of killed processes and opened publications.

use std::process::Command;

use crate::{at_least_one, run};

const CLIENTS: &str = "kills::killed_clients_leak_nothing";
const DRIVERS: &str = "drivers::killed_driver_is_reported_and_its_successor_starts_empty";
const PUBLICATIONS: &str = "churn::opening_and_closing_publications_leaks_nothing";

const MEMBERS: &str =
    "clusters::kills::counter_of_three_members_is_linearizable_while_members_are_killed";

/// Variables of random seeds, the only numbers that may be zero.
const SEED: &str = "TARAN_KILLS_SEED";
const MEMBERS_SEED: &str = "TARAN_CLUSTER_KILLS_SEED";

/// Numeric option: its name, the variable that the test reads, and the default.
type Number = (&'static str, &'static str, Option<&'static str>);

/// Kills clients, drivers, or members of a cluster.
pub(crate) fn kills(arguments: &[String]) -> Result<(), String> {
    let seed: Number = ("--seed", SEED, None);
    let drivers: Number = ("--drivers", "TARAN_DRIVER_KILLS", None);
    if arguments.iter().any(|option| option == drivers.0) {
        return run_test("crash", DRIVERS, &[drivers, seed], arguments, "test");
    }
    let members: Number = ("--members", "TARAN_CLUSTER_KILLS", None);
    if arguments.iter().any(|option| option == members.0) {
        let seed: Number = ("--seed", MEMBERS_SEED, None);
        return run_test("interop", MEMBERS, &[members, seed], arguments, "test");
    }
    let clients: &[Number] = &[
        ("--kills", "TARAN_KILLS", Some("10000")),
        ("--at-once", "TARAN_KILLS_AT_ONCE", Some("12")),
        seed,
    ];
    run_test("crash", CLIENTS, clients, arguments, "test")
}

/// Opens and closes publications.
pub(crate) fn churn(arguments: &[String]) -> Result<(), String> {
    let publications: &[Number] = &[
        ("--publications", "TARAN_CHURN_PUBLICATIONS", Some("10000")),
        ("--rounds", "TARAN_CHURN_ROUNDS", Some("10")),
    ];
    // Optimised, so that ten million openings take less than an hour.
    run_test("crash", PUBLICATIONS, publications, arguments, "sim")
}

fn run_test(
    target: &str,
    test: &str,
    numbers: &[Number],
    arguments: &[String],
    profile: &str,
) -> Result<(), String> {
    let mut command = Command::new("cargo");
    command
        .args(["test", "--locked", "--profile", profile])
        .args(["--package", "taran-cli", "--test", target])
        .args(["--", "--nocapture", "--exact", test]);
    for (_, variable, default) in numbers {
        if let Some(default) = default {
            command.env(variable, default);
        }
    }
    for pair in arguments.chunks(2) {
        let [name, value] = pair else {
            return Err(format!("{} needs a number", pair[0]));
        };
        let Some((_, variable, _)) = numbers.iter().find(|(option, ..)| option == name) else {
            let known: Vec<&str> = numbers.iter().map(|(option, ..)| *option).collect();
            return Err(format!(
                "{name} is unknown; known options: {}",
                known.join(", ")
            ));
        };
        if ![SEED, MEMBERS_SEED].contains(variable) {
            at_least_one(name, value)?;
        }
        command.env(variable, value);
    }
    run(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_names_refer_to_existing_tests() {
        for (test, source) in [
            (
                CLIENTS,
                include_str!("../../crates/cli/tests/crash/kills.rs"),
            ),
            (
                DRIVERS,
                include_str!("../../crates/cli/tests/crash/drivers.rs"),
            ),
            (
                PUBLICATIONS,
                include_str!("../../crates/cli/tests/crash/churn.rs"),
            ),
            (
                MEMBERS,
                include_str!("../../crates/cli/tests/interop/clusters/kills.rs"),
            ),
        ] {
            let (_, name) = test.rsplit_once("::").expect("a module and a function");
            let begin = format!("#[test]\nfn {name}()");
            assert!(source.contains(&begin), "cargo would run nothing: {test}");
        }
    }

    #[test]
    fn kills_and_churn_with_zero_or_text_fail() {
        let pair = |option: &str, value: &str| [option.to_owned(), value.to_owned()];
        for (option, value) in [
            ("--kills", "0"),
            ("--at-once", "0"),
            ("--drivers", "0"),
            ("--members", "0"),
            ("--kills", "many"),
        ] {
            let refused = kills(&pair(option, value)).unwrap_err();
            assert!(refused.contains(option), "{refused}");
        }
        assert!(churn(&pair("--rounds", "0")).is_err());
    }
}
