// SPDX-License-Identifier: Apache-2.0
//! Replication between `taran archive` and the official archive, in both directions.

use std::path::Path;
use std::time::Duration;

use taran::{Client, ExclusivePublication};
use taran_archive_client::protocol::{ErrorCode, RecordingSignal, SourceLocation};
use taran_archive_client::{
    ArchiveClient, ArchiveContext, ArchiveError, ArchiveEvent, ReplayParams, ReplicationParams,
};

use crate::archive_client::fixture::{TestArchive, await_recorded, message, publish};
use crate::archives::TaranArchive;
use crate::drivers::Driver;
use crate::exchange::{await_true, connect, port};
use crate::java::{self, argument};
use crate::require_java;

const STREAM: i32 = 1_001;
const REPLAYS: i32 = 1_002;
/// Longer than a frame.
const LENGTH: usize = 3_000;

/// Length of a segment, which is that of a term.
const SEGMENT: i64 = 64 * 1024;

/// An archive with a driver.
enum Site {
    Taran(Box<(Driver, TaranArchive)>),
    Official(Box<TestArchive>),
}

impl Site {
    fn taran(name: &str, properties: &[(&str, &str)]) -> Self {
        let driver = Driver::taran(
            &format!("{name}-driver"),
            &[
                ("AERON_TERM_BUFFER_LENGTH", "64k"),
                ("AERON_IPC_TERM_BUFFER_LENGTH", "64k"),
                // Connections that are closed are soon gone.
                ("AERON_PUBLICATION_LINGER_TIMEOUT", "200ms"),
            ],
        );
        let mut properties = properties.to_vec();
        properties.push(("aeron.archive.segment.file.length", "64k"));
        let archive = TaranArchive::start(name, &driver, &properties);
        Self::Taran(Box::new((driver, archive)))
    }

    fn official(name: &str) -> Self {
        Self::Official(Box::new(TestArchive::with_driver(name)))
    }

    fn client(&self) -> Client {
        match self {
            Self::Taran(both) => connect(both.0.dir()),
            Self::Official(archive) => archive.client(),
        }
    }

    fn aeron_dir(&self) -> &Path {
        match self {
            Self::Taran(both) => both.0.dir(),
            Self::Official(archive) => archive.aeron_dir(),
        }
    }

    fn control_channel(&self) -> String {
        match self {
            Self::Taran(both) => both.1.control_channel().to_owned(),
            Self::Official(archive) => archive.control_channel(),
        }
    }

    fn connect(&self, client: &Client) -> ArchiveClient {
        let context = ArchiveContext::new()
            .control_channel(self.control_channel())
            .response_channel("aeron:udp?endpoint=127.0.0.1:0")
            .message_timeout(Duration::from_secs(60));
        context.connect(client).unwrap()
    }

    /// `kill -9`, and a new process in the same directory.
    fn kill_and_restart(&mut self) {
        match self {
            Self::Taran(both) => both.1.kill_and_restart(&both.0),
            Self::Official(archive) => {
                archive.kill();
                archive.launch();
            }
        }
    }

    /// Ends the archive: it must have been silent.
    fn end(self) {
        if let Self::Taran(both) = self {
            let (driver, archive) = *both;
            std::fs::remove_dir_all(archive.end()).unwrap();
            drop(driver);
        }
    }
}

/// A publication that is recorded.
struct Recorded {
    publication: ExclusivePublication,
    recording_id: i64,
    sent: u64,
}

impl Recorded {
    fn start(client: &Client, archive: &mut ArchiveClient, channel: &str, recorded: &str) -> Self {
        let publication = client.add_exclusive_publication(channel, STREAM).unwrap();
        archive
            .start_recording(recorded, STREAM, SourceLocation::LOCAL, false)
            .unwrap();
        let started = archive
            .wait_for_signal(|signal| signal.signal == RecordingSignal::START)
            .unwrap();
        Self {
            publication,
            recording_id: started.recording_id,
            sent: 0,
        }
    }

    fn send(&mut self, archive: &mut ArchiveClient, count: u64) {
        let indices = self.sent..self.sent + count;
        publish(archive, &mut self.publication, indices, LENGTH);
        self.sent += count;
    }

    fn await_recorded(&self, archive: &mut ArchiveClient) {
        await_recorded(archive, self.recording_id, self.publication.position());
    }

