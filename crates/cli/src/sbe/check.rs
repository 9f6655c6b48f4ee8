//! `taran sbe check`: everything that is wrong with schemas.

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

/// The arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
All problems of a schema, and of the files that it includes, are told at once, each in a line: FILE:LINE:COLUMN, whether it
is an error or a warning, and what is wrong.

  taran sbe check schema.xml
  taran sbe check --deny-warnings schemas/*.xml
  git show HEAD:schema.xml | taran sbe check -

What a schema on standard input includes lies in the current directory.

Exit status: 0 all schemas can be used, 1 one cannot (or has warnings, with --deny-warnings), 2 wrong usage.")]
pub(crate) struct Arguments {
    /// The schemas; - is standard input
    #[arg(value_name = "SCHEMA", required = true)]
    schemas: Vec<PathBuf>,

    /// Take warnings for errors
    #[arg(long)]
    deny_warnings: bool,

    /// Print a JSON document for each schema, one a line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checked {
    schema: String,
    errors: usize,
    /// Whether there are more than were told.
    more_errors: bool,
    warnings: usize,
    more_warnings: bool,
    problems: Vec<Told>,
}

#[derive(Serialize)]
struct Told {
    file: String,
    line: u32,
    column: u32,
    severity: String,
    problem: String,
}

/// Checks them.
pub(crate) fn run(arguments: &Arguments, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    source::at_most_one(&arguments.schemas)?;
    let mut all_good = true;
    for path in &arguments.schemas {
        let found = match source::schema(path, folders) {
            Ok(compiled) => compiled.warnings,
            Err(rejected) => rejected.problems,
        };
        let checked = checked(path, &found);
        all_good &= checked.errors == 0 && !(arguments.deny_warnings && checked.warnings > 0);
        if arguments.json {
            output::json(&checked)?;
        } else {
            output::text(&report(&checked, &found))?;
        }
    }
    Ok(if all_good {
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
        let same = |told: &&Diagnostic| told.severity() == severity && is_more(told) == more;
        found.iter().filter(same).count()
    };
    Checked {
        schema: path.display().to_string(),
        errors: count(Severity::Error, false),
        more_errors: count(Severity::Error, true) > 0,
        warnings: count(Severity::Warning, false),
        more_warnings: count(Severity::Warning, true) > 0,
        problems: found.iter().map(told).collect(),
    }
}

fn told(found: &Diagnostic) -> Told {
    Told {
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
        many(checked.errors, "error", checked.more_errors),
        many(checked.warnings, "warning", checked.more_warnings),
    );
    text
}

fn many(count: usize, what: &str, are_more: bool) -> String {
    let more = if are_more { " and more" } else { "" };
    match count {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s{more}"),
    }
}
