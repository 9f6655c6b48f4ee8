// SPDX-License-Identifier: Apache-2.0
//! From a recording to its live stream.

use std::time::Duration;

use taran::{Clock, ExclusivePublication, SystemClock};
use taran_archive_client::protocol::{RecordingSignal, SourceLocation};
use taran_archive_client::{
    ArchiveClient, ArchiveContext, MergeOptions, PersistentEvent, PersistentOptions,
    PersistentSubscription, ReplayMerge, StartPosition,
};

use super::fixture::{TestArchive, await_recorded, message, publish};
use crate::exchange::{await_true, port};
use crate::require_java;

const STREAM: i32 = 1_001;
const REPLAYS: i32 = 1_002;
/// Longer than a frame.
const LENGTH: usize = 3_000;

/// A persistent subscription that checks that each message comes once, in order.
struct Reader {
    subscription: PersistentSubscription,
    next: u64,
    joins: usize,
}

impl Reader {
    fn new(
        client: &taran::Client,
        context: ArchiveContext,
        recording_id: i64,
        live_channel: &str,
        replay_channel: &str,
    ) -> Self {
        let options = PersistentOptions {
            recording_id,
            start: StartPosition::Start,
            live_channel: live_channel.to_owned(),
            live_stream_id: STREAM,
            replay_channel: replay_channel.to_owned(),
            replay_stream_id: REPLAYS,
        };
        Self {
            subscription: PersistentSubscription::new(client, context, options).unwrap(),
            next: 0,
            joins: 0,
        }
    }

    fn poll(&mut self, now_ns: i64) {
        let next = &mut self.next;
        self.subscription.poll(
            now_ns,
            |payload, _| {
                assert_eq!(payload, message(*next, LENGTH), "message {next}");
                *next += 1;
            },
            20,
        );
        while let Some(event) = self.subscription.next_event() {
            match event {
                PersistentEvent::JoinedLive => self.joins += 1,
                PersistentEvent::Failed(error) => panic!("{error}"),
                _ => {}
            }
        }
    }
}

/// Starts to record a publication, with some messages; returns the id of the recording.
fn record(
    archive: &mut ArchiveClient,
    publication: &mut ExclusivePublication,
    channel: &str,
    messages: u64,
) -> i64 {
    archive
        .start_recording(channel, STREAM, SourceLocation::LOCAL, false)
        .unwrap();
    publish(archive, publication, 0..messages, LENGTH);
    let started = archive
        .wait_for_signal(|signal| signal.signal == RecordingSignal::START)
        .unwrap();
    await_recorded(archive, started.recording_id, publication.position());
    started.recording_id
}

/// Polls all readers, and publishes a message whenever there is room, until all are live and have all messages.
fn read_all(
    archive: &mut ArchiveClient,
    readers: &mut [Reader],
    publication: &mut ExclusivePublication,
    mut sent: u64,
    at_least: u64,
) -> u64 {
    let mut clock = SystemClock::new();
    await_true("the live stream at all readers", || {
        let now_ns = clock.now().nanos;
        archive.poll();
        let are_live = readers.iter().all(|reader| reader.subscription.is_live());
        if (sent < at_least || !are_live) && publication.offer(&message(sent, LENGTH)).is_ok() {
            sent += 1;
        }
        for reader in readers.iter_mut() {
            reader.poll(now_ns);
        }
        are_live && readers.iter().all(|reader| reader.next == sent) && sent >= at_least
    });
    sent
}

#[test]
fn persistent_subscriptions_read_the_recording_and_then_live() {
    require_java!();
    read_persistently(TestArchive::beside_taran("archive-persistent", &[]));
}

#[test]
fn persistent_subscriptions_read_the_recording_of_taran_and_then_live() {
    read_persistently(TestArchive::taran("taran-persistent"));
}

fn read_persistently(mut tested: TestArchive) {
    let client = tested.client();
    let live = format!("aeron:udp?endpoint=127.0.0.1:{}", port());
    let mut publication = client
        .add_exclusive_publication(format!("{live}|ssc=true"), STREAM)
        .unwrap();
    let archive = &mut tested.udp().connect(&client).unwrap();
    let recording_id = record(archive, &mut publication, &live, 200);
    // All live subscriptions share one image of the driver; the publication waits for the slowest.
    let fixed = format!("aeron:udp?endpoint=127.0.0.1:{}", port());
    let mut readers = [
        (tested.udp(), "aeron:udp?endpoint=127.0.0.1:0".to_owned()),
        (tested.udp(), fixed),
        (TestArchive::ipc(), "aeron:ipc".to_owned()),
        (
            TestArchive::ipc(),
            "aeron:ipc?control-mode=response".to_owned(),
        ),
    ]
    .map(|(context, replay)| Reader::new(&client, context, recording_id, &live, &replay));
    let sent = read_all(archive, &mut readers, &mut publication, 200, 400);
    assert!(readers.iter().all(|reader| reader.joins == 1));

    // The live stream needs no archive.
    tested.kill();
    let sent = read_all(archive, &mut readers, &mut publication, sent, sent + 50);
    // The archive is there again, without these messages: it has recorded nothing meanwhile.
    assert!(sent >= 450);
}

