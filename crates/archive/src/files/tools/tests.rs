// SPDX-License-Identifier: Apache-2.0
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use taran_storage::{Disk, OpenOptions};

use super::super::crashing_disk::{CrashingDisk, DIRECTORY, contents, path};
use super::super::descriptor::{NULL_VALUE, NewRecording};
use super::super::test_streams::{SESSION, STREAM, TERM, Writer, layout};
use super::super::{
    CatalogFile, CatalogOptions, Checksum, EntryState, SegmentDirectory, SegmentName, SyncLevel,
    recover,
};
use super::*;

pub(super) const SEGMENT: i64 = 2 * TERM as i64;
pub(super) const NOW: i64 = 1_700_000_000_000;

fn new_recording(start: i64) -> NewRecording<'static> {
    NewRecording {
        start_timestamp: NOW,
        start_position: start,
        initial_term_id: 7,
        segment_file_length: 2 * TERM,
        term_buffer_length: TERM,
        mtu_length: 1408,
        session_id: SESSION,
        stream_id: STREAM,
        stripped_channel: "aeron:ipc",
        original_channel: "aeron:ipc",
        source_identity: "aeron:ipc",
    }
}

/// Recordings by the positions at which they end; `None` leaves them active.
pub(super) fn archive(ends: &[(i64, Option<i64>)], checksum: Option<Checksum>) -> Arc<dyn Disk> {
    let disk = CrashingDisk::new(1, true).disk();
    let options = CatalogOptions {
        checksum,
        ..CatalogOptions::default()
    };
    let (mut file, mut catalog, _) =
        CatalogFile::open(&disk, Path::new(DIRECTORY), options).unwrap();
    for (start, end) in ends {
        let (id, change) = catalog.add(&new_recording(*start)).unwrap();
        file.apply(&change).unwrap();
        let mut writer = Writer::new(&*disk, layout(*start), id);
        writer.checksum = checksum;
        writer.fill_to(end.unwrap_or(start + 4096));
        if let Some(end) = end {
            assert_eq!(*end, writer.position);
            file.apply(&catalog.stop(id, *end, NOW).unwrap()).unwrap();
        }
    }
    file.close().unwrap();
    disk
}

pub(super) fn open(disk: &Arc<dyn Disk>) -> StoppedArchive {
    StoppedArchive::open(disk, Path::new(DIRECTORY), CatalogOptions::default(), NOW).unwrap()
}

const REPAIR: VerifyOptions = VerifyOptions {
    segments: Segments::All,
    checksum: None,
    repair: true,
};

fn overwrite(disk: &dyn Disk, name: &str, offset: u64, bytes: &[u8]) {
    let file = disk.open(&path(name), OpenOptions::write()).unwrap();
    file.write_at(bytes, offset).unwrap();
}

#[test]
fn good_recordings_verify_and_stay_as_they_are() {
    for checksum in [None, Some(Checksum::Crc32), Some(Checksum::Crc32c)] {
        let ends = [
            (0, Some(0)),
            (96, Some(SEGMENT)),
            (SEGMENT * 5 + 64, Some(SEGMENT * 8 + 1024)),
            (0, Some(SEGMENT + 32)),
        ];
        let disk = archive(&ends, checksum);
        let mut tool = open(&disk);
        let before = tool.catalog().entries().to_vec();
        let results = tool
            .verify(None, VerifyOptions { checksum, ..REPAIR }, NOW + 1)
            .unwrap();
        for result in &results {
            assert_eq!(
                (EntryState::Valid, EntryState::Valid),
                (result.before, result.after)
            );
            assert!(
                result.problems.is_empty() && result.stop_position.is_none(),
                "{result:?}"
            );
        }
        assert!(results[2].frames > 384, "{results:?}");
        assert_eq!(before, tool.catalog().entries());
    }
}