    /// Stops the recording; returns its position.
    fn stop(&self, archive: &mut ArchiveClient, recorded: &str) -> i64 {
        self.await_recorded(archive);
        archive.stop_recording(recorded, STREAM).unwrap();
        archive
            .wait_for_signal_of(self.recording_id, RecordingSignal::STOP)
            .unwrap();
        self.publication.position()
    }
}

/// Asks for a replication when the connection of the one before to the source is closed: the driver refuses to use a channel
/// endpoint that it is closing, and records that.
fn replicate(
    client: &Client,
    archive: &mut ArchiveClient,
    recording_id: i64,
    control: &str,
    params: &ReplicationParams,
) -> i64 {
    let endpoint = control.rsplit('=').next().unwrap_or(control);
    await_true("the end of the connection to the source", || {
        archive.poll();
        let is_endpoint = |meta: &taran::CounterMeta| {
            meta.type_id == taran::counter_type::SEND_CHANNEL_STATUS
                && meta.label.contains(endpoint)
        };
        client.counters().find(is_endpoint).is_none()
    });
    archive
        .replicate(recording_id, control, 10, params)
        .unwrap()
}

/// Messages of one replication, until it has ended and its recording, if there was one, has stopped.
#[derive(Debug, Default)]
struct Seen {
    signals: Vec<RecordingSignal>,
    errors: Vec<ArchiveError>,
    recording_id: i64,
}

impl Seen {
    fn take(&mut self, archive: &mut ArchiveClient, replication: i64) {
        while let Some(event) = archive.poll_event() {
            match event {
                ArchiveEvent::Signal(signal) if signal.correlation_id == replication => {
                    self.signals.push(signal.signal);
                    self.recording_id = signal.recording_id;
                }
                ArchiveEvent::Error(error) if error.correlation_id == replication => {
                    self.errors.push(error);
                }
                _ => {}
            }
        }
    }

    fn until(archive: &mut ArchiveClient, replication: i64, last: RecordingSignal) -> Self {
        let mut seen = Self::default();
        seen.go_on_until(archive, replication, last);
        seen
    }

    fn go_on_until(
        &mut self,
        archive: &mut ArchiveClient,
        replication: i64,
        last: RecordingSignal,
    ) {
        await_true("the last signal of the replication", || {
            self.take(archive, replication);
            self.signals.contains(&last)
        });
    }

    fn codes(&self) -> Vec<ErrorCode> {
        self.errors.iter().map(|error| error.code).collect()
    }
}

/// Replays a recording and compares all of it with what was published: messages of `length` bytes.
pub(crate) fn expect_all(archive: &mut ArchiveClient, recording_id: i64, sent: u64, length: usize) {
    let channel = "aeron:udp?endpoint=127.0.0.1:0";
    let params = ReplayParams::new();
    let (replay, mut subscription) = archive
        .replay(recording_id, channel, REPLAYS, &params)
        .unwrap();
    let mut assembler = taran::FragmentAssembler::new();
    let mut next = 0;
    await_true("the replica", || {
        archive.poll();
        let handler = assembler.wrap(|payload: &[u8], _: &taran::Header<'_>| {
            assert_eq!(payload, message(next, length), "message {next}");
            next += 1;
        });
        subscription.poll(handler, 20).unwrap();
        next == sent
    });
    archive.stop_replay(replay).unwrap();
}

const COPIED: [RecordingSignal; 5] = [
    RecordingSignal::REPLICATE,
    RecordingSignal::EXTEND,
    RecordingSignal::SYNC,
    RecordingSignal::ReplicateEnd,
    RecordingSignal::STOP,
];

