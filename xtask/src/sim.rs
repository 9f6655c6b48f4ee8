// SPDX-License-Identifier: Apache-2.0
//! Random scenarios: generated from seeds, with all invariants checked; see docs/testing.md.

use std::process::Command;

/// Programs that run suites of random scenarios: name of the suite, package, example of the package.
const SUITES: [(&str, &str, &str); 3] = [
    ("streams", "taran-sim", "random-scenarios"),
    ("log-writer", "taran-sim", "random-scenarios"),
    ("full-memory", "taran-sim", "random-scenarios"),
];

/// Builds the program of the suite with optimisation and debug assertions, and runs it with these arguments.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let suite = match (value(arguments, "--suite"), value(arguments, "--scenario")) {
        (Some(name), _) => name,
        (None, Some(file)) => {
            let text =
                std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
            suite_of(&text)
        }
        (None, None) => SUITES[0].0.to_owned(),
    };
    let found = SUITES.iter().find(|(name, ..)| *name == suite);
    let (_, package, example) = found.ok_or_else(|| {
        let names = SUITES.map(|(name, ..)| name).join(", ");
        format!("no suite `{suite}`: there are {names}")
    })?;
    run_example(package, example, arguments)
}

/// Cuts the power under the log writer of the simulator.
pub(crate) fn power_cuts(arguments: &[String]) -> Result<(), String> {
    run_example("taran-sim", "power-cuts", arguments)
}

fn run_example(package: &str, example: &str, arguments: &[String]) -> Result<(), String> {
    super::run(
        Command::new("cargo")
            .args(["run", "--quiet", "--profile", "sim"])
            .args(["--package", package, "--example", example, "--"])
            .args(arguments),
    )
}

/// Returns the value of an option, in either form.
fn value(arguments: &[String], option: &str) -> Option<String> {
    let at = arguments.iter().position(|it| it.starts_with(option))?;
    match arguments[at][option.len()..].strip_prefix('=') {
        Some(value) => Some(value.to_owned()),
        None => arguments.get(at + 1).cloned(),
    }
}

/// Returns the suite that a scenario names.
fn suite_of(scenario: &str) -> String {
    let suite = scenario.split_once("\"suite\":\"");
    let suite = suite.and_then(|(_, rest)| rest.split_once('"'));
    suite.map_or(SUITES[0].0, |(suite, _)| suite).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suite_is_that_of_the_option_or_of_the_file() {
        let arguments = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let name = Some("log-writer".to_owned());
        assert_eq!(
            value(&arguments(&["--suite", "log-writer"]), "--suite"),
            name
        );
        assert_eq!(value(&arguments(&["--suite=log-writer"]), "--suite"), name);
        assert_eq!(value(&arguments(&["--seed", "1"]), "--suite"), None);
        assert_eq!(
            suite_of("{\"seed\":1,\"suite\":\"log-writer\",\"idle_ms\":2}\n"),
            "log-writer"
        );
        assert_eq!(suite_of("{\"seed\":1,\"idle_ms\":2}\n"), "streams");
    }
}