#[test]
fn verify_finds_the_end_of_an_active_recording() {
    let disk = archive(&[(96, None)], None);
    overwrite(&*disk, "0-0.rec", 4096 + 96, &[1, 2, 3]);
    let mut tool = open(&disk);
    let dry = VerifyOptions {
        repair: false,
        ..REPAIR
    };
    let found = tool.verify(Some(0), dry, NOW).unwrap();
    assert_eq!(Some((NULL_VALUE, 4192)), found[0].stop_position);
    assert!(tool.catalog().get(0).unwrap().is_active());
    let repaired = tool.verify(Some(0), REPAIR, NOW + 1).unwrap();
    assert_eq!(1, repaired[0].side_files.len());
    assert_eq!(EntryState::Valid, repaired[0].after);
    let descriptor = tool.catalog().get(0).unwrap();
    assert_eq!(
        (4192, NOW + 1),
        (descriptor.stop_position, descriptor.stop_timestamp)
    );
}

#[test]
fn verify_makes_damaged_recordings_invalid_and_restored_ones_valid() {
    let disk = archive(&[(0, Some(3 * SEGMENT + 4096)), (0, Some(4096))], None);
    let second = SegmentName::new(0, SEGMENT).unwrap().file_name();
    let good = contents(&*disk, &second);
    let mut tool = open(&disk);
    type Case<'a> = (u64, &'a [u8], fn(&Problem) -> bool);
    let cases: [Case<'_>; 2] = [
        (8192, &[0; 4096], |p| matches!(p, Problem::Gap(_))),
        (16, &[9], |p| matches!(p, Problem::Gap(_))),
    ];
    for (offset, bytes, expected) in cases {
        overwrite(&*disk, &second, offset, bytes);
        let last_only = VerifyOptions {
            segments: Segments::Last,
            ..REPAIR
        };
        assert_eq!(
            EntryState::Valid,
            tool.verify(Some(0), last_only, NOW).unwrap()[0].after
        );
        let results = tool.verify(None, REPAIR, NOW).unwrap();
        assert!(expected(&results[0].problems[0]), "{results:?}");
        assert_eq!(
            (EntryState::Invalid, EntryState::Valid),
            (results[0].after, results[1].after)
        );
        assert!(tool.catalog().get(0).is_none());
        overwrite(&*disk, &second, 0, &good);
        let results = tool.verify(Some(0), REPAIR, NOW).unwrap();
        assert_eq!(
            (EntryState::Invalid, EntryState::Valid),
            (results[0].before, results[0].after)
        );
    }
    disk.remove_file(&path(&second)).unwrap();
    let results = tool.verify(Some(0), REPAIR, NOW).unwrap();
    assert!(
        matches!(&results[0].problems[..], [Problem::Gap(_)]),
        "{results:?}"
    );
    for base in [0, 2, 3] {
        disk.remove_file(&path(
            &SegmentName::new(0, base * SEGMENT).unwrap().file_name(),
        ))
        .unwrap();
    }
    let results = tool.verify(Some(0), REPAIR, NOW).unwrap();
    assert!(
        matches!(&results[0].problems[..], [Problem::NoFiles { .. }]),
        "{results:?}"
    );
}

#[test]
fn verify_tells_a_missing_end_and_a_stop_inside_a_frame() {
    let disk = archive(&[(0, Some(4096)), (0, Some(4096))], None);
    overwrite(&*disk, "0-0.rec", 3072, &[0; 1024]);
    let mut tool = open(&disk);
    let change = tool.catalog.set_stop_position(1, 2080).unwrap();
    tool.apply(&change).unwrap();
    let results = tool.verify(None, REPAIR, NOW).unwrap();
    assert_eq!(
        [Problem::MissingEnd {
            found: 3072,
            stop: 4096,
            fault: None
        }],
        *results[0].problems
    );
    assert_eq!([Problem::StopInFrame { stop: 2080 }], *results[1].problems);
}

#[test]
fn verify_with_checksum_finds_changed_bytes_and_stamp_makes_checksums() {
    let disk = archive(&[(0, Some(SEGMENT + 4096)), (0, Some(2048))], None);
    let mut tool = open(&disk);
    let checksum = Some(Checksum::Crc32);
    let options = VerifyOptions { checksum, ..REPAIR };
    let dry = VerifyOptions {
        repair: false,
        ..options
    };
    assert!(
        tool.verify(None, dry, NOW)
            .unwrap()
            .iter()
            .all(|result| !result.problems.is_empty())
    );
    let stamped = tool.stamp(None, Segments::All, Checksum::Crc32).unwrap();
    assert_eq!(
        [(132, 2), (2, 1)],
        *stamped
            .iter()
            .map(|s| (s.frames, s.segments))
            .collect::<Vec<_>>()
    );
    assert!(
        tool.verify(None, options, NOW)
            .unwrap()
            .iter()
            .all(|result| result.problems.is_empty())
    );
    overwrite(&*disk, "1-0.rec", 1500, &[0]);
    let results = tool.verify(None, options, NOW).unwrap();
    assert!(results[0].problems.is_empty());
    assert!(
        matches!(
            results[1].problems[..],
            [Problem::MissingEnd { found: 1024, .. }]
        ),
        "{results:?}"
    );
}

