// SPDX-License-Identifier: Apache-2.0
//! Files of a storage that are read without a mapping of the caller's.

use std::{fs::File, io, os::unix::fs::FileExt};

use super::Region;

/// A file of a [`Storage`](super::Storage), opened for reading.
#[derive(Debug)]
pub struct StoredFile(Source);

#[derive(Debug)]
enum Source {
    System(File),
    Memory(Region),
}

impl StoredFile {
    /// Wraps a file of the operating system.
    #[must_use]
    pub fn from_file(file: File) -> Self {
        Self(Source::System(file))
    }

    /// Wraps the memory of a file that exists in memory only, as in simulations.
    #[must_use]
    pub fn from_region(region: Region) -> Self {
        Self(Source::Memory(region))
    }

    /// Returns the file of the operating system, which the kernel can copy from; `None` if the storage is in memory.
    #[must_use]
    pub fn as_file(&self) -> Option<&File> {
        match &self.0 {
            Source::System(file) => Some(file),
            Source::Memory(_) => None,
        }
    }

    /// Reads bytes that are not written meanwhile.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::UnexpectedEof`] if the range is not inside the file.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let region = match &self.0 {
            Source::System(file) => return file.read_exact_at(buffer, offset),
            Source::Memory(region) => region,
        };
        let start = usize::try_from(offset).ok();
        let end = start.and_then(|start| start.checked_add(buffer.len()));
        match (start, end) {
            (Some(start), Some(end)) if end <= region.len() => {
                region.read(start, buffer);
                Ok(())
            }
            _ => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::memory::{CreateOptions, FileStorage, MemoryStorage, Storage};

    use super::*;

    #[test]
    fn stored_file_reads_what_was_written_and_nothing_beyond_its_end() {
        let directory = std::env::temp_dir().join(format!("taran-stored-{}", std::process::id()));
        let storages: [&dyn Storage; 2] = [&FileStorage, &MemoryStorage::new()];
        for (storage, has_file) in storages.into_iter().zip([true, false]) {
            storage.create_dir_all(&directory).unwrap();
            let path = directory.join("file");
            let region = storage
                .create(&path, 4096, CreateOptions::default())
                .unwrap();
            region.write(4090, b"last");
            let file = storage.open_file(&path).unwrap();
            assert_eq!(file.as_file().is_some(), has_file);
            let mut bytes = [0; 4];
            file.read_exact_at(&mut bytes, 4090).unwrap();
            assert_eq!(bytes, *b"last");
            for offset in [4093, u64::MAX - 1] {
                let error = file.read_exact_at(&mut bytes, offset).unwrap_err();
                let is_eof = error.kind() == io::ErrorKind::UnexpectedEof;
                assert!(is_eof || offset > 4096, "{error}");
            }
            storage.remove(&path).unwrap();
            storage.open_file(&path).unwrap_err();
            // It remains readable.
            file.read_exact_at(&mut bytes, 4090).unwrap();
            storage.open_file(Path::new("/missing")).unwrap_err();
        }
        FileStorage.remove_dir_all(&directory).unwrap();
    }
}
