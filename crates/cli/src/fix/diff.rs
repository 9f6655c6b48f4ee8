// SPDX-License-Identifier: Apache-2.0
//! `taran fix diff`: differences of two dictionaries.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use taran_fix::dict::diff::{Impact, diff, worst};

use crate::failure::Failure;
use crate::output;
use crate::printable;

/// Exit status for incompatible dictionaries.
const BREAKING: u8 = 3;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Each difference is reported with its impact:

name       only names change
extension  messages of the old version are valid in the new one
breaking   messages that were valid are not any more

Exit status: 0 compatible, 3 incompatible, 1 a dictionary cannot be used, 2 incorrect usage.")]
pub(crate) struct Arguments {
    /// The old dictionary
    #[arg(value_name = "OLD")]
    old: PathBuf,

    /// The new dictionary
    #[arg(value_name = "NEW")]
    new: PathBuf,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Compared {
    compatible: bool,
    changes: Vec<Reported>,
}

#[derive(Serialize)]
struct Reported {
    impact: String,
    place: String,
    change: String,
}

/// Compares the dictionaries.
pub(crate) fn run(arguments: &Arguments, transport: Option<&Path>) -> Result<ExitCode, Failure> {
    let old = super::dictionary(&arguments.old, transport)?;
    let new = super::dictionary(&arguments.new, transport)?;
    let changes = diff(&old, &new);
    let worst = worst(&changes);
    let compatible = worst.is_none_or(|worst| worst < Impact::Breaking);
    if arguments.json {
        let changes = changes
            .iter()
            .map(|change| Reported {
                impact: change.impact.to_string(),
                place: change.place.clone(),
                change: change.text.clone(),
            })
            .collect();
        output::json(&Compared {
            compatible,
            changes,
        })?;
    } else {
        let mut text = String::new();
        for change in &changes {
            text.push_str(&printable::one_line(&change.to_string()));
            text.push('\n');
        }
        text.push_str(match worst {
            None => "equal\n",
            Some(Impact::Breaking) => "not compatible\n",
            Some(_) => "compatible\n",
        });
        output::text(&text)?;
    }
    Ok(if compatible {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(BREAKING)
    })
}
