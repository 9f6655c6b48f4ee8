// SPDX-License-Identifier: Apache-2.0
//! Measurements of archives.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use taran_peers::measured::Measured;

use super::drivers::{CORES, Drivers, set_options};
use super::{IDLE, Run, TIMEOUT, WARM_UP, WARM_UP_JAVA, cpu_time, measured};
use crate::interrupt;
use crate::plan::{ArchiveTask, DriverSetup, Mode};
use crate::process::{Program, archive_directory, directory};
use crate::subject::{ArchiveArguments, Implementation, program};
use crate::testbed::{End, Place, Testbed};

/// Channels of the archives; only clients at the same driver use them.
const OPTIONS: [(&str, &str); 2] = [
    (
        "aeron.archive.control.channel",
        "aeron:udp?endpoint=127.0.0.1:20161",
    ),
    (
        "aeron.archive.replication.channel",
        "aeron:udp?endpoint=127.0.0.1:0",
    ),
];

/// Options for many idle recordings.
const MANY: [(&str, &str); 1] = [("aeron.archive.max.concurrent.recordings", "10000")];

/// Options for recordings that survive a power loss.
const DURABLE: [(&str, &str); 2] = [
    ("aeron.archive.file.sync.level", "1"),
    ("aeron.archive.catalog.file.sync.level", "1"),
];

/// Bytes of a round of durable recordings, which disks write slowly.
const DURABLE_BYTES: u64 = 128 << 20;
/// Bytes of a round of recordings over the loopback, which some drivers fill slowly.
const UDP_BYTES: u64 = 64 << 20;
/// Bytes of a recording of which only the beginning is replayed.
const FEW_BYTES: u64 = 1 << 20;

/// Channel of streams over the loopback interface.
const UDP: &str = "aeron:udp?endpoint=127.0.0.1:20163|term-length=16m";
const IPC: &str = "aeron:ipc?term-length=16m";
/// Channel of idle streams.
const SMALL: &str = "aeron:ipc?term-length=64k";

/// An archive process, with a driver in it or beside one.
struct Archiving {
    archive: Program,
    aeron_dir: PathBuf,
    archive_dir: PathBuf,
    /// Ends after the archive.
    drivers: Option<Drivers>,
}

impl Archiving {
    /// Starts an archive with a driver in the process, each on one thread.
    fn with_driver(
        implementation: Implementation,
        archive_dir: PathBuf,
        options: &[(&str, &str)],
    ) -> Result<Archiving, String> {
        let mut all = vec![
            ("aeron.threading.mode", "SHARED"),
            ("aeron.archive.threading.mode", "SHARED"),
            ("aeron.dir.delete.on.shutdown", "true"),
        ];
        all.extend(options);
        Self::start(
            implementation,
            directory("archive"),
            archive_dir,
            None,
            &all,
        )
    }

    /// Starts an archive beside a driver of the same implementation, both with default threading.
    fn beside(
        implementation: Implementation,
        drivers: Drivers,
        archive_dir: PathBuf,
    ) -> Result<Archiving, String> {
        let aeron_dir = drivers.directory().ok_or("no driver")?;
        let drivers = Some(drivers);
        Self::start(implementation, aeron_dir, archive_dir, drivers, &MANY)
    }

    fn start(
        implementation: Implementation,
        aeron_dir: PathBuf,
        archive_dir: PathBuf,
        drivers: Option<Drivers>,
        options: &[(&str, &str)],
    ) -> Result<Archiving, String> {
        let mut all = OPTIONS.to_vec();
        all.extend(options);
        let arguments = ArchiveArguments {
            directory: &aeron_dir,
            archive_dir: &archive_dir,
            with_driver: drivers.is_none(),
            options: &all,
        };
        let mut command = implementation.archive(&arguments);
        set_options(&mut command, &all);
        command
            .env("AERON_DIR", &aeron_dir)
            .env("AERON_ARCHIVE_DIR", &archive_dir);
        let testbed = Testbed::new(&Place::Ipc)?;
        let mut archive = Program::start(testbed.at(End::Near, None, &command), "the archive")?;
        let line = archive.line(TIMEOUT)?;
        if !line.starts_with("READY") {
            return Err(format!("the archive printed {line:?} instead of READY"));
        }
        Ok(Archiving {
            archive,
            aeron_dir,
            archive_dir,
            drivers,
        })
    }

    /// Returns the command of a load, on the core of the near end.
    fn load(&self, load: &str, durations: &[String]) -> Command {
        let mut command = Command::new(program("archives"));
        command
            .arg(load)
            .arg("--aeron-dir")
            .arg(&self.aeron_dir)
            .args(["--cpu", &CORES[0].to_string()])
            .args(durations);
        command
    }

