// SPDX-License-Identifier: Apache-2.0
//! Verification in the background, one scenario each.

use super::archive::Settings;
use super::fixture::{Fixture, SEGMENT};
use super::journal::Journal;
use super::user::Media;
use crate::counters::type_id;
use crate::files::Checksum;

/// Highest number of bytes read at once.
const CHUNK: i64 = 256 << 10;

fn fixture(options: &'static [(&'static str, &'static str)]) -> Fixture {
    Fixture::with(Settings {
        checksum: Some(Checksum::Crc32c),
        ..Fixture::settings(options)
    })
}

/// Records some segments and stops; returns the end.
fn record(fixture: &mut Fixture) -> i64 {
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    fixture.publish(0, 400);
    fixture.stop();
    fixture.floor(0)
}

/// Returns the position of a message of some length in the second segment.
fn message_in_second_segment(fixture: &mut Fixture) -> i64 {
    let journal = fixture.world.shared_mut::<Journal>();
    let stream_id = journal.recording(0).stream_id;
    let starts: Vec<i64> = journal.ledger(stream_id).starts().collect();
    let found = starts
        .windows(2)
        .find(|pair| pair[0] > SEGMENT + 4_096 && pair[1] - pair[0] > 200);
    found.expect("there are long messages")[0]
}

#[test]
fn verification_finds_a_flipped_bit_and_tells_recording_position_and_reason() {
    let mut fixture = fixture(&[
        ("taran.archive.verify.rate", "1m"),
        ("taran.archive.verify.interval", "2s"),
    ]);
    let end = record(&mut fixture);
    fixture.run_for(6_000);
    assert!(fixture.counter(type_id::VERIFIED_BYTES) >= end);
    assert_eq!(fixture.counter(type_id::DAMAGED_RECORDINGS), 0);
    assert_eq!(fixture.errors(), Vec::<String>::new());

    let position = message_in_second_segment(&mut fixture);
    let offset = (position - SEGMENT + 100) as u64;
    fixture.flip(&format!("0-{SEGMENT}.rec"), offset);
    fixture.run_for(8_000);
    assert_eq!(fixture.counter(type_id::DAMAGED_RECORDINGS), 1);
    let errors = fixture.errors();
    let expected = format!("recording 0 is damaged at position {position}: ");
    assert!(
        matches!(errors.as_slice(), [error] if error.contains(&expected) && error.contains("checksum")),
        "{errors:?}"
    );
    // The default only reports: what is in good order can be replayed.
    assert_eq!(fixture.list().len(), 1);
    // Later passes find the same, which is one damaged recording.
    fixture.run_for(8_000);
    assert_eq!(fixture.counter(type_id::DAMAGED_RECORDINGS), 1);
    assert_eq!(fixture.errors().len(), 1);
}

#[test]
fn verification_that_invalidates_hides_the_damaged_recording_and_no_other() {
    let mut fixture = fixture(&[
        ("taran.archive.verify.rate", "1m"),
        ("taran.archive.verify.interval", "2s"),
        ("taran.archive.verify.damage", "invalidate"),
    ]);
    record(&mut fixture);
    fixture.user(|user, journal| user.publish((1, Media::Ipc), (1, 100), journal));
    fixture.record(1);
    fixture.publish(1, 20);
    let position = message_in_second_segment(&mut fixture);
    fixture
        .world
        .shared_mut::<Journal>()
        .recording(0)
        .may_be_gone = true;
    // The length in the header of the frame.
    fixture.flip(&format!("0-{SEGMENT}.rec"), (position - SEGMENT + 3) as u64);
    fixture.run_for(8_000);
    let errors = fixture.errors();
    assert!(
        errors
            .iter()
            .any(|error| error.contains("recording 0 is damaged")
                && error.contains("it is INVALID now (taran.archive.verify.damage=invalidate)")),
        "{errors:?}"
    );
    let listed: Vec<_> = fixture
        .list()
        .into_iter()
        .map(|it| it.recording_id)
        .collect();
    assert_eq!(listed, [1]);
    let bases = fixture.bases(0);
    assert!(bases.len() > 2, "no file is deleted: {bases:?}");
}

#[test]
fn verification_reads_no_more_than_its_rate() {
    let mut fixture = fixture(&[
        ("taran.archive.verify.rate", "64k"),
        ("taran.archive.verify.interval", "1ms"),
    ]);
    record(&mut fixture);
    let before = fixture.counter(type_id::VERIFIED_BYTES);
    for step in 1..=100 {
        fixture.run_for(200);
        let read = fixture.counter(type_id::VERIFIED_BYTES) - before;
        let budget = step * 200 * (64 << 10) / 1_000;
        assert!(
            read <= budget + CHUNK,
            "{read} bytes read, and {budget} are allowed"
        );
    }
    let read = fixture.counter(type_id::VERIFIED_BYTES) - before;
    assert!(read > 10 * (64 << 10), "it makes progress: {read}");
    assert_eq!(fixture.counter(type_id::DAMAGED_RECORDINGS), 0);
}

#[test]
fn verification_pauses_while_recordings_wait_for_space() {
    let mut fixture = fixture(&[
        ("taran.archive.verify.rate", "1m"),
        ("taran.archive.verify.interval", "1ms"),
    ]);
    let host = taran_sim::HostIndex::at(super::ARCHIVE_HOST);
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    fixture.publish(0, 50);
    fixture.world.disk(host).fill(8_192);
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (400, 1_000), journal));
    fixture.run_for(3_000);
    assert_eq!(fixture.counter(type_id::HELD_RECORDINGS), 1);
    let held = fixture.counter(type_id::VERIFIED_BYTES);
    fixture.run_for(3_000);
    assert_eq!(fixture.counter(type_id::VERIFIED_BYTES), held);
    fixture.world.disk(host).restore_capacity();
    fixture.run_for(5_000);
    assert!(fixture.counter(type_id::VERIFIED_BYTES) > held);
    assert_eq!(fixture.counter(type_id::DAMAGED_RECORDINGS), 0);
}

#[test]
fn verification_of_a_recording_that_grows_and_is_purged_finds_no_damage() {
    let mut fixture = fixture(&[
        ("taran.archive.verify.rate", "100m"),
        ("taran.archive.verify.interval", "1ms"),
        ("taran.archive.retention", "* bytes=100000"),
        ("taran.archive.retention.interval", "100ms"),
    ]);
    fixture.world.shared_mut::<Journal>().recording(0).start_max = i64::MAX;
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    for _ in 0..20 {
        fixture.publish(0, 100);
    }
    assert!(fixture.counter(type_id::PURGED_BY_RETENTION) > 3);
    assert!(fixture.counter(type_id::VERIFIED_BYTES) > SEGMENT);
    assert_eq!(fixture.counter(type_id::DAMAGED_RECORDINGS), 0);
    assert_eq!(fixture.errors(), Vec::<String>::new());
}
