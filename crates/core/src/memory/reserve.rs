//! Reserving the blocks of a new file, so that a full file system causes no SIGBUS later.

use std::{
    fs::File,
    io,
    os::{fd::AsRawFd, unix::fs::FileExt},
};

/// Sets the length of a new file and allocates all its blocks.
pub(super) fn reserve(file: &File, len: u64) -> io::Result<()> {
    match allocate(file, len) {
        // Not supported by the file system or the C library.
        Err(error)
            if error.kind() == io::ErrorKind::Unsupported
                || error.raw_os_error() == Some(libc::EINVAL) =>
        {
            write_zeros(file, len)
        }
        result => result,
    }
}

#[cfg(target_os = "linux")]
fn allocate(file: &File, len: u64) -> io::Result<()> {
    let len = libc::off_t::try_from(len).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    loop {
        // SAFETY: the call takes no pointers, and the descriptor is open for as long as `file` is borrowed.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len) } {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
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
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
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
