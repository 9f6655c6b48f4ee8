// SPDX-License-Identifier: Apache-2.0
//! Starts with damaged and foreign files, and a catalog that has no room.

use taran_archive_client::protocol::ErrorCode;
use taran_storage::{Create, Disk, OpenOptions};

use super::archive::{DIRECTORY, Settings};
use super::fixture::{Fixture, SEGMENT};
use super::journal::Journal;
use super::user::Media;
use crate::files::{CATALOG_FILE, CatalogFile, CatalogOptions};

/// Records a stream; returns the id of the recording.
fn record(fixture: &mut Fixture, label: u32) -> i64 {
    fixture.user(|user, journal| user.publish((label, Media::Ipc), (1, 100), journal));
    fixture.record(label);
    fixture.publish(label, 150);
    i64::from(label)
}

fn disk(fixture: &Fixture) -> impl Disk + use<> {
    let host = taran_sim::HostIndex::at(super::ARCHIVE_HOST);
    fixture.world.disk(host).process()
}

fn ids(fixture: &mut Fixture) -> Vec<i64> {
    let listed = fixture.list();
    listed.into_iter().map(|found| found.recording_id).collect()
}

/// Records three streams, and flips a bit of the catalog entry of the second one, at an offset in the entry, while the archive is
/// down. Returns the offset of the entry, and the segments of that recording.
fn damage_second_entry(fixture: &mut Fixture, at: u64) -> (u64, Vec<i64>) {
    for label in 0..3 {
        record(fixture, label);
    }
    let known = fixture.world.shared_mut::<Journal>().recording(1);
    (known.may_be_gone, known.was_damaged) = (true, true);
    let files = fixture.bases(1);
    let mut offset = 0;
    fixture.kill_and_change(|fixture| {
        offset = {
            let disk = disk(fixture);
            let options = CatalogOptions::default();
            let (catalog, _) = CatalogFile::read(&disk, DIRECTORY.as_ref(), options).unwrap();
            catalog.entries()[1].offset()
        };
        fixture.flip(CATALOG_FILE, offset + at);
    });
    (offset, files)
}

/// Checks that the other recordings are there, that nothing of the second one is deleted, and that its id is not used again.
fn assert_only_second_is_lost(fixture: &mut Fixture, files: &[i64]) {
    assert_eq!(ids(fixture), [0, 2]);
    fixture.replay_all(0, 0);
    fixture.replay_all(2, 0);
    assert_eq!(fixture.bases(1), files);
    fixture.user(|user, _| user.close_all_tracks());
    record(fixture, 3);
    assert_eq!(ids(fixture), [0, 2, 3]);
}

#[test]
fn archive_with_a_damaged_catalog_entry_starts_without_that_recording() {
    let mut fixture = Fixture::new(&[]);
    // The length of segments, as `docs/spec/archive.md` §3.2 has it.
    let (_, files) = damage_second_entry(&mut fixture, 96);
    let errors = fixture.errors();
    assert!(
        errors.iter().any(|error| error
            .contains("recording 1 cannot be used, because its catalog entry is damaged: ")),
        "{errors:?}"
    );
    assert_only_second_is_lost(&mut fixture, &files);
}

#[test]
fn archive_with_a_catalog_entry_of_a_damaged_length_starts_without_that_recording() {
    let mut fixture = Fixture::new(&[]);
    // The length of the entry.
    let (offset, files) = damage_second_entry(&mut fixture, 0);
    let errors = fixture.errors();
    let expected = [
        format!("the catalog was damaged from byte {offset} to "),
        format!("archive.catalog.cut-{offset}"),
    ];
    for expected in &expected {
        assert!(
            errors.iter().any(|error| error.contains(expected)),
            "no {expected} in {errors:?}"
        );
    }
    assert_only_second_is_lost(&mut fixture, &files);
}