/// Copies a stopped recording in one go, in parts, and to a stop position.
fn replicate_stopped(source: Site, destination: Site) {
    let client = source.client();
    let archive = &mut source.connect(&client);
    let channel = "aeron:ipc?term-length=64k";
    let mut recorded = Recorded::start(&client, archive, channel, channel);
    recorded.send(archive, 100);
    recorded.await_recorded(archive);
    let half = recorded.publication.position();
    recorded.send(archive, 100);
    let end = recorded.stop(archive, channel);

    let to_client = destination.client();
    let to = &mut destination.connect(&to_client);
    let control = source.control_channel();
    let id = recorded.recording_id;
    let replicate = |to: &mut ArchiveClient, params: &ReplicationParams| {
        replicate(&to_client, to, id, &control, params)
    };
    let replication = replicate(to, &ReplicationParams::new());
    let seen = Seen::until(to, replication, RecordingSignal::STOP);
    assert_eq!((&seen.signals[..], seen.codes()), (&COPIED[..], vec![]));
    let copy = seen.recording_id;
    assert_eq!(to.stop_position(copy).unwrap(), Some(end));
    expect_all(to, copy, 200, LENGTH);
    // Nothing more is to be done.
    let again = replicate(to, &ReplicationParams::new().destination(copy));
    let seen = Seen::until(to, again, RecordingSignal::ReplicateEnd);
    assert_eq!(
        seen.signals,
        [RecordingSignal::SYNC, RecordingSignal::ReplicateEnd]
    );

    // In two parts, the second by reads of one frame.
    let first = ReplicationParams::new().stop_position(half).session_id(77);
    let replication = replicate(to, &first);
    let seen = Seen::until(to, replication, RecordingSignal::STOP);
    assert_eq!(
        seen.signals,
        [
            RecordingSignal::REPLICATE,
            RecordingSignal::EXTEND,
            RecordingSignal::ReplicateEnd,
            RecordingSignal::STOP
        ]
    );
    let part = seen.recording_id;
    assert_eq!(to.stop_position(part).unwrap(), Some(half));
    let rest = ReplicationParams::new()
        .destination(part)
        .file_io_max_length(2_048);
    let replication = replicate(to, &rest);
    let seen = Seen::until(to, replication, RecordingSignal::STOP);
    assert_eq!((&seen.signals[..], seen.codes()), (&COPIED[1..], vec![]));
    assert_eq!(to.stop_position(part).unwrap(), Some(end));
    expect_all(to, part, 200, LENGTH);
    assert!(!to.try_stop_replication(replication).unwrap());

    // A source without its first segments.
    archive.purge_segments(id, 2 * SEGMENT).unwrap();
    archive
        .wait_for_signal_of(id, RecordingSignal::DELETE)
        .unwrap();
    let replication = replicate(to, &ReplicationParams::new());
    let seen = Seen::until(to, replication, RecordingSignal::STOP);
    assert_eq!((&seen.signals[..], seen.codes()), (&COPIED[..], vec![]));
    let rest = to.list_recording(seen.recording_id).unwrap().unwrap();
    assert_eq!(
        (rest.start_position, rest.stop_position),
        (2 * SEGMENT, Some(end))
    );
    drop(recorded);
    source.end();
    destination.end();
}

/// Follows a live recording, merges with its live stream, and goes on without the source archive.
fn replicate_live(source: Site, destination: Site) {
    let client = source.client();
    let archive = &mut source.connect(&client);
    let control = format!("127.0.0.1:{}", port());
    let dynamic = format!("aeron:udp?control-mode=dynamic|control={control}");
    let mut recorded = Recorded::start(
        &client,
        archive,
        &format!("{dynamic}|fc=max|ssc=true|term-length=64k"),
        &dynamic,
    );
    recorded.send(archive, 100);
    let to_client = destination.client();
    let to = &mut destination.connect(&to_client);
    let live = format!("{dynamic}|endpoint=127.0.0.1:0");
    let params = ReplicationParams::new().live_destination(live);
    let id = recorded.recording_id;
    let replication = to
        .replicate(id, &source.control_channel(), 10, &params)
        .unwrap();
    let mut seen = Seen::default();
    // The stream moves while it is joined.
    await_true("the merge", || {
        seen.take(to, replication);
        let payload = message(recorded.sent, LENGTH);
        archive.poll();
        if recorded.sent < 2_000 && recorded.publication.offer(&payload).is_ok() {
            recorded.sent += 1;
        }
        seen.signals.contains(&RecordingSignal::ReplicateEnd)
    });
    assert_eq!(
        (&seen.signals[..], seen.codes()),
        (
            &[
                RecordingSignal::REPLICATE,
                RecordingSignal::EXTEND,
                RecordingSignal::MERGE,
                RecordingSignal::ReplicateEnd
            ][..],
            vec![]
        )
    );
    // From the live stream.
    for _ in 0..20 {
        recorded.send(archive, 5);
        await_recorded(to, seen.recording_id, recorded.publication.position());
    }
    let sent = recorded.sent;
    drop(recorded);
    seen.go_on_until(to, replication, RecordingSignal::STOP);
    expect_all(to, seen.recording_id, sent, LENGTH);
    source.end();
    destination.end();
}

