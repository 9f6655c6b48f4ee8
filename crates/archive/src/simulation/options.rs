// SPDX-License-Identifier: Apache-2.0
//! Options of an archive whose agents its caller runs.

use taran_archive_client::RecordingEvents;
use taran_archive_client::protocol::RecordingEvent;

use super::archive::ArchiveProcess;
use super::fixture::Fixture;
use super::operations::archive;
use super::user::Media;
use crate::counters::type_id;

/// Id of the archive.
const ID: i64 = 4_711;

/// Returns the id with which the archive has added its counter of errors.
fn id_in_counter(fixture: &Fixture) -> Option<i64> {
    let mut id = None;
    let host = taran_sim::HostIndex::at(super::ARCHIVE_HOST);
    fixture.world.counters(host).for_each(|meta| {
        if meta.type_id == type_id::ERRORS {
            id = meta.key[..8].try_into().ok().map(i64::from_le_bytes);
        }
    });
    id
}

#[test]
fn archive_has_the_configured_id_and_publishes_recording_events() {
    let mut fixture = Fixture::new(&[
        ("aeron.archive.id", "4711"),
        ("aeron.archive.recording.events.enabled", "true"),
        (
            "aeron.archive.recording.events.channel",
            "aeron:udp?control=10.0.0.1:8030|control-mode=dynamic",
        ),
        ("aeron.archive.recording.events.stream.id", "31"),
    ]);
    assert_eq!(id_in_counter(&fixture), Some(ID));
    let mark = fixture.mark();
    assert_eq!(mark.archive_id, Some(ID));
    assert_eq!(mark.events_stream_id, 31);
    assert!(mark.events_channel.contains("8030"), "{mark:?}");

    let mut pending = fixture.user(|user, _| {
        let client = user.connected_client().expect("it is connected");
        let channel = "aeron:udp?control=10.0.0.1:8030|control-mode=dynamic|endpoint=10.0.0.1:8031";
        client.async_add_subscription(channel, 31).unwrap()
    });
    fixture.run_for(1_000);
    let subscription = pending.poll().expect("the driver has answered").unwrap();
    let mut events = RecordingEvents::of_subscription(subscription);
    fixture.user(|user, journal| user.publish((0, Media::Ipc), (1, 100), journal));
    fixture.record(0);
    fixture.publish(0, 20);
    fixture.stop();
    let end = fixture.floor(0);
    let (mut started, mut progress, mut stopped) = (0, 0, None);
    events
        .poll(
            |event| match event {
                RecordingEvent::RecordingStarted(_) => started += 1,
                RecordingEvent::RecordingProgress(_) => progress += 1,
                RecordingEvent::RecordingStopped(event) => stopped = Some(event.stop_position),
                _ => {}
            },
            1_000,
        )
        .unwrap();
    assert_eq!((started, stopped), (1, Some(end)));
    assert!(progress > 0);
    drop(events);

    // After a kill, the driver has the counters of the archive before for some seconds.
    fixture.kill_and_change(|_| ());
    assert_eq!(id_in_counter(&fixture), Some(ID));
}

#[test]
fn archive_with_the_id_of_another_one_at_its_driver_is_refused() {
    let mut fixture = Fixture::new(&[("aeron.archive.id", "4711")]);
    let id = archive(&fixture.world).expect("it is alive");
    fixture.world.kill(id);
    super::restart_archive(&mut fixture.world, id);
    fixture.run_for(500);
    let process = fixture.world.process::<ArchiveProcess>(id);
    let text = process.ended().expect("it does not start").to_owned();
    assert!(text.contains("found an archive with id 4711"), "{text}");
}

#[test]
fn archive_that_is_to_delete_its_directory_is_refused() {
    let settings = Fixture::settings(&[("aeron.archive.dir.delete.on.start", "true")]);
    let mut fixture = Fixture::starting(settings, false);
    fixture.run_for(1_000);
    let id = archive(&fixture.world).expect("it is alive");
    let process = fixture.world.process::<ArchiveProcess>(id);
    let text = process.ended().expect("it does not start").to_owned();
    assert!(
        text.contains("does not delete its directory /archive: unset the option"),
        "{text}"
    );
}
