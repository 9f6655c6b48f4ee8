// SPDX-License-Identifier: Apache-2.0
//! Retention, time indexes and full disks, one scenario each.

use taran_sim::HostIndex;
use taran_storage::{Disk, OpenOptions};

use super::archive::{ArchiveProcess, DIRECTORY};
use super::fixture::{BOUND, Fixture, SEGMENT};
use super::journal::Journal;
use super::operations::{archive, cut_power};
use super::user::{Media, UserProcess};
use super::{ARCHIVE_HOST, RECOVERY_BOUND, await_all, is_ready, users};
use crate::counters::type_id;
use crate::files::time_index_path;

#[test]
fn replay_from_a_time_begins_at_the_last_entry_before_it() {
    let mut fixture = Fixture::new(&[("taran.archive.time.index.interval", "1s")]);
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    let mut steps = Vec::new();
    for _ in 0..6 {
        fixture.run_for(3_000);
        steps.push((fixture.now_ms(), fixture.floor(0)));
        fixture.publish(0, 20);
    }
    let end = fixture.floor(0);
    for (time_ms, recorded) in steps.clone() {
        let (first, last) = fixture.replay_from(0, time_ms).expect("there are frames");
        // Nothing recorded after the time is left out, and nothing recorded long before is replayed.
        assert_eq!(first, recorded, "from {time_ms}");
        assert_eq!(last, end);
    }
    let before_all = steps[0].0 - 100_000;
    assert_eq!(fixture.replay_from(0, before_all), Some((0, end)));
    let (first, _) = fixture.replay_from(0, steps[5].0).unwrap();
    // Also after a power cut, and of a stopped recording.
    cut_power(&mut fixture.world);
    await_all(&mut fixture.world, "ready", RECOVERY_BOUND, is_ready).unwrap();
    let (again, last) = fixture.replay_from(0, steps[5].0).unwrap();
    assert!(again <= first && last == end, "{again} {last}");
}

#[test]
fn replay_from_a_time_behind_a_stopped_recording_begins_at_its_last_entry_before_the_end() {
    let mut fixture = Fixture::new(&[("taran.archive.time.index.interval", "1s")]);
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    fixture.run_for(3_000);
    fixture.publish(0, 20);
    fixture.run_for(3_000);
    let end = fixture.floor(0);
    fixture.stop();
    fixture.run_for(3_000);
    let (first, last) = fixture.replay_from(0, fixture.now_ms()).unwrap();
    assert!(first < end && last == end, "{first} {last} {end}");
}

#[test]
fn time_index_of_extended_recording_forgets_what_was_truncated() {
    let mut fixture = Fixture::new(&[]);
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (10, 100), journal));
    fixture.record(0);
    for _ in 0..4 {
        fixture.publish(0, 10);
        fixture.run_for(2_000);
    }
    let middle_ms = fixture.now_ms();
    fixture.publish(0, 30);
    fixture.run_for(2_000);
    fixture.stop();
    let stream_id = fixture.world.shared_mut::<Journal>().recording(0).stream_id;
    let cut = fixture
        .world
        .shared_mut::<Journal>()
        .ledger(stream_id)
        .starts()
        .nth(5)
        .unwrap();
    assert!(fixture.user(|user, journal| user.truncate(0, cut, journal)));
    fixture.run_for(500);
    assert!(fixture.user(|user, _| user.extend(1, 0)));
    fixture.run_for(500);
    fixture.publish(1, 30);
    fixture.run_for(2_000);
    let (first, _) = fixture.replay_from(0, middle_ms).unwrap();
    assert!(first <= cut, "{first} {cut}");
    fixture.stop();
    // The index of a purged recording goes with it.
    let path = time_index_path(std::path::Path::new(DIRECTORY), 0);
    let disk = fixture.world.disk(HostIndex::at(ARCHIVE_HOST)).process();
    assert!(disk.open(&path, OpenOptions::read()).is_ok());
    assert!(fixture.user(|user, journal| user.purge(0, journal)));
    fixture.run_for(1_000);
    assert!(
        disk.open(&path, OpenOptions::read())
            .unwrap_err()
            .is_not_found()
    );
}

