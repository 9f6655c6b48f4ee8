//! `taran sbe generate`: Rust for schemas.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use taran_sbe::generate::{GeneratedFile, rust};
use taran_sbe::problem::{Diagnostic, Problem};

use super::source;
use crate::failure::Failure;
use crate::output;
use crate::printable;

/// The arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
One file for each schema, with the name of the last part of its package, to be used as a module of a crate that depends on
taran-sbe (default-features = false is enough). A build script does the same with taran_sbe::build, which names files as
those of the schemas are named. The same schema makes the same text each time. Of names that become the same in Rust all but
the first get numbers, which is told.

  taran sbe generate schema.xml -o src/codecs

Exit status: 0 written, 1 a schema cannot be used or a file not be written, 2 wrong usage.")]
pub(crate) struct Arguments {
    /// The schemas; - is standard input, whose includes lie in the current directory
    #[arg(value_name = "SCHEMA", required = true)]
    schemas: Vec<PathBuf>,

    /// Where the files go; it is made where it is missing
    #[arg(short = 'o', long, value_name = "DIR")]
    output: PathBuf,
}

/// Generates it: nothing is written unless all schemas can be used.
pub(crate) fn run(arguments: &Arguments, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    source::at_most_one(&arguments.schemas)?;
    let mut files: Vec<GeneratedFile> = Vec::new();
    for path in &arguments.schemas {
        let compiled = source::schema(path, folders)?;
        tell_renamed(&compiled.warnings);
        let generated = rust(&compiled.schema).map_err(|error| {
            let told = error.to_string();
            Failure::Other(format!(
                "there is no Rust for {}:\n{}",
                path.display(),
                printable::lines(&told)
            ))
        })?;
        for file in generated {
            if files.iter().any(|other| other.path == file.path) {
                return Err(Failure::Usage(format!(
                    "two schemas would be written to {}; generate them into folders of their own",
                    printable::one_line(&file.path)
                )));
            }
            files.push(file);
        }
    }
    for file in &files {
        let path = arguments.output.join(&file.path);
        write(&path, &file.text)
            .map_err(|error| Failure::Other(format!("cannot write {}: {error}", path.display())))?;
        output::text(&format!("{}\n", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Says which names are not what one would expect; what else is dubious is for `check` to tell.
fn tell_renamed(warnings: &[Diagnostic]) {
    for warning in warnings {
        if matches!(warning.problem, Problem::Renamed(_)) {
            eprintln!("{}", printable::one_line(&warning.to_string()));
        }
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}