/// The source dies in the middle, and the replication is asked for again when it is back.
fn resume_after_death(mut source: Site, destination: Site) {
    let client = source.client();
    let mut archive = source.connect(&client);
    let channel = "aeron:ipc?term-length=64k";
    let mut recorded = Recorded::start(&client, &mut archive, channel, channel);
    recorded.send(&mut archive, 50);
    recorded.await_recorded(&mut archive);
    let end = recorded.publication.position();
    let to_client = destination.client();
    let to = &mut destination.connect(&to_client);
    let id = recorded.recording_id;
    let control = source.control_channel();
    let following = to
        .replicate(id, &control, 10, &ReplicationParams::new())
        .unwrap();
    let mut seen = Seen::until(to, following, RecordingSignal::EXTEND);
    let copy = seen.recording_id;
    await_recorded(to, copy, end);
    source.kill_and_restart();
    seen.go_on_until(to, following, RecordingSignal::STOP);
    assert_eq!(seen.signals[..2], COPIED[..2]);
    assert_eq!(seen.signals[2..], COPIED[3..]);
    drop(archive);

    // The recording of the source was recovered, and is extended by another publication.
    let archive = &mut source.connect(&client);
    assert_eq!(archive.stop_position(id).unwrap(), Some(end));
    let described = archive.list_recording(id).unwrap().unwrap();
    drop(recorded);
    let continued = taran::ChannelUriBuilder::ipc()
        .initial_position(end, described.initial_term_id, 64 * 1024)
        .build()
        .unwrap();
    archive
        .extend_recording(id, channel, STREAM, SourceLocation::LOCAL, false)
        .unwrap();
    let mut publication = client
        .add_exclusive_publication(continued.as_str(), STREAM)
        .unwrap();
    publish(archive, &mut publication, 50..80, LENGTH);
    await_recorded(archive, id, publication.position());
    archive.stop_recording(channel, STREAM).unwrap();
    archive
        .wait_for_signal_of(id, RecordingSignal::STOP)
        .unwrap();

    let params = ReplicationParams::new().destination(copy);
    let again = replicate(&to_client, to, id, &control, &params);
    let seen = Seen::until(to, again, RecordingSignal::STOP);
    assert_eq!((&seen.signals[..], seen.codes()), (&COPIED[1..], vec![]));
    expect_all(to, copy, 80, LENGTH);
    source.end();
    destination.end();
}

#[test]
fn taran_archives_replicate_a_stopped_recording() {
    let source = Site::taran("replicate-from", &[]);
    let shared = [("aeron.archive.threading.mode", "SHARED")];
    replicate_stopped(source, Site::taran("replicate-to", &shared));
}

#[test]
fn taran_archives_replicate_a_live_recording_and_merge() {
    let source = Site::taran("merge-from", &[]);
    replicate_live(source, Site::taran("merge-to", &[]));
}

#[test]
fn taran_archive_resumes_when_its_source_is_back() {
    let source = Site::taran("resume-from", &[]);
    resume_after_death(source, Site::taran("resume-to", &[]));
}

#[test]
fn taran_archive_replicates_from_the_official_one() {
    require_java!();
    let source = Site::official("replicate-official");
    replicate_stopped(source, Site::taran("replicate-to-taran", &[]));
}

#[test]
fn official_archive_replicates_from_a_taran_one() {
    require_java!();
    let source = Site::taran("replicate-from-taran", &[]);
    replicate_stopped(source, Site::official("replicate-to-official"));
}

#[test]
fn taran_archive_merges_with_the_live_stream_of_an_official_source() {
    require_java!();
    let source = Site::official("merge-official");
    replicate_live(source, Site::taran("merge-to-taran", &[]));
}

#[test]
fn official_archive_merges_with_the_live_stream_of_a_taran_source() {
    require_java!();
    let source = Site::taran("merge-from-taran", &[]);
    replicate_live(source, Site::official("merge-to-official"));
}

#[test]
fn taran_archive_resumes_when_its_official_source_is_back() {
    require_java!();
    // The driver of the source lives on.
    let source = TestArchive::beside_taran("resume-official", &[]);
    let source = Site::Official(Box::new(source));
    resume_after_death(source, Site::taran("resume-to-taran", &[]));
}

/// A stopped recording; returns its id and position.
fn record_stopped(source: &Site, client: &Client, messages: u64) -> (i64, i64) {
    let archive = &mut source.connect(client);
    let channel = "aeron:ipc?term-length=64k";
    let mut recorded = Recorded::start(client, archive, channel, channel);
    recorded.send(archive, messages);
    let end = recorded.stop(archive, channel);
    (recorded.recording_id, end)
}