#[test]
fn compact_removes_entries_and_files() {
    let disk = archive(&[(0, Some(64)), (0, Some(64)), (0, Some(64))], None);
    let mut tool = open(&disk);
    tool.mark_invalid(1).unwrap();
    let change = tool.catalog.set_state(2, EntryState::Deleted).unwrap();
    tool.apply(&change).unwrap();
    let compacted = tool.compact().unwrap();
    assert_eq!(
        [(1, EntryState::Invalid), (2, EntryState::Deleted)],
        *compacted.removed
    );
    assert_eq!(["1-0.rec", "2-0.rec"], *compacted.files);
    assert!(compacted.length < compacted.length_before);
    let names = SegmentDirectory::list(&*disk, Path::new(DIRECTORY)).unwrap();
    assert_eq!(1, names.segments.len());
    drop(tool);
    let tool = open(&disk);
    assert_eq!(
        (1, 3),
        (
            tool.catalog().entries().len(),
            tool.catalog().next_recording_id()
        )
    );
}

#[test]
fn mark_valid_and_invalid_change_the_state_but_not_of_purged_recordings() {
    let disk = archive(&[(0, Some(64))], None);
    let mut tool = open(&disk);
    tool.mark_invalid(0).unwrap();
    assert!(tool.catalog().is_empty());
    tool.mark_valid(0).unwrap();
    assert_eq!(1, tool.catalog().len());
    let change = tool.catalog.set_state(0, EntryState::Deleted).unwrap();
    tool.apply(&change).unwrap();
    assert!(
        tool.mark_valid(0)
            .unwrap_err()
            .to_string()
            .contains("purged")
    );
    assert!(
        tool.mark_valid(7)
            .unwrap_err()
            .to_string()
            .contains("unknown recording 7")
    );
}

#[test]
fn orphans_are_files_outside_of_their_recording() {
    let disk = archive(&[(SEGMENT, Some(2 * SEGMENT + 64))], None);
    for name in ["0-0.rec", "0-393216.rec", "9-0.rec", "0-131072.rec.del"] {
        disk.open(&path(name), OpenOptions::create_new()).unwrap();
    }
    let mut tool = open(&disk);
    let orphans = tool.orphans(None).unwrap();
    let found: Vec<_> = orphans
        .iter()
        .map(|orphan| (&*orphan.name, orphan.reason))
        .collect();
    assert_eq!(
        [
            ("0-0.rec", OrphanReason::BeforeStart),
            ("0-393216.rec", OrphanReason::AfterStop),
            ("9-0.rec", OrphanReason::Unlisted),
            ("0-131072.rec.del", OrphanReason::Deleted),
        ],
        *found
    );
    tool.delete_orphans(&orphans).unwrap();
    assert!(tool.orphans(None).unwrap().is_empty());
    let names = SegmentDirectory::list(&*disk, Path::new(DIRECTORY)).unwrap();
    assert_eq!(2, names.of(0).len());
}

