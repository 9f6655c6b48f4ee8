// SPDX-License-Identifier: Apache-2.0
//! Purges and deletions of recordings that are being replayed, and power cuts that take recordings back.

use std::path::Path;

use taran_archive_client::protocol::ErrorCode;

use taran_sim::HostIndex;
use taran_storage::Disk;

use super::archive::{DIRECTORY, Settings};
use super::fixture::{BOUND, Fixture, SEGMENT};
use super::journal::Journal;
use super::user::{Media, WantedReplay};
use super::{ARCHIVE_HOST, RECOVERY_BOUND, are_idle, await_all, is_ready, users, with_journal};
use crate::files::SyncLevel;

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

#[test]
fn replay_is_read_after_a_power_cut_has_given_its_recording_id_to_another_stream() {
    let mut fixture = Fixture::with(Settings {
        sync: SyncLevel::None,
        ..Fixture::settings(&[])
    });
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    fixture.publish(0, 50);
    // The frames of a replay wait in the image at the other host.
    let remote = users(&fixture.world)[1];
    let wanted = WantedReplay {
        recording_id: 0,
        position: Some(0),
        time_ms: None,
        length: None,
        until_now: true,
        must_reach: None,
    };
    with_journal(&mut fixture.world, remote, |user, journal| {
        user.hold_replays(true);
        assert!(user.replay(wanted, false, journal));
    });
    fixture.run_for(1_000);
    let host = HostIndex::at(ARCHIVE_HOST);
    fixture.world.power_cut(host);
    let disk = fixture.world.disk(host).process();
    // Without syncs, it may take all names.
    for entry in disk.list(Path::new(DIRECTORY)).unwrap() {
        disk.remove_file(&Path::new(DIRECTORY).join(entry.name))
            .unwrap();
    }
    fixture.world.boot(host);
    let recordings = |fixture: &mut Fixture| {
        let journal = fixture.world.shared_mut::<Journal>();
        let ids = journal
            .recordings()
            .map(|(id, known)| (id, known.stream_id));
        ids.collect::<Vec<_>>()
    };
    let before = recordings(&mut fixture);
    await_all(
        &mut fixture.world,
        "the archive is back",
        RECOVERY_BOUND,
        |world| {
            let local = users(world)[0];
            world
                .process::<super::user::UserProcess>(local)
                .is_connected()
        },
    )
    .unwrap();
    fixture.user(|user, journal| user.publish((1, Media::Ipc), (1, 100), journal));
    fixture.record(1);
    fixture.publish(1, 5);
    let after = recordings(&mut fixture);
    assert!(
        before[0].0 == after[0].0 && before[0].1 != after[0].1,
        "{before:?} {after:?}"
    );
    let frames = fixture.world.shared_mut::<Journal>().counts.replayed_frames;
    with_journal(&mut fixture.world, remote, |user, _| {
        user.hold_replays(false);
    });
    await_all(&mut fixture.world, "the replay is read", BOUND, are_idle).unwrap();
    let now = fixture.world.shared_mut::<Journal>().counts.replayed_frames;
    assert!(now - frames >= 51, "{frames} {now}");
    await_all(&mut fixture.world, "ready", RECOVERY_BOUND, is_ready).unwrap();
}
