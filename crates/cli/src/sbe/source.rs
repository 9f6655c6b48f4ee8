// SPDX-License-Identifier: Apache-2.0
//! Input of schemas: files or standard input.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use taran_sbe::xml::{Disk, Sources};
use taran_sbe::{Compiled, Rejected, compile, compile_file_with};

use crate::failure::Failure;

/// Given in place of a file name; also the file name in reported problems.
const STANDARD_INPUT: &str = "-";

/// Standard input, and the files included by the schema in it.
struct Input(Disk);

impl Sources for Input {
    fn read(&self, name: &str, limit: usize) -> io::Result<Vec<u8>> {
        if name != STANDARD_INPUT {
            return self.0.read(name, limit);
        }
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        io::stdin()
            .lock()
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Returns true if the path stands for standard input.
pub(super) fn is_standard_input(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT)
}

/// Reads a schema and its includes: from its own directory (for standard input the current directory) and from
/// `folders`.
pub(super) fn schema(path: &Path, folders: &[PathBuf]) -> Result<Compiled, Rejected> {
    if !is_standard_input(path) {
        return compile_file_with(path, folders);
    }
    let present = Disk::default().and(".");
    let disk = folders.iter().fold(present, Disk::and);
    compile(STANDARD_INPUT, &Input(disk))
}

/// Returns an error if standard input is given more than once: the first reader would consume it.
pub(super) fn at_most_one<'path>(
    paths: impl IntoIterator<Item = &'path PathBuf>,
) -> Result<(), Failure> {
    let given = paths.into_iter().filter(|path| is_standard_input(path));
    match given.count() {
        0 | 1 => Ok(()),
        times => Err(Failure::Usage(format!(
            "- is given {times} times, and standard input can be read only once; use files for the others"
        ))),
    }
}
