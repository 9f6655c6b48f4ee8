//! Files that somebody names.

use std::fs;
use std::io;
use std::path::Path;

/// Reads a file; a pipe or a device, which may have no end, is refused.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Before it is opened: that alone waits for ever where it is a pipe.
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
    fn only_regular_files_are_read() {
        for path in ["/dev/zero", "/dev", "/dev/shm/there-is-no-such-file"] {
            assert!(read(Path::new(path)).is_err(), "{path}");
        }
    }
}
