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

/// Makes codecs for those schemas in the build script's `OUT_DIR`, each in a file called after its schema's.
///
/// Cargo is told to run the script again when one of them changes, or what they include; warnings are shown by Cargo.
///
/// # Panics
///
/// When a schema is broken or a file cannot be written, with everything that is wrong: that is how build scripts fail.
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

/// Schemas to be made into codecs, where more has to be said.
#[derive(Debug, Default)]
pub struct Build {
    schemas: Vec<(PathBuf, Option<String>)>,
    folders: Vec<PathBuf>,
    out: Option<PathBuf>,
    quiet: bool,
}

impl Build {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A schema, whose codecs go into a file called after its own: `orders.xml` becomes `orders.rs`.
    #[must_use]
    pub fn schema(mut self, path: impl AsRef<Path>) -> Self {
        self.schemas.push((path.as_ref().to_owned(), None));
        self
    }

    /// A schema, whose codecs go into the file `name.rs`.
    #[must_use]
    pub fn schema_as(mut self, path: impl AsRef<Path>, name: &str) -> Self {
        let name = Some(name.to_owned());
        self.schemas.push((path.as_ref().to_owned(), name));
        self
    }

    /// A folder that schemas may include files from, besides their own and those below it.
    #[must_use]
    pub fn includes(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.push(folder.into());
        self
    }

    /// Where the files go, when not into `OUT_DIR`.
    #[must_use]
    pub fn out(mut self, directory: impl Into<PathBuf>) -> Self {
        self.out = Some(directory.into());
        self
    }

    /// Says nothing of what is dubious about the schemas.
    #[must_use]
    pub const fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Makes them, and tells Cargo what to watch and what is dubious. Files that would not change are left alone.
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
        tell("warning", &warning.to_string());
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

/// Tells Cargo something that a schema had a part in: each line is an instruction, and this is one.
fn tell(what: &str, value: &str) {
    println!("cargo::{what}={}", printable::one_line(value));
}

/// Files on disk, and Cargo is told of each.
struct Watched(Disk);

impl Sources for Watched {
    fn read(&self, name: &str, limit: usize) -> io::Result<Vec<u8>> {
        // One whose name is not one line is not to be found by Cargo, which then runs the script each time.
        tell("rerun-if-changed", name);
        self.0.read(name, limit)
    }
}

/// Why there are no codecs.
#[derive(Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A schema cannot be used.
    #[error("{0}")]
    Schema(Rejected),
    /// Names of a schema become the same in Rust, or it is too large.
    #[error("{0}")]
    Generate(GenerateError),
    /// Two schemas would become the same file.
    #[error(
        "{} would be made of {} and of {}; name one of them otherwise with `schema_as`",
        target.display(), first.display(), second.display()
    )]
    SameFile {
        /// That file.
        target: PathBuf,
        /// A schema.
        first: PathBuf,
        /// The other one.
        second: PathBuf,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Nobody said where files go.
    #[error("OUT_DIR is not set, as build scripts have it; say where files go with `out`")]
    NoOutDir,
}

/// As it is shown to people: build scripts often return it from `main`, which shows it so.
impl fmt::Debug for BuildError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}
