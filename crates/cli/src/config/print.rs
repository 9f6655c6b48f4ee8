// SPDX-License-Identifier: Apache-2.0
//! `taran config print`.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use taran_archive::ArchiveConfig;
use taran_cluster::container::ContainerConfig;
use taran_cluster::module::ClusterConfig;
use taran_driver::context::validate;
use taran_protocol::option::{Explained, OptionSet, Source};

use super::sources::{Program, Sources};
use crate::driver;
use crate::failure::Failure;
use crate::output;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Prints the configuration that 'taran driver' would run with, given the same environment, property files and -D options;
with --archive or --cluster that of 'taran archive' or 'taran cluster'. Each line is an option, its value, and the source of
the value: default, profile, environment, file or command line. An option that is not set has an empty value.

  taran config print --changed                  only values that differ from the defaults
  taran config print -Dtaran.profile=low-latency prod.properties
  taran config print --archive archive.properties        the options of 'taran archive'
  taran config print --cluster member.properties         the options of 'taran cluster'
  taran config print --container service.properties      the options of 'taran cluster --container'
  taran config print --client                   the options of clients, read from the environment

Conflicts between values are checked as at the start of the program.

Exit status: 0 the program would start with these options, 1 it would reject them, 2 incorrect usage.")]
pub(super) struct Arguments {
    #[command(flatten)]
    sources: Sources,

    /// Print only options that are not set to their default
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
    /// `None` if empty.
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
    driver::warn(&unknown);
    check(arguments.sources.program(), &options)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns an error for options with which the program would not start.
fn check(program: Program, options: &OptionSet) -> Result<(), Failure> {
    let conflicts: Vec<String> = match program {
        Program::Driver => validate(options).iter().map(ToString::to_string).collect(),
        Program::Archive => {
            let conflict = ArchiveConfig::new(options).err();
            conflict.iter().map(ToString::to_string).collect()
        }
        Program::Cluster => {
            let conflict = ClusterConfig::new(options).err();
            conflict.iter().map(ToString::to_string).collect()
        }
        Program::Container => {
            let conflict = ContainerConfig::new(options).err();
            conflict.iter().map(ToString::to_string).collect()
        }
        Program::Client => Vec::new(),
    };
    if conflicts.is_empty() {
        return Ok(());
    }
    Err(Failure::Other(conflicts.join("\n")))
}

impl Line {
    fn of(explained: Explained<'_>) -> Self {
        let is_set = |text: &str| !text.is_empty();
        Self {
            option: explained.option.property,
            variable: explained.option.variable,
            source: explained.source.to_string(),
            default: Some(explained.option.default).filter(|text| is_set(text)),
            value: Some(explained.value).filter(|text| is_set(text)),
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
