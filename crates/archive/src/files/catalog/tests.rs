// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use taran_storage::{Disk, OpenOptions, Operation};

use super::super::crashing_disk::{CrashingDisk, DIRECTORY, contents, path};
use super::*;

const TERM: i32 = 64 * 1024;

fn recording(stream_id: i32, channel: &str) -> NewRecording<'_> {
    NewRecording {
        start_timestamp: 1_700_000_000_000,
        start_position: 96,
        initial_term_id: 7,
        segment_file_length: 2 * TERM,
        term_buffer_length: TERM,
        mtu_length: 1408,
        session_id: 42,
        stream_id,
        stripped_channel: channel,
        original_channel: channel,
        source_identity: "127.0.0.1:40123",
    }
}

fn options(sync: SyncLevel) -> CatalogOptions {
    CatalogOptions {
        capacity: 1024,
        checksum: Some(Checksum::Crc32c),
        sync,
    }
}

/// A catalog and its file.
struct Opened {
    catalog: Catalog,
    file: CatalogFile,
    report: CatalogReport,
}

fn open(disk: &Arc<dyn Disk>, options: CatalogOptions) -> Result<Opened, CatalogError> {
    let (file, catalog, report) = CatalogFile::open(disk, Path::new(DIRECTORY), options)?;
    Ok(Opened {
        catalog,
        file,
        report,
    })
}

impl Opened {
    fn add(&mut self, new: &NewRecording<'_>) -> i64 {
        let (id, change) = self.catalog.add(new).unwrap();
        self.file.apply(&change).unwrap();
        id
    }

    fn apply(&mut self, change: Result<Change, UpdateError>) {
        self.file.apply(&change.unwrap()).unwrap();
    }
}

fn new_catalog(options: CatalogOptions) -> (CrashingDisk, Arc<dyn Disk>, Opened) {
    let crashing = CrashingDisk::new(1, true);
    let disk = crashing.disk();
    let opened = open(&disk, options).unwrap();
    assert!(opened.report.is_new);
    (crashing, disk, opened)
}

#[test]
fn bytes_of_header_and_entry_are_as_specified() {
    let (_, disk, mut opened) = new_catalog(options(SyncLevel::None));
    let id = opened.add(&recording(1001, "aeron:ipc"));
    opened.apply(opened.catalog.clone().stop(id, 224, 5));
    let bytes = contents(&*disk, CATALOG_FILE);
    let i32_at = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let i64_at = |at: usize| i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!(1024, bytes.len());
    assert_eq!(
        (196_864, 32, 1, 64),
        (i32_at(0), i32_at(4), i64_at(8), i32_at(16))
    );
    let entry = 32;
    let texts = 3 * 4 + 2 * "aeron:ipc".len() + "127.0.0.1:40123".len();
    let length = (32 + 80 + texts).next_multiple_of(64);
    assert_eq!(length as i32 - 32, i32_at(entry));
    assert_eq!(1, i32_at(entry + 4));
    let checksum = Checksum::Crc32c.compute(&bytes[entry + 32..entry + length]);
    assert_eq!(checksum, i32_at(entry + 8));
    let longs = [0, 0, 0, 1_700_000_000_000, 5, 96, 224];
    for (index, expected) in longs.into_iter().enumerate() {
        assert_eq!(expected, i64_at(entry + 32 + 8 * index), "field {index}");
    }
    let ints = [7, 2 * TERM, TERM, 1408, 42, 1001, 9];
    for (index, expected) in ints.into_iter().enumerate() {
        assert_eq!(expected, i32_at(entry + 88 + 4 * index), "field {index}");
    }
    assert_eq!(b"aeron:ipc", &bytes[entry + 116..entry + 125]);
    assert!(
        bytes[entry + 32 + 80 + texts..]
            .iter()
            .all(|byte| *byte == 0)
    );
}

