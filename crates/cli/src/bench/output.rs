//! The file that a histogram goes to.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file that is known to be writable before the benchmark starts, and that keeps what was in it until there is
/// something new.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    file: File,
    is_new: bool,
}

impl Output {
    /// Opens the file, or makes it.
    pub(super) fn open(path: &Path) -> Result<Output, Failure> {
        let is_new = !path.exists();
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| failure(path, &error))?;
        Ok(Output {
            path: path.to_path_buf(),
            file,
            is_new,
        })
    }

    /// Replaces the contents; gives the path.
    pub(super) fn write(
        mut self,
        contents: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> Result<PathBuf, Failure> {
        self.is_new = false;
        let written = self.replace(contents);
        written.map_err(|error| failure(&self.path, &error))?;
        Ok(self.path.clone())
    }

    fn replace(
        &mut self,
        contents: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        let mut writer = BufWriter::new(&self.file);
        contents(&mut writer)?;
        writer.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.is_new {
            // Nothing came of it. If the empty file stays, nothing is lost.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn failure(path: &Path, error: &io::Error) -> Failure {
    Failure::Other(format!(
        "cannot write {}: {error}; name another file with --output",
        path.display()
    ))
}
