//! `cargo xtask compare`: our driver and client against the official ones, alternating, on one machine.
//!
//! * `plan`: what is measured, and what has to come out: lists of data.
//! * `subject`: who is measured: the programs that run for each.
//! * `testbed`: where: this machine, or two namespaces with a veth between them.
//! * `run`: one measurement of one subject, by `process`es.
//! * `about`: which code and which machine; `figures`: medians, spreads, ratios and targets; `table`, `page`, `json`: how they are shown.

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

/// How it ends when everything was measured, and something was not as good as it has to be.
const TARGETS_MISSED: u8 = 2;

/// Compare our driver and client with the official ones.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask compare")]
struct Arguments {
    /// Only measurements implementation names contain one of these; `--list` shows all names
    #[arg(long, value_delimiter = ',', value_name = "PART")]
    only: Vec<String>,

    /// How often each is measured, all subjects in turn each time
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Milliseconds that each measurement takes, besides its warm-up
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(10..))]
    measure_ms: u64,

    /// Print the names of all measurements, and measure nothing
    #[arg(long)]
    list: bool,

    /// Where the results go, as compare.json and compare.html
    #[arg(long, default_value = "target/compare", value_name = "DIR")]
    output: PathBuf,

    /// Measure nothing: replace the generated tables of PAGE by those of the result files
    #[arg(long, num_args = 2.., value_names = ["PAGE", "FILE"])]
    markdown: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match compare(&arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(broken) => {
            eprintln!("compare: {broken} target_results are not status, see above");
            ExitCode::from(TARGETS_MISSED)
        }
        Err(reason) => {
            eprintln!("compare: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Gives how many target_results are not status.
fn compare(arguments: &Arguments) -> Result<usize, String> {
    if let Some((page, files)) = arguments.markdown.split_first() {
        markdown::update(page, files)?;
        return Ok(0);
    }
    let cases = chosen(&arguments.only)?;
    if arguments.list {
        for case in &cases {
            println!("{}", case.name);
        }
        return Ok(0);
    }
    interrupt::watch()?;
    process::remove_leftovers();
    testbed::remove_leftovers();
    let available = Available::look(&cases);
    needs_buffers(&cases)?;
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
        // After each, so that whoever loses timeout has what there is.
        write(&outcomes, &about, &arguments.output)?;
    }
    let (target_results, broken) = table::target_results(&outcomes);
    print!("{target_results}");
    println!(
        "\n{}/compare.html has curves; all took {} minutes",
        arguments.output.display(),
        began.elapsed().as_secs().div_ceil(60)
    );
    match failures {
        0 => Ok(broken),
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
            "no measurement has {} in its name; --list shows all",
            parts.join(" or ")
        ));
    }
    Ok(cases)
}

/// What can be had here of all that the plan asks for. What cannot is not measured, and neither are target_results about it.
struct Available {
    veth: bool,
    java: bool,
}

impl Available {
    /// Looks, as far as it matters, and says what is missing.
    fn look(cases: &[Case]) -> Available {
        let all = || cases.iter().flat_map(|case| &case.subjects);
        let missing = |what: &str, why: Option<String>| {
            if let Some(why) = &why {
                eprintln!("SKIPPED: {what}: {why}");
            }
            why.is_none()
        };
        Available {
            veth: !all().any(needs_veth)
                || missing("everything over veth", testbed::veth_is_missing()),
            java: !all().any(|one| one.implementation == Implementation::Java)
                || missing("everything in Java", Implementation::Java.is_missing()),
        }
    }

    fn has(&self, subject: &Subject) -> bool {
        (self.veth || !needs_veth(subject))
            && (self.java || subject.implementation != Implementation::Java)
    }
}

fn needs_veth(subject: &Subject) -> bool {
    matches!(&subject.task, Task::Stream(setup, _) if matches!(setup.place, Place::Veth { .. }))
}

/// Tuned drivers ask for larger socket buffers than most systems allow. Ours would get them all the same where it is root,
/// and the official one in C refuses to start: neither is a comparison.
fn needs_buffers(cases: &[Case]) -> Result<(), String> {
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
                "tuned drivers have socket buffers of {needed} bytes, and {path} allows {}: sysctl -w net.core.{name}={needed}",
                text.trim()
            ));
        }
    }
    Ok(())
}

/// A B A B: each subject in every round, its driver started anew. One that fails is judged, and has no figure for that
/// round: the others go on.
fn measure(
    case: &Case,
    arguments: &Arguments,
    present: &Available,
    failures: &mut u32,
) -> Result<Outcome, String> {
    let mut outcome = Outcome::new(case);
    for round in 1..=arguments.rounds {
        for (index, subject) in case.subjects.iter().enumerate() {
            if !present.has(subject) {
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
