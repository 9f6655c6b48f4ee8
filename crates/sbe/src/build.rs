// SPDX-License-Identifier: Apache-2.0
//! Codecs made by a build script.
//!
//! In `build.rs`, with `taran-sbe` among the build dependencies:
//!
//! ```no_run
//! taran_sbe::build::schemas(["schema/orders.xml", "schema/quotes.xml"]);
//! ```
//!
//! and where they are used, with `taran-sbe` among the dependencies (`default-features = false` is enough):
//!
//! ```ignore
//! pub mod orders {
//!     include!(concat!(env!("OUT_DIR"), "/orders.rs"));
//! }
//! ```

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::generate::{self, GenerateError};
use crate::printable;
use crate::xml::{Disk, Sources};
use crate::{Rejected, compile};

/// Generates codecs for the schemas into the build script's `OUT_DIR`, one file per schema, named after the schema
/// file.
///
/// Cargo runs the script again when one of them changes, or what they include; warnings are shown by Cargo.
///
/// # Panics
///
/// If a schema is invalid or a file cannot be written; the message lists all problems. A build script fails by a panic.
pub fn schemas<I>(paths: I)
where
    I: IntoIterator,
    I::Item: AsRef<Path>,
{
    let mut build = Build::new();
    for path in paths {
        build = build.schema(path);
    }
    if let Err(error) = build.run() {
        panic!("{error}");
    }
}

/// Builder for the code generation step of a build script.
#[derive(Debug, Default)]
pub struct Build {
    schemas: Vec<(PathBuf, Option<String>)>,
    folders: Vec<PathBuf>,
    out: Option<PathBuf>,
    quiet: bool,
}

impl Build {
    /// Returns a builder without schemas.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a schema. The output file is named after the schema file: `orders.xml` becomes `orders.rs`.
    #[must_use]
    pub fn schema(mut self, path: impl AsRef<Path>) -> Self {
        self.schemas.push((path.as_ref().to_owned(), None));
        self
    }

    /// Adds a schema whose codecs are written to the file `name.rs`.
    #[must_use]
    pub fn schema_as(mut self, path: impl AsRef<Path>, name: &str) -> Self {
        let name = Some(name.to_owned());
        self.schemas.push((path.as_ref().to_owned(), name));
        self
    }

    /// Adds a folder that schemas may include files from, besides their own folder and its subfolders.
    #[must_use]
    pub fn includes(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.push(folder.into());
        self
    }

    /// Sets the output directory. The default is `OUT_DIR`.
    #[must_use]
    pub fn out(mut self, directory: impl Into<PathBuf>) -> Self {
        self.out = Some(directory.into());
        self
    }

    /// Suppresses warnings.
    #[must_use]
    pub const fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Generates the codecs, and prints Cargo's `rerun-if-changed` and `warning` instructions. Files whose content is
    /// unchanged are not rewritten.
    ///
    /// # Errors
    ///
    /// The first schema or file that fails.
    pub fn run(self) -> Result<Vec<PathBuf>, BuildError> {
        let out = match self.out {
            Some(out) => out,
            None => std::env::var_os("OUT_DIR")
                .ok_or(BuildError::NoOutDir)?
                .into(),
        };
        let mut written: HashMap<PathBuf, PathBuf> = HashMap::new();
        let mut files = Vec::new();
        for (path, name) in self.schemas {
            let name = name.unwrap_or_else(|| {
                let stem = path.file_stem().unwrap_or_default();
                stem.to_string_lossy().into_owned()
            });
            let target = out.join(format!("{name}.rs"));
            if let Some(first) = written.insert(target.clone(), path.clone()) {
                return Err(BuildError::SameFile {
                    target,
                    first,
                    second: path,
                });
            }
            one(&path, &self.folders, &target, self.quiet)?;
            files.push(target);
        }
        Ok(files)
    }
}

fn one(path: &Path, folders: &[PathBuf], target: &Path, quiet: bool) -> Result<(), BuildError> {
    let files = Watched(folders.iter().fold(Disk::around(path), Disk::and));
    let compiled = compile(&path.to_string_lossy(), &files).map_err(BuildError::Schema)?;
    for warning in compiled.warnings.iter().filter(|_| !quiet) {
        instruct_cargo("warning", &warning.to_string());
    }
    let text: String = generate::rust(&compiled.schema)
        .map_err(BuildError::Generate)?
        .into_iter()
        .map(|file| file.text)
        .collect();
    if fs::read_to_string(target).is_ok_and(|there| there == text) {
        return Ok(());
    }
    let failed = |error| BuildError::Write {
        path: target.to_owned(),
        error,
    };
    if let Some(directory) = target.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    fs::write(target, text).map_err(failed)
}

/// Prints a Cargo instruction. The value is reduced to one line because it can contain text of a schema, and Cargo
/// treats each output line as an instruction.
fn instruct_cargo(what: &str, value: &str) {
    println!("cargo::{what}={}", printable::one_line(value));
}

/// File source that reads from disk and registers each file with `rerun-if-changed`.
struct Watched(Disk);

impl Sources for Watched {
    fn read(&self, name: &str, limit: usize) -> io::Result<Vec<u8>> {
        // If a file name does not fit on one line, Cargo does not find the file and runs the build script every time.
        instruct_cargo("rerun-if-changed", name);
        self.0.read(name, limit)
    }
}

/// Error of the code generation step.
#[derive(Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The schema is invalid.
    #[error("{0}")]
    Schema(Rejected),
    /// The schema is too large to generate code for.
    #[error("{0}")]
    Generate(GenerateError),
    /// Two schemas map to the same output file.
    #[error(
        "{} would be made of {} and of {}; name one of them otherwise with `schema_as`",
        target.display(), first.display(), second.display()
    )]
    SameFile {
        /// Output file.
        target: PathBuf,
        /// First schema.
        first: PathBuf,
        /// Second schema.
        second: PathBuf,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// Path of the output file.
        path: PathBuf,
        /// I/O error.
        error: io::Error,
    },
    /// Neither `OUT_DIR` nor an output directory is set.
    #[error("OUT_DIR is not set, as build scripts have it; say where files go with `out`")]
    NoOutDir,
}

/// Prints the `Display` text, because build scripts often return the error from `main`, which prints it with `Debug`.
impl fmt::Debug for BuildError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}