#[test]
fn archive_with_foreign_and_misplaced_segment_files_starts_and_keeps_them() {
    let mut fixture = Fixture::new(&[]);
    record(&mut fixture, 0);
    let names = [
        "copy-of-0.rec".to_owned(),
        "0-1000.rec".to_owned(),
        format!("17-{SEGMENT}.rec"),
        "0--5.rec".to_owned(),
        "notes.txt".to_owned(),
    ];
    fixture.kill_and_change(|fixture| {
        let disk = disk(fixture);
        for name in &names {
            let path = std::path::Path::new(DIRECTORY).join(name);
            let options = OpenOptions::write().with_create(Create::IfMissing);
            let file = disk.open(&path, options).unwrap();
            file.write_at(b"of another program", 0).unwrap();
        }
    });
    let errors = fixture.errors();
    for expected in [
        "name that no archive makes",
        "segment files begin at no segment of their recording: the first one is 0-1000.rec",
        "segment files belong to recordings that the catalog does not list (see taran recordings orphans): the first one is 17-",
    ] {
        assert!(
            errors.iter().any(|error| error.contains(expected)),
            "no {expected} in {errors:?}"
        );
    }
    assert_eq!(ids(&mut fixture), [0]);
    fixture.replay_all(0, 0);
    let entries = disk(&fixture).list(DIRECTORY.as_ref()).unwrap();
    for name in &names {
        assert!(
            entries.iter().any(|entry| entry.name == name.as_str()),
            "{name} is gone"
        );
    }
    // The id in a foreign name is not used.
    fixture.user(|user, _| user.close_all_tracks());
    fixture.user(|user, journal| user.publish((1, Media::Ipc), (1, 100), journal));
    fixture.record(1);
    fixture.publish(1, 10);
    let listed = ids(&mut fixture);
    assert!(listed[1] > 17, "{listed:?}");
}

#[test]
fn full_catalog_refuses_new_recordings_and_loses_nothing() {
    let mut fixture = Fixture::with(Settings {
        catalog_length_max: Some(1_024),
        ..Fixture::settings(&[("aeron.archive.catalog.capacity", "1024")])
    });
    let mut label = 0;
    let (code, text) = loop {
        fixture.user(|user, journal| user.publish((label, Media::Ipc), (1, 100), journal));
        fixture.record(label);
        fixture.run_for(500);
        if let Some(refusal) = fixture.world.shared_mut::<Journal>().last_refusal.take() {
            break refusal;
        }
        label += 1;
        assert!(label < 10, "all are recorded");
    };
    fixture.user(|user, _| user.close_track(label));
    assert!(label > 1, "{label}");
    assert_eq!(code, ErrorCode::StorageSpace, "{text}");
    assert!(
        text.contains("the catalog is full: needed=")
            && text.contains("limit=1024 bytes")
            && text.contains("taran recordings compact"),
        "{text}"
    );
    let errors = fixture.errors();
    assert!(
        errors
            .iter()
            .any(|error| error.contains("the catalog is full")),
        "{errors:?}"
    );
    // The others go on, are stopped and extended, and survive.
    let before: Vec<i64> = (0..i64::from(label)).collect();
    assert_eq!(ids(&mut fixture), before);
    for known in 0..label {
        fixture.publish(known, 100);
    }
    fixture.kill_and_change(|_| {});
    assert_eq!(ids(&mut fixture), before);
    for id in &before {
        fixture.replay_all(*id, 0);
    }
    // The entries of purged recordings at the end have room for another one.
    let last = *before.last().expect("some are recorded");
    fixture.user(|user, _| user.close_all_tracks());
    assert!(fixture.user(|user, journal| user.purge(last, journal)));
    fixture.settle();
    fixture.user(|user, journal| user.publish((20, Media::Ipc), (1, 100), journal));
    fixture.record(20);
    fixture.publish(20, 10);
    let after = ids(&mut fixture);
    assert_eq!(after.len(), before.len(), "{after:?}");
    assert!(!after.contains(&last), "{after:?}");
}
