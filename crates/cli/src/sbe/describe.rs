// SPDX-License-Identifier: Apache-2.0
//! `taran sbe describe`: the layout of messages.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use taran_sbe::describe::describe;

use crate::failure::Failure;
use crate::output;
use crate::printable;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Offsets are relative to the start of a block: after the message header, or at each entry of a group. Groups and data
have no offset: each begins at the end of the previous one.

  taran sbe describe schema.xml
  taran sbe describe --message Order schema.xml
  taran sbe describe --json schema.xml | jq '.messages[].name'

Errors in a schema are printed as text on standard error, even with --json; taran sbe check --json prints them as JSON.

Exit status: 0 described, 1 the schema cannot be used or has no such message, 2 incorrect usage.")]
pub(crate) struct Arguments {
    /// The schema; - is standard input, whose includes are searched for in the current directory
    #[arg(value_name = "SCHEMA")]
    schema: PathBuf,

    /// Describe only this message, by name or template id
    #[arg(short = 'm', long, value_name = "MESSAGE")]
    message: Option<String>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Describes the schema.
pub(crate) fn run(arguments: &Arguments, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    let schema = super::schema(&arguments.schema, folders)?;
    let mut description = describe(&schema);
    if let Some(wanted) = &arguments.message {
        let id = wanted.parse().ok();
        description
            .messages
            .retain(|message| message.name == *wanted || (id.is_some() && message.id == id));
        if description.messages.is_empty() {
            let names: Vec<_> = schema
                .messages
                .iter()
                .map(|message| &*message.name)
                .collect();
            return Err(Failure::Other(format!(
                "there is no message {wanted}; the schema has {}",
                names.join(", ")
            )));
        }
    }
    if arguments.json {
        output::json(&description)?;
    } else {
        output::text(&printable::lines(&description.to_string()))?;
    }
    Ok(ExitCode::SUCCESS)
}