    /// Runs a load and returns what it has measured.
    fn measure(&mut self, command: Command) -> Result<Measured, String> {
        let mut load = Program::start(command, "the load")?;
        measured(&mut load, Some(&mut self.archive))
    }
}

impl Drop for Archiving {
    fn drop(&mut self) {
        if let Err(reason) = self.archive.end() {
            eprintln!("{reason}");
        }
        let _ = std::fs::remove_dir_all(&self.archive_dir);
        if self.drivers.is_none() {
            // Usually already removed by the driver at its shutdown.
            let _ = std::fs::remove_dir_all(&self.aeron_dir);
        }
    }
}

impl Run {
    /// Runs a measurement of an archive.
    pub(super) fn archive(&self, task: &ArchiveTask) -> Result<Measured, String> {
        match task {
            ArchiveTask::Record {
                place,
                streams,
                length,
                is_durable,
            } => {
                let options: &[_] = if *is_durable { &DURABLE } else { &[] };
                let mut archiving = self.with_driver(options)?;
                let mut load = archiving.load("record", &self.durations());
                load.args(["--channel", channel(place)])
                    .args(["--length", &length.to_string()])
                    .args(["--streams", &streams.to_string()]);
                if *place != Place::Ipc {
                    load.arg("--remote")
                        .args(["--bytes", &UDP_BYTES.to_string()]);
                }
                if *is_durable {
                    load.args(["--bytes", &DURABLE_BYTES.to_string()]);
                }
                archiving.measure(load)
            }
            ArchiveTask::Durability { streams, rate } => {
                let mut archiving = self.with_driver(&DURABLE)?;
                let mut load = archiving.load("durability", &self.durations());
                load.args(["--streams", &streams.to_string()])
                    .args(["--rate", &rate.to_string()]);
                archiving.measure(load)
            }
            ArchiveTask::Replay { place } => {
                let mut archiving = self.with_driver(&[])?;
                let mut load = archiving.load("replay", &self.durations());
                load.args(["--channel", channel(place)])
                    .args(["--length", "1344"]);
                archiving.measure(load)
            }
            ArchiveTask::Echo {
                setup,
                rate,
                is_recorded,
            } => self.echo_beside(setup, *rate, *is_recorded),
            ArchiveTask::Connect => {
                let mut archiving = self.with_driver(&[])?;
                let mut load = archiving.load("connect", &self.durations());
                load.args(["--bytes", &FEW_BYTES.to_string()]);
                archiving.measure(load)
            }
            ArchiveTask::List(count) => {
                let mut archiving = self.with_recordings(*count)?;
                let load = archiving.load("list", &self.durations());
                archiving.measure(load)
            }
            ArchiveTask::Find(count) => {
                let mut archiving = self.with_recordings(*count)?;
                let mut load = archiving.load("find", &self.durations());
                load.args(["--bytes", &(count / 2).to_string()]);
                archiving.measure(load)
            }
            ArchiveTask::Restart(count) => self.restart(*count),
            ArchiveTask::Idle => {
                let archiving = self.beside(archive_directory("idle"))?;
                let id = archiving.archive.id();
                // Excludes the work of the start-up.
                interrupt::pause(Duration::from_secs(2))?;
                let (before, start) = (cpu_time(id)?, Instant::now());
                interrupt::pause(Duration::from_millis(self.measure_ms.max(IDLE)))?;
                let used = cpu_time(id)?.saturating_sub(before);
                let load = 100.0 * used.as_secs_f64() / start.elapsed().as_secs_f64();
                Ok(Measured::of(load))
            }
            ArchiveTask::RecordingMemory(count) => self.memory(*count, 0),
            ArchiveTask::SessionMemory(count) => self.memory(0, *count),
            ArchiveTask::WriteLimit => self.limit("write"),
            ArchiveTask::ReadLimit => self.limit("read"),
        }
    }

    fn with_driver(&self, options: &[(&str, &str)]) -> Result<Archiving, String> {
        Archiving::with_driver(self.implementation, archive_directory("near"), options)
    }

    fn beside(&self, archive_dir: PathBuf) -> Result<Archiving, String> {
        let setup = DriverSetup {
            place: Place::Ipc,
            mode: Mode::Default,
            length: 0,
            options: &[],
            is_secured: false,
        };
        let drivers = Drivers::start(self.implementation, &setup, &Testbed::new(&setup.place)?)?;
        Archiving::beside(self.implementation, drivers, archive_dir)
    }

    fn with_recordings(&self, count: u32) -> Result<Archiving, String> {
        let archive_dir = archive_directory("near");
        write_recordings(&archive_dir, count, false)?;
        Archiving::with_driver(self.implementation, archive_dir, &[])
    }

