// SPDX-License-Identifier: Apache-2.0
use std::path::Path;
use std::sync::Arc;

use taran_storage::Disk;

use super::super::super::crashing_disk::{CrashingDisk, DIRECTORY, contents};
use super::super::super::{
    CatalogFile, CatalogOptions, Checksum, Descriptor, Entry, EntryState, SegmentDirectory,
    SyncLevel,
};
use super::super::tests::{NOW, SEGMENT, archive, open};
use super::super::{Segments, StoppedArchive, VerifyOptions, dump};
use super::*;

fn exported(disk: &Arc<dyn Disk>, id: i64, from: i64, until: i64) -> (Vec<u8>, Exported) {
    let tool = open(disk);
    let descriptor = tool.catalog().get(id).unwrap();
    let mut bytes = Vec::new();
    let done = export(
        &**disk,
        Path::new(DIRECTORY),
        descriptor,
        from..until,
        &mut bytes,
        |_| (),
    );
    (bytes, done.unwrap())
}

fn import(disk: &Arc<dyn Disk>, mut bytes: &[u8]) -> Result<Imported, ImportError> {
    open(disk).import(&mut bytes, NOW + 9, |_| ())
}

/// Position, header and payload of all frames.
fn frames(disk: &dyn Disk, descriptor: &Descriptor) -> Vec<(i64, i32, bool, Vec<u8>)> {
    let mut frames = Vec::new();
    dump(
        disk,
        Path::new(DIRECTORY),
        descriptor,
        |position, frame, payload| {
            frames.push((position, frame.length, frame.is_padding, payload.to_vec()));
            std::ops::ControlFlow::Continue(())
        },
    )
    .unwrap();
    frames
}

#[test]
fn import_of_an_export_is_the_same_recording() {
    for (start, stop) in [
        (0, 0),
        (96, 4096 + 96),
        (SEGMENT + 64, 8 * SEGMENT + 1024),
        (0, 2 * SEGMENT),
    ] {
        let source = archive(&[(start, Some(stop))], Some(Checksum::Crc32));
        let (bytes, done) = exported(&source, 0, 0, i64::MAX);
        assert_eq!((start, stop), (done.start, done.end));
        let target = archive(&[(0, Some(64))], None);
        let imported = import(&target, &bytes).unwrap();
        assert_eq!(
            (1, 0, start, stop, done.frames),
            (
                imported.recording_id,
                imported.source_id,
                imported.start,
                imported.end,
                imported.frames
            )
        );
        let (from, mut to) = (open(&source), open(&target));
        let (original, copy) = (from.catalog().get(0), to.catalog().get(1));
        let mut expected = original.unwrap().clone();
        expected.recording_id = 1;
        assert_eq!(Some(&expected), copy);
        assert_eq!(
            frames(&*source, original.unwrap()),
            frames(&*target, copy.unwrap())
        );
        // The checksums of the frames came along.
        let options = VerifyOptions {
            segments: Segments::All,
            checksum: None,
            repair: false,
        };
        let verified = to.verify(Some(1), options, NOW).unwrap();
        assert!(verified[0].problems.is_empty(), "{verified:?}");
        if stop > start {
            let name = |id: i64| {
                let layout = expected.validate().unwrap();
                format!("{id}-{}.rec", layout.first_base())
            };
            assert_eq!(contents(&*source, &name(0)), contents(&*target, &name(1)));
        }
    }
}

#[test]
fn export_of_a_range_begins_with_the_frame_at_its_start() {
    let source = archive(&[(0, Some(3 * SEGMENT))], None);
    // Inside a frame of the second segment.
    let (bytes, done) = exported(&source, 0, SEGMENT + 1024 + 64, 2 * SEGMENT + 2048);
    assert_eq!((SEGMENT + 1024, 2 * SEGMENT + 2048), (done.start, done.end));
    let target = archive(&[], None);
    assert_eq!(import(&target, &bytes).unwrap().frames, done.frames);
    let tool = open(&target);
    let copy = tool.catalog().get(0).unwrap();
    assert_eq!(
        (done.start, done.end),
        (copy.start_position, copy.stop_position)
    );
}

