// SPDX-License-Identifier: Apache-2.0
//! Reserving the blocks of a file, so that a full file system causes no SIGBUS later.

use std::{fs::File, io, os::unix::fs::FileExt};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

/// Allocates the blocks of a range of a file and extends the file to the end of the range if it is shorter. Without
/// support by the file system, writes zeros to the range.
pub(super) fn reserve(file: &File, offset: u64, len: u64) -> io::Result<()> {
    match allocate(file, offset, len) {
        // Not supported by the file system or the C library.
        Err(error)
            if error.kind() == io::ErrorKind::Unsupported
                || Errno::from_io_error(&error) == Some(Errno::INVAL) =>
        {
            write_zeros(file, offset, len)
        }
        result => result,
    }
}

fn allocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    rustix::io::retry_on_intr(|| fallocate(file, FallocateFlags::empty(), offset, len))?;
    Ok(())
}

fn write_zeros(file: &File, offset: u64, len: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
    let mut written = 0;
    while written < len {
        let chunk = ZEROS
            .len()
            .min(usize::try_from(len - written).unwrap_or(usize::MAX));
        file.write_all_at(&ZEROS[..chunk], offset + written)?;
        written += chunk as u64;
    }
    Ok(())
}

/// Returns true if the file system is full or the user's quota is exhausted.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOSPC | Errno::DQUOT)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_zeros_extends_the_file() {
        let path = std::env::temp_dir().join(format!("taran-reserve-{}", std::process::id()));
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();

        file.write_all_at(&[7; 10], 0).unwrap();
        write_zeros(&file, 8, 200_001).unwrap();

        let mut bytes = [1; 10];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!([7, 7, 7, 7, 7, 7, 7, 7, 0, 0], bytes);
        file.read_exact_at(&mut bytes[..1], 200_008).unwrap();
        assert_eq!(0, bytes[0]);
        assert_eq!(200_009, file.metadata().unwrap().len());
    }
}
