//! `taran fix check`: problems of dictionaries.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use taran_fix::dict::read_file;

use crate::failure::Failure;
use crate::output;
use crate::printable;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads QuickFIX XML and Orchestra. Every problem is printed with line and column.

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
        };
        match read_file(path) {
            Ok(dictionary) => {
                checked.version = Some(dictionary.version().to_string());
                checked.messages = dictionary.messages().len();
                checked.fields = dictionary.fields().len();
            }
            Err(rejected) => {
                all_valid = false;
                checked.problems = rejected
                    .problems
                    .iter()
                    .map(|found| Reported {
                        file: found.file.clone(),
                        line: found.line,
                        column: found.column,
                        problem: found.problem.to_string(),
                    })
                    .collect();
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

fn report(checked: &Checked) -> String {
    let name = printable::one_line(&checked.dictionary);
    if let Some(version) = &checked.version {
        let Checked {
            messages, fields, ..
        } = checked;
        return format!("{name}: {version}, {messages} messages, {fields} fields, no problems\n");
    }
    let mut text = String::new();
    for found in &checked.problems {
        let line = format!(
            "{}:{}:{}: {}",
            found.file, found.line, found.column, found.problem
        );
        text.push_str(&printable::one_line(&line));
        text.push('\n');
    }
    text.push_str(&format!("{name}: {} problems\n", checked.problems.len()));
    text
}
