// SPDX-License-Identifier: Apache-2.0
//! Input files named on the command line.

use std::fs;
use std::io;
use std::path::Path;

/// Reads a regular file. Pipes and devices are rejected, because they may have no end.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Checked before the file is opened: opening a pipe can block forever.
    if !fs::metadata(path)?.is_file() {
        let reason = "it is not a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    fs::read(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_rejects_files_that_are_not_regular() {
        for path in ["/dev/zero", "/dev", "/dev/shm/there-is-no-such-file"] {
            assert!(read(Path::new(path)).is_err(), "{path}");
        }
    }
}
