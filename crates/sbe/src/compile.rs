// SPDX-License-Identifier: Apache-2.0
//! Compiles the text of a schema to a model or to a list of problems.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::check;
use crate::generate;
use crate::model::Schema;
use crate::problem::{Diagnostic, Problem, Problems};
use crate::read;
use crate::xml::{self, Disk, Sources};

/// Valid schema with its warnings.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The schema model.
    pub schema: Schema,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
}

/// All problems of an invalid schema, errors and warnings, ordered by position.
#[derive(Debug, Clone)]
pub struct Rejected {
    /// The problems; at least one of them is an error.
    pub problems: Vec<Diagnostic>,
}

impl fmt::Display for Rejected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            write!(out, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Rejected {}

/// Compiles the schema called `name` in `sources`, and the files it includes.
///
/// # Errors
///
/// [`Rejected`] when the schema cannot be used, with everything that is wrong with it.
pub fn compile(name: &str, sources: &dyn Sources) -> Result<Compiled, Rejected> {
    let mut problems = Problems::default();
    let schema =
        xml::load(name, sources, &mut problems).and_then(|root| read::schema(&root, &mut problems));
    if let Some(schema) = &schema {
        check::schema(schema, &mut problems);
        if !problems.any_errors() {
            generate::names(schema, &mut problems);
        }
    }
    let any_errors = problems.any_errors();
    let found = problems.in_order();
    match schema {
        Some(schema) if !any_errors => Ok(Compiled {
            schema,
            warnings: found,
        }),
        _ => Err(Rejected { problems: found }),
    }
}

/// Compiles a schema from a file. Includes are resolved relative to the including file and must be in the folder of the
/// schema or below it.
///
/// # Errors
///
/// [`Rejected`] when the schema cannot be used, with everything that is wrong with it.
pub fn compile_file(path: &Path) -> Result<Compiled, Rejected> {
    compile_file_with(path, &[])
}

/// Compiles a schema from a file. Includes may also be in one of `folders` or below it.
///
/// # Errors
///
/// [`Rejected`] when the schema cannot be used, with everything that is wrong with it.
pub fn compile_file_with(path: &Path, folders: &[PathBuf]) -> Result<Compiled, Rejected> {
    let Some(name) = path.to_str() else {
        let mut problems = Problems::default();
        let place = crate::model::Position::start_of(&path.to_string_lossy());
        problems.add(&place, Problem::NameNotUnicode);
        return Err(Rejected {
            problems: problems.in_order(),
        });
    };
    let disk = folders.iter().fold(Disk::around(path), Disk::and);
    compile(name, &disk)
}
