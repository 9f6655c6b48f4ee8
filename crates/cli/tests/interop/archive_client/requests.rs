// SPDX-License-Identifier: Apache-2.0
//! Every request, with good and with bad parameters.

use taran::{Client, Subscription};
use taran_archive_client::protocol::{ErrorCode, RecordingEvent, RecordingSignal, SourceLocation};
use taran_archive_client::{
    ArchiveClient, RecordingEvents, ReplayParams, ReplicationParams, RequestError,
};

use super::fixture::{TestArchive, await_recorded, message, publish};
use crate::exchange::{await_true, port};
use crate::require_java;

const CHANNEL: &str = "aeron:ipc";
const STREAM: i32 = 1_001;
const REPLAYS: i32 = 1_002;
/// A message of this length fills a frame of 1 KiB: 64 of them a term, which is a segment.
const LENGTH: usize = 1_024 - 32;
const SEGMENT: i64 = 64 * 1024;

/// Receives messages and compares them with those that were published.
fn expect_messages(
    archive: &mut ArchiveClient,
    subscription: &mut Subscription,
    indices: std::ops::Range<u64>,
) {
    let mut next = indices.start;
    await_true("the replayed messages", || {
        archive.poll();
        subscription
            .poll(
                |payload, _| {
                    assert_eq!(payload, message(next, LENGTH), "message {next}");
                    next += 1;
                },
                20,
            )
            .unwrap();
        next == indices.end
    });
}

/// Records messages; returns the id of the stopped recording.
fn record(
    client: &Client,
    archive: &mut ArchiveClient,
    stream_id: i32,
    messages: u64,
) -> (i64, i32) {
    let mut publication = client
        .add_exclusive_publication(CHANNEL, stream_id)
        .unwrap();
    let channel = format!("{CHANNEL}?session-id={}", publication.session_id());
    let subscription_id = archive
        .start_recording(&channel, stream_id, SourceLocation::LOCAL, false)
        .unwrap();
    publish(archive, &mut publication, 0..messages, LENGTH);
    let started = archive
        .wait_for_signal(|signal| signal.signal == RecordingSignal::START)
        .unwrap();
    assert_eq!(started.subscription_id, subscription_id);
    let recording_id = started.recording_id;
    await_recorded(archive, recording_id, publication.position());
    archive
        .stop_recording_subscription(subscription_id)
        .unwrap();
    archive
        .wait_for_signal_of(recording_id, RecordingSignal::STOP)
        .unwrap();
    (recording_id, publication.session_id())
}

#[test]
fn each_request_works_on_the_official_archive() {
    require_java!();
    request_everything(&TestArchive::with_driver("archive-requests"));
}

#[test]
fn each_request_works_on_taran() {
    request_everything(&TestArchive::taran("taran-requests"));
}

