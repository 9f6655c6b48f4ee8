// SPDX-License-Identifier: Apache-2.0
//! A whole archive in memory and virtual time, over the driver of the fuzzer, with a well-behaved client whose session the
//! inputs must not disturb.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use taran::{ExclusivePublication, Pending};
use taran_archive::{ArchiveConfig, ArchiveEnvironment, ArchiveParts, ArchiveStart};
use taran_archive_client::protocol::SourceLocation;
use taran_archive_client::{ArchiveConnection, ArchiveContext, Call, Recording, RequestError};
use taran_core::memory::Storage;
use taran_protocol::option::{OptionSet, Source};
use taran_sim::disk::{ProcessDisk, SimDisk, SimDiskOptions};
use taran_storage::{Disk, InlineQueue};

use crate::driver::DriverFixture;

/// Directory of the archive.
const DIRECTORY: &str = "/archive";
/// Stream that the well-behaved client publishes over IPC.
pub const STREAM: i32 = 77;
/// Length of terms and segments in bytes.
pub const TERM: i64 = 64 << 10;
/// Timeout of the archive for clients, replays and source archives.
pub const TIMEOUT: Duration = Duration::from_secs(1);
/// Longest step of time: all timeouts are multiples of it.
const TICK: Duration = Duration::from_millis(20);
/// Duty cycles between steps of time; a longer request takes several steps.
const CYCLES: usize = 200;
/// Steps of time after which an answer is missing.
const ANSWER_STEPS: usize = 500;

const OPTIONS: &[(&str, &str)] = &[
    ("aeron.archive.dir", DIRECTORY),
    (
        "aeron.archive.control.channel",
        "aeron:udp?endpoint=10.0.0.1:8010",
    ),
    (
        "aeron.archive.replication.channel",
        "aeron:udp?endpoint=10.0.0.1:0",
    ),
    ("aeron.archive.segment.file.length", "64k"),
    ("aeron.archive.file.io.max.length", "64k"),
    ("aeron.archive.catalog.capacity", "64k"),
    ("aeron.archive.low.storage.space.threshold", "0"),
    ("aeron.archive.error.buffer.length", "1m"),
    ("aeron.archive.message.timeout", "1s"),
    ("aeron.archive.connect.timeout", "1s"),
    ("taran.archive.retention", "stream=78 bytes=64k"),
    ("taran.archive.retention.interval", "100ms"),
];

/// An archive with its driver and its users.
pub struct ArchiveFixture {
    /// The driver, with the client of the users.
    pub driver: DriverFixture,
    parts: ArchiveParts,
    disk: ProcessDisk,
    good: ArchiveConnection,
    stream: Option<ExclusivePublication>,
    /// Recordings that the well-behaved client has made for the inputs.
    pub recordings: Vec<i64>,
}

fn configure() -> ArchiveConfig {
    let mut options = OptionSet::archive();
    options
        .apply(&Source::Code, OPTIONS.iter().copied())
        .expect("the options are valid");
    ArchiveConfig::new(&options).expect("the options fit together")
}

impl ArchiveFixture {
    /// Starts a driver, an archive, and a session of the well-behaved client with two recordings.
    ///
    /// # Panics
    /// If something does not start.
    pub fn start() -> Self {
        let mut driver = DriverFixture::start(&[]);
        let sim_disk = SimDisk::new(1, SimDiskOptions::default());
        let disk = sim_disk.process();
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let storage: Arc<dyn Storage> = Arc::new(driver.storage.clone());
        let queue_disk = Arc::clone(&shared);
        let mut next = 0;
        let environment = ArchiveEnvironment {
            disk: shared,
            storage,
            queue: Box::new(move |workers| {
                Box::new(InlineQueue::new(&queue_disk, workers, 64, ()))
            }),
            aeron_directory: "/fuzz".to_owned(),
            random: Box::new(move || {
                next += 1;
                Some(next)
            }),
        };
        let client = driver.connect();
        let now = driver.clock.read();
        let mut start = ArchiveStart::begin(client, configure(), environment, now)
            .expect("the directory is empty");
        for _ in 0.. {
            driver.step(Duration::from_millis(1));
            start.client().do_work(driver.clock.read());
            if start.poll().expect("the driver adds what is asked for") {
                break;
            }
        }
        let parts = start
            .finish(driver.clock.read())
            .expect("there are no files");
        let (driver, parts, good) = connect(driver, parts);
        let mut fixture = Self {
            driver,
            parts,
            disk,
            good,
            stream: None,
            recordings: Vec::new(),
        };
        fixture.stream = Some(fixture.publish("aeron:ipc?term-length=64k|mtu=1408", STREAM));
        fixture.record();
        fixture
    }