#[test]
fn retention_by_bytes_purges_the_first_segments_of_an_active_recording() {
    let mut fixture = Fixture::new(&[
        ("taran.archive.retention", "* bytes=150000"),
        ("taran.archive.retention.interval", "1s"),
    ]);
    fixture.world.shared_mut::<Journal>().recording(0).start_max = i64::MAX;
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    fixture.publish(0, 800);
    let end = fixture.floor(0);
    assert!(end > 5 * SEGMENT, "{end}");
    fixture.run_for(3_000);
    let bases = fixture.bases(0);
    let first = *bases.first().unwrap();
    assert!(
        end - first >= 150_000 && end - first < 150_000 + SEGMENT,
        "{bases:?} of {end}"
    );
    assert!(fixture.counter(type_id::PURGED_BY_RETENTION) > 0);
    // What is left is replayed, and survives.
    fixture.stop();
    cut_power(&mut fixture.world);
    await_all(&mut fixture.world, "ready", RECOVERY_BOUND, is_ready).unwrap();
    assert_eq!(fixture.bases(0).first(), Some(&first));
}

#[test]
fn retention_by_age_purges_old_segments_then_the_stopped_recording() {
    let mut fixture = Fixture::new(&[
        ("taran.archive.retention", "aeron:ipc age=10s"),
        ("taran.archive.retention.interval", "1s"),
    ]);
    fixture.world.shared_mut::<Journal>().recording(0).start_max = i64::MAX;
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    fixture.publish(0, 500);
    fixture.run_for(5_000);
    assert_eq!(fixture.bases(0).first(), Some(&0));
    let middle = fixture.floor(0);
    fixture.publish(0, 200);
    fixture.run_for(6_000);
    let bases = fixture.bases(0);
    assert_eq!(
        bases.first(),
        Some(&(middle / SEGMENT * SEGMENT)),
        "{bases:?} of {middle}"
    );
    fixture.stop();
    fixture
        .world
        .shared_mut::<Journal>()
        .recording(0)
        .may_be_gone = true;
    fixture.run_for(13_000);
    assert_eq!(fixture.bases(0), Vec::<i64>::new());
}

#[test]
fn retention_waits_for_a_named_consumer() {
    let mut fixture = Fixture::new(&[
        ("taran.archive.retention", "* bytes=1 consumers=risk"),
        ("taran.archive.retention.interval", "1s"),
    ]);
    fixture.world.shared_mut::<Journal>().recording(0).start_max = i64::MAX;
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    fixture.publish(0, 600);
    fixture.run_for(3_000);
    assert_eq!(fixture.bases(0).first(), Some(&0));
    let is_named = |fixture: &Fixture| {
        let errors = fixture.errors();
        errors
            .iter()
            .any(|error| error.contains("the consumer risk was not seen"))
    };
    assert!(!is_named(&fixture));
    fixture.run_for(65_000);
    assert!(is_named(&fixture), "{:?}", fixture.errors());
    let mut key = 0_i64.to_le_bytes().to_vec();
    key.extend_from_slice(b"risk");
    fixture.user(|user, _| user.add_counter(type_id::CONSUMER_POSITION, &key, 2 * SEGMENT + 64));
    fixture.run_for(3_000);
    assert_eq!(fixture.bases(0).first(), Some(&(2 * SEGMENT)));
}

#[test]
fn full_disk_holds_the_publisher_and_is_counted_until_there_is_space() {
    let mut fixture = Fixture::new(&[]);
    let host = HostIndex::at(ARCHIVE_HOST);
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    fixture.publish(0, 50);
    fixture.world.disk(host).fill(8_192);
    assert!(fixture.user(|user, journal| user.publish((0, Media::Ipc), (400, 1_000), journal)));
    fixture.run_for(5_000);
    let held = fixture.floor(0);
    assert_eq!(fixture.counter(type_id::HELD_RECORDINGS), 1);
    assert_eq!(fixture.counter(type_id::RECORDING_SESSIONS), 1);
    // No recording starts now.
    fixture.user(|user, journal| user.publish((1, Media::Ipc), (20, 1_000), journal));
    fixture.record(1);
    fixture.run_for(1_000);
    assert_eq!(fixture.counter(type_id::RECORDING_SESSIONS), 1);
    fixture.world.disk(host).restore_capacity();
    fixture.record(1);
    let local = users(&fixture.world)[0];
    await_all(&mut fixture.world, "all is published", BOUND, |world| {
        world.process::<UserProcess>(local).has_published_all()
    })
    .unwrap();
    fixture.run_for(1_000);
    assert!(
        fixture.floor(0) > held + 3 * SEGMENT / 2,
        "{held} {}",
        fixture.floor(0)
    );
    assert_eq!(fixture.counter(type_id::HELD_RECORDINGS), 0);
    let is_running = archive(&fixture.world)
        .is_some_and(|id| fixture.world.process::<ArchiveProcess>(id).is_running());
    assert!(is_running);
    fixture.stop();
    cut_power(&mut fixture.world);
    await_all(&mut fixture.world, "ready", RECOVERY_BOUND, is_ready).unwrap();
}