#[test]
fn reopened_catalog_equals_the_one_in_memory() {
    let (_, disk, mut opened) = new_catalog(options(SyncLevel::None));
    let ids: Vec<i64> = (0..20)
        .map(|n| opened.add(&recording(n % 3, "aeron:ipc?alias=x")))
        .collect();
    assert_eq!((0..20).collect::<Vec<_>>(), ids);
    let change = opened.catalog.stop(3, 1024, 9);
    opened.apply(change);
    let change = opened.catalog.extend(3, 77, 78, 43);
    opened.apply(change);
    let change = opened.catalog.stop(4, 2048, 10);
    opened.apply(change);
    let change = opened.catalog.set_stop_position(4, 1024);
    opened.apply(change);
    let change = opened.catalog.set_start_position(4, 128);
    opened.apply(change);
    let change = opened.catalog.set_state(5, EntryState::Deleted);
    opened.apply(change);
    let change = opened.catalog.set_state(6, EntryState::Invalid);
    opened.apply(change);
    let change = opened.catalog.set_channels(
        0,
        "aeron:udp?endpoint=somewhere.else:40456",
        &"x".repeat(2000),
    );
    opened.apply(change);

    let again = open(&disk, options(SyncLevel::None)).unwrap();
    assert_eq!(opened.catalog.entries(), again.catalog.entries());
    assert_eq!(CatalogReport::default(), again.report);
    assert_eq!(
        (20, 18),
        (again.catalog.next_recording_id(), again.catalog.len())
    );
    assert_eq!(opened.catalog.capacity(), again.catalog.capacity());
    assert_eq!(None, again.catalog.get(5));
    assert!(again.catalog.entry(5).is_some());
    let extended = again.catalog.get(3).unwrap();
    assert_eq!(
        (77, 78, 43, NULL_VALUE, NULL_VALUE),
        (
            extended.control_session_id,
            extended.correlation_id,
            extended.session_id,
            extended.stop_position,
            extended.stop_timestamp
        )
    );
    let listed = |catalog: &Catalog| -> Vec<i64> {
        catalog
            .recordings_of(2, 0, "alias")
            .map(|d| d.recording_id)
            .collect()
    };
    assert_eq!(vec![3, 9, 12, 15, 18], listed(&again.catalog));
    assert_eq!(listed(&opened.catalog), listed(&again.catalog));
}

#[test]
fn find_last_matching_needs_stream_session_and_fragment() {
    let (_, _, mut opened) = new_catalog(options(SyncLevel::None));
    for (stream, channel) in [
        (1, "aeron:ipc"),
        (1, "aeron:udp?endpoint=a:1"),
        (2, "aeron:udp?endpoint=a:1"),
    ] {
        opened.add(&recording(stream, channel));
    }
    let find = |min, stream, session, fragment| {
        opened
            .catalog
            .find_last_matching(min, stream, session, fragment)
    };
    assert_eq!(Some(1), find(0, 1, 42, ""));
    assert_eq!(Some(0), find(0, 1, 42, "ipc"));
    assert_eq!(None, find(1, 1, 42, "ipc"));
    assert_eq!(None, find(0, 1, 41, ""));
    assert_eq!(None, find(0, 3, 42, ""));
    assert_eq!(Some(2), find(0, 2, 42, "endpoint=a:1"));
}

#[test]
fn longer_channel_before_purged_recordings_keeps_the_catalog() {
    let (_, disk, mut opened) = new_catalog(options(SyncLevel::None));
    for _ in 0..3 {
        opened.add(&recording(1, "aeron:ipc"));
    }
    let change = opened.catalog.set_state(2, EntryState::Deleted);
    opened.apply(change);
    let change = opened
        .catalog
        .set_channels(1, "aeron:ipc", &"y".repeat(100));
    opened.apply(change);
    let again = open(&disk, options(SyncLevel::None)).unwrap();
    let states: Vec<EntryState> = again.catalog.entries().iter().map(Entry::state).collect();
    assert_eq!(
        [EntryState::Valid, EntryState::Valid, EntryState::Deleted],
        *states
    );
    assert_eq!(
        "y".repeat(100),
        *again.catalog.get(1).unwrap().texts.original_channel
    );
}

#[test]
fn add_after_purges_uses_their_space_and_no_id_again() {
    let (_, disk, mut opened) = new_catalog(options(SyncLevel::None));
    let mut used = 0;
    for round in 0..100 {
        assert_eq!(round, opened.add(&recording(1, "aeron:ipc")));
        used = used.max(opened.catalog.used());
        let change = opened.catalog.set_state(round, EntryState::Deleted);
        opened.apply(change);
    }
    assert_eq!(1024, contents(&*disk, CATALOG_FILE).len());
    assert!(used < 512, "{used}");
    let again = open(&disk, options(SyncLevel::None)).unwrap();
    assert_eq!(
        (100, 1),
        (
            again.catalog.next_recording_id(),
            again.catalog.entries().len()
        )
    );
}

#[test]
fn catalog_grows_by_half_up_to_its_limit() {
    let (_, disk, mut opened) = new_catalog(options(SyncLevel::None));
    let mut capacities = vec![1024];
    for _ in 0..20 {
        opened.add(&recording(1, "aeron:ipc"));
        if capacities.last() != Some(&opened.catalog.capacity()) {
            capacities.push(opened.catalog.capacity());
        }
    }
    assert_eq!(vec![1024, 1536, 2304, 3456, 5184], capacities);
    assert_eq!(5184, contents(&*disk, CATALOG_FILE).len());

    opened.catalog.capacity = CATALOG_LENGTH_MAX / 64 * 64;
    opened.catalog.end = opened.catalog.capacity - 64;
    let before = opened.catalog.entries().len();
    let error = opened.catalog.add(&recording(1, "aeron:ipc")).unwrap_err();
    assert!(matches!(error, AddError::Full { .. }), "{error}");
    assert!(error.to_string().contains("compact"), "{error}");
    assert_eq!(before, opened.catalog.entries().len());
}

