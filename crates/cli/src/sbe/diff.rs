//! `taran sbe diff`: whether two versions of a schema understand each other.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use taran_sbe::diff::{Change, Impact, diff, worst};
use taran_sbe::model::Schema;
use taran_sbe::{Compiled, Rejected};

use super::source;
use crate::failure::Failure;
use crate::output;
use crate::printable;

/// Exit status of schemas that do not understand each other.
const BREAKING: u8 = 3;

/// The arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Each change is told with what it does to programs that have the other version:

  same       nothing
  extension  old and new understand each other; what is new is passed over by the one and missing for the other
  code       they do, but programs written for the old names have to be changed
  breaking   one takes for something else what the other says

  git show HEAD:schema.xml | taran sbe diff - schema.xml

What is wrong with a schema is told as text on standard error, with --json too; taran sbe check --json tells it as JSON.

Exit status: 0 they understand each other, 3 they do not, 1 a schema cannot be used, 2 wrong usage.")]
pub(crate) struct Arguments {
    /// The schema as it was; - is standard input, whose includes lie in the current directory
    #[arg(value_name = "OLD")]
    old: PathBuf,

    /// The schema as it is; - is standard input, too
    #[arg(value_name = "NEW")]
    new: PathBuf,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Compared<'change> {
    compatible: bool,
    worst: Option<Impact>,
    changes: &'change [Change],
}

/// Compares them.
pub(crate) fn run(arguments: &Arguments, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    source::at_most_one([&arguments.old, &arguments.new])?;
    let (old, new) = both(
        source::schema(&arguments.old, folders),
        source::schema(&arguments.new, folders),
    )?;
    let changes = diff(&old, &new);
    let worst = worst(&changes);
    let compatible = worst.is_none_or(|worst| worst < Impact::Breaking);
    if arguments.json {
        let changes = changes.as_slice();
        output::json(&Compared {
            compatible,
            worst,
            changes,
        })?;
    } else {
        output::text(&report(&changes, worst))?;
    }
    Ok(if compatible {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(BREAKING)
    })
}

/// Both schemas, or what is wrong with either.
fn both(
    old: Result<Compiled, Rejected>,
    new: Result<Compiled, Rejected>,
) -> Result<(Schema, Schema), Rejected> {
    match (old, new) {
        (Ok(old), Ok(new)) => Ok((old.schema, new.schema)),
        (Err(mut old), Err(new)) => {
            old.problems.extend(new.problems);
            Err(old)
        }
        (Err(rejected), Ok(_)) | (Ok(_), Err(rejected)) => Err(rejected),
    }
}

fn report(changes: &[Change], worst: Option<Impact>) -> String {
    let mut text = String::new();
    for change in changes {
        let _ = writeln!(text, "{}", printable::one_line(&change.to_string()));
    }
    text.push_str(match worst {
        None => "equal on the wire and in names\n",
        Some(Impact::None) => "equal on the wire\n",
        Some(Impact::Extension) => "compatible\n",
        Some(Impact::Code) => "compatible on the wire; programs have to be changed\n",
        Some(Impact::Breaking) => "not compatible\n",
    });
    text
}
