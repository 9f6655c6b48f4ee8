//! Failing disks, changes during replays, steps of the clock and damaged files, one scenario each.

use std::path::Path;

use taran_archive_client::RequestError;
use taran_archive_client::protocol::ErrorCode;
use taran_sim::HostIndex;
use taran_storage::{Disk, OpenOptions, Operation};

use super::archive::{ArchiveProcess, DIRECTORY};
use super::fixture::{Fixture, SEGMENT};
use super::journal::Journal;
use super::operations::archive;
use super::user::Media;
use super::{ARCHIVE_HOST, are_idle, await_all};
use crate::counters::type_id;
use crate::files::Checksum;
use crate::recorder::segment_path;

/// A recording of some segments, which has stopped.
fn stopped(fixture: &mut Fixture, messages: u64) -> i64 {
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    fixture.publish(0, messages);
    fixture.stop();
    fixture.floor(0)
}

fn is_running(fixture: &Fixture) -> bool {
    archive(&fixture.world)
        .is_some_and(|id| fixture.world.process::<ArchiveProcess>(id).is_running())
}

fn code<T: std::fmt::Debug>(answer: Result<T, RequestError>) -> Option<ErrorCode> {
    answer.expect_err("the archive refuses").code()
}

#[test]
fn recording_on_a_failing_disk_stops_where_it_is_acknowledged_and_is_extended_later() {
    for operation in [Operation::Write, Operation::Sync] {
        let mut fixture = Fixture::new(&[]);
        fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
        fixture.record(0);
        fixture.publish(0, 50);
        fixture.disk().fail_next(operation);
        fixture.user(|user, journal| user.publish((0, Media::Ipc), (100, 1_000), journal));
        fixture.run_for(2_000);
        assert_eq!(fixture.counter(type_id::RECORDING_SESSIONS), 0);
        assert!(fixture.counter(type_id::ERRORS) > 0, "{operation:?}");
        let floor = fixture.floor(0);
        let recording = fixture.ask(|archive| archive.list_recording(0)).unwrap();
        let stop = recording.and_then(|recording| recording.stop_position);
        assert_eq!(stop, Some(floor), "{operation:?}");
        fixture.stop();
        // The disk is well again.
        assert!(fixture.user(|user, _| user.extend(1, 0)));
        fixture.run_for(500);
        fixture.publish(1, 50);
        assert!(fixture.floor(0) > floor, "{operation:?}");
        fixture.stop();
        let end = fixture.floor(0);
        assert_eq!(fixture.replay(0), Some((0, end)), "{operation:?}");
        fixture.cut_power();
        assert!(is_running(&fixture));
    }
}

#[test]
fn replay_on_a_failing_disk_ends_with_an_error_and_the_next_one_is_whole() {
    let mut fixture = Fixture::new(&[]);
    let end = stopped(&mut fixture, 300);
    fixture.disk().fail_next(Operation::Read);
    let replayed = fixture.replay(0);
    assert!(replayed.is_none_or(|(_, last)| last < end), "{replayed:?}");
    assert!(fixture.counter(type_id::ERRORS) > 0);
    assert_eq!(fixture.replay(0), Some((0, end)));
    assert!(is_running(&fixture));
}

#[test]
fn changes_of_a_recording_that_is_replayed_are_refused_with_the_official_codes() {
    let mut fixture = Fixture::new(&[]);
    let end = stopped(&mut fixture, 400);
    assert!(end > 3 * SEGMENT, "{end}");
    fixture.user(|user, _| user.hold_replays(true));
    fixture.begin_replay(0);
    fixture.run_for(1_000);
    assert_eq!(fixture.counter(type_id::REPLAY_SESSIONS), 1);
    let answer = fixture.ask(|archive| archive.purge_recording(0));
    assert_eq!(code(answer), Some(ErrorCode::ActiveRecording));
    let answer = fixture.ask(|archive| archive.truncate_recording(0, 64));
    assert_eq!(code(answer), Some(ErrorCode::ActiveRecording));
    let answer = fixture.ask(|archive| archive.purge_segments(0, 2 * SEGMENT));
    assert_eq!(code(answer), Some(ErrorCode::Generic));
    let answer = fixture.ask(|archive| archive.detach_segments(0, 2 * SEGMENT));
    assert_eq!(code(answer), Some(ErrorCode::Generic));
    // Nothing has happened to it.
    fixture.user(|user, _| user.hold_replays(false));
    await_all(
        &mut fixture.world,
        "the replay has ended",
        super::REPLAY_BOUND,
        are_idle,
    )
    .unwrap();
    let replayed = fixture.world.shared_mut::<Journal>().last_replay;
    assert_eq!(replayed, Some((0, end)));
    fixture.run_for(6_000);
    fixture.world.shared_mut::<Journal>().recording(0).start_max = 2 * SEGMENT;
    assert!(
        fixture
            .ask(|archive| archive.purge_segments(0, 2 * SEGMENT))
            .is_ok()
    );
    fixture.run_for(500);
    assert_eq!(fixture.bases(0).first(), Some(&(2 * SEGMENT)));
    fixture
        .world
        .shared_mut::<Journal>()
        .recording(0)
        .may_be_gone = true;
    assert!(fixture.ask(|archive| archive.purge_recording(0)).is_ok());
    fixture.run_for(500);
    assert_eq!(fixture.bases(0), Vec::<i64>::new());
    let answer = fixture.ask(|archive| archive.purge_recording(0));
    assert_eq!(code(answer), Some(ErrorCode::UnknownRecording));
}

