// SPDX-License-Identifier: Apache-2.0
//! A running archive beside a driver.

use std::net::UdpSocket;
use std::time::Duration;

use taran::{Client, ExclusivePublication, Subscription};
use taran_archive::files::{LIVENESS_TIMEOUT_MS, MarkFileInfo};
use taran_archive_client::{ArchiveClient, ArchiveContext};
use taran_storage::OsDisk;

use super::files::message;
use crate::own_address::own_address;
use crate::process::{Directory, Driver, Outcome, Process, run, taran};
use crate::traffic::await_true;

/// Channel of recorded streams.
pub(super) const CHANNEL: &str = "aeron:ipc?term-length=64k";

pub(super) struct Archive {
    process: Option<Process>,
    pub(super) directory: Directory,
    pub(super) control: String,
    pub(super) client: Client,
    driver: Option<Driver>,
    pub(super) aeron: Directory,
}

impl Archive {
    /// Starts a driver and an archive with segments of one term.
    pub(super) fn start(name: &str) -> Archive {
        Self::start_with(name, &[])
    }

    /// The same with further arguments of the archive.
    pub(super) fn start_with(name: &str, arguments: &[&str]) -> Archive {
        let aeron = Directory::new(&format!("{name}-driver"));
        let driver = Driver::start(
            aeron.path(),
            &[
                "aeron.threading.mode=SHARED",
                "aeron.ipc.term.buffer.length=64k",
            ],
        );
        // A port of an address that no other test uses.
        let address = own_address();
        let port = UdpSocket::bind((address, 0))
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let directory = Directory::new(&format!("{name}-archive"));
        let control = format!("aeron:udp?endpoint={address}:{port}");
        let mut command = taran(&["archive"]);
        command
            .env("AERON_DIR", aeron.path())
            .env("AERON_ARCHIVE_DIR", directory.path())
            .arg(format!("-Daeron.archive.control.channel={control}"))
            .arg(format!(
                "-Daeron.archive.replication.channel=aeron:udp?endpoint={address}:0"
            ))
            .arg("-Daeron.archive.threading.mode=SHARED")
            .arg("-Daeron.archive.segment.file.length=64k")
            .arg("-Daeron.archive.low.storage.space.threshold=1m")
            .args(arguments);
        let mut process = Process::start(&mut command);
        await_true("the archive", || {
            assert!(!process.has_ended(), "the archive has ended");
            MarkFileInfo::read(&OsDisk, directory.path())
                .is_ok_and(|(_, info, _)| info.version != 0)
        });
        let client = Client::builder()
            .aeron_dir(aeron.path())
            .driver_timeout(Duration::from_secs(60))
            .connect()
            .unwrap();
        Archive {
            process: Some(process),
            directory,
            control,
            client,
            driver: Some(driver),
            aeron,
        }
    }

    pub(super) fn path(&self) -> &str {
        self.directory.path().to_str().unwrap()
    }

    /// Connects to it.
    pub(super) fn connect(&self) -> ArchiveClient {
        ArchiveContext::new()
            .control_channel("aeron:ipc")
            .response_channel("aeron:ipc")
            .message_timeout(Duration::from_secs(60))
            .connect(&self.client)
            .unwrap()
    }

    /// Runs `taran recordings VERB PLACE MORE...` with this archive's driver.
    pub(super) fn recordings(&self, verb: &str, place: &str, more: &[&str]) -> Outcome {
        run(&mut self.command(verb, place, more))
    }

    pub(super) fn command(&self, verb: &str, place: &str, more: &[&str]) -> std::process::Command {
        let mut command = taran(&["recordings", verb, place]);
        command.args(more).env("AERON_DIR", self.aeron.path());
        // The machine may be busy.
        if !matches!(verb, "verify" | "compact" | "import" | "mark" | "errors") {
            command.args(["--timeout", "60s"]);
        }
        command
    }

    /// Records messages, waits until they are recorded, and stops the recording if `is_stopped`. Returns the recording, its
    /// end and the publication.
    pub(super) fn record(
        &self,
        stream_id: i32,
        count: u64,
        length: usize,
        is_stopped: bool,
    ) -> (i64, i64, ExclusivePublication) {
        let mut archive = self.connect();
        let mut publication = archive
            .add_recorded_exclusive_publication(CHANNEL, stream_id)
            .unwrap();
        let started = archive.wait_for_signal(|_| true).unwrap();
        let id = started.recording_id;
        for index in 0..count {
            offer(&mut publication, index, length);
        }
        let end = publication.position();
        await_true("the recorded position", || {
            archive.max_recorded_position(id).unwrap() >= end
        });
        if is_stopped {
            assert!(archive.stop_recording_by_identity(id).unwrap());
            await_true("the stop position", || {
                archive.stop_position(id).unwrap() == Some(end)
            });
        }
        (id, end, publication)
    }

    /// Ends the archive in order, and keeps the directory.
    pub(super) fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.signal("TERM");
            process.wait().assert_code(0).assert_silent();
        }
    }

    /// Kills the archive, and makes its last heartbeat old.
    pub(super) fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.signal("KILL");
            process.wait();
        }
        let mark = self.directory.path().join("archive-mark.dat");
        let file = std::fs::File::options().write(true).open(mark).unwrap();
        // Any time that is longer ago than the limit.
        let old = LIVENESS_TIMEOUT_MS;
        std::os::unix::fs::FileExt::write_all_at(&file, &old.to_le_bytes(), 16).unwrap();
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        // The archive before its driver.
        self.process = None;
        self.client.close();
        self.driver = None;
    }
}

/// Offers the message with an index.
pub(super) fn offer(publication: &mut ExclusivePublication, index: u64, length: usize) {
    let payload = message(index, length);
    await_true("room for a message", || match publication.offer(&payload) {
        Ok(_) => true,
        Err(error) => {
            assert!(error.is_retryable(), "{error}");
            false
        }
    });
}

/// Takes messages from a subscription until it has `count` of them, which must be those from 0.
pub(super) fn take_messages(subscription: &mut Subscription, count: u64, length: usize) {
    let mut next = 0;
    await_true("the messages", || {
        subscription
            .poll(
                |payload, _| {
                    assert_eq!(payload, message(next, length));
                    next += 1;
                },
                10,
            )
            .unwrap();
        next >= count
    });
    assert_eq!(next, count);
}