#[test]
fn persistent_subscription_reads_over_ipc_and_continues_an_extended_recording() {
    require_java!();
    continue_extended(&TestArchive::with_driver("archive-persistent-ipc"));
}

#[test]
fn persistent_subscription_continues_an_extended_recording_of_taran() {
    continue_extended(&TestArchive::taran("taran-persistent-ipc"));
}

fn continue_extended(tested: &TestArchive) {
    let client = tested.client();
    let live = "aeron:ipc";
    let mut publication = client.add_exclusive_publication(live, STREAM).unwrap();
    let archive = &mut TestArchive::ipc().connect(&client).unwrap();
    let recording_id = record(archive, &mut publication, live, 30);
    let mut readers = [Reader::new(
        &client,
        TestArchive::ipc(),
        recording_id,
        live,
        live,
    )];
    let sent = read_all(archive, &mut readers, &mut publication, 30, 60);

    // The publisher ends, and begins again where it was.
    let position = publication.position();
    let recording = archive.list_recording(recording_id).unwrap().unwrap();
    await_recorded(archive, recording_id, position);
    archive.stop_recording(live, STREAM).unwrap();
    drop(publication);
    archive
        .wait_for_signal_of(recording_id, RecordingSignal::STOP)
        .unwrap();
    let continued = taran::ChannelUriBuilder::ipc()
        .initial_position(position, recording.initial_term_id, 64 * 1024)
        .build()
        .unwrap();
    let mut clock = SystemClock::new();
    await_true("the end of the live stream", || {
        archive.poll();
        readers[0].poll(clock.now().nanos);
        !readers[0].subscription.is_live()
    });
    archive
        .extend_recording(recording_id, live, STREAM, SourceLocation::LOCAL, false)
        .unwrap();
    let mut publication = client
        .add_exclusive_publication(continued.as_str(), STREAM)
        .unwrap();
    assert_eq!(publication.position(), position);
    read_all(archive, &mut readers, &mut publication, sent, sent + 40);
    assert_eq!(readers[0].joins, 2);
}

#[test]
fn replay_merge_reads_the_recording_and_then_live_in_one_image() {
    require_java!();
    merge(&TestArchive::beside_taran("archive-merge", &[]));
}

#[test]
fn replay_merge_reads_the_recording_of_taran_and_then_live() {
    merge(&TestArchive::taran("taran-merge"));
}

fn merge(tested: &TestArchive) {
    let client = tested.client();
    let control = format!("127.0.0.1:{}", port());
    let mut publication = client
        .add_exclusive_publication(
            format!("aeron:udp?control-mode=dynamic|control={control}|fc=min|ssc=true"),
            STREAM,
        )
        .unwrap();
    let archive = &mut tested.udp().connect(&client).unwrap();
    let session_id = publication.session_id();
    let recorded =
        format!("aeron:udp?control-mode=dynamic|control={control}|session-id={session_id}");
    let recording_id = record(archive, &mut publication, &recorded, 200);
    let subscription = client
        .add_subscription(
            format!("aeron:udp?control-mode=manual|session-id={session_id}"),
            STREAM,
        )
        .unwrap();
    let options = MergeOptions {
        recording_id,
        start_position: 0,
        session_id,
        replay_destination: "aeron:udp?endpoint=127.0.0.1:0".to_owned(),
        live_destination: format!("aeron:udp?endpoint=127.0.0.1:0|control={control}"),
        replay_channel: "aeron:udp".to_owned(),
        timeout: Duration::from_secs(60),
    };
    let mut merge = ReplayMerge::new(subscription, options).unwrap();
    let mut assembler = taran::FragmentAssembler::new();
    let (mut sent, mut received) = (200, 0);
    let mut clock = SystemClock::new();
    await_true("the merge", || {
        let now_ns = clock.now().nanos;
        archive.poll();
        if (sent < 400 || !merge.is_merged()) && publication.offer(&message(sent, LENGTH)).is_ok() {
            sent += 1;
        }
        let on_message = |payload: &[u8], _: &taran::Header<'_>| {
            assert_eq!(payload, message(received, LENGTH), "message {received}");
            received += 1;
        };
        merge
            .poll(
                archive.connection_mut(),
                now_ns,
                assembler.wrap(on_message),
                20,
            )
            .unwrap();
        merge.is_merged() && received == sent && sent >= 400
    });
    // The subscription goes on without the merge.
    let mut subscription = merge.into_subscription(archive.connection_mut());
    publish(archive, &mut publication, sent..sent + 3, LENGTH);
    await_true("live messages", || {
        let on_message = |payload: &[u8], _: &taran::Header<'_>| {
            assert_eq!(payload, message(received, LENGTH), "message {received}");
            received += 1;
        };
        subscription.poll(assembler.wrap(on_message), 20).unwrap();
        received == sent + 3
    });
}
