//! `cargo xtask compare`: our driver and client against the official ones, alternating, on one machine.
//!
//! * `plan`: what is measured, and what has to come out: lists of data.
//! * `contender`: who is measured: the programs that run for each.
//! * `world`: where: this machine, or two namespaces with a cable between them.
//! * `run`: one measurement of one contestant, by `process`es.
//! * `about`: which code and which machine; `figures`: medians, spreads, ratios and floors; `table`, `page`, `json`: how they are shown.

#![forbid(unsafe_code)]

mod about;
mod contender;
mod figures;
mod interrupt;
mod json;
mod page;
mod plan;
mod process;
mod run;
mod table;
mod world;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use about::About;
use contender::Contender;
use figures::Outcome;
use plan::{Case, Contestant, Drive, Task};
use world::Place;

/// How it ends when everything was measured, and something was not as good as it has to be.
const NOT_KEPT: u8 = 2;

/// Compare our driver and client with the official ones.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask compare")]
struct Arguments {
    /// Only measurements whose names contain one of these; `--list` shows all names
    #[arg(long, value_delimiter = ',', value_name = "PART")]
    only: Vec<String>,

    /// How often each is measured, all contestants in turn each time
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
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match compare(&arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(broken) => {
            eprintln!("compare: {broken} promises are not kept, see above");
            ExitCode::from(NOT_KEPT)
        }
        Err(reason) => {
            eprintln!("compare: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Gives how many promises are not kept.
fn compare(arguments: &Arguments) -> Result<usize, String> {
    let cases = chosen(&arguments.only)?;
    if arguments.list {
        for case in &cases {
            println!("{}", case.name);
        }
        return Ok(0);
    }
    interrupt::watch()?;
    process::remove_leftovers();
    world::remove_leftovers();
    let is_there = Present::look(&cases);
    needs_buffers(&cases)?;
    fs::create_dir_all(&arguments.output).map_err(|error| at(&arguments.output, &error))?;
    let began = Instant::now();
    let about = About::of(arguments);
    println!("{}", about.line());
    let mut outcomes = Vec::new();
    let mut failures = 0;
    for case in &cases {
        let outcome = measure(case, arguments, &is_there, &mut failures)?;
        print!("{}", table::text(&outcome));
        outcomes.push(outcome);
        // After each, so that whoever loses patience has what there is.
        write(&outcomes, &about, &arguments.output)?;
    }
    let (promises, broken) = table::promises(&outcomes);
    print!("{promises}");
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

/// What can be had here of all that the plan asks for. What cannot is not measured, and neither are promises about it.
struct Present {
    cable: bool,
    java: bool,
}

impl Present {
    /// Looks, as far as it matters, and says what is missing.
    fn look(cases: &[Case]) -> Present {
        let all = || cases.iter().flat_map(|case| &case.contestants);
        let missing = |what: &str, why: Option<String>| {
            if let Some(why) = &why {
                eprintln!("SKIPPED: {what}: {why}");
            }
            why.is_none()
        };
        Present {
            cable: !all().any(needs_cable)
                || missing("everything over veth", world::cable_is_missing()),
            java: !all().any(|one| one.whose == Contender::Java)
                || missing("everything in Java", Contender::Java.is_missing()),
        }
    }

    fn has(&self, contestant: &Contestant) -> bool {
        (self.cable || !needs_cable(contestant))
            && (self.java || contestant.whose != Contender::Java)
    }
}

fn needs_cable(contestant: &Contestant) -> bool {
    matches!(&contestant.task, Task::Stream(drive, _) if matches!(drive.place, Place::Cable { .. }))
}

/// Tuned drivers ask for larger socket buffers than most systems allow. Ours would get them all the same where it is root,
/// and the official one in C refuses to start: neither is a comparison.
fn needs_buffers(cases: &[Case]) -> Result<(), String> {
    let is_tuned = |one: &Contestant| one.task.drive().is_some_and(Drive::is_tuned);
    if !cases
        .iter()
        .flat_map(|case| &case.contestants)
        .any(is_tuned)
    {
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

/// A B A B: each contestant in every round, its driver started anew. One that fails is told, and has no figure for that
/// round: the others go on.
fn measure(
    case: &Case,
    arguments: &Arguments,
    present: &Present,
    failures: &mut u32,
) -> Result<Outcome, String> {
    let mut outcome = Outcome::new(case);
    for round in 1..=arguments.rounds {
        for (index, contestant) in case.contestants.iter().enumerate() {
            if !present.has(contestant) {
                continue;
            }
            let result = run::once(contestant, arguments.measure_ms);
            interrupt::check()?;
            match result {
                Ok(measured) => outcome.add(index, measured),
                Err(reason) => {
                    *failures += 1;
                    let label = &contestant.label;
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
