// SPDX-License-Identifier: Apache-2.0
//! `taran sbe generate`: generates Rust code for schemas.

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

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Writes one file per schema, named after the last part of its package, for use as a module of a crate that depends on
taran-sbe (default-features = false suffices). A build script does the same with taran_sbe::build, which names the files
after the schema files. The output is deterministic. If names become equal in Rust, all but the first get a number; this
is reported.

  taran sbe generate schema.xml -o src/codecs

Exit status: 0 written, 1 a schema cannot be used or a file cannot be written, 2 incorrect usage.")]
pub(crate) struct Arguments {
    /// The schemas; - is standard input
    #[arg(value_name = "SCHEMA", required = true)]
    schemas: Vec<PathBuf>,

    /// Directory of the generated files; created if missing
    #[arg(short = 'o', long, value_name = "DIR")]
    output: PathBuf,
}

/// Generates the files. Nothing is written unless all schemas are valid.
pub(crate) fn run(arguments: &Arguments, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    source::at_most_one(&arguments.schemas)?;
    let mut files: Vec<GeneratedFile> = Vec::new();
    for path in &arguments.schemas {
        let compiled = source::schema(path, folders)?;
        report_renamed(&compiled.warnings);
        let generated = rust(&compiled.schema).map_err(|error| {
            let reason = error.to_string();
            Failure::Other(format!(
                "cannot generate Rust for {}:\n{}",
                path.display(),
                printable::lines(&reason)
            ))
        })?;
        for file in generated {
            if files.iter().any(|other| other.path == file.path) {
                return Err(Failure::Usage(format!(
                    "two schemas would be written to {}; generate them into separate directories",
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

/// Reports names that differ from those in the schema; other warnings are left to `check`.
fn report_renamed(warnings: &[Diagnostic]) {
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
