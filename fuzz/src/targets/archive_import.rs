// SPDX-License-Identifier: Apache-2.0
//! An export of a recording.

use std::path::Path;
use std::sync::Arc;

use taran_archive::files::tools::{Segments, StoppedArchive, VerifyOptions, export};
use taran_archive::files::{CatalogFile, CatalogOptions, Checksum, SegmentDirectory};
use taran_sim::disk::{SimDisk, SimDiskOptions};
use taran_storage::Disk;

const DIRECTORY: &str = "/archive";
const NOW_MS: i64 = 1_700_000_000_000;
/// Bytes of the disk: the largest segment file does not fit.
const CAPACITY: u64 = 8 << 20;

/// Imports the bytes, with right checksums if the first one is odd. What is imported verifies, and its export is imported again;
/// else nothing is left.
pub fn run(bytes: &[u8]) {
    let [choice, contents @ ..] = bytes else {
        return;
    };
    let mut contents = contents.to_vec();
    if choice & 1 == 1 {
        correct(&mut contents);
    }
    let options = SimDiskOptions {
        capacity: CAPACITY,
        ..SimDiskOptions::default()
    };
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1, options).process());
    let directory = Path::new(DIRECTORY);
    disk.create_directory(directory).expect("the disk is empty");
    let options = CatalogOptions {
        capacity: 4096,
        ..CatalogOptions::default()
    };
    let opened = CatalogFile::open(&disk, directory, options).expect("the disk works");
    opened.0.close().expect("the disk works");
    let mut archive =
        StoppedArchive::open(&disk, directory, options, NOW_MS).expect("it was created");
    match archive.import(&mut &*contents, NOW_MS, |_| ()) {
        Err(_) => {
            assert!(archive.catalog().is_empty());
            let names = SegmentDirectory::list(&*disk, directory).expect("the disk works");
            assert!(names.segments.is_empty(), "{names:?}");
        }
        Ok(imported) => {
            let verify = VerifyOptions {
                segments: Segments::All,
                ..VerifyOptions::default()
            };
            let id = imported.recording_id;
            let verified = archive
                .verify(Some(id), verify, NOW_MS)
                .expect("the disk works");
            assert!(verified[0].problems.is_empty(), "{verified:?}");
            let descriptor = archive.catalog().get(id).expect("it was imported").clone();
            let mut again = Vec::new();
            let exported = export(
                &*disk,
                directory,
                &descriptor,
                0..i64::MAX,
                &mut again,
                |_| (),
            )
            .expect("it was verified");
            assert_eq!(
                (exported.start, exported.end, exported.frames),
                (imported.start, imported.end, imported.frames)
            );
        }
    }
}

/// Stores right checksums in the parts that the lengths delimit.
fn correct(bytes: &mut [u8]) {
    let length = |bytes: &[u8], at: usize| {
        let word = bytes.get(at..at + 4)?;
        usize::try_from(u32::from_le_bytes(word.try_into().ok()?)).ok()
    };
    let store = |bytes: &mut [u8], at: usize, checksum: i32| {
        if let Some(word) = bytes.get_mut(at..at + 4) {
            word.copy_from_slice(&checksum.to_le_bytes());
        }
    };
    let Some(described) = length(bytes, 12) else {
        return;
    };
    let mut at = 16 + described;
    let Some(head) = bytes.get(..at) else {
        return;
    };
    let checksum = Checksum::Crc32c.compute(head);
    store(bytes, at, checksum);
    at += 4;
    while let Some(block) = length(bytes, at) {
        let rest = at + 8;
        let end = rest + 8 + if block == 0 { 8 } else { block };
        let Some(part) = bytes.get(rest..end) else {
            return;
        };
        let checksum = Checksum::Crc32c.compute(part);
        store(bytes, at + 4, checksum);
        at = end;
    }
}
