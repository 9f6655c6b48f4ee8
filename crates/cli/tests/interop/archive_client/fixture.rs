// SPDX-License-Identifier: Apache-2.0
//! An archive of either implementation, beside a driver of this project or with one of its own.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use taran::{Client, ExclusivePublication, Position};
use taran_archive_client::{ArchiveClient, ArchiveContext};

use crate::drivers::Driver;
use crate::exchange::{await_true, connect, port};
use crate::java::{self, argument, directory};
use crate::program::Program;
use crate::signal::signal;

/// Term length of all streams, so that segments are short.
const TERM: &str = "64k";

/// Implementation of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Implementation {
    Official,
    Taran,
}

pub(crate) struct TestArchive {
    implementation: Implementation,
    process: Option<Program>,
    /// A driver of this project; `None` if the archive has one.
    driver: Option<Driver>,
    aeron_dir: PathBuf,
    archive_dir: PathBuf,
    control_port: u16,
    events_port: u16,
    responses_port: u16,
    arguments: Vec<String>,
}

impl TestArchive {
    /// Starts an official archive with a driver of its own.
    pub(crate) fn with_driver(name: &str) -> Self {
        Self::start(
            Implementation::Official,
            name,
            None,
            &[argument("driver", true)],
        )
    }

    /// Starts an official archive beside a driver of this project.
    pub(crate) fn beside_taran(name: &str, arguments: &[String]) -> Self {
        let driver = Some(taran_driver(name));
        Self::start(Implementation::Official, name, driver, arguments)
    }

    /// Starts an archive of this project beside a driver of this project.
    pub(crate) fn taran(name: &str) -> Self {
        let driver = Some(taran_driver(name));
        Self::start(Implementation::Taran, name, driver, &[])
    }

    fn start(
        implementation: Implementation,
        name: &str,
        driver: Option<Driver>,
        arguments: &[String],
    ) -> Self {
        let aeron_dir = driver
            .as_ref()
            .map_or_else(|| directory(name), |driver| driver.dir().to_owned());
        let mut archive = Self {
            implementation,
            process: None,
            driver,
            aeron_dir,
            archive_dir: directory(&format!("{name}-archive")),
            control_port: port(),
            events_port: port(),
            responses_port: port(),
            arguments: arguments.to_vec(),
        };
        archive.launch();
        archive
    }

    /// Starts the process, again after [`kill`](Self::kill).
    pub(crate) fn launch(&mut self) {
        let mut process = self.spawn();
        // Clients wait until an archive of this project is there.
        if self.implementation == Implementation::Official {
            process.expect("READY");
        }
        self.process = Some(process);
    }

    /// Starts the process, which does not start to serve; returns what it says.
    pub(crate) fn refused_launch(&mut self) -> String {
        self.spawn().fails()
    }

    fn spawn(&self) -> Program {
        let options: Vec<String> = [
            ("aeron.archive.control.channel", self.control_channel()),
            (
                "aeron.archive.replication.channel",
                "aeron:udp?endpoint=127.0.0.1:0".to_owned(),
            ),
            ("aeron.archive.recording.events.enabled", "true".to_owned()),
            (
                "aeron.archive.recording.events.channel",
                format!(
                    "aeron:udp?control-mode=dynamic|control=127.0.0.1:{}",
                    self.events_port
                ),
            ),
            ("aeron.archive.segment.file.length", TERM.to_owned()),
            ("aeron.term.buffer.length", TERM.to_owned()),
            ("aeron.ipc.term.buffer.length", TERM.to_owned()),
        ]
        .iter()
        .map(|(name, value)| format!("-D{name}={value}"))
        .collect();
        match self.implementation {
            Implementation::Official => {
                let mut arguments = vec![
                    argument("dir", self.aeron_dir.display()),
                    argument("archive-dir", self.archive_dir.display()),
                ];
                arguments.extend_from_slice(&self.arguments);
                java::start_with("archive", &options, &arguments)
            }
            Implementation::Taran => Program::start(
                "taran archive",
                Command::new(env!("CARGO_BIN_EXE_taran"))
                    .arg("archive")
                    .env_clear()
                    .env("AERON_DIR", &self.aeron_dir)
                    .env("AERON_ARCHIVE_DIR", &self.archive_dir)
                    .args(&options)
                    .arg("-Daeron.archive.threading.mode=SHARED")
                    // Tests run on small file systems in memory.
                    .arg("-Daeron.archive.low.storage.space.threshold=1m"),
            ),
        }
    }