#[test]
fn clock_that_is_set_forward_makes_no_recording_old() {
    let mut fixture = Fixture::new(&[
        ("taran.archive.retention", "* age=10s"),
        ("taran.archive.retention.interval", "1s"),
    ]);
    fixture.world.shared_mut::<Journal>().recording(0).start_max = i64::MAX;
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    fixture.publish(0, 400);
    fixture.run_for(2_000);
    let host = HostIndex::at(ARCHIVE_HOST);
    fixture.world.step_clock(host, 86_400_000);
    fixture.run_for(5_000);
    assert_eq!(fixture.bases(0).first(), Some(&0));
    // Old by any clock.
    fixture.run_for(10_000);
    assert!(
        fixture.bases(0).first() > Some(&0),
        "{:?}",
        fixture.bases(0)
    );
    assert!(is_running(&fixture));
}

#[test]
fn clock_that_is_set_back_leaves_nothing_out_of_a_replay_from_a_time() {
    let mut fixture = Fixture::new(&[]);
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    for _ in 0..3 {
        fixture.publish(0, 20);
        fixture.run_for(2_000);
    }
    let host = HostIndex::at(ARCHIVE_HOST);
    fixture.world.step_clock(host, -3_000);
    let (time_ms, recorded) = (fixture.now_ms() - 3_000, fixture.floor(0));
    for _ in 0..3 {
        fixture.publish(0, 20);
        fixture.run_for(2_000);
    }
    let end = fixture.floor(0);
    let (first, last) = fixture.replay_from(0, time_ms).expect("there are frames");
    assert!(first <= recorded, "{first} {recorded}");
    assert_eq!(last, end);
    assert!(is_running(&fixture));
    fixture.cut_power();
}

/// Flips a bit of a segment file.
fn rot(fixture: &Fixture, base: i64, offset: u64) {
    let path = segment_path(Path::new(DIRECTORY), 0, base);
    let file = fixture.disk().process().open(&path, OpenOptions::write());
    let file = file.unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_at(&[byte[0] ^ 0x10], offset).unwrap();
}

#[test]
fn verification_in_the_background_finds_a_damaged_byte() {
    for invalidates in [false, true] {
        let options: &[(&str, &str)] = if invalidates {
            &[
                ("taran.archive.verify.rate", "1g"),
                ("taran.archive.verify.interval", "1s"),
                ("taran.archive.verify.damage", "invalidate"),
            ]
        } else {
            &[
                ("taran.archive.verify.rate", "1g"),
                ("taran.archive.verify.interval", "1s"),
            ]
        };
        let mut fixture = Fixture::with_checksum(options, Some(Checksum::Crc32c));
        let end = stopped(&mut fixture, 300);
        fixture.run_for(4_000);
        assert!(fixture.counter(type_id::VERIFIED_BYTES) > 2 * end);
        assert_eq!(fixture.counter(type_id::DAMAGED_RECORDINGS), 0);
        rot(&fixture, SEGMENT, 5_000);
        fixture.run_for(5_000);
        assert_eq!(fixture.counter(type_id::DAMAGED_RECORDINGS), 1);
        assert!(fixture.counter(type_id::ERRORS) > 0);
        let listed = fixture.ask(|archive| archive.list_recording(0)).unwrap();
        assert_eq!(listed.is_none(), invalidates);
    }
}

#[test]
fn verification_reads_no_more_than_its_budget() {
    let mut fixture = Fixture::new(&[
        ("taran.archive.verify.rate", "64k"),
        ("taran.archive.verify.interval", "1s"),
    ]);
    stopped(&mut fixture, 300);
    let before = fixture.counter(type_id::VERIFIED_BYTES);
    fixture.run_for(20_000);
    let read = fixture.counter(type_id::VERIFIED_BYTES) - before;
    // One read may be ahead.
    assert!(read <= 20 * (64 << 10) + (256 << 10), "{read}");
    assert!(read > 0);
}