#[test]
fn compact_removes_invalid_and_deleted_entries() {
    let (_, disk, mut opened) = new_catalog(options(SyncLevel::None));
    for _ in 0..5 {
        opened.add(&recording(1, "aeron:ipc"));
    }
    for (id, state) in [(0, EntryState::Deleted), (3, EntryState::Invalid)] {
        let change = opened.catalog.set_state(id, state);
        opened.apply(change);
    }
    let (removed, change) = opened.catalog.compact();
    opened.file.apply(&change).unwrap();
    let ids = |entries: &[Entry]| -> Vec<i64> {
        entries
            .iter()
            .map(|e| e.descriptor().recording_id)
            .collect()
    };
    assert_eq!(vec![0, 3], ids(&removed));
    let again = open(&disk, options(SyncLevel::None)).unwrap();
    assert_eq!(vec![1, 2, 4], ids(again.catalog.entries()));
    assert_eq!(opened.catalog.entries(), again.catalog.entries());
    assert_eq!(5, again.catalog.next_recording_id());
}

#[test]
fn wrong_changes_are_refused_without_effect() {
    let (_, _, mut opened) = new_catalog(options(SyncLevel::None));
    let id = opened.add(&recording(1, "aeron:ipc"));
    let before = opened.catalog.entries().to_vec();
    let catalog = &mut opened.catalog;
    let unknown = UpdateError::Unknown { recording_id: 9 };
    assert_eq!(Err(unknown.clone()), catalog.stop(9, 128, 1));
    assert_eq!(Err(unknown.clone()), catalog.extend(9, 1, 1, 1));
    assert_eq!(Err(unknown), catalog.set_state(9, EntryState::Invalid));
    for position in [64, 97, i64::MIN, -32] {
        let error = catalog.stop(id, position, 1).unwrap_err();
        assert!(matches!(error, UpdateError::Invalid(_)), "{error}");
    }
    for position in [-1, 97, i64::MAX] {
        assert!(catalog.set_start_position(id, position).is_err());
    }
    let mut wrong = recording(1, "aeron:ipc");
    wrong.term_buffer_length = 100;
    assert!(matches!(catalog.add(&wrong), Err(AddError::Invalid(_))));
    assert_eq!(before, catalog.entries());
    let _applied_elsewhere = catalog.set_state(id, EntryState::Deleted).unwrap();
    assert_eq!(
        Err(UpdateError::Deleted { recording_id: id }),
        catalog.set_state(id, EntryState::Valid)
    );
}

/// Overwrites bytes of the catalog file.
fn overwrite(disk: &Arc<dyn Disk>, offset: u64, bytes: &[u8]) {
    let file = disk
        .open(&path(CATALOG_FILE), OpenOptions::write())
        .unwrap();
    file.write_at(bytes, offset).unwrap();
}

/// Returns the lengths and states of the entries in the file, read as `docs/spec/archive.md` §3.2 has them and as each reader goes
/// through them: from one length to the next.
fn walk(bytes: &[u8]) -> Vec<(u64, i32, i64)> {
    let mut entries = Vec::new();
    let mut offset = 32;
    while offset + 32 < bytes.len() {
        let int = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let length = int(offset);
        if length == 0 {
            break;
        }
        assert!(length > 0, "{length} at {offset}");
        let id = i64::from_le_bytes(bytes[offset + 48..offset + 56].try_into().unwrap());
        entries.push((offset as u64, int(offset + 4), id));
        offset += 32 + length as usize;
    }
    entries
}