    /// `kill -9`. The mark file is removed, which the next official process would take for that of a live one.
    pub(crate) fn kill(&mut self) {
        self.kill_process();
        std::fs::remove_file(self.archive_dir.join("archive-mark.dat")).unwrap();
    }

    /// `kill -9`, and nothing else.
    pub(crate) fn kill_process(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Ends the process in order.
    pub(crate) fn end(&mut self) {
        if let Some(process) = self.process.take() {
            if self.implementation == Implementation::Taran {
                signal(process.id(), "TERM");
            }
            process.finish();
        }
    }

    /// Lets the next process be of the other implementation.
    pub(crate) fn pass_on(&mut self) {
        self.implementation = match self.implementation {
            Implementation::Official => Implementation::Taran,
            Implementation::Taran => Implementation::Official,
        };
    }

    /// Makes the last heartbeat in the mark file an old one.
    pub(crate) fn age_mark_file(&self) {
        self.write_heartbeat(1);
    }

    /// Makes the last heartbeat in the mark file one of an archive that may be alive. It is ahead by an hour, so that it is young
    /// however long the next process takes to read it.
    pub(crate) fn renew_mark_file(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let ahead = now + Duration::from_secs(3_600);
        self.write_heartbeat(i64::try_from(ahead.as_millis()).unwrap());
    }

    /// Writes the time of the last heartbeat, in milliseconds since the epoch, into the mark file.
    fn write_heartbeat(&self, epoch_ms: i64) {
        let path = self.archive_dir.join("archive-mark.dat");
        let file = std::fs::File::options().write(true).open(path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &epoch_ms.to_le_bytes(), 16).unwrap();
    }

    pub(crate) fn archive_dir(&self) -> &std::path::Path {
        &self.archive_dir
    }

    pub(crate) fn client(&self) -> Client {
        connect(&self.aeron_dir)
    }

    pub(crate) fn aeron_dir(&self) -> &std::path::Path {
        &self.aeron_dir
    }

    pub(crate) fn control_channel(&self) -> String {
        format!("aeron:udp?endpoint=127.0.0.1:{}", self.control_port)
    }

    pub(crate) fn events_context(&self) -> ArchiveContext {
        ArchiveContext::new().recording_events_channel(format!(
            "aeron:udp?control-mode=dynamic|control=127.0.0.1:{}|endpoint=127.0.0.1:0",
            self.events_port
        ))
    }

    pub(crate) fn udp(&self) -> ArchiveContext {
        ArchiveContext::new()
            .control_channel(self.control_channel())
            .response_channel("aeron:udp?endpoint=127.0.0.1:0")
            .message_timeout(Duration::from_secs(60))
    }

    pub(crate) fn ipc() -> ArchiveContext {
        ArchiveContext::new()
            .control_channel("aeron:ipc")
            .response_channel("aeron:ipc")
            .message_timeout(Duration::from_secs(60))
    }

    pub(crate) fn responses(&self) -> ArchiveContext {
        self.udp().response_channel(format!(
            "aeron:udp?control-mode=response|control=127.0.0.1:{}",
            self.responses_port
        ))
    }
}

fn taran_driver(name: &str) -> Driver {
    Driver::taran(
        name,
        &[
            ("AERON_TERM_BUFFER_LENGTH", TERM),
            ("AERON_IPC_TERM_BUFFER_LENGTH", TERM),
        ],
    )
}

impl Drop for TestArchive {
    fn drop(&mut self) {
        self.process = None;
        if self.driver.is_none() {
            let _ = std::fs::remove_dir_all(&self.aeron_dir);
        }
        let _ = std::fs::remove_dir_all(&self.archive_dir);
    }
}

/// The payload of a test message.
pub(crate) fn message(index: u64, length: usize) -> Vec<u8> {
    let mut payload = vec![index as u8; length];
    payload[..8].copy_from_slice(&index.to_le_bytes());
    payload
}

/// Offers messages with these indices, polling the archive client meanwhile.
pub(crate) fn publish(
    archive: &mut ArchiveClient,
    publication: &mut ExclusivePublication,
    indices: std::ops::Range<u64>,
    length: usize,
) {
    for index in indices {
        let payload = message(index, length);
        await_true("room for a message", || {
            archive.poll();
            match publication.offer(&payload) {
                Ok(_) => true,
                Err(error) => {
                    assert!(error.is_retryable(), "{error}");
                    false
                }
            }
        });
    }
}

/// Waits until a recording has a position.
pub(crate) fn await_recorded(archive: &mut ArchiveClient, recording_id: i64, position: Position) {
    await_true("the recorded position", || {
        archive.max_recorded_position(recording_id).unwrap() >= position
    });
}