#[test]
fn tools_refuse_a_running_archive_and_a_directory_without_one() {
    let disk = archive(&[(0, Some(64))], None);
    let refused = || {
        StoppedArchive::open(&disk, Path::new(DIRECTORY), CatalogOptions::default(), NOW)
            .unwrap_err()
    };
    let lock = disk.try_lock(Path::new(DIRECTORY)).unwrap();
    assert!(matches!(refused(), ToolError::Locked { .. }));
    drop(lock);
    let mut mark = vec![0; 16 * 1024];
    mark[..8].copy_from_slice(&[128, 0, 200, 0, 100, 0, 2, 0]);
    mark[16..24].copy_from_slice(&(NOW - 9_999).to_le_bytes());
    mark[32] = 77;
    let file = disk
        .open(&path("archive-mark.dat"), OpenOptions::create_new())
        .unwrap();
    file.write_at(&mark, 0).unwrap();
    assert!(matches!(
        refused(),
        ToolError::Active {
            pid: 77,
            age_ms: 9_999,
            ..
        }
    ));
    file.write_at(&(NOW - 10_000).to_le_bytes(), 16).unwrap();
    drop(open(&disk));

    disk.create_directory(Path::new("/empty")).unwrap();
    let error = StoppedArchive::open(&disk, Path::new("/empty"), CatalogOptions::default(), NOW)
        .unwrap_err();
    assert!(
        error.to_string().contains("there is no archive in /empty"),
        "{error}"
    );
    assert!(disk.list(Path::new("/empty")).unwrap().is_empty());
}

#[test]
fn dump_gives_all_frames_in_order() {
    let disk = archive(&[(96, Some(SEGMENT + 4096))], None);
    let tool = open(&disk);
    let descriptor = tool.catalog().get(0).unwrap();
    let (mut next, mut count) = (96, 0);
    dump(
        &*disk,
        Path::new(DIRECTORY),
        descriptor,
        |position, frame, payload| {
            assert_eq!(next, position);
            assert!(payload.iter().all(|byte| *byte == 0x5a));
            next += (frame.end() - frame.offset) as i64;
            count += 1;
            ControlFlow::Continue(())
        },
    )
    .unwrap();
    assert_eq!(SEGMENT + 4096, next);
    disk.remove_file(&path("0-131072.rec")).unwrap();
    let error = dump(&*disk, Path::new(DIRECTORY), descriptor, |_, _, _| {
        ControlFlow::Continue(())
    });
    assert!(
        matches!(
            error,
            Err(DumpError::Missing {
                position: SEGMENT,
                ..
            })
        ),
        "{error:?}"
    );
}

#[test]
fn recovery_after_a_power_cut_at_any_operation_ends_with_usable_recordings() {
    for seed in 0..4 {
        for cut in 0.. {
            let crashing = CrashingDisk::new(seed, true);
            let disk = crashing.disk();
            let options = CatalogOptions {
                sync: SyncLevel::Data,
                ..CatalogOptions::default()
            };
            let directory = Path::new(DIRECTORY);
            let (mut file, mut catalog, _) = CatalogFile::open(&disk, directory, options).unwrap();
            let mut writers = Vec::new();
            for id in 0..3 {
                let (_, change) = catalog.add(&new_recording(0)).unwrap();
                file.apply(&change).unwrap();
                let mut writer = Writer::new(&*disk, layout(0), id);
                writer.fill_to(4096 + 1024 * id);
                // What was not written behind the end.
                overwrite(&*disk, &writer.name().file_name(), 16_384, &[1; 100]);
                writers.push(writer.position);
            }
            let again = crashing.clone();
            again.crash_before(cut);
            let is_cut = recover(&*disk, directory, &mut catalog, &mut file, SyncLevel::Data, NOW).is_err()
                // Failures of one recording do not fail the recovery; the disk is gone then.
                || disk.list(directory).is_err();
            let restarted = crashing.restart();
            let disk = restarted.disk();
            let (mut file, mut catalog, _) = CatalogFile::open(&disk, directory, options).unwrap();
            let report = recover(
                &*disk,
                directory,
                &mut catalog,
                &mut file,
                SyncLevel::Data,
                NOW,
            )
            .unwrap();
            assert!(
                report.unavailable.is_empty(),
                "seed={seed} cut={cut}: {report:?}"
            );
            for descriptor in catalog.recordings(0) {
                assert!(!descriptor.is_active());
                let end = writers[descriptor.recording_id as usize];
                if !is_cut {
                    assert_eq!(end, descriptor.stop_position);
                }
                assert!(descriptor.stop_position <= end);
            }
            let second = recover(
                &*disk,
                directory,
                &mut catalog,
                &mut file,
                SyncLevel::Data,
                NOW,
            )
            .unwrap();
            assert!(second.recovered.is_empty());
            if !is_cut {
                assert!(cut > 5);
                break;
            }
        }
    }
}