#[test]
fn damaged_entry_before_others_becomes_a_deleted_one_and_its_bytes_are_kept() {
    let (_, disk, mut opened) = new_catalog(options(SyncLevel::Data));
    for _ in 0..3 {
        opened.add(&recording(1, "aeron:ipc"));
    }
    let [second, third] = [1, 2].map(|at| opened.catalog.entries()[at].offset());
    let good = contents(&*disk, CATALOG_FILE);
    type Damage<'a> = (u64, &'a [u8], fn(Option<&MalformedEntry>) -> bool);
    let cases: [Damage<'_>; 7] = [
        (second, &[0; 4], |reason| reason.is_none()),
        (second, &[0xff; 4], |reason| {
            matches!(reason, Some(MalformedEntry::Length(-1)))
        }),
        (second, &[0x21, 0, 0, 0], |reason| {
            matches!(reason, Some(MalformedEntry::Length(0x21)))
        }),
        (second + 4, &[9], |reason| {
            matches!(reason, Some(MalformedEntry::State(9)))
        }),
        (second + 48, &[0], |reason| {
            matches!(reason, Some(MalformedEntry::Order { id: 0, previous: 0 }))
        }),
        (second + 112, &[0xff; 4], |reason| {
            matches!(reason, Some(MalformedEntry::Decode(_)))
        }),
        (second + 112, &[0; 1], |reason| reason.is_some()),
    ];
    for (at, (offset, bytes, expected)) in cases.into_iter().enumerate() {
        overwrite(&disk, 0, &good);
        overwrite(&disk, offset, bytes);
        let damaged = contents(&*disk, CATALOG_FILE);
        let mut again = open(&disk, options(SyncLevel::Data)).unwrap();
        let [gap] = &again.report.contents.gaps[..] else {
            panic!("{:?}", again.report)
        };
        assert_eq!(
            (second, third, 1, 2),
            (gap.offset, gap.end, gap.recording_id, gap.next_id)
        );
        assert!(expected(gap.reason.as_ref()), "{gap:?}");
        let [side] = &again.report.gap_files[..] else {
            panic!("{:?}", again.report)
        };
        let name = side.file_name().unwrap().to_str().unwrap();
        assert!(
            name.starts_with(&format!("archive.catalog.cut-{second}")),
            "{name}"
        );
        assert_eq!(
            damaged[second as usize..third as usize],
            contents(&*disk, name)
        );
        let findings = again.report.findings();
        assert!(
            findings
                .iter()
                .any(|text| text.contains(&format!("damaged from byte {second} to {third}")))
                && findings.iter().any(|text| text.contains(name)),
            "{findings:?}"
        );
        // Each reader finds the others, and the entry of a deleted recording between them.
        assert_eq!(
            vec![(32, 1, 0), (second, 2, 1), (third, 1, 2)],
            walk(&contents(&*disk, CATALOG_FILE)),
            "case {at}"
        );
        let ids = |catalog: &Catalog| {
            catalog
                .recordings(0)
                .map(|d| d.recording_id)
                .collect::<Vec<_>>()
        };
        assert_eq!(vec![0, 2], ids(&again.catalog));
        assert_eq!(3, again.add(&recording(1, "aeron:ipc")));
        let third_time = open(&disk, options(SyncLevel::Data)).unwrap();
        assert_eq!(CatalogReport::default(), third_time.report, "case {at}");
        assert_eq!(vec![0, 2, 3], ids(&third_time.catalog));
    }
}

#[test]
fn entry_that_a_damaged_length_ends_too_early_gets_its_length_back() {
    let (_, disk, mut opened) = new_catalog(options(SyncLevel::Data));
    let long = "x".repeat(200);
    opened.add(&recording(1, &long));
    opened.add(&recording(1, "aeron:ipc"));
    // The texts become shorter, and the entry keeps its length, as entries of official archives do.
    let first = opened.catalog.entries()[0].clone();
    let bytes = contents(&*disk, CATALOG_FILE);
    let donor = opened.catalog.entries()[1].clone();
    let texts =
        |entry: &Entry| (entry.offset() + 112) as usize..(entry.offset() + entry.length()) as usize;
    let mut short = bytes[texts(&donor)].to_vec();
    short.resize(texts(&first).len(), 0);
    overwrite(&disk, first.offset() + 112, &short);
    let kept = contents(&*disk, CATALOG_FILE);
    let length = donor.length() as i32 - 32;
    overwrite(&disk, first.offset(), &length.to_le_bytes());
    let again = open(&disk, options(SyncLevel::Data)).unwrap();
    assert_eq!(1, again.report.contents.gaps.len());
    assert_eq!(Vec::<PathBuf>::new(), again.report.gap_files);
    assert_eq!(kept, contents(&*disk, CATALOG_FILE));
    assert_eq!(2, again.catalog.len());
}

#[test]
fn power_cut_at_any_operation_of_a_repair_leaves_a_catalog_that_opens() {
    for seed in 0..8 {
        for cut in 0.. {
            let crashing = CrashingDisk::new(seed, true);
            let disk = crashing.disk();
            let mut opened = open(&disk, options(SyncLevel::Data)).unwrap();
            for _ in 0..3 {
                opened.add(&recording(1, "aeron:ipc"));
            }
            let second = opened.catalog.entries()[1].offset();
            overwrite(&disk, second + 1, &[0x10]);
            let file = disk
                .open(&path(CATALOG_FILE), OpenOptions::write())
                .unwrap();
            file.sync(taran_storage::SyncKind::All).unwrap();
            drop((file, opened));
            crashing.crash_before(cut);
            let is_cut = open(&crashing.disk(), options(SyncLevel::Data)).is_err();
            let again = crashing.restart();
            let reopened = open(&again.disk(), options(SyncLevel::Data));
            let reopened =
                reopened.unwrap_or_else(|error| panic!("seed={seed} cut={cut}: {error}"));
            let ids: Vec<i64> = reopened
                .catalog
                .recordings(0)
                .map(|d| d.recording_id)
                .collect();
            assert_eq!(vec![0, 2], ids, "seed={seed} cut={cut}");
            let third = open(&again.disk(), options(SyncLevel::Data)).unwrap();
            assert_eq!(
                CatalogReport::default(),
                third.report,
                "seed={seed} cut={cut}"
            );
            if !is_cut {
                assert!(cut > 5, "{cut} operations");
                break;
            }
        }
    }
}

