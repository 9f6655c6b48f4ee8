//! Clients killed by the thousand: `crates/cli/tests/crash` with more of them than a test run has.

use std::process::Command;

use crate::run;

/// `--kills N`, `--at-once N`, `--seed N`.
pub(crate) fn kills(arguments: &[String]) -> Result<(), String> {
    let mut command = Command::new("cargo");
    command
        .args(["test", "--package", "taran-cli", "--test", "crash"])
        .args(["--", "--nocapture", "--exact"])
        .arg("kills::killed_clients_leave_nothing_behind")
        .env("TARAN_KILLS", "10000")
        .env("TARAN_KILLS_AT_ONCE", "12");
    for pair in arguments.chunks(2) {
        let [name, value] = pair else {
            return Err(format!("{} needs a number", pair[0]));
        };
        let variable = match name.as_str() {
            "--kills" => "TARAN_KILLS",
            "--at-once" => "TARAN_KILLS_AT_ONCE",
            "--seed" => "TARAN_KILLS_SEED",
            other => return Err(format!("{other}: --kills, --at-once or --seed")),
        };
        command.env(variable, value);
    }
    run(&mut command)
}
