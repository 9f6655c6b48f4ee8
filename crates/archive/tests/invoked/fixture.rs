// SPDX-License-Identifier: Apache-2.0
//! A driver, an archive and its client, each invoked on the thread of the test. Files are written by other threads.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use taran::{Client, ExclusivePublication, Subscription};
use taran_archive::{Archive, ArchiveConfig};
use taran_archive_client::protocol::{RecordingSignal, SourceLocation};
use taran_archive_client::{ArchiveConnection, ArchiveContext, ArchiveEvent, Call, ReplayParams};
use taran_core::clock::{Clock, SystemClock};
use taran_driver::{DriverContext, MediaDriver};
use taran_protocol::option::{OptionSet, Source, ThreadingMode};

/// Channel of the recorded streams, and of replays.
pub(crate) const CHANNEL: &str = "aeron:ipc?term-length=64k";
const TIMEOUT: Duration = Duration::from_secs(60);

/// An archive with its driver and its client.
pub(crate) struct Invoked {
    connection: Option<ArchiveConnection>,
    pub(crate) client: Client,
    archive: Option<Archive>,
    driver: Arc<Mutex<MediaDriver>>,
    dir: PathBuf,
    clock: SystemClock,
}

impl Invoked {
    /// Starts an archive in a directory of this name, and connects to it.
    pub(crate) fn new(name: &str, properties: &[(&str, &str)]) -> Invoked {
        Self::launch(name, properties).expect("the archive starts")
    }

    /// The same, or the reason why the archive does not start.
    pub(crate) fn launch(name: &str, properties: &[(&str, &str)]) -> Result<Invoked, String> {
        let context = DriverContext::new().threading_mode(ThreadingMode::Invoker);
        let driver = MediaDriver::launch_embedded(context).expect("the driver starts");
        let aeron_dir = driver.aeron_dir().to_path_buf();
        let driver = Arc::new(Mutex::new(driver));
        let dir = std::env::temp_dir().join(format!("taran-{}-{name}", std::process::id()));
        let mut options = OptionSet::archive();
        let own = [
            ("aeron.archive.dir", dir.to_str().expect("a path in ASCII")),
            ("aeron.archive.control.channel.enabled", "false"),
            (
                "aeron.archive.replication.channel",
                "aeron:udp?endpoint=127.0.0.1:0",
            ),
            ("aeron.archive.segment.file.length", "16m"),
            ("aeron.archive.low.storage.space.threshold", "1m"),
        ];
        for properties in [&own[..], properties] {
            options
                .apply(&Source::CommandLine, properties.iter().copied())
                .expect("the options are valid");
        }
        let mut config = ArchiveConfig::new(&options).expect("the options are valid");
        config.aeron_dir = Some(aeron_dir.clone());
        let invoked = Arc::clone(&driver);
        let archive = Archive::builder(config)
            .driver_invoker(move || invoked.lock().expect("no panic").invoke())
            .launch()
            .map_err(|error| error.to_string())?;
        let client = Client::builder().aeron_dir(&aeron_dir).invoker(true);
        let mut invoked = Invoked {
            connection: None,
            client: client.connect().expect("the driver is there"),
            archive: Some(archive),
            driver,
            dir,
            clock: SystemClock::new(),
        };
        let context = ArchiveContext::new()
            .control_channel("aeron:ipc")
            .response_channel("aeron:ipc");
        let now_ns = invoked.clock.now().nanos;
        let mut connecting = context
            .connecting(&invoked.client, now_ns)
            .expect("the context is valid");
        let connection = invoked.run_until(|invoked| {
            let now_ns = invoked.clock.now().nanos;
            connecting.poll(now_ns).expect("the archive answers")
        });
        invoked.connection = Some(connection);
        Ok(invoked)
    }

    /// Returns why the archive has ended by itself.
    pub(crate) fn failure(&self) -> Option<String> {
        self.archive.as_ref().and_then(Archive::failure)
    }

    /// Returns the connection to the archive.
    pub(crate) fn connection(&mut self) -> &mut ArchiveConnection {
        self.connection.as_mut().expect("it is connected")
    }