    /// Runs round trips at a driver with an archive that records the requests, or does nothing.
    fn echo_beside(
        &self,
        setup: &DriverSetup,
        rate: u64,
        is_recorded: bool,
    ) -> Result<Measured, String> {
        let mut archiving = self.with_driver(&[])?;
        let testbed = Testbed::new(&setup.place)?;
        let mut recording = None;
        if is_recorded {
            let mut load = archiving.load("beside", &[]);
            load.args(["--channel", &testbed.channel()]);
            let mut program = Program::start(load, "the start of the recording")?;
            program.line(TIMEOUT)?;
            recording = Some(program);
        }
        let mut command = Command::new(program("drivers"));
        let core = CORES[0].to_string();
        command
            .args(["--driver", Implementation::Taran.name(), "echo"])
            .args(["--rate", &rate.to_string()])
            .args(["--channel", &testbed.channel()])
            .args(["--reply-channel", &testbed.reply_channel()])
            .args(["--cpus", &format!("{core},{core}")])
            .arg("--aeron-dir")
            .arg(&archiving.aeron_dir);
        self.add_durations(&mut command, setup, crate::plan::Topology::ONE);
        let found = archiving.measure(testbed.at(End::Near, None, &command));
        drop(recording);
        found
    }

    /// Measures the start of an archive in the directory of one that was killed.
    fn restart(&self, count: u32) -> Result<Measured, String> {
        let archive_dir = archive_directory("killed");
        write_recordings(&archive_dir, count, true)?;
        let setup = DriverSetup {
            place: Place::Ipc,
            mode: Mode::Default,
            length: 0,
            options: &[],
            is_secured: false,
        };
        let drivers = Drivers::start(self.implementation, &setup, &Testbed::new(&setup.place)?)?;
        // The driver has work of its own at its start.
        interrupt::pause(Duration::from_millis(WARM_UP))?;
        let start = Instant::now();
        let archiving = Archiving::beside(self.implementation, drivers, archive_dir)?;
        let elapsed = start.elapsed();
        drop(archiving);
        Ok(Measured::of(elapsed.as_secs_f64() * 1e3))
    }

    /// Measures by how much the private memory of an archive grows with idle recordings or sessions.
    fn memory(&self, recordings: u16, sessions: u16) -> Result<Measured, String> {
        let archiving = self.beside(archive_directory("near"))?;
        let hold = |recordings: u16, sessions: u16| {
            let mut load = archiving.load("hold", &[]);
            load.args(["--channel", SMALL])
                .args(["--streams", &recordings.to_string()])
                .args(["--sessions", &sessions.to_string()]);
            let mut program = Program::start(load, "the recordings and sessions")?;
            program.line(TIMEOUT)?;
            Ok::<_, String>(program)
        };
        // What the first ones need is kept for all others.
        drop(hold(recordings.min(1), sessions.min(1))?);
        let before = private_memory(archiving.archive.id())?;
        let held = hold(recordings, sessions)?;
        let after = private_memory(archiving.archive.id())?;
        drop(held);
        let each = after.saturating_sub(before) as f64 / f64::from(recordings.max(sessions));
        Ok(Measured::of(each))
    }

    /// Moves the same blocks as an archive, without one.
    fn limit(&self, direction: &str) -> Result<Measured, String> {
        let directory = archive_directory("near");
        let mut command = Command::new(program("archives"));
        command
            .arg(direction)
            .arg("--dir")
            .arg(&directory)
            .args(["--cpu", &CORES[1].to_string()])
            .args(self.durations());
        let mut program = Program::start(command, "the limit")?;
        let found = measured(&mut program, None);
        drop(program);
        let _ = std::fs::remove_dir_all(&directory);
        found
    }

    fn durations(&self) -> Vec<String> {
        [
            ("--measure-ms", self.measure_ms),
            ("--warmup-ms", WARM_UP_JAVA),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value.to_string()])
        .collect()
    }
}

fn channel(place: &Place) -> &'static str {
    if *place == Place::Ipc { IPC } else { UDP }
}

/// Writes the directory of an archive with recordings.
fn write_recordings(directory: &Path, count: u32, is_active: bool) -> Result<(), String> {
    let mut command = Command::new(program("archives"));
    command
        .arg("files")
        .arg("--dir")
        .arg(directory)
        .args(["--count", &count.to_string()]);
    if is_active {
        command.arg("--active");
    }
    let mut program = Program::start(command, "the recordings")?;
    program.line(TIMEOUT).map(drop)
}

/// Returns the memory of a process that is neither shared nor of a file, in KiB.
fn private_memory(id: u32) -> Result<u64, String> {
    let path = format!("/proc/{id}/status");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| format!("{path} has no RssAnon"))
}
