// SPDX-License-Identifier: Apache-2.0
//! The official client on an archive of this project: from a recording to the live stream.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use taran::ExclusivePublication;
use taran_archive_client::ArchiveClient;
use taran_archive_client::protocol::{RecordingSignal, SourceLocation};

use super::fixture::{TestArchive, await_recorded, message, publish};
use crate::exchange::{await_true, port};
use crate::java::{self, argument};
use crate::program::Program;
use crate::require_java;

const STREAM: i32 = 1_001;
/// Short, so that the publisher is slower than a replay.
const LENGTH: usize = 64;

/// Publishes messages from `next` on, each when the one before is recorded, until `stop`; then the last one, which has one
/// byte. Returns the number of messages before it.
fn publish_until(
    archive: &mut ArchiveClient,
    publication: &mut ExclusivePublication,
    recording_id: i64,
    mut next: u64,
    stop: &AtomicBool,
) -> u64 {
    while !stop.load(Ordering::Relaxed) {
        publish(archive, publication, next..next + 1, LENGTH);
        next += 1;
        await_recorded(archive, recording_id, publication.position());
    }
    await_true("room for the last message", || {
        publication.offer(&[0]).is_ok()
    });
    next
}

/// Runs a program of the official client, and checks that it has all messages and has joined the live stream.
fn read_with(
    program: &str,
    arguments: &[String],
    archive: &mut ArchiveClient,
    publication: &mut ExclusivePublication,
    recording_id: i64,
) {
    let mut java = java::start(program, arguments);
    let is_live = AtomicBool::new(false);
    let sent = thread::scope(|scope| {
        let sent = scope.spawn(|| publish_until(archive, publication, recording_id, 300, &is_live));
        java.expect("LIVE");
        is_live.store(true, Ordering::Relaxed);
        sent.join().unwrap()
    });
    let said = java.finish();
    let done = said.iter().find(|line| line.starts_with("DONE")).unwrap();
    assert_eq!(Program::value::<u64>(done, "messages"), sent, "{said:#?}");
    assert!(Program::value::<bool>(done, "live"), "{said:#?}");
}

/// Records a publication with its first messages; returns the id of the recording.
fn record(
    archive: &mut ArchiveClient,
    publication: &mut ExclusivePublication,
    channel: &str,
) -> i64 {
    archive
        .start_recording(channel, STREAM, SourceLocation::LOCAL, false)
        .unwrap();
    for index in 0..300 {
        let payload = message(index, LENGTH);
        await_true("room for a message", || publication.offer(&payload).is_ok());
    }
    let started = archive
        .wait_for_signal(|signal| signal.signal == RecordingSignal::START)
        .unwrap();
    await_recorded(archive, started.recording_id, publication.position());
    started.recording_id
}

fn arguments(tested: &TestArchive, recording_id: i64, more: &[(&str, String)]) -> Vec<String> {
    let mut arguments = vec![
        argument("dir", tested.aeron_dir().display()),
        argument("control", tested.control_channel()),
        argument("response", "aeron:udp?endpoint=127.0.0.1:0"),
        argument("recording", recording_id),
        argument("stream", STREAM),
        argument("timeout", 240),
    ];
    arguments.extend(more.iter().map(|(key, value)| argument(key, value)));
    arguments
}

#[test]
fn java_persistent_subscription_reads_the_recording_of_taran_and_then_live() {
    require_java!();
    let tested = TestArchive::taran("taran-java-persist");
    let client = tested.client();
    let archive = &mut tested.udp().connect(&client).unwrap();
    let udp = format!("aeron:udp?endpoint=127.0.0.1:{}", port());
    for (live, replay) in [
        (udp.as_str(), "aeron:udp?endpoint=127.0.0.1:0"),
        ("aeron:ipc", "aeron:ipc"),
    ] {
        let mut publication = client
            .add_exclusive_publication(format!("{live}|ssc=true").replace("ipc|", "ipc?"), STREAM)
            .unwrap();
        let id = record(archive, &mut publication, live);
        let mut more = vec![("live", live.to_owned()), ("replay", replay.to_owned())];
        if live == "aeron:ipc" {
            more.extend([("control", live.to_owned()), ("response", live.to_owned())]);
        }
        let arguments = arguments(&tested, id, &more);
        read_with("persist", &arguments, archive, &mut publication, id);
        archive.stop_recording(live, STREAM).unwrap();
    }
}

#[test]
fn java_replay_merge_reads_the_recording_of_taran_and_then_live() {
    require_java!();
    let tested = TestArchive::taran("taran-java-merge");
    let client = tested.client();
    let archive = &mut tested.udp().connect(&client).unwrap();
    let control = format!("127.0.0.1:{}", port());
    let mut publication = client
        .add_exclusive_publication(
            format!("aeron:udp?control-mode=dynamic|control={control}|fc=min|ssc=true"),
            STREAM,
        )
        .unwrap();
    let session = publication.session_id();
    let recorded = format!("aeron:udp?control-mode=dynamic|control={control}|session-id={session}");
    let id = record(archive, &mut publication, &recorded);
    let more = [
        (
            "live",
            format!("aeron:udp?endpoint=127.0.0.1:0|control={control}"),
        ),
        ("replay", "aeron:udp?endpoint=127.0.0.1:0".to_owned()),
        ("session", session.to_string()),
    ];
    let arguments = arguments(&tested, id, &more);
    read_with("merge", &arguments, archive, &mut publication, id);
}
