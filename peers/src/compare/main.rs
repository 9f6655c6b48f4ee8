// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask compare`: benchmarks our driver and client against the official ones, alternating, on one machine.
//!
//! * `plan`: the measurements and their targets, as data.
//! * `subject`: the implementations and the programs that run for each.
//! * `testbed`: this machine, or two network namespaces with a veth between them.
//! * `run`: one measurement of one subject, with the help of `process`.
//! * `about`: commit and machine.
//! * `figures`: medians, spreads, ratios and targets.
//! * `table`, `page`, `json`, `markdown`: output formats.

#![forbid(unsafe_code)]

mod about;
mod figures;
mod interrupt;
mod json;
mod markdown;
mod page;
mod plan;
mod process;
mod run;
mod subject;
mod table;
mod testbed;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use about::About;
use figures::Outcome;
use plan::{Case, DriverSetup, Subject, Task};
use subject::Implementation;
use testbed::Place;

/// Exit code if every measurement succeeded and at least one target is not met.
const TARGETS_MISSED: u8 = 2;

/// Compare our driver and client with the official ones.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask compare")]
struct Arguments {
    /// Run only the measurements whose names contain one of these; `--list` prints all names
    #[arg(long, value_delimiter = ',', value_name = "PART")]
    only: Vec<String>,

