// SPDX-License-Identifier: Apache-2.0
//! Codecs made by a build script.
//!
//! In `build.rs`, with `taran-fix` among the build dependencies:
//!
//! ```no_run
//! taran_fix::build::dictionary("fix/FIX44.xml", "fix44.rs");
//! ```
//!
//! and where they are used, with `taran-fix` among the dependencies (`default-features = false` is enough):
//!
//! ```ignore
//! pub mod fix44 {
//!     include!(concat!(env!("OUT_DIR"), "/fix44.rs"));
//! }
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::dict::{Rejected, read_file};
use crate::generate::rust;

/// Generates codecs for all messages of a dictionary into the file `name` of the build script's `OUT_DIR`.
///
/// # Panics
///
/// If the dictionary is invalid or the file cannot be written; the message lists all problems. A build script fails by a
/// panic.
pub fn dictionary(path: impl AsRef<Path>, name: &str) {
    if let Err(error) = Build::new(path).run(name) {
        panic!("{error}");
    }
}

/// Reason why codecs cannot be generated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A dictionary is invalid.
    #[error(transparent)]
    Dictionary(#[from] Rejected),
    /// The dictionary has no such message.
    #[error("{path} has no message of type {msg_type:?}", path = path.display())]
    NoMessage {
        /// Dictionary.
        path: PathBuf,
        /// MsgType.
        msg_type: String,
    },
    /// Cargo did not set `OUT_DIR`, so that this is not a build script, and no directory was given.
    #[error("OUT_DIR is not set: only build scripts have it; use Build::out")]
    NoOutDir,
    /// The file cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// File.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
}

/// Builder for the code generation step of a build script.
#[derive(Debug, Clone)]
pub struct Build {
    dictionary: PathBuf,
    transport: Option<PathBuf>,
    messages: Vec<String>,
    out: Option<PathBuf>,
}

impl Build {
    /// Returns a builder for all messages of a dictionary.
    #[must_use]
    pub fn new(dictionary: impl AsRef<Path>) -> Self {
        Self {
            dictionary: dictionary.as_ref().to_owned(),
            transport: None,
            messages: Vec::new(),
            out: None,
        }
    }

    /// Adds the dictionary of FIXT 1.1, for FIX 5.0 and later.
    #[must_use]
    pub fn transport(mut self, path: impl AsRef<Path>) -> Self {
        self.transport = Some(path.as_ref().to_owned());
        self
    }

    /// Restricts the code to these messages, by MsgType.
    #[must_use]
    pub fn messages<'name>(mut self, types: impl IntoIterator<Item = &'name str>) -> Self {
        self.messages.extend(types.into_iter().map(str::to_owned));
        self
    }

    /// Sets the output directory. The default is `OUT_DIR`.
    #[must_use]
    pub fn out(mut self, directory: impl Into<PathBuf>) -> Self {
        self.out = Some(directory.into());
        self
    }

    /// Generates the file `name`, and prints Cargo's `rerun-if-changed` instructions. A file whose content is unchanged
    /// is not written.
    ///
    /// # Errors
    ///
    /// An invalid dictionary, or a file that cannot be written.
    pub fn run(&self, name: &str) -> Result<PathBuf, BuildError> {
        let paths = [Some(&self.dictionary), self.transport.as_ref()];
        for path in paths.into_iter().flatten() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        let mut dictionary = read_file(&self.dictionary)?;
        if let Some(transport) = &self.transport {
            dictionary = dictionary.over(&read_file(transport)?);
        }
        let is_missing = |name: &&String| dictionary.message(name.as_bytes()).is_none();
        if let Some(msg_type) = self.messages.iter().find(is_missing) {
            return Err(BuildError::NoMessage {
                path: self.dictionary.clone(),
                msg_type: msg_type.clone(),
            });
        }
        let text = rust(&dictionary, &self.messages);
        let out = match &self.out {
            Some(out) => out.clone(),
            None => std::env::var_os("OUT_DIR")
                .map(PathBuf::from)
                .ok_or(BuildError::NoOutDir)?,
        };
        let path = out.join(name);
        let is_same = fs::read(&path).is_ok_and(|present| present == text.as_bytes());
        if !is_same {
            let written = fs::create_dir_all(&out).and_then(|()| fs::write(&path, text));
            written.map_err(|source| BuildError::Write {
                path: path.clone(),
                source,
            })?;
        }
        Ok(path)
    }
}