/// Copies a recording to response channels, with tags, and over a channel of the request.
fn replicate_over_channels(source: Site, destination: Site) {
    let client = source.client();
    let (id, end) = record_stopped(&source, &client, 50);
    let to_client = destination.client();
    let to = &mut destination.connect(&to_client);
    let control = source.control_channel();
    let response = |port: u16| format!("aeron:udp?control-mode=response|control=127.0.0.1:{port}");
    for params in [
        ReplicationParams::new()
            .replication_channel(response(port()))
            .source_response_channel(response(port())),
        ReplicationParams::new().tags(71, 72),
        ReplicationParams::new()
            .replication_channel(format!("aeron:udp?endpoint=127.0.0.1:{}", port())),
    ] {
        let replication = replicate(&to_client, to, id, &control, &params);
        let seen = Seen::until(to, replication, RecordingSignal::STOP);
        assert_eq!(
            (&seen.signals[..], seen.codes()),
            (&COPIED[..], vec![]),
            "{params:?}"
        );
        assert_eq!(to.stop_position(seen.recording_id).unwrap(), Some(end));
        expect_all(to, seen.recording_id, 50, LENGTH);
    }
    source.end();
    destination.end();
}

#[test]
fn taran_archives_replicate_over_response_channels_and_tags() {
    let source = Site::taran("channels-from", &[]);
    replicate_over_channels(source, Site::taran("channels-to", &[]));
}

#[test]
fn taran_archive_replicates_from_the_official_one_over_response_channels() {
    require_java!();
    let source = Site::official("channels-official");
    replicate_over_channels(source, Site::taran("channels-to-taran", &[]));
}

#[test]
fn replica_continues_after_the_death_of_its_archive() {
    let source = Site::taran("continue-from", &[]);
    let mut destination = Site::taran("continue-to", &[]);
    let client = source.client();
    let archive = &mut source.connect(&client);
    let channel = "aeron:ipc?term-length=64k";
    let mut recorded = Recorded::start(&client, archive, channel, channel);
    recorded.send(archive, 50);
    let to_client = destination.client();
    let mut to = destination.connect(&to_client);
    let (id, control) = (recorded.recording_id, source.control_channel());
    let replication = to
        .replicate(id, &control, 10, &ReplicationParams::new())
        .unwrap();
    let seen = Seen::until(&mut to, replication, RecordingSignal::EXTEND);
    let copy = seen.recording_id;
    await_recorded(&mut to, copy, recorded.publication.position());
    destination.kill_and_restart();
    recorded.send(archive, 50);
    drop(to);

    let to = &mut destination.connect(&to_client);
    let params = ReplicationParams::new().destination(copy);
    let again = replicate(&to_client, to, id, &control, &params);
    let mut seen = Seen::until(to, again, RecordingSignal::EXTEND);
    await_recorded(to, copy, recorded.publication.position());
    recorded.send(archive, 50);
    recorded.stop(archive, channel);
    // The end of a source that was active is no sync.
    seen.go_on_until(to, again, RecordingSignal::STOP);
    assert_eq!(
        (&seen.signals[..], seen.codes()),
        (
            &[
                RecordingSignal::EXTEND,
                RecordingSignal::ReplicateEnd,
                RecordingSignal::STOP
            ][..],
            vec![]
        )
    );
    expect_all(to, copy, 150, LENGTH);
    source.end();
    destination.end();
}

