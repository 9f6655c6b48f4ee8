// SPDX-License-Identifier: Apache-2.0
//! `taran fix check`: problems of dictionaries.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use taran_fix::dict::{Diagnostic, read_file};

use crate::failure::Failure;
use crate::output;
use crate::printable;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads QuickFIX XML and Orchestra. Every problem is printed with line and column;\nwarnings do not prevent the use of a dictionary.

  taran fix check FIX44.xml own.xml

Exit status: 0 no problems, 1 problems, 2 incorrect usage.")]
pub(crate) struct Arguments {
    /// The dictionaries
    #[arg(value_name = "DICTIONARY", required = true)]
    dictionaries: Vec<PathBuf>,

    /// Print a JSON document for each dictionary, one per line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Checked {
    dictionary: String,
    version: Option<String>,
    messages: usize,
    fields: usize,
    problems: Vec<Reported>,
    warnings: Vec<Reported>,
}

#[derive(Serialize)]
struct Reported {
    file: String,
    line: u32,
    column: u32,
    problem: String,
}

/// Checks the dictionaries.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut all_valid = true;
    for path in &arguments.dictionaries {
        let mut checked = Checked {
            dictionary: path.display().to_string(),
            version: None,
            messages: 0,
            fields: 0,
            problems: Vec::new(),
            warnings: Vec::new(),
        };
        match read_file(path) {
            Ok(dictionary) => {
                checked.version = Some(dictionary.version().to_string());
                checked.messages = dictionary.messages().len();
                checked.fields = dictionary.fields().len();
                checked.warnings = reported(dictionary.warnings());
            }
            Err(rejected) => {
                all_valid = false;
                checked.problems = reported(&rejected.problems);
            }
        }
        if arguments.json {
            output::json(&checked)?;
        } else {
            output::text(&report(&checked))?;
        }
    }
    Ok(if all_valid {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn reported(found: &[Diagnostic]) -> Vec<Reported> {
    let report = |found: &Diagnostic| Reported {
        file: found.file.clone(),
        line: found.line,
        column: found.column,
        problem: found.problem.to_string(),
    };
    found.iter().map(report).collect()
}

fn lines(found: &[Reported], kind: &str, text: &mut String) {
    for found in found {
        let Reported {
            file,
            line,
            column,
            problem,
        } = found;
        let line = format!("{file}:{line}:{column}: {kind}{problem}");
        text.push_str(&printable::one_line(&line));
        text.push('\n');
    }
}

fn report(checked: &Checked) -> String {
    let name = printable::one_line(&checked.dictionary);
    let mut text = String::new();
    lines(&checked.warnings, "warning: ", &mut text);
    lines(&checked.problems, "", &mut text);
    let last = match &checked.version {
        Some(version) => {
            let Checked {
                messages, fields, ..
            } = checked;
            format!("{name}: {version}, {messages} messages, {fields} fields, no problems\n")
        }
        None => format!("{name}: {} problems\n", checked.problems.len()),
    };
    text + &last
}
