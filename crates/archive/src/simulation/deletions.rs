// SPDX-License-Identifier: Apache-2.0
//! Purges and deletions of recordings that are being replayed.

use taran_archive_client::protocol::ErrorCode;

use super::fixture::{Fixture, SEGMENT};
use super::journal::Journal;
use super::user::Media;

/// Records some segments, stops, and begins a replay that stands at its start, because nothing reads it.
fn held_replay(options: &'static [(&'static str, &'static str)], is_ipc: bool) -> Fixture {
    let mut fixture = Fixture::new(options);
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    // More than the windows of a replay hold.
    fixture.publish(0, 1_000);
    assert!(fixture.floor(0) > 6 * SEGMENT);
    fixture.user(|user, _| user.close_all_tracks());
    assert!(fixture.user(|user, _| user.stop_recording(0)));
    fixture.settle();
    fixture.user(|user, _| user.hold_replays(true));
    fixture.begin_replay(0, 0, is_ipc);
    fixture.run_for(2_000);
    fixture
}

fn refused(fixture: &mut Fixture) -> (ErrorCode, String) {
    let refusal = fixture.world.shared_mut::<Journal>().last_refusal.take();
    refusal.expect("the archive refuses")
}

#[test]
fn purge_of_a_recording_that_is_replayed_is_refused_and_the_replay_is_whole() {
    let mut fixture = held_replay(&[], true);
    assert!(fixture.user(|user, journal| user.purge(0, journal)));
    fixture.run_for(1_000);
    let (code, text) = refused(&mut fixture);
    assert_eq!(code, ErrorCode::ActiveRecording, "{text}");
    assert!(
        text.contains("the recording 0 is being replayed: stop its replays first"),
        "{text}"
    );
    assert_eq!(fixture.bases(0).first(), Some(&0));
    fixture
        .world
        .shared_mut::<Journal>()
        .recording(0)
        .may_be_gone = false;
    // A replay that ends before the floor is a violation.
    fixture.user(|user, _| user.hold_replays(false));
    fixture.settle();
    fixture.run_for(10_000);
    assert!(fixture.user(|user, journal| user.purge(0, journal)));
    fixture.settle();
    fixture.run_for(1_000);
    assert_eq!(fixture.bases(0), Vec::<i64>::new());
    assert!(fixture.list().is_empty());
}

#[test]
fn purge_of_segments_before_a_replay_follows_it() {
    for is_ipc in [true, false] {
        let mut fixture = held_replay(&[], is_ipc);
        assert!(fixture.user(|user, _| user.purge_segments(0, 5)));
        fixture.run_for(1_000);
        let (code, text) = refused(&mut fixture);
        assert_eq!(code, ErrorCode::Generic, "{text}");
        assert!(
            text.contains("a replay of the recording 0 is at position")
                && text.contains(&format!("before the new start {}", 5 * SEGMENT)),
            "{text}"
        );
        assert_eq!(fixture.bases(0).first(), Some(&0));
        // The archive deletes what the replay has left behind, while it goes on.
        fixture.user(|user, _| user.hold_replays(false));
        let mut purged_while_replayed = 0;
        for _ in 0..2_000 {
            fixture.run_for(5);
            if fixture.user(|user, _| user.is_idle()) {
                break;
            }
            fixture.user(|user, _| user.purge_segments(0, 1));
            fixture.run_for(20);
            if !fixture.user(|user, _| user.is_idle()) {
                purged_while_replayed = *fixture.bases(0).first().expect("the last one stays");
            }
        }
        assert!(purged_while_replayed > 0);
        // A replay that misses a frame is a violation.
        fixture.settle();
    }
}

#[test]
fn retention_during_a_replay_keeps_what_it_has_to_read() {
    let mut fixture = held_replay(
        &[
            ("taran.archive.retention", "* bytes=1"),
            ("taran.archive.retention.interval", "10s"),
        ],
        true,
    );
    fixture.world.shared_mut::<Journal>().recording(0).start_max = i64::MAX;
    fixture.run_for(15_000);
    let held = fixture.bases(0);
    assert!(held.len() > 4, "{held:?}");
    fixture.user(|user, _| user.hold_replays(false));
    fixture.settle();
    fixture.run_for(25_000);
    let last = fixture.floor(0) / SEGMENT * SEGMENT;
    assert_eq!(fixture.bases(0), [last]);
}
