// SPDX-License-Identifier: Apache-2.0
//! Steps of the wall clock, back and forth.

use taran_sim::HostIndex;

use super::fixture::{Fixture, SEGMENT};
use super::journal::Journal;
use super::operations::cut_power;
use super::user::Media;
use super::{ARCHIVE_HOST, RECOVERY_BOUND, await_all, is_ready};
use crate::counters::type_id;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

fn step(fixture: &mut Fixture, by_ms: i64) {
    let host = HostIndex::at(ARCHIVE_HOST);
    fixture.world.step_clock(host, by_ms);
}

/// Begins to record, with some segments.
fn record(fixture: &mut Fixture) {
    fixture.world.shared_mut::<Journal>().recording(0).start_max = i64::MAX;
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    fixture.publish(0, 500);
    assert!(fixture.floor(0) > 3 * SEGMENT);
}

#[test]
fn recording_over_a_clock_that_is_set_back_keeps_all_and_has_the_times_of_the_clock() {
    let mut fixture = Fixture::new(&[("taran.archive.time.index.interval", "1s")]);
    let started_ms = fixture.now_ms();
    record(&mut fixture);
    fixture.run_for(2_000);
    let middle_ms = fixture.now_ms();
    step(&mut fixture, -HOUR_MS);
    fixture.run_for(1_500);
    let recorded = fixture.floor(0);
    fixture.publish(0, 100);
    fixture.run_for(2_000);
    fixture.stop();
    let stopped_ms = fixture.now_ms() - HOUR_MS;
    let found = fixture.list().remove(0);
    assert!(
        (found.start_timestamp - started_ms).abs() < 5_000,
        "{found:?}"
    );
    let stop = found.stop_timestamp.expect("it is stopped");
    assert!((stop - stopped_ms).abs() < 5_000, "{found:?}");
    assert!(stop < found.start_timestamp, "the clock was set back");
    // A replay from a time leaves out nothing that was recorded later, by whichever clock.
    let (first, last) = fixture.replay_from(0, middle_ms).expect("there are frames");
    assert!(first <= recorded, "{first} {recorded}");
    assert_eq!(last, fixture.floor(0));
    // The entry in the catalog is as good as any other.
    cut_power(&mut fixture.world);
    await_all(&mut fixture.world, "ready", RECOVERY_BOUND, is_ready).unwrap();
    fixture.replay_all(0, 0);
    assert_eq!(fixture.errors(), Vec::<String>::new());
}

#[test]
fn retention_by_age_waits_when_the_clock_is_set_forward() {
    let mut fixture = Fixture::new(&[
        ("taran.archive.retention", "* age=20s"),
        ("taran.archive.retention.interval", "1s"),
    ]);
    record(&mut fixture);
    fixture.run_for(3_000);
    step(&mut fixture, DAY_MS);
    fixture.run_for(15_000);
    assert_eq!(fixture.bases(0).first(), Some(&0));
    assert_eq!(fixture.counter(type_id::PURGED_BY_RETENTION), 0);
    let errors = fixture.errors();
    assert!(
        matches!(errors.as_slice(), [error] if error.contains("the wall clock was set forward by 86")),
        "{errors:?}"
    );
    // Then all is old enough by the monotonic clock, too.
    fixture.run_for(10_000);
    let bases = fixture.bases(0);
    assert_eq!(bases.first(), Some(&(fixture.floor(0) / SEGMENT * SEGMENT)));
    assert!(fixture.counter(type_id::PURGED_BY_RETENTION) > 0);
}

#[test]
fn retention_by_age_purges_nothing_early_when_the_clock_is_set_forward_and_back() {
    let mut fixture = Fixture::new(&[
        ("taran.archive.retention", "* age=20s"),
        ("taran.archive.retention.interval", "1s"),
    ]);
    record(&mut fixture);
    fixture.run_for(2_500);
    for _ in 0..4 {
        step(&mut fixture, DAY_MS);
        fixture.run_for(2_000);
        step(&mut fixture, -DAY_MS);
        fixture.run_for(1_000);
        fixture.publish(0, 20);
    }
    assert_eq!(fixture.bases(0).first(), Some(&0));
    assert_eq!(fixture.counter(type_id::PURGED_BY_RETENTION), 0);
    // What was recorded before the clock was first set has its age.
    fixture.run_for(25_000);
    let first = *fixture.bases(0).first().expect("the last one stays");
    assert!(first > 0, "{:?}", fixture.bases(0));
    assert!(first <= fixture.floor(0));
}

#[test]
fn retention_of_a_stopped_recording_waits_when_the_clock_is_set_forward() {
    let mut fixture = Fixture::new(&[
        ("taran.archive.retention", "* age=20s"),
        ("taran.archive.retention.interval", "1s"),
    ]);
    record(&mut fixture);
    fixture.stop();
    fixture
        .world
        .shared_mut::<Journal>()
        .recording(0)
        .may_be_gone = true;
    let before = fixture.bases(0);
    step(&mut fixture, DAY_MS);
    fixture.run_for(15_000);
    assert_eq!(fixture.bases(0), before);
    fixture.run_for(10_000);
    assert_eq!(fixture.bases(0), Vec::<i64>::new());
}
