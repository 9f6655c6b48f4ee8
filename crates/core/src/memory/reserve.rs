//! Reserving the blocks of a new file, so that a full file system causes no SIGBUS later.

use std::{fs::File, io, os::unix::fs::FileExt};

use rustix::io::Errno;

/// Sets the length of a new file and allocates all its blocks.
pub(super) fn reserve(file: &File, len: u64) -> io::Result<()> {
    match allocate(file, len) {
        // Not supported by the file system or the C library.
        Err(error)
            if error.kind() == io::ErrorKind::Unsupported
                || Errno::from_io_error(&error) == Some(Errno::INVAL) =>
        {
            write_zeros(file, len)
        }
        result => result,
    }
}

#[cfg(target_os = "linux")]
fn allocate(file: &File, len: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    rustix::io::retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, len))?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn allocate(_: &File, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn write_zeros(file: &File, len: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
    let mut offset = 0;
    while offset < len {
        let chunk = ZEROS
            .len()
            .min(usize::try_from(len - offset).unwrap_or(usize::MAX));
        file.write_all_at(&ZEROS[..chunk], offset)?;
        offset += chunk as u64;
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

        write_zeros(&file, 200_001).unwrap();

        let mut byte = [1];
        file.read_exact_at(&mut byte, 200_000).unwrap();
        assert_eq!([0], byte);
        assert_eq!(200_001, file.metadata().unwrap().len());
    }
}
