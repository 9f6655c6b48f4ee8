// SPDX-License-Identifier: Apache-2.0
//! Files that keep bytes which were cut off from others.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

use taran_storage::{Disk, DiskError, DiskFile, ErrorKind, OpenOptions, SyncKind};

/// Highest number of side files for the same place.
const NUMBER_MAX: u32 = 10_000;

/// Bytes copied at once.
const CHUNK: usize = 256 * 1024;

/// Copies the bytes of a range of a file to a new file beside it, durably, and returns its path: `<name>.cut-<offset>`,
/// with `-<number>` if there are others.
pub(super) fn keep(
    disk: &dyn Disk,
    path: &Path,
    file: &dyn DiskFile,
    range: Range<u64>,
) -> Result<PathBuf, DiskError> {
    let (side_path, side) = create(disk, path, range.start)?;
    let copied = copy(file, range, &*side);
    if copied.is_err() {
        // An incomplete copy has no use; the first error says more than this one.
        let _ = disk.remove_file(&side_path);
    }
    copied?;
    sync_parent(disk, &side_path)?;
    Ok(side_path)
}

/// Renames a file to the name of a side file with all of its bytes, durably, and returns its path.
pub(super) fn keep_whole(disk: &dyn Disk, path: &Path) -> Result<PathBuf, DiskError> {
    // Takes the name; the rename replaces the empty file.
    let (side_path, _) = create(disk, path, 0)?;
    disk.rename(path, &side_path)?;
    sync_parent(disk, &side_path)?;
    Ok(side_path)
}

fn create(
    disk: &dyn Disk,
    path: &Path,
    offset: u64,
) -> Result<(PathBuf, Box<dyn DiskFile>), DiskError> {
    let mut number = 0;
    loop {
        let mut name: OsString = path.file_name().unwrap_or_default().into();
        name.push(format!(".cut-{offset}"));
        if number > 0 {
            name.push(format!("-{number}"));
        }
        let side_path = path.with_file_name(name);
        match disk.open(&side_path, OpenOptions::create_new()) {
            Ok(file) => return Ok((side_path, file)),
            Err(error) if error.kind == ErrorKind::AlreadyExists && number < NUMBER_MAX => {
                number += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

fn copy(file: &dyn DiskFile, range: Range<u64>, side: &dyn DiskFile) -> Result<(), DiskError> {
    side.set_len(range.end - range.start)?;
    let mut buffer = vec![0; CHUNK];
    let mut offset = range.start;
    while offset < range.end {
        // At most CHUNK.
        let count = (range.end - offset).min(CHUNK as u64) as usize;
        let count = file.read_at(&mut buffer[..count], offset)?;
        if count == 0 {
            break;
        }
        // Zeros stay holes.
        if buffer[..count].iter().any(|byte| *byte != 0) {
            side.write_at(&buffer[..count], offset - range.start)?;
        }
        offset += count as u64;
    }
    side.sync(SyncKind::All)
}

fn sync_parent(disk: &dyn Disk, path: &Path) -> Result<(), DiskError> {
    path.parent()
        .map_or(Ok(()), |directory| disk.sync_directory(directory))
}

/// Returns the end of the last byte of a file in a range that is not zero.
pub(super) fn last_nonzero(
    file: &dyn DiskFile,
    range: Range<u64>,
) -> Result<Option<u64>, DiskError> {
    let mut buffer = vec![0; CHUNK];
    let mut offset = range.start;
    let mut last = None;
    while offset < range.end {
        // At most CHUNK.
        let count = (range.end - offset).min(CHUNK as u64) as usize;
        let count = file.read_at(&mut buffer[..count], offset)?;
        if count == 0 {
            break;
        }
        if let Some(at) = buffer[..count].iter().rposition(|byte| *byte != 0) {
            last = Some(offset + at as u64 + 1);
        }
        offset += count as u64;
    }
    Ok(last)
}
