// SPDX-License-Identifier: Apache-2.0
//! Provenance of the results: commit, machine, time and size of the run.

use std::fs;
use std::process::Command;

use serde::Serialize;

use crate::Arguments;

/// Provenance of a run; `unknown` where it cannot be determined.
#[derive(Debug, Serialize)]
pub(crate) struct About {
    /// Commit, with the suffix `-dirty` if the work tree differs from it.
    pub(crate) commit: String,
    /// Start of the run, in UTC.
    pub(crate) began: String,
    pub(crate) kernel: String,
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) rounds: u32,
    pub(crate) measure_ms: u64,
}

impl About {
    pub(crate) fn of(arguments: &Arguments) -> About {
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find(|line| line.starts_with("model name"));
        let name = model.and_then(|line| line.split_once(": "));
        About {
            commit: first_line(
                "git",
                &["describe", "--always", "--dirty", "--exclude", "*"],
            ),
            began: first_line("date", &["-u", "+%Y-%m-%d %H:%M:%S"]),
            kernel: first_line("uname", &["-srm"]),
            processor: name.map_or_else(unknown, |(_, name)| name.to_owned()),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            rounds: arguments.rounds,
            measure_ms: arguments.measure_ms,
        }
    }

    /// Returns all fields as one line of text.
    pub(crate) fn line(&self) -> String {
        format!(
            "{} at {} UTC; {}; {} cores of {}; {} rounds of {} ms",
            self.commit,
            self.began,
            self.kernel,
            self.cores,
            self.processor,
            self.rounds,
            self.measure_ms
        )
    }
}

/// Returns the first line of a program's standard output.
fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok());
    text.and_then(|text| Some(text.lines().next()?.to_owned()))
        .unwrap_or_else(unknown)
}

fn unknown() -> String {
    "unknown".to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn about_describes_this_machine() {
        let about = About::of(&Arguments::parse_from(["compare", "--rounds", "3"]));
        assert_eq!((about.rounds, about.measure_ms), (3, 1_000));
        assert!(about.kernel.starts_with("Linux "), "{about:?}");
        assert!(about.cores > 0 && !about.line().contains("unknown at"));
    }
}