fn request_everything(tested: &TestArchive) {
    let client = tested.client();
    let mut events = RecordingEvents::subscribe(&client, &tested.events_context()).unwrap();
    await_true("the recording events channel", || {
        events.subscription().is_connected()
    });
    let archive = &mut tested.udp().connect(&client).unwrap();

    // Recording by a recorded publication.
    let mut publication = archive
        .add_recorded_exclusive_publication(CHANNEL, STREAM)
        .unwrap();
    publish(archive, &mut publication, 0..200, LENGTH);
    let id = archive
        .wait_for_signal(|signal| signal.signal == RecordingSignal::START)
        .unwrap()
        .recording_id;
    await_recorded(archive, id, publication.position());
    assert_eq!(
        archive.recording_position(id).unwrap(),
        Some(publication.position())
    );
    assert_eq!(archive.stop_position(id).unwrap(), None);
    assert_eq!(archive.start_position(id).unwrap(), 0);
    let session_id = publication.session_id();
    let subscriptions = archive
        .list_recording_subscriptions(0, 10, "ipc", Some(STREAM))
        .unwrap();
    assert_eq!(subscriptions.len(), 1, "{subscriptions:?}");
    assert_eq!(subscriptions[0].stream_id, STREAM);
    let none = archive.list_recording_subscriptions(0, 10, "ipc", Some(STREAM + 1));
    assert_eq!(none.unwrap(), []);

    // Replay of a part, then live-following, from another client's view.
    let params = ReplayParams::new().position(1024 * 10).length(1024 * 20);
    let (replay, mut replayed) = archive.replay(id, CHANNEL, REPLAYS, &params).unwrap();
    expect_messages(archive, &mut replayed, 10..30);
    archive.stop_replay(replay).unwrap();
    let udp = format!("aeron:udp?endpoint=127.0.0.1:{}", port());
    let follow = ReplayParams::new();
    let (_, mut replayed) = archive.replay(id, &udp, REPLAYS, &follow).unwrap();
    expect_messages(archive, &mut replayed, 0..200);
    publish(archive, &mut publication, 200..210, LENGTH);
    expect_messages(archive, &mut replayed, 200..210);
    archive.stop_all_replays(Some(id)).unwrap();
    let any_port = "aeron:udp?endpoint=127.0.0.1:0";
    let (_, mut replayed) = archive
        .replay(id, any_port, REPLAYS, &ReplayParams::new().until_now())
        .unwrap();
    expect_messages(archive, &mut replayed, 0..210);
    // A bounded replay waits for its counter.
    let counter = client.add_counter(1_001, &[], "bound").unwrap();
    counter.set(1024 * 5);
    let bounded = ReplayParams::new().bounded_by(counter.id());
    let (_, mut replayed) = archive.replay(id, CHANNEL, REPLAYS, &bounded).unwrap();
    expect_messages(archive, &mut replayed, 0..5);
    assert_eq!(replayed.poll(|_, _| panic!("beyond the bound"), 1), Ok(0));
    counter.set(1024 * 8);
    expect_messages(archive, &mut replayed, 5..8);
    archive.stop_all_replays(None).unwrap();

    // Listings.
    archive
        .stop_recording_of(CHANNEL, STREAM, session_id)
        .unwrap();
    archive
        .wait_for_signal_of(id, RecordingSignal::STOP)
        .unwrap();
    let end = publication.position();
    assert_eq!(archive.stop_position(id).unwrap(), Some(end));
    assert_eq!(archive.recording_position(id).unwrap(), None);
    assert_eq!(archive.max_recorded_position(id).unwrap(), end);
    let (second, _) = record(&client, archive, STREAM + 1, 10);
    let ids: Vec<_> = archive
        .recordings(0)
        .map(|recording| recording.unwrap().recording_id)
        .collect();
    assert_eq!(ids, [id, second]);
    assert_eq!(archive.list_recordings(0, 1).unwrap().len(), 1);
    assert_eq!(archive.list_recordings(0, 0).unwrap(), []);
    assert_eq!(archive.list_recordings(0, -1).unwrap(), []);
    let of_uri: Vec<_> = archive.recordings_for_uri(0, "ipc", STREAM + 1).collect();
    assert_eq!(of_uri.len(), 1);
    let recording = archive.list_recording(id).unwrap().unwrap();
    assert_eq!(
        (recording.session_id, recording.stop_position),
        (session_id, Some(end))
    );
    assert_eq!(archive.list_recording(99).unwrap(), None);
    let found = archive.find_last_matching_recording(0, "ipc", STREAM, session_id);
    assert_eq!(found.unwrap(), Some(id));
    let found = archive.find_last_matching_recording(0, "udp", STREAM, session_id);
    assert_eq!(found.unwrap(), None);
    archive
        .update_channel(id, "aeron:ipc?alias=renamed")
        .unwrap();
    let recording = archive.list_recording(id).unwrap().unwrap();
    assert_eq!(recording.original_channel, "aeron:ipc?alias=renamed");

    // Extension by a stream that continues the recording.
    drop(publication);
    let continued = taran::ChannelUriBuilder::ipc()
        .initial_position(end, recording.initial_term_id, 64 * 1024)
        .build()
        .unwrap();
    let mut publication = client
        .add_exclusive_publication(continued.as_str(), STREAM)
        .unwrap();
    archive
        .extend_recording(id, CHANNEL, STREAM, SourceLocation::LOCAL, true)
        .unwrap();
    publish(archive, &mut publication, 210..300, LENGTH);
    archive
        .wait_for_signal_of(id, RecordingSignal::EXTEND)
        .unwrap();
    await_recorded(archive, id, publication.position());
    assert!(archive.stop_recording_by_identity(id).unwrap());
    archive
        .wait_for_signal_of(id, RecordingSignal::STOP)
        .unwrap();
    assert!(!archive.stop_recording_by_identity(id).unwrap());
    let (_, mut replayed) = archive
        .replay(id, CHANNEL, REPLAYS, &ReplayParams::new())
        .unwrap();
    expect_messages(archive, &mut replayed, 0..300);
    drop(replayed);
    archive.stop_all_replays(None).unwrap();

    // Segments.
    await_true("the end of the replays", || {
        archive.detach_segments(id, SEGMENT).is_ok()
    });
    assert_eq!(archive.start_position(id).unwrap(), SEGMENT);
    assert_eq!(archive.attach_segments(id).unwrap(), 1);
    assert_eq!(archive.start_position(id).unwrap(), 0);
    archive.detach_segments(id, SEGMENT).unwrap();
    assert_eq!(archive.delete_detached_segments(id).unwrap(), 1);
    archive
        .wait_for_signal_of(id, RecordingSignal::DELETE)
        .unwrap();
    assert_eq!(archive.purge_segments(id, 2 * SEGMENT).unwrap(), 1);
    archive
        .wait_for_signal_of(id, RecordingSignal::DELETE)
        .unwrap();
    archive.truncate_recording(id, 3 * SEGMENT + 1024).unwrap();
    archive
        .wait_for_signal_of(id, RecordingSignal::DELETE)
        .unwrap();
    assert_eq!(archive.stop_position(id).unwrap(), Some(3 * SEGMENT + 1024));

    // Replication from the archive itself.
    let replication = archive
        .replicate(
            second,
            &tested.control_channel(),
            10,
            &ReplicationParams::new(),
        )
        .unwrap();
    let copied = archive
        .wait_for_signal(|signal| {
            signal.correlation_id == replication && signal.signal == RecordingSignal::SYNC
        })
        .unwrap();
    archive
        .wait_for_signal(|signal| {
            signal.correlation_id == replication && signal.signal == RecordingSignal::STOP
        })
        .unwrap();
    let copy = copied.recording_id;
    assert_eq!(archive.stop_position(copy).unwrap(), Some(10 * 1024));
    assert!(!archive.try_stop_replication(replication).unwrap());

    // Purge.
    archive.purge_recording(copy).unwrap();
    archive
        .wait_for_signal_of(copy, RecordingSignal::DELETE)
        .unwrap();
    assert_eq!(archive.list_recording(copy).unwrap(), None);
    assert!(!archive.try_stop_recording(CHANNEL, STREAM).unwrap());
    assert!(!archive.try_stop_recording_subscription(77).unwrap());

    // The events channel reports all of it.
    let (mut started, mut stopped, mut progressed) = (0, 0, false);
    await_true("the recording events", || {
        events
            .poll(
                |event| match event {
                    RecordingEvent::RecordingStarted(event) => {
                        assert!(event.channel.starts_with("aeron:"), "{event:?}");
                        started += 1;
                    }
                    RecordingEvent::RecordingProgress(_) => progressed = true,
                    RecordingEvent::RecordingStopped(_) => stopped += 1,
                    _ => {}
                },
                10,
            )
            .unwrap();
        started >= 4 && stopped >= 4 && progressed
    });
    assert_eq!(events.malformed(), 0);
}