    /// Runs a duty cycle of driver and client, and not of the archive.
    pub(crate) fn invoke_driver(&mut self) {
        self.driver.lock().expect("no panic").invoke();
        self.client.invoke();
    }

    /// Runs a duty cycle of the archive and of the connection to it, and not of the driver.
    pub(crate) fn invoke_archive(&mut self) {
        self.archive.as_mut().expect("it runs").invoke();
        if let Some(connection) = &mut self.connection {
            connection.poll(self.clock.now().nanos);
        }
    }

    /// Runs duty cycles of all until there is a result.
    pub(crate) fn run_until<T>(&mut self, condition: impl FnMut(&mut Self) -> Option<T>) -> T {
        let all = |invoked: &mut Self| {
            invoked.invoke_driver();
            invoked.invoke_archive();
        };
        self.cycle_until(all, condition)
    }

    /// Runs these duty cycles until there is a result.
    pub(crate) fn cycle_until<T>(
        &mut self,
        cycle: impl Fn(&mut Self),
        mut condition: impl FnMut(&mut Self) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(result) = condition(self) {
                return result;
            }
            assert!(Instant::now() < deadline, "timed out");
            cycle(self);
        }
    }

    /// Waits for the answer to a request.
    pub(crate) fn wait<T>(&mut self, mut call: Call<T>) -> T {
        self.run_until(|_| call.poll()).expect("it is accepted")
    }

    /// Waits for a signal; returns the id of its recording.
    pub(crate) fn wait_for(&mut self, wanted: RecordingSignal) -> i64 {
        self.run_until(|invoked| match invoked.connection().next_event() {
            Some(ArchiveEvent::Signal(signal)) if signal.signal == wanted => {
                Some(signal.recording_id)
            }
            _ => None,
        })
    }

    /// Starts to record a stream; returns the publication and the id of the recording.
    pub(crate) fn record(&mut self, stream_id: i32) -> (ExclusivePublication, i64) {
        let location = SourceLocation::LOCAL;
        let call = self
            .connection()
            .start_recording(CHANNEL, stream_id, location, false);
        self.wait(call);
        let publication = self.publication(CHANNEL, stream_id);
        (publication, self.wait_for(RecordingSignal::START))
    }

    /// Adds a publication, with duty cycles of driver and client only.
    pub(crate) fn publication(&mut self, channel: &str, stream_id: i32) -> ExclusivePublication {
        let pending = self
            .client
            .async_add_exclusive_publication(channel, stream_id);
        let mut pending = pending.expect("the command is sent");
        self.cycle_until(Self::invoke_driver, |_| pending.poll())
            .expect("the driver agrees")
    }

    /// Starts a replay, and returns a subscription to it.
    pub(crate) fn replay(
        &mut self,
        recording_id: i64,
        stream_id: i32,
        params: &ReplayParams,
    ) -> Subscription {
        let call = self
            .connection()
            .start_replay(recording_id, CHANNEL, stream_id, params);
        let session = self.wait(call);
        let channel = session.subscription_channel(CHANNEL).expect("it is valid");
        let pending = self.client.async_add_subscription(&channel, stream_id);
        let mut pending = pending.expect("the command is sent");
        let subscription = self
            .run_until(|_| pending.poll())
            .expect("the driver agrees");
        self.run_until(|_| subscription.is_connected().then_some(()));
        subscription
    }

    /// Returns the counter with the recorded position of an active recording.
    pub(crate) fn recorded_position(&self, recording_id: i64) -> taran_core::counters::Counter {
        let counters = self.client.counters();
        let key = recording_id.to_le_bytes();
        let found = counters.find(|meta| meta.type_id == 100 && meta.key[..8] == key);
        let id = found.expect("there is a counter").id;
        counters.counter(id).expect("it is in use")
    }
}

impl Drop for Invoked {
    fn drop(&mut self) {
        drop(self.connection.take());
        if let Some(archive) = self.archive.take() {
            archive.close();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
