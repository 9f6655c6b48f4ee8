// SPDX-License-Identifier: Apache-2.0
//! Recovery at start: reads the log, and makes what it found durable before anything is appended.

use std::path::{Path, PathBuf};

use taran_storage::{Disk, DiskError, DiskFile, DiskLock, OpenOptions, SyncKind};

use super::Defect;
use super::record::{SEGMENT, decode};

pub(super) const DIRECTORY: &str = "/log";

/// The log after recovery. It ends in the last segment; there is at least one.
pub(super) struct Recovered {
    /// Payloads; the first one has sequence number 0.
    pub(super) records: Vec<Vec<u8>>,
    /// The last segment.
    pub(super) file: Box<dyn DiskFile>,
    /// End of the records in it.
    pub(super) end: usize,
    pub(super) lock: DiskLock,
}

/// Returns the path of the segment whose first record has this sequence number.
pub(super) fn segment_path(first: u64) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{first}.log"))
}

/// Recovers the log.
pub(super) fn recover(disk: &dyn Disk, defect: Option<Defect>) -> Result<Recovered, DiskError> {
    let directory = Path::new(DIRECTORY);
    if disk
        .metadata(directory)
        .is_err_and(|error| error.is_not_found())
    {
        disk.create_directory(directory)?;
    }
    // Also if it exists: an earlier process may have ended between the creation and its sync.
    disk.sync_directory(Path::new("/"))?;
    let lock = disk.try_lock(directory)?;

    let mut records = Vec::new();
    let mut last = (0, 0, vec![0; SEGMENT]);
    let mut is_contiguous = true;
    for first in segments(disk)? {
        // A segment is created when all records before it are durable, so a gap means that nothing in it was acknowledged.
        is_contiguous &= first == records.len() as u64;
        if !is_contiguous {
            disk.remove_file(&segment_path(first))?;
            continue;
        }
        let mut bytes = vec![0; SEGMENT];
        let file = disk.open(&segment_path(first), OpenOptions::read())?;
        file.read_at(&mut bytes, 0)?;
        let mut end = 0;
        let verify = defect != Some(Defect::BelievesTornRecord);
        while let Some((payload, len)) = decode(&bytes[end..], records.len() as u64, verify) {
            records.push(payload.to_vec());
            end = (end + len).min(SEGMENT);
        }
        last = (first, end, bytes);
    }

    let (first, end, mut bytes) = last;
    let options = OpenOptions::write()
        .with_create(taran_storage::Create::IfMissing)
        .with_allocate(SEGMENT as u64);
    let file = disk.open(&segment_path(first), options)?;
    // Zeroes what follows the records: parts of records that were never acknowledged, which must not be found by a later
    // recovery behind new records. Writes the records again: they may be in the page cache only, after a failed sync of an
    // earlier process, and a sync would not write them.
    bytes[end..].fill(0);
    let from = match defect {
        Some(Defect::TrustsCacheAfterFailedSync) => end,
        _ => 0,
    };
    file.write_at(&bytes[from..], from as u64)?;
    file.sync(SyncKind::Data)?;
    disk.sync_directory(directory)?;
    Ok(Recovered {
        records,
        file,
        end,
        lock,
    })
}

/// Returns the first sequence numbers of the segments, in order.
fn segments(disk: &dyn Disk) -> Result<Vec<u64>, DiskError> {
    let mut segments: Vec<u64> = disk
        .list(Path::new(DIRECTORY))?
        .into_iter()
        .filter_map(|entry| entry.name.to_str()?.strip_suffix(".log")?.parse().ok())
        .collect();
    segments.sort_unstable();
    Ok(segments)
}
