// SPDX-License-Identifier: Apache-2.0
//! The file of the histogram.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file opened for writing before the benchmark starts. It keeps its old contents until new ones are written.
#[derive(Debug)]
pub(super) struct HistogramFile {
    path: PathBuf,
    file: File,
    is_new: bool,
}

impl HistogramFile {
    /// Opens or creates the file.
    pub(super) fn open(path: &Path) -> Result<HistogramFile, Failure> {
        let is_new = !path.exists();
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| failure(path, &error))?;
        Ok(HistogramFile {
            path: path.to_path_buf(),
            file,
            is_new,
        })
    }

    /// Replaces the contents; returns the path.
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

impl Drop for HistogramFile {
    fn drop(&mut self) {
        if self.is_new {
            // The run wrote nothing. Failing to remove the empty file does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn failure(path: &Path, error: &io::Error) -> Failure {
    Failure::Other(format!(
        "cannot write {}: {error}; choose another file with --output",
        path.display()
    ))
}
