// SPDX-License-Identifier: Apache-2.0
//! `taran sbe diff`: the compatibility of two versions of a schema.

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

/// Exit status for incompatible schemas.
const BREAKING: u8 = 3;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Each change is reported with its impact on programs that use the other version:

same       none
extension  compatible; the old version ignores what is new, the new one reads it as absent
code       compatible on the wire, but source code that uses the old names has to be changed
breaking   incompatible: one version misinterprets messages of the other

  git show HEAD:schema.xml | taran sbe diff - schema.xml

Errors in a schema are printed as text on standard error, even with --json; taran sbe check --json prints them as JSON.

Exit status: 0 compatible, 3 incompatible, 1 a schema cannot be used, 2 incorrect usage.")]
pub(crate) struct Arguments {
    /// The old schema; - is standard input, whose includes are searched for in the current directory
    #[arg(value_name = "OLD")]
    old: PathBuf,

    /// The new schema; - is standard input, too
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

/// Compares the schemas.
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

/// Returns both schemas, or the problems of either.
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
