// SPDX-License-Identifier: Apache-2.0
//! `taran fix generate`: Rust code for a dictionary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use taran_fix::generate::rust;

use crate::failure::Failure;
use crate::output;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Writes one file, for use as a module of a crate that depends on taran-fix (default-features = false suffices). A build
script does the same with taran_fix::build. The output is deterministic.

  taran fix generate FIX44.xml --messages D,8 -o src/fix44.rs

Exit status: 0 written, 1 the dictionary cannot be used or the file cannot be written, 2 incorrect usage.")]
pub(crate) struct Arguments {
    /// The dictionary
    #[arg(value_name = "DICTIONARY")]
    dictionary: PathBuf,

    /// The file; its directory is created if missing
    #[arg(short = 'o', long, value_name = "FILE")]
    output: PathBuf,

    /// Generate only these messages, by MsgType
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    messages: Vec<String>,
}

/// Generates the file.
pub(crate) fn run(arguments: &Arguments, transport: Option<&Path>) -> Result<ExitCode, Failure> {
    let dictionary = super::dictionary(&arguments.dictionary, transport)?;
    let unknown = arguments
        .messages
        .iter()
        .find(|name| dictionary.message(name.as_bytes()).is_none());
    if let Some(name) = unknown {
        let path = arguments.dictionary.display();
        return Err(Failure::Usage(format!(
            "{path} has no message of type {name:?}"
        )));
    }
    let text = rust(&dictionary, &arguments.messages);
    let path = &arguments.output;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let written = folder
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, text));
    written.map_err(|error| Failure::Other(format!("cannot write {}: {error}", path.display())))?;
    output::text(&format!("{}\n", path.display()))?;
    Ok(ExitCode::SUCCESS)
}
