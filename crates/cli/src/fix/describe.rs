// SPDX-License-Identifier: Apache-2.0
//! `taran fix describe`: messages and fields of a dictionary.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use taran_fix::dict::{Dictionary, FieldDef, MessageDef, describe};

use crate::failure::Failure;
use crate::output;
use crate::printable;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
  taran fix describe FIX44.xml
  taran fix describe FIX44.xml NewOrderSingle 8 Side 453

A name is that of a message or field; a number is a tag, or a MsgType if there is no such tag.

Exit status: 0 described, 1 the dictionary cannot be used or has no such name, 2 incorrect usage.")]
pub(crate) struct Arguments {
    /// The dictionary
    #[arg(value_name = "DICTIONARY")]
    dictionary: PathBuf,

    /// Messages (name or MsgType) and fields (name or tag); all messages in short form if none is given
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// Describes what is named.
pub(crate) fn run(arguments: &Arguments, transport: Option<&Path>) -> Result<ExitCode, Failure> {
    let dictionary = super::dictionary(&arguments.dictionary, transport)?;
    if arguments.names.is_empty() {
        output::text(&printable::lines(&describe::messages(&dictionary)))?;
    }
    for name in &arguments.names {
        let text = described(&dictionary, name).ok_or_else(|| {
            let name = printable::one_line(name);
            let path = arguments.dictionary.display();
            Failure::Other(format!("{path} has no message or field {name}"))
        })?;
        output::text(&printable::lines(&text))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn described(dictionary: &Dictionary, name: &str) -> Option<String> {
    let messages = || dictionary.messages().iter();
    let by_name = messages().find(|message| message.name() == name);
    let message = |found: &MessageDef| describe::message(dictionary, found);
    let field = |found: &FieldDef| describe::field(dictionary, found);
    if let Some(found) = by_name {
        return Some(message(found));
    }
    if let Some(found) = dictionary
        .fields()
        .iter()
        .find(|field| field.name() == name)
    {
        return Some(field(found));
    }
    let tag = name.parse().ok().and_then(|tag| dictionary.field(tag));
    if let Some(found) = tag {
        return Some(field(found));
    }
    dictionary.message(name.as_bytes()).map(message)
}
