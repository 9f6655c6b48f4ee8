// SPDX-License-Identifier: Apache-2.0
//! `taran sbe check`: reports all problems of schemas.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use taran_sbe::problem::{Diagnostic, Problem, Severity};

use super::source;
use crate::failure::Failure;
use crate::output;
use crate::printable;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
All problems of a schema and of the files that it includes are reported together, one per line: FILE:LINE:COLUMN, the
severity (error or warning), and the problem.

  taran sbe check schema.xml
  taran sbe check --deny-warnings schemas/*.xml
  git show HEAD:schema.xml | taran sbe check -

Files included by a schema on standard input are searched for in the current directory.

Exit status: 0 all schemas are valid, 1 one is not (or has warnings, with --deny-warnings), 2 incorrect usage.")]
pub(crate) struct Arguments {
    /// The schemas; - is standard input
    #[arg(value_name = "SCHEMA", required = true)]
    schemas: Vec<PathBuf>,

    /// Treat warnings as errors
    #[arg(long)]
    deny_warnings: bool,

    /// Print a JSON document for each schema, one per line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checked {
    schema: String,
    errors: usize,
    /// True if there are more errors than are listed.
    more_errors: bool,
    warnings: usize,
    more_warnings: bool,
    problems: Vec<ReportedProblem>,
}

#[derive(Serialize)]
struct ReportedProblem {
    file: String,
    line: u32,
    column: u32,
    severity: String,
    problem: String,
}

/// Checks the schemas.
pub(crate) fn run(arguments: &Arguments, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    source::at_most_one(&arguments.schemas)?;
    let mut all_valid = true;
    for path in &arguments.schemas {
        let found = match source::schema(path, folders) {
            Ok(compiled) => compiled.warnings,
            Err(rejected) => rejected.problems,
        };
        let checked = checked(path, &found);
        all_valid &= checked.errors == 0 && !(arguments.deny_warnings && checked.warnings > 0);
        if arguments.json {
            output::json(&checked)?;
        } else {
            output::text(&report(&checked, &found))?;
        }
    }
    Ok(if all_valid {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn checked(path: &Path, found: &[Diagnostic]) -> Checked {
    let is_more = |found: &Diagnostic| {
        matches!(
            found.problem,
            Problem::MoreErrors(_) | Problem::MoreWarnings(_)
        )
    };
    let count = |severity, more| {
        let same = |diagnostic: &&Diagnostic| {
            diagnostic.severity() == severity && is_more(diagnostic) == more
        };
        found.iter().filter(same).count()
    };
    Checked {
        schema: path.display().to_string(),
        errors: count(Severity::Error, false),
        more_errors: count(Severity::Error, true) > 0,
        warnings: count(Severity::Warning, false),
        more_warnings: count(Severity::Warning, true) > 0,
        problems: found.iter().map(reported_problem).collect(),
    }
}

fn reported_problem(found: &Diagnostic) -> ReportedProblem {
    ReportedProblem {
        file: found.position.file.to_string(),
        line: found.position.line,
        column: found.position.column,
        severity: found.severity().to_string(),
        problem: found.problem.to_string(),
    }
}

fn report(checked: &Checked, found: &[Diagnostic]) -> String {
    let mut text = String::new();
    for problem in found {
        let _ = writeln!(text, "{}", printable::one_line(&problem.to_string()));
    }
    let _ = writeln!(
        text,
        "{}: {}, {}",
        printable::one_line(&checked.schema),
        count_text(checked.errors, "error", checked.more_errors),
        count_text(checked.warnings, "warning", checked.more_warnings),
    );
    text
}

fn count_text(count: usize, noun: &str, are_more: bool) -> String {
    let more = if are_more { " and more" } else { "" };
    match count {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s{more}"),
    }
}
