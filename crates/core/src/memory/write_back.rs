// SPDX-License-Identifier: Apache-2.0
//! Starting to write a range of a file to its device, for which rustix has no function.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Starts writing the unsynced pages of a range to the device, without waiting for the end and without making them
/// durable (`sync_file_range`). `len` zero stands for the rest of the file. Does nothing where the system does not support
/// it.
///
/// # Errors
/// An invalid range, or the system's error.
pub fn start_write_back(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // SAFETY: the descriptor is open as long as `file` lives, and the call takes no pointers.
    let result = unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE)
    };
    if result == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
        error => Err(error),
    }
}
