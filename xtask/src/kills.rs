//! Processes killed and publications opened by the thousand: `crates/cli/tests/crash` with more than a test run has.

use std::process::Command;

use crate::run;

/// A number that is asked for: its option, the variable that the test reads, and what it is otherwise.
type Number = (&'static str, &'static str, Option<&'static str>);

/// Kills clients, or drivers.
pub(crate) fn kills(arguments: &[String]) -> Result<(), String> {
    const DRIVERS: Number = ("--drivers", "TARAN_DRIVER_KILLS", None);
    if arguments.first().is_some_and(|option| option == DRIVERS.0) {
        return run_test(
            "drivers::a_killed_driver_is_a_typed_event_and_the_next_one_begins_anew",
            &[DRIVERS],
            arguments,
            "test",
        );
    }
    let clients: &[Number] = &[
        ("--kills", "TARAN_KILLS", Some("10000")),
        ("--at-once", "TARAN_KILLS_AT_ONCE", Some("12")),
        ("--seed", "TARAN_KILLS_SEED", None),
    ];
    run_test(
        "kills::killed_clients_leave_nothing_behind",
        clients,
        arguments,
        "test",
    )
}

/// Opens and closes publications.
pub(crate) fn churn(arguments: &[String]) -> Result<(), String> {
    let publications: &[Number] = &[
        ("--publications", "TARAN_CHURN_PUBLICATIONS", Some("10000")),
        ("--rounds", "TARAN_CHURN_ROUNDS", Some("10")),
    ];
    run_test(
        "churn::publications_come_and_go_and_nothing_grows",
        publications,
        arguments,
        // Ten million openings are to end within the hour.
        "sim",
    )
}

fn run_test(
    test: &str,
    numbers: &[Number],
    arguments: &[String],
    profile: &str,
) -> Result<(), String> {
    let mut command = Command::new("cargo");
    command
        .args(["test", "--locked", "--profile", profile])
        .args(["--package", "taran-cli", "--test", "crash"])
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
            return Err(format!("{name}: known are {}", known.join(", ")));
        };
        command.env(variable, value);
    }
    run(&mut command)
}