#[test]
fn export_of_an_active_recording_ends_with_its_frames() {
    let source = archive(&[(96, None)], None);
    let (bytes, done) = exported(&source, 0, 0, i64::MAX);
    assert_eq!((96, 4192), (done.start, done.end));
    let target = archive(&[], None);
    import(&target, &bytes).unwrap();
    let tool = open(&target);
    let copy = tool.catalog().get(0).unwrap();
    assert_eq!((4192, NOW + 9), (copy.stop_position, copy.stop_timestamp));
}

/// After a failed import: no file and no usable entry.
fn assert_nothing_left(disk: &Arc<dyn Disk>) {
    let tool = open(disk);
    assert!(tool.catalog().is_empty());
    let states = tool.catalog().entries().iter();
    assert!(
        states
            .map(Entry::state)
            .all(|state| state == EntryState::Deleted)
    );
    let names = SegmentDirectory::list(&**disk, Path::new(DIRECTORY)).unwrap();
    assert!(
        names.segments.is_empty() && names.reserved.is_empty(),
        "{names:?}"
    );
}

#[test]
fn import_of_damaged_bytes_is_refused_and_nothing_is_left() {
    let source = archive(&[(96, Some(SEGMENT + 8192))], None);
    let (good, _) = exported(&source, 0, 0, i64::MAX);
    let target = archive(&[], None);
    // Every byte of the head, samples of the rest, and the end.
    let places = (0..220)
        .chain((220..good.len()).step_by(9_973))
        .chain(good.len() - 24..good.len());
    for at in places {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        assert!(import(&target, &bad).is_err(), "byte {at}");
    }
    for length in (0..220)
        .chain((220..good.len()).step_by(9_973))
        .chain(good.len() - 24..good.len())
    {
        let error = import(&target, &good[..length]).unwrap_err();
        let is_cut = matches!(error, ImportError::Cut { .. } | ImportError::Magic);
        assert!(is_cut, "length {length}: {error}");
    }
    let mut more = good.clone();
    more.push(0);
    let error = import(&target, &more).unwrap_err();
    assert!(matches!(error, ImportError::Trailing { .. }), "{error}");
    assert_nothing_left(&target);
    import(&target, &good).unwrap();
}