#[test]
fn replication_that_fails_is_reported_with_the_official_codes() {
    let source = Site::taran("refuse-from", &[]);
    let destination = Site::taran("refuse-to", &[("aeron.archive.message.timeout", "1s")]);
    let client = source.client();
    let archive = &mut source.connect(&client);
    let channel = "aeron:ipc?term-length=64k";
    let mut recorded = Recorded::start(&client, archive, channel, channel);
    recorded.send(archive, 10);
    recorded.await_recorded(archive);
    let to_client = destination.client();
    let to = &mut destination.connect(&to_client);
    let (id, control) = (recorded.recording_id, source.control_channel());

    // Refused at once.
    let response = "aeron:udp?control-mode=response|control=127.0.0.1:9";
    for (params, code) in [
        (
            ReplicationParams::new().destination(4_711),
            ErrorCode::UnknownRecording,
        ),
        (
            ReplicationParams::new()
                .replication_channel(response)
                .live_destination("aeron:udp?endpoint=127.0.0.1:9"),
            ErrorCode::Generic,
        ),
        (
            ReplicationParams::new()
                .replication_channel(response)
                .tags(1, 2),
            ErrorCode::Generic,
        ),
        (
            ReplicationParams::new().replication_channel("wrong"),
            ErrorCode::Generic,
        ),
    ] {
        let error = to.replicate(id, &control, 10, &params).unwrap_err();
        assert_eq!(error.code(), Some(code), "{error}");
    }
    let error = to.stop_replication(4_711).unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UnknownReplication));

    // Failures after the replication began.
    let unserved = format!("aeron:udp?endpoint=127.0.0.1:{}", port());
    let none = ReplicationParams::new();
    for (source_id, channel, params, code, text) in [
        (
            4_711,
            control.as_str(),
            &none,
            ErrorCode::UnknownRecording,
            "no recording 4711",
        ),
        (id, "wrong", &none, ErrorCode::Generic, "wrong"),
        (
            id,
            unserved.as_str(),
            &none,
            ErrorCode::ReplicationConnectionFailure,
            "control channel",
        ),
        (
            id,
            control.as_str(),
            &ReplicationParams::new().file_io_max_length(512),
            ErrorCode::Generic,
            "fileIoMaxLength",
        ),
    ] {
        let replication = if channel == "wrong" {
            to.replicate(source_id, channel, 10, params).unwrap()
        } else {
            replicate(&to_client, to, source_id, channel, params)
        };
        let seen = Seen::until(to, replication, RecordingSignal::ReplicateEnd);
        assert_eq!(seen.signals, [RecordingSignal::ReplicateEnd], "{channel}");
        assert_eq!(seen.recording_id, -1);
        assert_eq!(seen.codes(), [code], "{:?}", seen.errors);
        assert!(seen.errors[0].message.contains(text), "{:?}", seen.errors);
    }

    // A replication that is stopped, and meanwhile excludes others to its destination.
    let replication = replicate(&to_client, to, id, &control, &none);
    let mut seen = Seen::until(to, replication, RecordingSignal::EXTEND);
    let copy = seen.recording_id;
    let error = to
        .replicate(
            id,
            &control,
            10,
            &ReplicationParams::new().destination(copy),
        )
        .unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::ActiveRecording));
    to.stop_replication(replication).unwrap();
    seen.go_on_until(to, replication, RecordingSignal::STOP);
    assert_eq!(
        (&seen.signals[2..], seen.codes()),
        (
            &[RecordingSignal::ReplicateEnd, RecordingSignal::STOP][..],
            vec![]
        )
    );
    drop(recorded);
    source.end();
    destination.end();
}

/// The official client asks an archive to copy a recording, in two steps.
fn replicate_by_java(source: &Site, destination: &Site) {
    let client = source.client();
    let (id, end) = record_stopped(source, &client, 50);
    drop(destination.client());
    let ask = |copy: i64, last: &str| {
        let arguments = [
            argument("dir", destination.aeron_dir().display()),
            argument("control", destination.control_channel()),
            argument("response", "aeron:udp?endpoint=127.0.0.1:0"),
            argument("source", source.control_channel()),
            argument("recording", id),
            argument("destination", copy),
            argument("last", last),
            argument("timeout", 240),
        ];
        java::start("replicate", &arguments).finish()
    };
    let replicated = format!("REPLICATED recording=0 stop={end}");
    let ended = [replicated.as_str(), "REFUSED stop code=12"];
    let copied = [
        "SIGNAL REPLICATE",
        "SIGNAL EXTEND",
        "SIGNAL SYNC",
        "SIGNAL REPLICATE_END",
        "SIGNAL STOP",
    ];
    assert_eq!(ask(-1, "STOP"), [&copied[..], &ended[..]].concat());
    let synced = ["SIGNAL SYNC", "SIGNAL REPLICATE_END"];
    assert_eq!(ask(0, "REPLICATE_END"), [&synced[..], &ended[..]].concat());
}

#[test]
fn java_client_replicates_to_a_taran_archive_as_to_an_official_one() {
    require_java!();
    let source = Site::taran("java-from", &[]);
    replicate_by_java(&source, &Site::official("java-to-official"));
    let destination = Site::taran("java-to", &[("aeron.archive.threading.mode", "INVOKER")]);
    replicate_by_java(&source, &destination);
    source.end();
    destination.end();
}
