// SPDX-License-Identifier: Apache-2.0
//! The official archive client on `taran archive`, and the official tool on its files.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::drivers::Driver;
use crate::exchange::port;
use crate::java::{self, argument, directory};
use crate::program::Program;
use crate::require_java;
use crate::signal::signal;

/// `taran archive` beside a driver. Dropping it kills it.
pub(crate) struct TaranArchive {
    dir: PathBuf,
    control: String,
    properties: Vec<String>,
    program: Program,
}

impl TaranArchive {
    pub(crate) fn start(name: &str, driver: &Driver, properties: &[(&str, &str)]) -> TaranArchive {
        let dir = directory(name);
        let control = format!("aeron:udp?endpoint=127.0.0.1:{}", port());
        let properties: Vec<_> = properties
            .iter()
            .map(|(property, value)| format!("-D{property}={value}"))
            .collect();
        let program = Self::launch(&dir, &control, driver, &properties);
        TaranArchive {
            dir,
            control,
            properties,
            program,
        }
    }

    fn launch(dir: &Path, control: &str, driver: &Driver, properties: &[String]) -> Program {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taran"));
        command
            .arg("archive")
            .env_clear()
            .env("AERON_DIR", driver.dir())
            .env("AERON_ARCHIVE_DIR", dir)
            .arg(format!("-Daeron.archive.control.channel={control}"))
            .arg("-Daeron.archive.replication.channel=aeron:udp?endpoint=127.0.0.1:0")
            // Tests run on small file systems in memory.
            .arg("-Daeron.archive.segment.file.length=1m")
            .arg("-Daeron.archive.low.storage.space.threshold=1m")
            .args(properties);
        Program::start("taran archive", &mut command)
    }

    pub(crate) fn control_channel(&self) -> &str {
        &self.control
    }

    /// `kill -9`, and a new process in the same directory.
    pub(crate) fn kill_and_restart(&mut self, driver: &Driver) {
        self.program.kill();
        self.program = Self::launch(&self.dir, &self.control, driver, &self.properties);
    }

    /// Returns the arguments with which a Java program connects over UDP.
    fn client(&self, driver: &Driver) -> Vec<String> {
        vec![
            argument("dir", driver.dir().display()),
            argument("control", &self.control),
            argument("response", "aeron:udp?endpoint=127.0.0.1:0"),
            argument("timeout", 240),
        ]
    }

    /// Ends the archive by SIGTERM. It must have written its start line alone.
    pub(crate) fn end(self) -> PathBuf {
        signal(self.program.id(), "TERM");
        let said = self.program.finish();
        assert!(
            matches!(said.as_slice(), [start] if start.starts_with("taran archive ")),
            "taran archive said {said:#?}"
        );
        self.dir
    }
}

/// Runs the official tool on the directory of an archive, and returns what it printed.
pub(crate) fn archive_tool(dir: &Path, arguments: &[&str]) -> String {
    let class_path = java::jar().expect("require_java! comes first");
    let output = Command::new("java")
        .env_remove("JAVA_TOOL_OPTIONS")
        .args(["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"])
        .args(["--add-opens", "java.base/java.util.zip=ALL-UNNAMED"])
        .args(["-cp", class_path, "io.aeron.archive.ArchiveTool"])
        .arg(dir)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("java runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {text}{errors}");
    text
}

/// Records on a channel, replays, and verifies the files.
fn record_on(driver: &Driver, name: &str, channel: &str, properties: &[(&str, &str)]) {
    let archive = TaranArchive::start(name, driver, properties);
    let mut arguments = archive.client(driver);
    arguments.extend([
        argument("channel", channel),
        argument("replay", "aeron:ipc?term-length=64k"),
        argument("lengths", "64,1000,32,8000,1376"),
        argument("count", 2_000),
        argument("stop", name.ends_with("stop")),
    ]);
    let client = java::start("record", &arguments);
    let said = client.finish();
    for expected in [
        "SIGNAL START recording=0 position=0",
        "SIGNAL STOP recording=0",
        "REPLAYED messages=2000",
    ] {
        assert!(
            said.iter().any(|line| line.starts_with(expected)),
            "no {expected} in {said:#?}"
        );
    }
    let dir = archive.end();
    let checksum = properties
        .iter()
        .find(|(property, _)| *property == "aeron.archive.record.checksum");
    let mut verify = vec!["verify", "-a"];
    if let Some((_, class)) = checksum {
        verify.extend(["-checksum", class]);
    }
    let verified = archive_tool(&dir, &verify);
    assert!(verified.contains("(recordingId=0) OK"), "{verified}");
    assert_eq!(archive_tool(&dir, &["count-entries"]).trim(), "1");
    std::fs::remove_dir_all(dir).unwrap();
}

fn udp_channel() -> String {
    format!("aeron:udp?endpoint=127.0.0.1:{}|term-length=64k", port())
}

#[test]
fn java_client_records_and_replays_an_ipc_stream() {
    require_java!();
    let driver = Driver::taran("archive-ipc-driver", &[]);
    record_on(
        &driver,
        "archive-ipc-stop",
        "aeron:ipc?term-length=64k",
        &[],
    );
}

#[test]
fn java_client_records_and_replays_a_udp_stream() {
    require_java!();
    let driver = Driver::taran(
        "archive-udp-driver",
        &[("AERON_SPIES_SIMULATE_CONNECTION", "true")],
    );
    let shared = [("aeron.archive.threading.mode", "SHARED")];
    record_on(&driver, "archive-udp", &udp_channel(), &shared);
}

#[test]
fn java_client_records_durably_with_checksums_beside_the_official_driver() {
    require_java!();
    let driver = Driver::official(
        "archive-official-driver",
        &[("aeron.spies.simulate.connection", "true")],
    );
    let durable = [
        ("aeron.archive.file.sync.level", "1"),
        ("aeron.archive.catalog.file.sync.level", "1"),
        (
            "aeron.archive.record.checksum",
            "io.aeron.archive.checksum.Crc32",
        ),
        (
            "aeron.archive.replay.checksum",
            "io.aeron.archive.checksum.Crc32",
        ),
    ];
    record_on(&driver, "archive-durable-stop", &udp_channel(), &durable);
}

/// Requests with wrong parameters, and the codes of the official archive (`docs/spec/archive.md` §2).
const REFUSALS: &[(&str, i32)] = &[
    ("start-channel", 0),
    ("start-twice", 3),
    ("stop-twice", 4),
    ("stop-subscription", 4),
    ("stop-recording", 5),
    ("extend", 5),
    ("start-position", 5),
    ("recording-position", 5),
    ("stop-position", 5),
    ("max-position", 5),
    ("find", 5),
    ("replay", 5),
    ("bounded", 0),
    ("truncate", 5),
    ("purge", 5),
    ("detach", 5),
    ("delete-detached", 5),
    ("purge-segments", 5),
];

#[test]
fn java_client_gets_the_official_codes_for_bad_requests() {
    require_java!();
    let driver = Driver::taran("archive-refused-driver", &[]);
    let archive = TaranArchive::start("archive-refused", &driver, &[]);
    let mut arguments = archive.client(&driver);
    arguments.push(argument("channel", "aeron:ipc?term-length=64k"));
    let said = java::start("refused", &arguments).finish();
    for (name, code) in REFUSALS {
        let expected = format!("REFUSED {name} code={code}");
        assert!(said.contains(&expected), "no {expected} in {said:#?}");
    }
    std::fs::remove_dir_all(archive.end()).unwrap();
}
