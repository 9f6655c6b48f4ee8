//! `taran config print`.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use taran_driver::context::validate;
use taran_protocol::option::{Explained, OptionSet, Source};

use super::sources::Sources;
use crate::failure::Failure;
use crate::output;

/// The arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
What 'taran driver' would run with, told the same: the environment, property files, -D. Each line: the option, its value,
and where that comes from: default, profile, environment, file or command line. An option without a value has none.

  taran config print --changed                  what is not as by default
  taran config print -Dtaran.profile=low-latency prod.properties
  taran config print --client                   what clients read from the environment

Values that go together with others or not are checked as at the driver's start.

Exit status: 0 a driver would start with these, 1 it would refuse them, 2 wrong usage.")]
pub(super) struct Arguments {
    #[command(flatten)]
    sources: Sources,

    /// Only options that are not as by default
    #[arg(long)]
    changed: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    option: &'static str,
    variable: &'static str,
    /// `None` where it has none.
    value: Option<String>,
    source: String,
    default: Option<&'static str>,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (options, unknown) = arguments.sources.read()?;
    let lines: Vec<Line> = options
        .explain()
        .filter(|explained| !arguments.changed || *explained.source != Source::Default)
        .map(Line::of)
        .collect();
    if arguments.json {
        output::json(&lines)?;
    } else {
        output::text(&report(&lines))?;
    }
    for option in unknown.iter().filter(|option| option.nearest.is_some()) {
        eprintln!("WARNING: {option}");
    }
    if !arguments.sources.is_client() {
        check(&options)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses what a driver would refuse.
fn check(options: &OptionSet) -> Result<(), Failure> {
    let conflicts = validate(options);
    if conflicts.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
    Err(Failure::Other(texts.join("\n")))
}

impl Line {
    fn of(explained: Explained<'_>) -> Self {
        let given = |text: &str| !text.is_empty();
        Self {
            option: explained.option.property,
            variable: explained.option.variable,
            source: explained.source.to_string(),
            default: Some(explained.option.default).filter(|text| given(text)),
            value: Some(explained.value).filter(|text| given(text)),
        }
    }
}

fn report(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        let value = line.value.as_deref().unwrap_or("");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}={value}  ({})", line.option, line.source);
    }
    text
}
