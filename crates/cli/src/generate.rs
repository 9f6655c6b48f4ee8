// SPDX-License-Identifier: Apache-2.0
//! `taran completions` and `taran manual`: files made from the description of the command line.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::help;

/// Name of the command.
const NAME: &str = "taran";

/// Command-line arguments of `taran completions`.
#[derive(Args, Debug)]
#[command(after_help = "\
  taran completions bash > ~/.local/share/bash-completion/completions/taran
  taran completions zsh > ~/.zfunc/_taran
  taran completions fish > ~/.config/fish/completions/taran.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Command-line arguments of `taran manual`.
#[derive(Args, Debug)]
#[command(after_help = "\
  taran manual ~/.local/share/man/man1      one page for each command: taran.1, taran-driver.1 ...

Exit status: 0 written, 1 a page cannot be written, 2 incorrect usage.")]
pub(crate) struct Manual {
    /// The directory for the pages, which is made if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Prints the completions of a shell.
pub(crate) fn completions(arguments: &Completions) -> ExitCode {
    // A closed standard output is not an error here; the generator would panic.
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut help::command(), NAME, &mut text);
    let _ = io::Write::write_all(&mut io::stdout(), &text);
    ExitCode::SUCCESS
}

/// Writes the manual pages.
pub(crate) fn manual(arguments: &Manual) -> Result<ExitCode, Failure> {
    let directory = &arguments.directory;
    let write = || -> io::Result<()> {
        fs::create_dir_all(directory)?;
        clap_mangen::generate_to(help::command(), directory)
    };
    write().map_err(|error| {
        Failure::Other(format!(
            "cannot write the pages to {}: {error}",
            directory.display()
        ))
    })?;
    Ok(ExitCode::SUCCESS)
}
