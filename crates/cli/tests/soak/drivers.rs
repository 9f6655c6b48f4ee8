// SPDX-License-Identifier: Apache-2.0
//! The drivers: Taran drivers on both machines, the official one on the second.

use std::path::{Path, PathBuf};
use std::process::Command;

use taran_core::counters::CountersReader;
use taran_core::memory::{FileStorage, Storage as _};
use taran_protocol::cnc::{CNC_FILE_NAME, Cnc};

use crate::machines::Machine;
use crate::process::{Directory, Driver};
use crate::program::Program;
use crate::waiting::Starvation;

/// Options of the Taran drivers, by the names of the official ones.
const OPTIONS: [(&str, &str); 4] = [
    ("AERON_TERM_BUFFER_LENGTH", "1m"),
    ("AERON_IPC_TERM_BUFFER_LENGTH", "1m"),
    ("AERON_THREADING_MODE", "SHARED"),
    ("AERON_DIR_DELETE_ON_SHUTDOWN", "true"),
];

/// The same for the official driver.
const PROPERTIES: [&str; 2] = [
    "-Daeron.term.buffer.length=1m",
    "-Daeron.ipc.term.buffer.length=1m",
];

/// A Taran driver.
pub(crate) struct Ours {
    pub(crate) name: &'static str,
    pub(crate) driver: Driver,
    directory: Directory,
}

impl Ours {
    fn start(name: &'static str, machine: &Machine) -> Ours {
        let directory = Directory::new(name);
        let mut command = machine.command(env!("CARGO_BIN_EXE_taran"));
        command
            .arg("driver")
            .env("AERON_DIR", directory.path())
            .envs(OPTIONS);
        let driver = Driver::start_with(&mut command, directory.path());
        Ours {
            name,
            driver,
            directory,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// All drivers.
pub(crate) struct Drivers {
    /// Taran drivers on the first and on the second machine.
    pub(crate) ours: [Ours; 2],
    official: Program,
    official_directory: Directory,
}

impl Drivers {
    pub(crate) fn start(here: &Machine, there: &Machine) -> Drivers {
        let official_directory = Directory::new("soak-official");
        let mut command = java(Some(there));
        command.args([
            "driver",
            &format!("dir={}", official_directory.path().display()),
        ]);
        let mut official = Program::start("the official driver", &mut command);
        official.expect("READY");
        Drivers {
            ours: [
                Ours::start("soak-here", here),
                Ours::start("soak-there", there),
            ],
            official,
            official_directory,
        }
    }

    /// Returns the directories: Taran on the first machine, Taran and official on the second.
    pub(crate) fn directories(&self) -> [PathBuf; 3] {
        let [here, there] = &self.ours;
        [here.path(), there.path(), self.official_directory.path()].map(Path::to_path_buf)
    }

    /// Returns a detector of starved drivers.
    pub(crate) fn starvation(&self) -> Starvation {
        let directories = self.directories();
        Starvation::of(
            directories
                .iter()
                .map(|path| counters(&cnc(path)))
                .collect(),
        )
    }

    /// Stops the drivers; returns the errors.
    pub(crate) fn stop(self) -> Vec<String> {
        let mut errors = Vec::new();
        for Ours {
            name,
            driver,
            directory,
        } in self.ours
        {
            let outcome = driver.stop("TERM");
            if !outcome.stderr.is_empty() {
                errors.push(format!(
                    "{name} wrote to standard error: {}",
                    outcome.stderr
                ));
            }
            drop(directory);
        }
        self.official.finish();
        errors
    }
}

pub(crate) fn cnc(directory: &Path) -> Cnc {
    let region = FileStorage.open(&directory.join(CNC_FILE_NAME)).unwrap();
    Cnc::open(&region).unwrap()
}

pub(crate) fn counters(cnc: &Cnc) -> CountersReader {
    CountersReader::new(cnc.counters_metadata.clone(), cnc.counters_values.clone())
}

/// Returns a command that runs `Main` of the interop project, on a machine, or without a network namespace for clients.
pub(crate) fn java(machine: Option<&Machine>) -> Command {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/target");
    let jars =
        ["interop.jar", "aeron-all-1.51.0.jar"].map(|name| target.join(name).display().to_string());
    let mut command = match machine {
        Some(machine) => machine.command("java"),
        None => Command::new("java"),
    };
    command
        .args([
            "-XX:+UseSerialGC",
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-XX:+PerfDisableSharedMem",
        ])
        .args(["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"])
        .args(["--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED"])
        .args(PROPERTIES)
        .args(["-cp", &jars.join(":"), "io.taran.interop.Main"]);
    command
}