    /// Rounds; each round measures every subject once
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Duration of each measurement in milliseconds, without its warm-up
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(10..))]
    measure_ms: u64,

    /// Print the names of all measurements and exit
    #[arg(long)]
    list: bool,

    /// Directory for the results, compare.json and compare.html
    #[arg(long, default_value = "target/compare", value_name = "DIR")]
    output: PathBuf,

    /// Measure nothing; regenerate the tables of PAGE from the result files
    #[arg(long, num_args = 2.., value_names = ["PAGE", "FILE"])]
    markdown: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match compare(&arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(missed) => {
            eprintln!("compare: {missed} targets are not met, see above");
            ExitCode::from(TARGETS_MISSED)
        }
        Err(reason) => {
            eprintln!("compare: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the number of targets that are not met.
fn compare(arguments: &Arguments) -> Result<usize, String> {
    if let Some((page, files)) = arguments.markdown.split_first() {
        markdown::update(page, files)?;
        return Ok(0);
    }
    let mut cases = chosen(&arguments.only)?;
    if arguments.list {
        for case in &cases {
            println!("{}", case.name);
        }
        return Ok(0);
    }
    interrupt::watch()?;
    process::remove_leftovers();
    testbed::remove_leftovers();
    let available = Available::detect(&mut cases);
    check_socket_buffer_limits(&cases)?;
    fs::create_dir_all(&arguments.output).map_err(|error| at(&arguments.output, &error))?;
    let began = Instant::now();
    let about = About::of(arguments);
    println!("{}", about.line());
    let mut outcomes = Vec::new();
    let mut failures = 0;
    for case in &cases {
        let outcome = measure(case, arguments, &available, &mut failures)?;
        print!("{}", table::text(&outcome));
        outcomes.push(outcome);
        // Written after each case so that an interrupted run leaves its results so far.
        write(&outcomes, &about, &arguments.output)?;
    }
    let (summary, missed) = table::target_results(&outcomes);
    print!("{summary}");
    println!(
        "\npercentile curves: {}/compare.html; duration: {} minutes",
        arguments.output.display(),
        began.elapsed().as_secs().div_ceil(60)
    );
    match failures {
        0 => Ok(missed),
        count => Err(format!("{count} measurements failed, see above")),
    }
}

fn chosen(parts: &[String]) -> Result<Vec<Case>, String> {
    let mut cases = plan::all();
    if !parts.is_empty() {
        cases.retain(|case| parts.iter().any(|part| case.name.contains(part)));
    }
    if cases.is_empty() {
        return Err(format!(
            "no measurement name contains {}; --list prints all names",
            parts.join(" or ")
        ));
    }
    Ok(cases)
}

/// Optional parts of the testbed that exist on this machine. Subjects that need a missing part are skipped, and the targets
/// that refer to them count as not measured. Subjects that need more cores are skipped with their targets.
struct Available {
    veth: bool,
    java: bool,
    cores: usize,
}

impl Available {
    /// Checks the parts that these cases need, and reports the missing ones on standard error.
    fn detect(cases: &mut [Case]) -> Available {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for case in &mut *cases {
            for label in case.limit_to(cores) {
                eprintln!(
                    "SKIPPED: {}, {label}: its threads never sleep, and this machine has {cores} cores: its target is not decided",
                    case.name
                );
            }
        }
        let all = || cases.iter().flat_map(|case| &case.subjects);
        let is_available = |part: &str, problem: Option<String>| {
            if let Some(problem) = &problem {
                eprintln!("SKIPPED: {part}: {problem}");
            }
            problem.is_none()
        };
        Available {
            veth: !all().any(needs_veth)
                || is_available("all cases over veth", testbed::veth_problem()),
            java: !all().any(|one| one.implementation == Implementation::Java)
                || is_available("all Java subjects", Implementation::Java.problem()),
            cores,
        }
    }

    fn has(&self, subject: &Subject) -> bool {
        (self.veth || !needs_veth(subject))
            && self.cores >= subject.task.least_cores()
            && (self.java || subject.implementation != Implementation::Java)
    }
}

fn needs_veth(subject: &Subject) -> bool {
    matches!(&subject.task, Task::Stream(setup, _) if matches!(setup.place, Place::Veth { .. }))
}

/// Fails if the system's socket buffer limits are too small for the tuned drivers. With smaller limits the subjects would not
/// be comparable: as root our driver exceeds the limits, and the official C driver refuses to start.
fn check_socket_buffer_limits(cases: &[Case]) -> Result<(), String> {
    let is_tuned = |one: &Subject| one.task.setup().is_some_and(DriverSetup::is_tuned);
    if !cases.iter().flat_map(|case| &case.subjects).any(is_tuned) {
        return Ok(());
    }
    for name in ["rmem_max", "wmem_max"] {
        let path = format!("/proc/sys/net/core/{name}");
        let text = fs::read_to_string(&path).map_err(|error| at(Path::new(&path), &error))?;
        if text
            .trim()
            .parse()
            .is_ok_and(|bytes: u64| bytes < plan::SOCKET_BUFFER)
        {
            let needed = plan::SOCKET_BUFFER;
            return Err(format!(
                "tuned drivers need socket buffers of {needed} bytes, {path} allows {}: sysctl -w net.core.{name}={needed}",
                text.trim()
            ));
        }
    }
    Ok(())
}

/// Measures all subjects of a case, alternating (A B A B), each with a newly started driver. A failed measurement is reported
/// and counted; the subject has no figure for that round, and the remaining measurements continue.
fn measure(
    case: &Case,
    arguments: &Arguments,
    available: &Available,
    failures: &mut u32,
) -> Result<Outcome, String> {
    let mut outcome = Outcome::new(case);
    for round in 1..=arguments.rounds {
        for (index, subject) in case.subjects.iter().enumerate() {
            if !available.has(subject) {
                continue;
            }
            let result = run::once(subject, arguments.measure_ms);
            interrupt::check()?;
            match result {
                Ok(measured) => outcome.add(index, measured),
                Err(reason) => {
                    *failures += 1;
                    let label = &subject.label;
                    eprintln!("FAILED: {}, {label}, round {round}: {reason}", case.name);
                }
            }
        }
    }
    Ok(outcome)
}

fn write(outcomes: &[Outcome], about: &About, folder: &Path) -> Result<(), String> {
    let json = serde_json::to_string_pretty(&json::value(outcomes, about))
        .map_err(|error| error.to_string())?;
    for (name, text) in [
        ("compare.json", json),
        ("compare.html", page::html(outcomes, about)),
    ] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| at(&path, &error))?;
    }
    Ok(())
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