#[test]
fn replay_to_response_channels_of_the_official_archive() {
    require_java!();
    replay_to_response_channels(&TestArchive::beside_taran("archive-response-replay", &[]));
}

#[test]
fn replay_to_response_channels_of_taran() {
    replay_to_response_channels(&TestArchive::taran("taran-response-replay"));
}

fn replay_to_response_channels(tested: &TestArchive) {
    let client = tested.client();
    let archive = &mut tested.responses().connect(&client).unwrap();
    let (id, _) = record(&client, archive, STREAM, 100);
    let channel = tested.responses().response_channel_in_force().to_owned();
    let (_, mut replayed) = archive
        .replay(id, &channel, REPLAYS, &ReplayParams::new())
        .unwrap();
    expect_messages(archive, &mut replayed, 0..100);
    let ipc = &mut TestArchive::ipc().connect(&client).unwrap();
    let (_, mut replayed) = ipc
        .replay(
            id,
            "aeron:ipc?control-mode=response",
            REPLAYS,
            &ReplayParams::new().position(1024),
        )
        .unwrap();
    expect_messages(ipc, &mut replayed, 1..100);
}

/// A request that the archive refuses, and the code that it must have.
type Refused = (&'static str, Result<(), RequestError>, ErrorCode);

#[test]
fn bad_requests_have_the_codes_of_the_specification() {
    require_java!();
    request_badly(&TestArchive::beside_taran("archive-bad-requests", &[]));
}

#[test]
fn bad_requests_have_the_same_codes_on_taran() {
    request_badly(&TestArchive::taran("taran-bad-requests"));
}

fn request_badly(tested: &TestArchive) {
    let client = tested.client();
    let archive = &mut tested.udp().connect(&client).unwrap();
    let (stopped, _) = record(&client, archive, STREAM, 200);
    let stop = 200 * 1024;
    let mut publication = archive
        .add_recorded_exclusive_publication(CHANNEL, STREAM + 1)
        .unwrap();
    publish(archive, &mut publication, 0..10, LENGTH);
    let active = archive
        .wait_for_signal(|signal| signal.signal == RecordingSignal::START)
        .unwrap()
        .recording_id;
    let recorded = format!("{CHANNEL}?session-id={}", publication.session_id());
    let local = SourceLocation::LOCAL;
    let params = ReplayParams::new;
    let unit = |outcome: Result<i64, RequestError>| outcome.map(drop);
    let none: i64 = 99;

    use ErrorCode::*;
    let mut refused: Vec<Refused> = Vec::new();
    let mut check = |name, outcome, code| refused.push((name, outcome, code));
    check(
        "start twice",
        unit(archive.start_recording(&recorded, STREAM + 1, local, false)),
        ActiveSubscription,
    );
    check(
        "start on a bad channel",
        unit(archive.start_recording("aeron:tcp", STREAM, local, false)),
        Generic,
    );
    check(
        "extend unknown",
        unit(archive.extend_recording(none, CHANNEL, STREAM, local, false)),
        UnknownRecording,
    );
    check(
        "extend other stream",
        unit(archive.extend_recording(stopped, CHANNEL, STREAM + 9, local, false)),
        UnknownRecording,
    );
    check(
        "extend active",
        unit(archive.extend_recording(active, CHANNEL, STREAM + 1, local, false)),
        ActiveRecording,
    );
    check(
        "stop unknown channel",
        archive.stop_recording(CHANNEL, 5),
        UnknownSubscription,
    );
    check(
        "stop bad channel",
        archive.stop_recording("ipc", 5),
        Generic,
    );
    check(
        "stop unknown subscription",
        archive.stop_recording_subscription(none),
        UnknownSubscription,
    );
    check(
        "stop unknown identity",
        archive.stop_recording_by_identity(none).map(drop),
        UnknownRecording,
    );
    check(
        "start position",
        unit(archive.start_position(none)),
        UnknownRecording,
    );
    check(
        "recording position",
        archive.recording_position(none).map(drop),
        UnknownRecording,
    );
    check(
        "stop position",
        archive.stop_position(none).map(drop),
        UnknownRecording,
    );
    check(
        "max recorded position",
        unit(archive.max_recorded_position(none)),
        UnknownRecording,
    );
    check(
        "find below 0",
        archive
            .find_last_matching_recording(-1, "", STREAM, 0)
            .map(drop),
        UnknownRecording,
    );
    for (name, recording, params, code) in [
        ("replay unknown", none, params(), UnknownRecording),
        ("replay unaligned", stopped, params().position(33), Generic),
        (
            "replay at the end",
            stopped,
            params().position(stop),
            InvalidPosition,
        ),
        (
            "replay inside a frame",
            stopped,
            params().position(64),
            InvalidPosition,
        ),
        (
            "replay of negative length",
            stopped,
            params().length(-7),
            Generic,
        ),
        (
            "replay beyond active",
            active,
            params().position(1 << 20),
            InvalidPosition,
        ),
        (
            "replay with short I/O",
            stopped,
            params().file_io_max_length(64),
            Generic,
        ),
        (
            "replay bounded by nothing",
            stopped,
            params().bounded_by(20_000),
            Generic,
        ),
        (
            "replay beyond the bound",
            stopped,
            params().position(1024).bounded_by(-1),
            Generic,
        ),
    ] {
        let outcome = archive.start_replay(recording, CHANNEL, REPLAYS, &params);
        check(name, outcome.map(drop), code);
    }
    check(
        "truncate unknown",
        unit(archive.truncate_recording(none, 0)),
        UnknownRecording,
    );
    check(
        "truncate active",
        unit(archive.truncate_recording(active, 0)),
        ActiveRecording,
    );
    check(
        "truncate beyond",
        unit(archive.truncate_recording(stopped, stop + 32)),
        InvalidPosition,
    );
    check(
        "truncate unaligned",
        unit(archive.truncate_recording(stopped, 33)),
        InvalidPosition,
    );
    check(
        "purge unknown",
        unit(archive.purge_recording(none)),
        UnknownRecording,
    );
    check(
        "purge active",
        unit(archive.purge_recording(active)),
        ActiveRecording,
    );
    check(
        "detach unknown",
        archive.detach_segments(none, SEGMENT),
        UnknownRecording,
    );
    check(
        "detach inside a segment",
        archive.detach_segments(stopped, 1024),
        Generic,
    );
    check(
        "detach nothing",
        archive.detach_segments(stopped, 0),
        Generic,
    );
    check(
        "detach all",
        archive.detach_segments(stopped, 4 * SEGMENT),
        Generic,
    );
    check(
        "purge segments unknown",
        unit(archive.purge_segments(none, SEGMENT)),
        UnknownRecording,
    );
    check(
        "delete detached unknown",
        unit(archive.delete_detached_segments(none)),
        UnknownRecording,
    );
    check(
        "attach unknown",
        unit(archive.attach_segments(none)),
        UnknownRecording,
    );
    check(
        "migrate from unknown",
        unit(archive.migrate_segments(none, stopped)),
        UnknownRecording,
    );
    check(
        "migrate to unknown",
        unit(archive.migrate_segments(stopped, none)),
        UnknownRecording,
    );
    check(
        "migrate active",
        unit(archive.migrate_segments(active, stopped)),
        Generic,
    );
    check(
        "update channel of unknown",
        archive.update_channel(none, CHANNEL),
        UnknownRecording,
    );
    check(
        "stop unknown replication",
        archive.stop_replication(none),
        UnknownReplication,
    );
    let control = tested.control_channel();
    for (name, params, code) in [
        (
            "replicate to unknown",
            ReplicationParams::new().destination(none),
            UnknownRecording,
        ),
        (
            "replicate to active",
            ReplicationParams::new().destination(active),
            ActiveRecording,
        ),
        (
            "replicate live over a response channel",
            ReplicationParams::new()
                .replication_channel("aeron:udp?control-mode=response|control=127.0.0.1:9")
                .live_destination("aeron:udp?endpoint=127.0.0.1:9"),
            Generic,
        ),
        (
            "replicate with tags over a response channel",
            ReplicationParams::new()
                .replication_channel("aeron:udp?control-mode=response|control=127.0.0.1:9")
                .tags(7, 8),
            Generic,
        ),
    ] {
        check(
            name,
            unit(archive.replicate(stopped, &control, 10, &params)),
            code,
        );
    }
    let wrong: Vec<_> = refused
        .iter()
        .filter(|(_, outcome, code)| {
            outcome.as_ref().err().and_then(RequestError::code) != Some(*code)
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    // What was refused has changed nothing.
    assert_eq!(archive.stop_position(stopped).unwrap(), Some(stop));
    assert_eq!(
        archive.recording_position(active).unwrap(),
        Some(publication.position())
    );

    // A failure after the answer comes as an event, with the replication id.
    let replication = archive
        .replicate(none, &control, 10, &ReplicationParams::new())
        .unwrap();
    let failure = archive
        .wait_for_signal(|signal| signal.signal == RecordingSignal::ReplicateEnd)
        .unwrap_err();
    match failure {
        RequestError::Rejected(error) => {
            assert_eq!(
                (error.correlation_id, error.code, error.request),
                (replication, UnknownRecording, None)
            );
        }
        other => panic!("{other}"),
    }
}