/// An export with blocks of these positions and frames, with right checksums.
fn crafted(head: &[u8], blocks: &[(i64, Vec<u8>)], end: (i64, u64)) -> Vec<u8> {
    let mut bytes = head.to_vec();
    for (position, frames) in blocks {
        let mut digest = Checksum::Crc32c.digest();
        digest.update(&position.to_le_bytes());
        digest.update(frames);
        bytes.extend_from_slice(&(frames.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&digest.finish().to_le_bytes());
        bytes.extend_from_slice(&position.to_le_bytes());
        bytes.extend_from_slice(frames);
    }
    let mut tail = end.0.to_le_bytes().to_vec();
    tail.extend_from_slice(&end.1.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&Checksum::Crc32c.compute(&tail).to_le_bytes());
    bytes.extend_from_slice(&tail);
    bytes
}

#[test]
fn import_of_crafted_blocks_is_refused_and_nothing_is_left() {
    let source = archive(&[(0, Some(2048))], None);
    let (good, _) = exported(&source, 0, 0, i64::MAX);
    let length = u32::from_le_bytes(good[12..16].try_into().unwrap()) as usize;
    let head = &good[..16 + length + 4];
    let frames = good[head.len() + 16..good.len() - 24].to_vec();
    let target = archive(&[], None);
    let refused = |blocks: &[(i64, Vec<u8>)], end| {
        let bytes = crafted(head, blocks, end);
        let error = import(&target, &bytes).unwrap_err();
        assert_nothing_left(&target);
        error
    };
    let error = refused(&[(32, frames.clone())], (2080, 2));
    assert!(
        matches!(
            error,
            ImportError::Position {
                expected: 0,
                found: 32
            }
        ),
        "{error}"
    );
    let error = refused(&[(0, frames.clone())], (4096, 2));
    assert!(
        matches!(
            error,
            ImportError::Position {
                expected: 2048,
                found: 4096
            }
        ),
        "{error}"
    );
    let error = refused(&[(0, frames.clone())], (2048, 3));
    assert!(
        matches!(
            error,
            ImportError::Frames {
                expected: 3,
                found: 2
            }
        ),
        "{error}"
    );
    let error = refused(&[(0, frames[..frames.len() - 32].to_vec())], (2048, 2));
    assert!(
        matches!(error, ImportError::Frame { position: 1024, .. }),
        "{error}"
    );
    for (at, value) in [(3, 0x80), (4, 1), (6, 7), (8, 64), (16, 9), (20, 9)] {
        let mut bad = frames.clone();
        bad[at] = value;
        let error = refused(&[(0, bad)], (2048, 2));
        assert!(
            matches!(error, ImportError::Frame { position: 0, .. }),
            "byte {at}: {error}"
        );
    }
    let blocks = [
        (0, frames[..1024].to_vec()),
        (1024, frames[1024..].to_vec()),
    ];
    assert_eq!(
        2,
        import(&target, &crafted(head, &blocks, (2048, 2)))
            .unwrap()
            .frames
    );
}

/// An empty archive on a disk that can crash, with durable changes.
fn empty_archive(crashing: &CrashingDisk) -> Arc<dyn Disk> {
    let disk = crashing.disk();
    let opened = CatalogFile::open(&disk, Path::new(DIRECTORY), durable());
    opened.unwrap().0.close().unwrap();
    disk
}

fn durable() -> CatalogOptions {
    CatalogOptions {
        sync: SyncLevel::Data,
        ..CatalogOptions::default()
    }
}

#[test]
fn import_onto_a_full_disk_leaves_nothing() {
    let source = archive(&[(0, Some(3 * SEGMENT))], None);
    let (good, _) = exported(&source, 0, 0, i64::MAX);
    let crashing = CrashingDisk::new(1, true);
    let disk = empty_archive(&crashing);
    crashing.sim().fill(SEGMENT as u64 + 4096);
    let error = import(&disk, &good).unwrap_err();
    assert!(matches!(error, ImportError::Tool(_)), "{error}");
    assert_nothing_left(&disk);
    crashing.sim().restore_capacity();
    import(&disk, &good).unwrap();
}

#[test]
fn import_with_a_power_cut_at_any_operation_leaves_no_half_of_a_recording() {
    let source = archive(&[(96, Some(2 * SEGMENT + 4096))], None);
    let (good, done) = exported(&source, 0, 0, i64::MAX);
    for cut in 0.. {
        let crashing = CrashingDisk::new(cut, true);
        let disk = empty_archive(&crashing);
        let directory = Path::new(DIRECTORY);
        let mut tool = StoppedArchive::open(&disk, directory, durable(), NOW).unwrap();
        crashing.crash_before(cut);
        let imported = tool.import(&mut &*good, NOW, |_| ());
        drop(tool);
        let disk = crashing.restart().disk();
        let mut tool = StoppedArchive::open(&disk, directory, durable(), NOW).unwrap();
        let options = VerifyOptions {
            segments: Segments::All,
            checksum: None,
            repair: true,
        };
        let before: Vec<EntryState> = tool.catalog().entries().iter().map(Entry::state).collect();
        tool.verify(None, options, NOW).unwrap();
        if before.first() == Some(&EntryState::Valid) {
            let end = tool.catalog().get(0).unwrap().stop_position;
            // The recording, or one that has just been added.
            assert!(end == done.end || end == done.start, "cut={cut} end={end}");
        }
        if imported.is_ok() {
            assert_eq!(done.end, tool.catalog().get(0).unwrap().stop_position);
            assert!(cut > 10);
            break;
        }
    }
}