#[test]
fn search_behind_damage_gives_up_on_entries_that_overlap() {
    const LEN: usize = 1 << 20;
    let (_, disk, mut opened) = new_catalog(options(SyncLevel::None));
    opened.add(&recording(1, "aeron:ipc"));
    let mut bytes = contents(&*disk, CATALOG_FILE)[..32].to_vec();
    bytes.resize(LEN, 0);
    // The first entry is damaged. Behind it, each unit of the file begins an entry of half a file with an unknown state.
    bytes[32..36].copy_from_slice(&(-1_i32).to_le_bytes());
    for unit in bytes[96..].chunks_mut(64) {
        let length = LEN as i32 / 2 - 32;
        for (at, value) in [(0, length), (4, 9), (48, length - 200)] {
            if let Some(word) = unit.get_mut(at..at + 4) {
                word.copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    let contents = CatalogContents {
        bytes: &bytes,
        len: LEN as u64,
    };
    let result = Catalog::parse(contents, options(SyncLevel::None), 0);
    assert_eq!(ParseError::Unclear { offset: 32 }, result.unwrap_err());
}

#[test]
fn damaged_header_and_wrong_versions_are_refused() {
    let (_, disk, mut opened) = new_catalog(options(SyncLevel::None));
    opened.add(&recording(1, "aeron:ipc"));
    let good = contents(&*disk, CATALOG_FILE);
    for (offset, bytes, text) in [
        (0, 0x0002_0000_i32, "migrate"),
        (0, 0x0400_0000, "use the archive that wrote it"),
        (0, -1, "use the archive that wrote it"),
        (4, 33, "header is damaged"),
        (16, 0, "header is damaged"),
        (16, 48, "header is damaged"),
        (12, -1, "header is damaged"),
    ] {
        overwrite(&disk, 0, &good);
        overwrite(&disk, offset, &bytes.to_le_bytes());
        let error = open(&disk, options(SyncLevel::None)).err().unwrap();
        assert!(error.to_string().contains(text), "{error}");
    }
    let file = disk
        .open(&path(CATALOG_FILE), OpenOptions::write())
        .unwrap();
    file.set_len(0).unwrap();
    file.set_len(1024).unwrap();
    let error = open(&disk, options(SyncLevel::None)).err().unwrap();
    assert!(
        error.to_string().contains("all of its bytes are zero"),
        "{error}"
    );
    file.set_len(31).unwrap();
    let error = open(&disk, options(SyncLevel::None)).err().unwrap();
    assert!(error.to_string().contains("31 bytes"), "{error}");
    file.set_len(CATALOG_LENGTH_MAX + 1).unwrap();
    let error = open(&disk, options(SyncLevel::None)).err().unwrap();
    assert!(matches!(error, CatalogError::TooLong { .. }), "{error}");
    assert_eq!(CATALOG_LENGTH_MAX + 1, file.len().unwrap());
}

#[test]
fn malformed_last_entry_moves_to_a_side_file() {
    let (_, disk, mut opened) = new_catalog(options(SyncLevel::None));
    for _ in 0..2 {
        opened.add(&recording(1, "aeron:ipc"));
    }
    let last = opened.catalog.entries()[1].clone();
    overwrite(&disk, last.offset() + 112, &[0xff; 4]);
    let again = open(&disk, options(SyncLevel::None)).unwrap();
    let tail = again.report.contents.tail.clone().unwrap();
    assert_eq!(last.offset(), tail.offset);
    assert!(matches!(tail.reason, Some(MalformedEntry::Decode(_))));
    let side = again.report.tail_file.clone().unwrap();
    assert_eq!(
        path(&format!("archive.catalog.cut-{}", last.offset())),
        side
    );
    assert_eq!(
        tail.bytes,
        contents(&*disk, side.file_name().unwrap().to_str().unwrap())
    );
    assert_eq!(
        (1, 2),
        (again.catalog.len(), again.catalog.next_recording_id())
    );
    let third = open(&disk, options(SyncLevel::None)).unwrap();
    assert_eq!(CatalogReport::default(), third.report);
}

#[test]
fn ids_of_segment_files_are_not_given_again() {
    let crashing = CrashingDisk::new(1, true);
    let disk = crashing.disk();
    disk.open(&path("41-0.rec"), OpenOptions::create_new())
        .unwrap();
    let mut opened = open(&disk, options(SyncLevel::None)).unwrap();
    assert_eq!(42, opened.add(&recording(1, "aeron:ipc")));
    disk.open(&path("50-0.rec.del"), OpenOptions::create_new())
        .unwrap();
    let mut again = open(&disk, options(SyncLevel::None)).unwrap();
    let too_low = again.report.contents.next_id.unwrap();
    assert_eq!((43, 51), (too_low.stored, too_low.used));
    assert_eq!(51, again.add(&recording(1, "aeron:ipc")));
}

#[test]
fn impossible_stop_positions_become_null_and_impossible_lengths_hide_one_recording() {
    let (_, disk, mut opened) = new_catalog(options(SyncLevel::None));
    for _ in 0..4 {
        opened.add(&recording(1, "aeron:ipc"));
    }
    let offset = |id: usize| opened.catalog.entries()[id].offset();
    overwrite(&disk, offset(0) + 80, &33_i64.to_le_bytes());
    overwrite(&disk, offset(1) + 80, &(-32_i64).to_le_bytes());
    overwrite(&disk, offset(2) + 96, &7_i32.to_le_bytes());
    let again = open(&disk, options(SyncLevel::None)).unwrap();
    assert_eq!(
        vec![(0, 33), (1, -32)],
        again.report.contents.impossible_stops
    );
    assert_eq!(1, again.report.contents.unusable.len());
    assert_eq!(
        vec![0, 1, 3],
        again
            .catalog
            .recordings(0)
            .map(|d| d.recording_id)
            .collect::<Vec<_>>()
    );
    assert!(again.catalog.get(0).unwrap().is_active());
    let third = open(&disk, options(SyncLevel::None)).unwrap();
    assert!(third.report.contents.impossible_stops.is_empty());
}

#[test]
fn failed_write_stops_all_further_changes() {
    let (crashing, disk, mut opened) = new_catalog(options(SyncLevel::Data));
    let id = opened.add(&recording(1, "aeron:ipc"));
    crashing.sim().fail_next(taran_storage::Operation::Sync);
    let change = opened.catalog.stop(id, 128, 1).unwrap();
    assert!(matches!(
        opened.file.apply(&change),
        Err(CatalogError::Disk(_))
    ));
    let (_, change) = opened.catalog.add(&recording(1, "aeron:ipc")).unwrap();
    let error = opened.file.apply(&change).unwrap_err();
    assert!(
        matches!(error, CatalogError::FailedBefore { .. }),
        "{error}"
    );
    let again = open(&disk, options(SyncLevel::Data)).unwrap();
    assert_eq!(1, again.catalog.len());
}

#[test]
fn state_that_a_failed_sync_left_in_the_page_cache_is_durable_after_opening() {
    let mut kept = 0;
    for seed in 0..32 {
        let options = options(SyncLevel::Data);
        let first = CrashingDisk::new(seed, false).with_kill();
        let mut opened = open(&first.disk(), options).unwrap();
        let id = opened.add(&recording(1, "aeron:ipc"));
        first.sim().fail_next(Operation::Sync);
        let deleted = opened.catalog.set_state(id, EntryState::Deleted).unwrap();
        opened.file.apply(&deleted).unwrap_err();
        let state = |disk: &CrashingDisk| {
            let opened = open(&disk.disk(), options).unwrap();
            opened.catalog.entry(id).unwrap().state
        };
        let second = first.restart();
        let seen = state(&second);
        kept += u32::from(seen == EntryState::Deleted);
        second.sim().power_cut();
        let third = second.restart();
        assert_eq!(state(&third), seen, "seed {seed}");
    }
    assert!(kept > 0);
}

#[test]
fn full_disk_refuses_growth_until_there_is_space() {
    let (crashing, disk, mut opened) = new_catalog(options(SyncLevel::Data));
    while opened.catalog.capacity() == 1024 {
        crashing.sim().fill(0);
        let before = opened.catalog.len();
        let (_, change) = opened
            .catalog
            .add(&recording(1, &"x".repeat(1500)))
            .unwrap();
        let Err(error) = opened.file.apply(&change) else {
            continue;
        };
        assert!(error.is_full(), "{error}");
        assert_eq!(
            before,
            open(&disk, options(SyncLevel::Data)).unwrap().catalog.len()
        );
        // The same change is applied when there is space.
        assert!(opened.file.apply(&change).unwrap_err().is_full());
        crashing.sim().restore_capacity();
        opened.file.apply(&change).unwrap();
        let again = open(&disk, options(SyncLevel::Data)).unwrap();
        assert_eq!(before + 1, again.catalog.len());
        return;
    }
}

/// Recordings that are listed, with their descriptors.
type Snapshot = BTreeMap<i64, Descriptor>;

fn snapshot(catalog: &Catalog) -> Snapshot {
    catalog
        .recordings(0)
        .map(|d| (d.recording_id, d.clone()))
        .collect()
}

/// Changes of a scripted workload, which meets every kind of change, growth and reuse.
fn script(catalog: &mut Catalog, step: usize) -> Option<Change> {
    let long = "z".repeat(700);
    let add = |catalog: &mut Catalog, channel: &str| catalog.add(&recording(1, channel)).unwrap().1;
    Some(match step {
        0..=3 | 12 | 16 => add(catalog, "aeron:ipc"),
        4 => catalog.stop(0, 65_536, 11).unwrap(),
        5 => catalog.stop(1, 96, 12).unwrap(),
        6 => catalog.extend(0, 5, 6, 43).unwrap(),
        7 => catalog.stop(0, 131_072 + 0x40_a0e0, 13).unwrap(),
        8 => catalog.set_stop_position(0, 0x01_0100).unwrap(),
        9 => catalog.set_channels(1, "aeron:ipc?tags=1", &long).unwrap(),
        10 => catalog.set_state(3, EntryState::Deleted).unwrap(),
        11 => catalog.set_state(2, EntryState::Deleted).unwrap(),
        13 => add(catalog, &long),
        14 => catalog
            .replace(1, &recording(9, "aeron:udp?endpoint=host:1"))
            .unwrap(),
        15 => catalog.compact().1,
        _ => return None,
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Crash {
    Kill,
    PowerCut,
    PowerCutWithTornSectors,
}

/// Runs the script with a crash before an operation. Returns false if there was none.
fn run_with_crash(seed: u64, crash: Crash, cut: u64) -> bool {
    let is_torn = crash == Crash::PowerCutWithTornSectors;
    let (crashing, sync) = match crash {
        Crash::Kill => (CrashingDisk::new(seed, true).with_kill(), SyncLevel::None),
        _ => (CrashingDisk::new(seed, is_torn), SyncLevel::Data),
    };
    crashing.crash_before(cut);
    let (mut acknowledged, mut pending, mut next_id) = (Snapshot::new(), None, 0);
    let mut is_cut = true;
    match open(&crashing.disk(), options(sync)) {
        Err(_) => (),
        Ok(mut opened) => {
            for step in 0.. {
                let Some(change) = script(&mut opened.catalog, step) else {
                    is_cut = false;
                    break;
                };
                let after = snapshot(&opened.catalog);
                if opened.file.apply(&change).is_err() {
                    pending = Some(after);
                    break;
                }
                acknowledged = after;
                next_id = opened.catalog.next_recording_id();
            }
        }
    }
    let again = crashing.restart();
    let reopened =
        open(&again.disk(), options(sync)).unwrap_or_else(|error| panic!("cut={cut}: {error}"));
    let found = snapshot(&reopened.catalog);
    let is_between = found == acknowledged
        || Some(&found) == pending.as_ref()
        // A replaced stop position passes through NULL.
        || pending.as_ref().is_some_and(|pending| is_mixture(&found, &acknowledged, pending));
    assert!(
        is_between,
        "cut={cut}: {found:#?} is neither {acknowledged:#?} nor {pending:#?}"
    );
    assert!(reopened.catalog.next_recording_id() >= next_id, "cut={cut}");
    // Opens without any repair the second time.
    let mut third = open(&again.disk(), options(sync)).unwrap();
    if is_torn {
        // A mixture of old and new bytes within a sector is told, and not made good.
        third.report.contents.wrong_checksums.clear();
    }
    assert_eq!(CatalogReport::default(), third.report, "cut={cut}");
    is_cut
}

/// Returns true if all recordings equal one of both states, except that the fields of a stop or extension may be the new
/// ones in part; the stop position is old, new or NULL.
fn is_mixture(found: &Snapshot, old: &Snapshot, new: &Snapshot) -> bool {
    old.len() == new.len()
        && found.keys().eq(old.keys())
        && found.iter().all(|(id, found)| {
            let (old, new) = (&old[id], &new[id]);
            let stop = found.stop_position;
            found.texts == old.texts
                && found.start_position == old.start_position
                && [old.stop_position, new.stop_position, NULL_VALUE].contains(&stop)
        })
}

#[test]
fn power_cut_at_any_operation_leaves_a_catalog_that_opens() {
    for seed in 0..8 {
        for crash in [Crash::PowerCut, Crash::PowerCutWithTornSectors] {
            let cuts = (0..)
                .take_while(|cut| run_with_crash(seed, crash, *cut))
                .count();
            assert!(cuts > 60, "{cuts} operations");
        }
    }
}

#[test]
fn kill_at_any_operation_keeps_the_acknowledged_changes_without_syncs() {
    let cuts = (0..)
        .take_while(|cut| run_with_crash(0, Crash::Kill, *cut))
        .count();
    assert!(cuts > 40, "{cuts} operations");
}

proptest! {
    #[test]
    fn parse_of_any_bytes_ends(bytes in prop::collection::vec(any::<u8>(), 0..600), extra in 0..200_u64) {
        let len = bytes.len() as u64 + extra;
        let _ = Catalog::parse(CatalogContents { bytes: &bytes, len }, options(SyncLevel::None), 0);
    }

    #[test]
    fn parse_of_a_mutated_catalog_is_refused_or_usable(
        count in 1..6_usize,
        mutations in prop::collection::vec((0..1600_usize, any::<u8>()), 1..6),
    ) {
        let (_, disk, mut opened) = new_catalog(options(SyncLevel::None));
        for _ in 0..count {
            opened.add(&recording(1, "aeron:ipc"));
        }
        let mut bytes = contents(&*disk, CATALOG_FILE);
        for (at, byte) in mutations {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let len = bytes.len() as u64;
        if let Ok((mut catalog, _)) = Catalog::parse(CatalogContents { bytes: &bytes, len }, options(SyncLevel::None), 0) {
            let ids: Vec<i64> = catalog.recordings(0).map(|d| d.recording_id).collect();
            prop_assert!(ids.is_sorted());
            prop_assert_eq!(ids.len(), catalog.len());
            for id in ids {
                prop_assert!(catalog.get(id).unwrap().validate().is_ok());
                prop_assert!(id < catalog.next_recording_id());
            }
            if let Ok((id, _)) = catalog.add(&recording(2, "aeron:ipc")) {
                prop_assert_eq!(Some(id), catalog.find_last_matching(0, 2, 42, ""));
            }
        }
    }

    #[test]
    fn random_changes_survive_reopening(steps in prop::collection::vec((0..8_u8, any::<u16>()), 1..40)) {
        let (_, disk, mut opened) = new_catalog(options(SyncLevel::None));
        for (kind, value) in steps {
            let ids: Vec<i64> = opened.catalog.entries().iter().map(|e| e.descriptor().recording_id).collect();
            let id = ids.get(usize::from(value) % ids.len().max(1)).copied().unwrap_or(0);
            let position = 96 + i64::from(value) * 32;
            let text = "c".repeat(usize::from(value) % 300);
            let catalog = &mut opened.catalog;
            let change = match kind {
                0 | 1 => catalog.add(&recording(i32::from(value % 3), &text)).ok().map(|(_, change)| change),
                2 => catalog.stop(id, position, 1).ok(),
                3 => catalog.extend(id, 1, 2, 3).ok(),
                4 => catalog.set_state(id, EntryState::Deleted).ok(),
                5 => catalog.set_channels(id, "aeron:ipc", &text).ok(),
                6 => catalog.set_state(id, EntryState::Invalid).ok(),
                _ => (value % 16 == 0).then(|| catalog.compact().1),
            };
            if let Some(change) = change {
                opened.file.apply(&change).unwrap();
            }
        }
        let again = open(&disk, options(SyncLevel::None)).unwrap();
        prop_assert_eq!(opened.catalog.entries(), again.catalog.entries());
        prop_assert_eq!(opened.catalog.len(), again.catalog.len());
        prop_assert_eq!(opened.catalog.next_recording_id(), again.catalog.next_recording_id());
        prop_assert_eq!(&again.report, &CatalogReport::default());
        prop_assert_eq!(snapshot(&opened.catalog), snapshot(&again.catalog));
    }
}

#[test]
fn entry_with_a_too_high_recording_id_costs_no_entry_behind_it() {
    let (_, disk, mut opened) = new_catalog(options(SyncLevel::Data));
    for _ in 0..4 {
        opened.add(&recording(1, "aeron:ipc"));
    }
    let offsets: Vec<u64> = opened.catalog.entries().iter().map(Entry::offset).collect();
    let good = contents(&*disk, CATALOG_FILE);
    for (damaged, id) in [(0, 1 << 40), (2, 1 << 40), (0, 2), (1, 3)] {
        overwrite(&disk, 0, &good);
        overwrite(&disk, offsets[damaged] + 48, &i64::to_le_bytes(id));
        let mut again = open(&disk, options(SyncLevel::Data)).unwrap();
        let [gap] = &again.report.contents.gaps[..] else {
            panic!("{damaged} {id}: {:?}", again.report)
        };
        assert_eq!(gap.offset, offsets[damaged]);
        assert!(
            matches!(gap.reason, Some(MalformedEntry::IdTooHigh { id: found, .. }) if found == id),
            "{gap:?}"
        );
        let ids = |catalog: &Catalog| {
            let recordings = catalog.recordings(0);
            recordings.map(|d| d.recording_id).collect::<Vec<_>>()
        };
        let mut expected: Vec<i64> = (0..4).filter(|id| *id != damaged as i64).collect();
        assert_eq!(ids(&again.catalog), expected, "{damaged} {id}");
        assert_eq!(again.add(&recording(1, "aeron:ipc")), 4);
        expected.push(4);
        let third = open(&disk, options(SyncLevel::Data)).unwrap();
        assert_eq!(third.report, CatalogReport::default(), "{damaged} {id}");
        assert_eq!(ids(&third.catalog), expected);
    }
}