    /// Makes a stopped recording of several segments, and an active one.
    fn record(&mut self) {
        self.recordings.clear();
        for is_stopped in [true, false] {
            let call = self
                .good
                .start_recording("aeron:ipc", STREAM, SourceLocation::LOCAL, false);
            let subscription = self.call(call).expect("it is not being recorded");
            self.step(2 * TICK);
            let listed = self.list();
            let id = listed.last().expect("there is a recording").recording_id;
            self.recordings.push(id);
            for _ in 0..if is_stopped { 120 } else { 20 } {
                self.offer(1_300);
            }
            self.step(2 * TICK);
            if is_stopped {
                let call = self.good.stop_recording_subscription(subscription);
                self.call(call).expect("it is being recorded");
                self.step(TICK);
            }
        }
    }

    /// Publishes a message on the stream of the well-behaved client.
    pub fn offer(&mut self, length: usize) {
        let payload = vec![0x5A; length];
        for _ in 0..100 {
            let Some(stream) = &mut self.stream else {
                return;
            };
            if stream.offer(&payload).is_ok() {
                return;
            }
            self.run_cycle();
        }
        // A hostile client may hold up a recording, and with it the publisher.
    }

    /// Runs one duty cycle of driver, archive and client; returns the amount of work.
    ///
    /// # Panics
    /// If the archive cannot go on.
    pub fn run_cycle(&mut self) -> usize {
        run_cycle(&mut self.driver, &mut self.parts)
            + self.good.poll(self.driver.clock.read().nanos)
    }

    /// Advances time in short steps, each with duty cycles until nothing is left to do, within a bound.
    pub fn step(&mut self, mut time: Duration) {
        loop {
            let step = time.min(TICK);
            self.driver.clock.advance(step);
            for _ in 0..CYCLES {
                if self.run_cycle() == 0 {
                    break;
                }
            }
            time -= step;
            if time.is_zero() {
                return;
            }
        }
    }

    /// Waits for the answer of the driver.
    ///
    /// # Panics
    /// If there is none, or it is an error.
    pub fn answer<T>(&mut self, mut pending: Pending<T>) -> T {
        for _ in 0..ANSWER_STEPS {
            if let Some(answer) = pending.poll() {
                return answer.expect("the command is fine");
            }
            self.step(Duration::from_millis(1));
        }
        panic!("no answer of the driver");
    }

    /// Adds an exclusive publication.
    pub fn publish(&mut self, channel: &str, stream_id: i32) -> ExclusivePublication {
        let pending = self
            .driver
            .client
            .async_add_exclusive_publication(channel, stream_id);
        self.answer(pending.expect("the command ring has space"))
    }

    /// Adds a subscription.
    pub fn subscribe(&mut self, channel: &str, stream_id: i32) -> taran::Subscription {
        let pending = self
            .driver
            .client
            .async_add_subscription(channel, stream_id);
        self.answer(pending.expect("the command ring has space"))
    }

    /// Waits for the answer of the archive to the well-behaved client.
    ///
    /// # Panics
    /// If there is none.
    pub fn call<T>(&mut self, mut call: Call<T>) -> Result<T, RequestError> {
        for _ in 0..ANSWER_STEPS {
            match call.poll() {
                Some(Err(error @ (RequestError::Disconnected | RequestError::Timeout { .. }))) => {
                    panic!("the archive does not answer: {error}")
                }
                Some(result) => return result,
                None => self.step(Duration::from_millis(1)),
            }
        }
        panic!("no answer of the archive");
    }

