// SPDX-License-Identifier: Apache-2.0
//! Runs the examples of the archive client on an archive.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::UdpSocket;
use std::path::PathBuf;

use taran::Client;
use taran_archive::{Archive, ArchiveConfig};
use taran_archive_client::protocol::{RecordingEvent, RecordingSignal};
use taran_archive_client::{
    ArchiveClient, ArchiveContext, AsyncArchive, ReconnectingArchive, RecordingEvents,
};
use taran_driver::{DriverContext, MediaDriver};
use taran_protocol::option::{OptionSet, Source};

macro_rules! examples {
    ($($path:literal $name:ident;)*) => {
        $(
            #[path = $path]
            #[allow(dead_code, reason = "a program of its own")]
            mod $name;
        )*
    };
}

examples! {
    "../../archive-client/examples/archive_futures.rs" archive_futures;
    "../../archive-client/examples/archive_reconnecting.rs" archive_reconnecting;
    "../../archive-client/examples/recording_events.rs" recording_events;
    "../../archive-client/examples/replicate.rs" replicate;
    "../../archive-client/examples/segments.rs" segments;
}

const CHANNEL: &str = "aeron:ipc?term-length=64k";
const SEGMENT: i64 = 64 * 1024;

/// An archive in this process, with a driver.
struct Fixture {
    client: Client,
    archive: Option<Archive>,
    _driver: MediaDriver,
    control: String,
    events: String,
    dir: PathBuf,
}

impl Fixture {
    fn new(name: &str) -> Fixture {
        let driver = MediaDriver::launch_embedded(DriverContext::new()).unwrap();
        let dir = std::env::temp_dir().join(format!("taran-{}-{name}", std::process::id()));
        let [control, events] = [(); 2].map(|()| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.local_addr().unwrap().to_string()
        });
        let mut fixture = Fixture {
            client: Client::builder()
                .aeron_dir(driver.aeron_dir())
                .connect()
                .unwrap(),
            archive: None,
            _driver: driver,
            control: format!("aeron:udp?endpoint={control}"),
            events: format!("aeron:udp?control-mode=dynamic|control={events}"),
            dir,
        };
        let mut options = OptionSet::archive();
        let properties = [
            ("aeron.archive.dir", fixture.dir.to_str().unwrap()),
            ("aeron.archive.control.channel", &fixture.control),
            (
                "aeron.archive.replication.channel",
                "aeron:udp?endpoint=127.0.0.1:0",
            ),
            ("aeron.archive.recording.events.enabled", "true"),
            ("aeron.archive.recording.events.channel", &fixture.events),
            ("aeron.archive.segment.file.length", "64k"),
            ("aeron.archive.low.storage.space.threshold", "1m"),
            ("aeron.archive.threading.mode", "SHARED"),
        ];
        options.apply(&Source::CommandLine, properties).unwrap();
        let mut config = ArchiveConfig::new(&options).unwrap();
        config.aeron_dir = Some(fixture.client.aeron_dir().to_path_buf());
        fixture.archive = Some(Archive::builder(config).launch().unwrap());
        fixture
    }

    fn context() -> ArchiveContext {
        ArchiveContext::new()
            .control_channel("aeron:ipc")
            .response_channel("aeron:ipc")
    }

    /// Records a stream of at least `length` bytes; returns the id and the end of the stopped recording.
    fn record(archive: &mut ArchiveClient, length: i64) -> (i64, i64) {
        let mut publication = archive
            .add_recorded_exclusive_publication(CHANNEL, 1)
            .unwrap();
        let started = archive
            .wait_for_signal(|signal| signal.signal == RecordingSignal::START)
            .unwrap();
        while publication.position() < length {
            if let Err(error) = publication.offer(&[7; 1000]) {
                assert!(error.is_retryable(), "{error}");
                std::thread::yield_now();
            }
        }
        let (id, end) = (started.recording_id, publication.position());
        while archive.max_recorded_position(id).unwrap() < end {}
        archive
            .stop_recording_of(CHANNEL, 1, publication.session_id())
            .unwrap();
        archive
            .wait_for_signal_of(id, RecordingSignal::STOP)
            .unwrap();
        (id, end)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(archive) = self.archive.take() {
            archive.close();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn examples_do_what_they_say() {
    let fixture = Fixture::new("examples");
    let any_port = "|endpoint=127.0.0.1:0";
    let context =
        ArchiveContext::new().recording_events_channel(format!("{}{any_port}", fixture.events));
    let mut events = RecordingEvents::subscribe(&fixture.client, &context).unwrap();
    while !events.subscription().is_connected() {
        std::thread::yield_now();
    }
    let archive = &mut Fixture::context().connect(&fixture.client).unwrap();
    let (recording_id, end) = Fixture::record(archive, 5 * SEGMENT);

    let mut has_started = false;
    while !has_started {
        let on_event = |event: &RecordingEvent<'_>| {
            has_started |= matches!(event, RecordingEvent::RecordingStarted(_));
        };
        recording_events::next_events(&mut events, on_event).unwrap();
    }

    let copy = replicate::replicate(archive, &fixture.control, recording_id).unwrap();
    assert_eq!(archive.stop_position(copy).unwrap(), Some(end));

    let start = segments::shorten(archive, copy, SEGMENT).unwrap();
    assert_eq!(start, (end - SEGMENT) / SEGMENT * SEGMENT);

    let connection = Fixture::context().connect(&fixture.client).unwrap();
    let async_archive = AsyncArchive::start(connection.into_connection()).unwrap();
    let count = archive_futures::block_on(archive_futures::list(&async_archive));
    assert_eq!(count.unwrap(), 2);

    let mut reconnecting_archive =
        ReconnectingArchive::new(Fixture::context(), fixture.client.clone()).unwrap();
    let mut seen = None;
    archive_reconnecting::watch(&mut reconnecting_archive, copy, |position| {
        seen = Some(position);
        false
    });
    assert_eq!(seen, Some(end));
}
