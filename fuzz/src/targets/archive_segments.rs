// SPDX-License-Identifier: Apache-2.0
//! Segment files of a recording.

use std::path::Path;

use taran_archive::files::{RecordingLayout, ScanTarget, SegmentDirectory, SegmentName, SyncLevel};
use taran_sim::disk::{SimDisk, SimDiskOptions};
use taran_storage::{Disk, OpenOptions};

const DIRECTORY: &str = "/archive";
const TERM: i32 = 64 * 1024;

/// Finds and repairs the end of a recording whose two segment files hold the input: the first two bytes say how much of it
/// the first one has, and where the recording starts.
pub fn run(bytes: &[u8]) {
    let [split, start, contents @ ..] = bytes else {
        return;
    };
    let start = i64::from(*start) * 32;
    let layout = RecordingLayout::new(start, 0, TERM, TERM).expect("it is valid");
    let disk = SimDisk::new(1, SimDiskOptions::default()).process();
    let directory = Path::new(DIRECTORY);
    disk.create_directory(directory).expect("the disk is empty");
    let split = usize::from(*split) * contents.len() / 255;
    for (base, part) in [
        (0, &contents[..split]),
        (i64::from(TERM), &contents[split..]),
    ] {
        let name = SegmentName::new(0, base).expect("it is not negative");
        let file = disk
            .open(&name.path(directory), OpenOptions::create_new())
            .expect("it is new");
        file.write_at(&part[..part.len().min(TERM as usize)], 0)
            .expect("the disk has space");
    }
    let target = ScanTarget {
        disk: &disk,
        directory,
        layout,
        stream_id: 1001,
        checksum: None,
    };
    let names = SegmentDirectory::list(&disk, directory).expect("it exists");
    let scan = target.scan(names.of(0)).expect("the disk works");
    assert!((start..=2 * i64::from(TERM)).contains(&scan.end) && scan.end % 32 == 0);
    target
        .repair(&scan, SyncLevel::Data)
        .expect("the disk works");
    let names = SegmentDirectory::list(&disk, directory).expect("it exists");
    let again = target.scan(names.of(0)).expect("the disk works");
    assert_eq!(
        (again.end, again.fault, again.needs_repair()),
        (scan.end, None, false)
    );
}