    /// Makes a request of the well-behaved client.
    pub fn request<T>(&mut self, make: impl FnOnce(&mut ArchiveConnection) -> Call<T>) -> Call<T> {
        make(&mut self.good)
    }

    /// Checks that the session of the well-behaved client is served.
    ///
    /// # Panics
    /// If it is not.
    pub fn check_served(&mut self) {
        let call = self.good.archive_id();
        self.call(call).expect("the request is fine");
        while self.good.next_event().is_some() {}
    }

    /// Lists all recordings.
    ///
    /// # Panics
    /// If the archive refuses.
    pub fn list(&mut self) -> Vec<Recording> {
        let call = self.good.list_recordings(0, 10_000);
        self.call(call).expect("a listing is not refused")
    }

    /// Ends all that inputs have started, deletes all recordings, and checks that nothing is left; then makes new recordings.
    ///
    /// # Panics
    /// If something is left.
    pub fn check_nothing_left(&mut self) {
        self.step(3 * TIMEOUT);
        let call = self.good.stop_all_replays(None);
        self.call(call).expect("replays can be stopped");
        let call = self.good.list_recording_subscriptions(0, 10_000, "", None);
        for found in self.call(call).expect("a listing is not refused") {
            let call = self
                .good
                .try_stop_recording_subscription(found.subscription_id);
            self.call(call).expect("it can be stopped");
        }
        self.step(3 * TIMEOUT);
        let call = self.good.stop_all_replays(None);
        self.call(call).expect("replays can be stopped");
        self.step(TIMEOUT);
        for recording in self.list() {
            let id = recording.recording_id;
            let start = recording.start_position;
            let stop = recording.stop_position;
            assert!(
                stop.is_some_and(|stop| start <= stop),
                "recording {id} is from {start} to {stop:?}"
            );
            let call = self.good.purge_recording(id);
            self.call(call)
                .unwrap_or_else(|error| panic!("recording {id} cannot be purged: {error}"));
        }
        self.step(TIMEOUT);
        let left: Vec<_> = self
            .disk
            .list(Path::new(DIRECTORY))
            .expect("the directory exists")
            .into_iter()
            .filter(|entry| {
                let name = entry.name.to_string_lossy();
                name.ends_with(".rec") || name.ends_with(".del") || name.ends_with(".times")
            })
            .collect();
        assert!(left.is_empty(), "files are left: {left:?}");
        while self.good.next_event().is_some() {}
        self.record();
    }
}

fn run_cycle(driver: &mut DriverFixture, parts: &mut ArchiveParts) -> usize {
    let mut work = driver.run_cycle();
    let now = driver.clock.read();
    for agent in 0..ArchiveParts::AGENTS {
        work += parts
            .do_work(agent, now)
            .unwrap_or_else(|text| panic!("the archive ends: {text}"));
    }
    work
}

/// Connects the well-behaved client.
fn connect(
    mut driver: DriverFixture,
    mut parts: ArchiveParts,
) -> (DriverFixture, ArchiveParts, ArchiveConnection) {
    let context = ArchiveContext::new()
        .control_channel("aeron:ipc")
        .response_channel("aeron:ipc")
        .response_stream_id(60);
    let now_ns = driver.clock.read().nanos;
    let mut connecting = context
        .connecting(&driver.client, now_ns)
        .expect("the channels are valid");
    for _ in 0..ANSWER_STEPS {
        let now_ns = driver.clock.read().nanos;
        if let Some(connection) = connecting.poll(now_ns).expect("the archive accepts it") {
            return (driver, parts, connection);
        }
        driver.clock.advance(Duration::from_millis(1));
        for _ in 0..4 {
            run_cycle(&mut driver, &mut parts);
        }
    }
    panic!("the archive does not answer");
}
