//! `taran sbe describe`: what lies where.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use taran_sbe::describe::describe;

use crate::failure::Failure;
use crate::output;
use crate::printable;

/// The arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Offsets are counted from the start of a block: behind the header of a message, or at each entry of a group. Groups and data
have none: each lies where the one before it ends.

  taran sbe describe schema.xml
  taran sbe describe --message Order schema.xml
  taran sbe describe --json schema.xml | jq '.messages[].name'

What is wrong with a schema is told as text on standard error, with --json too; taran sbe check --json tells it as JSON.

Exit status: 0 shown, 1 the schema cannot be used or has no such message, 2 wrong usage.")]
pub(crate) struct Arguments {
    /// The schema; - is standard input, whose includes lie in the current directory
    #[arg(value_name = "SCHEMA")]
    schema: PathBuf,

    /// Show only this message, by its name or its template id
    #[arg(short = 'm', long, value_name = "MESSAGE")]
    message: Option<String>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Describes it.
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
