// SPDX-License-Identifier: Apache-2.0
//! `taran config explain`.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use taran_protocol::option::{OptionSet, OptionSpec, find_option, nearest_option, search_options};

use super::sources::Sources;
use crate::driver;
use crate::failure::Failure;
use crate::output;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Without an option of that name, all options are explained whose name contains each of its words.

  taran config explain aeron.mtu.length
  taran config explain mtu
  taran config explain 'archive segment'
  taran config explain AERON_THREADING_MODE -Dtaran.profile=low-footprint

With --json, a search prints one document per option, each on a line of its own.

Exit status: 0 explained, 1 a value is invalid, 2 incorrect usage or unknown option.")]
pub(super) struct Arguments {
    /// The option, by its property or environment variable, or words of its name
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    sources: Sources,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Explanation {
    option: &'static str,
    variable: &'static str,
    help: &'static str,
    needs: String,
    read_by: &'static str,
    default: Option<&'static str>,
    /// `None` if empty.
    value: Option<String>,
    source: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let specs = find(&arguments.name)?;
    let (options, unknown) = arguments.sources.read()?;
    let explanations: Vec<Explanation> = specs
        .iter()
        .map(|spec| Explanation::of(spec, &options))
        .collect();
    if arguments.json {
        for explanation in &explanations {
            output::json(explanation)?;
        }
    } else {
        let texts: Vec<String> = explanations.iter().map(Explanation::text).collect();
        output::text(&texts.join("\n"))?;
    }
    driver::warn(&unknown);
    Ok(ExitCode::SUCCESS)
}

/// Returns the option with this name, or else all whose names contain its words.
fn find(name: &str) -> Result<Vec<&'static OptionSpec>, Failure> {
    if let Some(spec) = find_option(name) {
        return Ok(vec![spec]);
    }
    let found = search_options(name);
    if !found.is_empty() {
        return Ok(found);
    }
    Err(Failure::Usage(match nearest_option(name) {
        Some(nearest) => format!("unknown option {name}, did you mean {nearest}?"),
        None => format!("unknown option {name}; 'taran config print' lists all options"),
    }))
}

impl Explanation {
    fn of(spec: &'static OptionSpec, options: &OptionSet) -> Self {
        let explained = options
            .explain()
            .find(|explained| explained.option.id == spec.id);
        Self {
            option: spec.property,
            variable: spec.variable,
            help: spec.help,
            needs: spec.kind.requirement().into_owned(),
            read_by: spec.scope.readers(),
            default: Some(spec.default).filter(|text| !text.is_empty()),
            source: explained
                .as_ref()
                .map(|explained| explained.source.to_string()),
            value: explained
                .map(|explained| explained.value)
                .filter(|text| !text.is_empty()),
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n    {}\n\n", self.option, self.help);
        let none = "none";
        let mut lines = vec![
            ("variable", self.variable),
            ("read by", self.read_by),
            ("needs", &self.needs),
            ("default", self.default.unwrap_or(none)),
        ];
        // A driver has no value for client-only options, and vice versa.
        if let Some(source) = &self.source {
            lines.push(("value", self.value.as_deref().unwrap_or(none)));
            lines.push(("from", source));
        }
        for (name, value) in lines {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:>10}: {value}");
        }
        text
    }
}
