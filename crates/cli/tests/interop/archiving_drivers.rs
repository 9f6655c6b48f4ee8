// SPDX-License-Identifier: Apache-2.0
//! `taran archive --driver`: driver and archive in one process, in place of the official `ArchivingMediaDriver`.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use taran_archive_client::protocol::{RecordingSignal, SourceLocation};
use taran_archive_client::{ArchiveContext, ReplayParams};

use crate::archive_client::fixture::{await_recorded, message, publish};
use crate::exchange::{await_true, connect, port};
use crate::java::{self, argument, directory};
use crate::program::Program;
use crate::require_java;
use crate::signal::signal;

const STREAM: i32 = 1_001;
const REPLAYS: i32 = 1_002;

/// A process with driver and archive. Dropping it kills it.
struct ArchivingDriver {
    aeron_dir: PathBuf,
    archive_dir: PathBuf,
    control: String,
    program: Program,
}

impl ArchivingDriver {
    fn start(name: &str, properties: &[(&str, &str)]) -> Self {
        let (aeron_dir, archive_dir) = (directory(name), directory(&format!("{name}-archive")));
        let control = format!("aeron:udp?endpoint=127.0.0.1:{}", port());
        let mut command = Command::new(env!("CARGO_BIN_EXE_taran"));
        command
            .args(["archive", "--driver"])
            .env_clear()
            .env("AERON_DIR", &aeron_dir)
            .env("AERON_DIR_DELETE_ON_SHUTDOWN", "true")
            .env("AERON_TERM_BUFFER_LENGTH", "64k")
            .env("AERON_IPC_TERM_BUFFER_LENGTH", "64k")
            .env("AERON_ARCHIVE_DIR", &archive_dir)
            .env("AERON_ARCHIVE_CONTROL_CHANNEL", &control)
            .env(
                "AERON_ARCHIVE_REPLICATION_CHANNEL",
                "aeron:udp?endpoint=127.0.0.1:0",
            )
            // Tests run on small file systems in memory.
            .env("AERON_ARCHIVE_SEGMENT_FILE_LENGTH", "1m")
            .env("AERON_ARCHIVE_LOW_STORAGE_SPACE_THRESHOLD", "1m");
        for (property, value) in properties {
            command.arg(format!("-D{property}={value}"));
        }
        Self {
            program: Program::start("taran archive --driver", &mut command),
            aeron_dir,
            archive_dir,
            control,
        }
    }

    /// Ends the process by SIGTERM: in order, and it must have written its start line alone.
    fn end(self) {
        signal(self.program.id(), "TERM");
        let said = self.program.finish();
        assert!(
            matches!(said.as_slice(), [start] if start.starts_with("taran archive ")),
            "taran archive --driver said {said:#?}"
        );
        assert!(!self.aeron_dir.exists(), "the driver's directory remains");
        std::fs::remove_dir_all(self.archive_dir).unwrap();
    }
}

/// Records and replays in a threading mode of driver and archive.
fn record_in(driver_mode: &str, archive_mode: &str) {
    let properties = [
        ("aeron.threading.mode", driver_mode),
        ("aeron.archive.threading.mode", archive_mode),
    ];
    let both = ArchivingDriver::start(&format!("archiving-{driver_mode}"), &properties);
    let client = connect(&both.aeron_dir);
    let context = ArchiveContext::new()
        .control_channel(&both.control)
        .response_channel("aeron:udp?endpoint=127.0.0.1:0")
        .message_timeout(Duration::from_secs(60));
    let mut archive = context.connect(&client).unwrap();
    let channel = "aeron:ipc";
    archive
        .start_recording(channel, STREAM, SourceLocation::LOCAL, false)
        .unwrap();
    let mut publication = client.add_exclusive_publication(channel, STREAM).unwrap();
    publish(&mut archive, &mut publication, 0..200, 1_000);
    let started = archive
        .wait_for_signal(|signal| signal.signal == RecordingSignal::START)
        .unwrap();
    let id = started.recording_id;
    await_recorded(&mut archive, id, publication.position());
    let params = ReplayParams::new().until_now();
    let (_, mut replay) = archive.replay(id, channel, REPLAYS, &params).unwrap();
    let mut next = 0;
    await_true("the replay", || {
        archive.poll();
        let handler = |payload: &[u8], _: &taran::Header<'_>| {
            assert_eq!(payload, message(next, 1_000), "message {next}");
            next += 1;
        };
        replay.poll(handler, 20).unwrap();
        next == 200
    });
    // Errors are the driver's, so that there is no counter for those of the archive.
    assert_eq!(
        client
            .counters()
            .find(|meta| meta.type_id == 101)
            .map(|meta| meta.id),
        None
    );
    drop((replay, publication, archive, client));
    both.end();
}

#[test]
fn archiving_driver_records_with_threads_of_their_own() {
    record_in("DEDICATED", "DEDICATED");
}

#[test]
fn archiving_driver_records_on_one_thread_each() {
    record_in("SHARED", "SHARED");
}

#[test]
fn archiving_driver_records_on_the_invoking_thread() {
    record_in("INVOKER", "INVOKER");
}

#[test]
fn archiving_driver_records_with_an_invoked_archive_beside_threads() {
    record_in("SHARED_NETWORK", "INVOKER");
}

#[test]
fn invoked_driver_refuses_an_archive_with_threads() {
    let properties = [("aeron.threading.mode", "INVOKER")];
    let mut both = ArchivingDriver::start("archiving-refused", &properties);
    let error = both.program.expect("stderr: ERROR: archive: ");
    assert!(
        error.contains("aeron.archive.threading.mode=INVOKER"),
        "{error}"
    );
    assert!(!both.aeron_dir.exists() && !both.archive_dir.exists());
}

#[test]
fn java_client_records_at_a_shared_archiving_driver() {
    require_java!();
    let properties = [
        ("aeron.threading.mode", "SHARED"),
        ("aeron.archive.threading.mode", "SHARED"),
    ];
    let both = ArchivingDriver::start("archiving-java", &properties);
    let mut arguments = vec![
        argument("dir", both.aeron_dir.display()),
        argument("control", &both.control),
        argument("response", "aeron:udp?endpoint=127.0.0.1:0"),
        argument("timeout", 240),
    ];
    arguments.extend([
        argument("channel", "aeron:ipc?term-length=64k"),
        argument("replay", "aeron:ipc?term-length=64k"),
        argument("lengths", "64,1000,32,8000,1376"),
        argument("count", 2_000),
        argument("stop", true),
    ]);
    // The Java client does not wait for a driver's directory.
    drop(connect(&both.aeron_dir));
    let said = java::start("record", &arguments).finish();
    let expected = "REPLAYED messages=2000";
    assert!(said.iter().any(|line| line == expected), "{said:#?}");
    both.end();
}
