// SPDX-License-Identifier: Apache-2.0
//! An archive whose disk queues execute nothing any more.

use std::sync::atomic::Ordering;

use super::fixture::Fixture;
use super::journal::Journal;
use super::user::Media;
use crate::counters::type_id;

#[test]
fn recordings_and_replays_end_with_an_error_after_the_threads_of_the_disk_queues_have_ended() {
    let mut fixture = Fixture::new(&[]);
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    fixture.publish(0, 20);
    let start_ms = fixture.now_ms() - 100_000;
    let end = fixture.floor(0);
    assert_eq!(Some((0, end)), fixture.replay_from(0, start_ms));
    assert_eq!(1, fixture.counter(type_id::RECORDING_SESSIONS));

    let journal = fixture.world.shared_mut::<Journal>();
    let has_ended = journal.hooks().threads_have_ended();
    has_ended.store(true, Ordering::Relaxed);
    // Each call waits for its end.
    let errors = fixture.counter(type_id::ERRORS);
    assert_eq!(None, fixture.replay_from(0, start_ms));
    assert_eq!(0, fixture.counter(type_id::REPLAY_SESSIONS));
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (20, 1_000), journal));
    fixture.run_for(5_000);
    assert_eq!(0, fixture.counter(type_id::RECORDING_SESSIONS));
    assert!(fixture.counter(type_id::ERRORS) > errors);
    assert_eq!(end, fixture.floor(0), "nothing more is acknowledged");
}
