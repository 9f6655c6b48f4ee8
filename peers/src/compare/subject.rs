// SPDX-License-Identifier: Apache-2.0
//! Implementations and the programs that run for each.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;
use taran_bench::client_idle::ClientIdle;

/// Official jar that the Maven project in `interop` installs.
const JAR: &str = "aeron-all-1.51.0.jar";

/// Flags of the virtual machines of members: three have to fit into the memory of a small machine. The heap does not grow.
const MEMBER_FLAGS: [&str; 3] = ["-Xms1g", "-Xmx1g", "-Dagrona.disable.bounds.checks=true"];

/// Implementation of a driver or client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Implementation {
    /// This project.
    Taran,
    /// The official C implementation.
    C,
    /// The official Java implementation.
    Java,
}

impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Implementation::Taran => "Taran",
            Implementation::C => "official C",
            Implementation::Java => "official Java",
        })
    }
}

/// Arguments of one end of a client benchmark.
pub(crate) struct ClientArguments<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) channel: &'a str,
    /// Payload bytes of a message.
    pub(crate) length: usize,
    pub(crate) idle: ClientIdle,
    pub(crate) measure_ms: u64,
    pub(crate) warm_up_ms: u64,
}

/// Arguments of an archive process.
pub(crate) struct ArchiveArguments<'a> {
    /// Directory of the driver.
    pub(crate) directory: &'a Path,
    /// Directory of the archive.
    pub(crate) archive_dir: &'a Path,
    /// The process has a driver.
    pub(crate) with_driver: bool,
    /// Options that differ from the defaults.
    pub(crate) options: &'a [(&'a str, &'a str)],
}

/// Arguments of a member of a cluster, which has driver, archive and service in its process.
pub(crate) struct MemberArguments<'a> {
    /// Directory of the driver.
    pub(crate) directory: &'a Path,
    /// Directory of the archive.
    pub(crate) archive_dir: &'a Path,
    /// Directory of the cluster.
    pub(crate) cluster_dir: &'a Path,
    /// Bytes of the service's state.
    pub(crate) state: usize,
    /// Options that differ from the defaults.
    pub(crate) options: &'a [(String, String)],
}

impl Implementation {
    /// Returns the implementation's name in the arguments of the benchmark programs. With the Java implementation the driver
    /// is a process of its own, and the benchmark programs use our client.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Implementation::Taran | Implementation::Java => "taran",
            Implementation::C => "c",
        }
    }

    /// Returns the command of its driver. For Java it contains the options; the other drivers take them from the environment.
    pub(crate) fn driver(self, directory: &Path, options: &[(&str, &str)]) -> Command {
        match self {
            Implementation::Taran | Implementation::C => {
                let mut command = Command::new(program("drivers"));
                command.args(["--driver", self.name(), "run"]);
                command
            }
            Implementation::Java => java(directory, options),
        }
    }

    /// Returns the command of its archive. For Java it contains the options; ours takes them from the environment. There is
    /// no C archive.
    pub(crate) fn archive(self, arguments: &ArchiveArguments<'_>) -> Command {
        if self != Implementation::Java {
            let mut command = Command::new(program("archives"));
            command.arg("run");
            if arguments.with_driver {
                command.arg("--driver");
            }
            return command;
        }
        let mut command = virtual_machine();
        let mut threading = "DEDICATED";
        for (name, value) in arguments.options {
            command.arg(format!("-D{name}={value}"));
            if *name == "aeron.archive.threading.mode" {
                threading = value;
            }
        }
        command
            .args(["io.taran.interop.Main", "archive"])
            .arg(format!("dir={}", arguments.directory.display()))
            .arg(format!("archive-dir={}", arguments.archive_dir.display()))
            .arg(format!("driver={}", arguments.with_driver))
            .arg(format!("threading={threading}"));
        command
    }

    /// Returns the command of its member of a cluster. For Java it contains the options and directories; ours takes them from
    /// the environment.
    pub(crate) fn member(self, arguments: &MemberArguments<'_>) -> Command {
        if self != Implementation::Java {
            let mut command = Command::new(program("clusters"));
            command
                .arg("run")
                .args(["--state", &arguments.state.to_string()]);
            return command;
        }
        let mut command = virtual_machine();
        command.args(MEMBER_FLAGS);
        let mut threading = ["DEDICATED"; 2];
        for (name, value) in arguments.options {
            command.arg(format!("-D{name}={value}"));
            match name.as_str() {
                "aeron.threading.mode" => threading[0] = value,
                "aeron.archive.threading.mode" => threading[1] = value,
                _ => {}
            }
        }
        command
            .args(["io.taran.interop.Main", "cluster-member"])
            .arg(format!("dir={}", arguments.directory.display()))
            .arg(format!("archive-dir={}", arguments.archive_dir.display()))
            .arg(format!("cluster-dir={}", arguments.cluster_dir.display()))
            .arg(format!("threading={}", threading[0]))
            .arg(format!("archive-threading={}", threading[1]))
            .arg(format!("state={}", arguments.state));
        command
    }

    /// Returns the command of one end of a client benchmark: `publish`, `subscribe`, `ping` or `pong`.
    pub(crate) fn client(self, end: &str, arguments: &ClientArguments<'_>) -> Command {
        let [length, measure_ms, warm_up_ms] = [
            arguments.length as u64,
            arguments.measure_ms,
            arguments.warm_up_ms,
        ];
        let directory = arguments.directory.display();
        if self == Implementation::Java {
            let mut command = virtual_machine();
            command
                .args(["io.taran.interop.Main", &format!("bench-{end}")])
                .arg(format!("dir={directory}"))
                .arg(format!("channel={}", arguments.channel))
                .arg(format!("length={length}"))
                .arg(format!("idle={}", arguments.idle))
                .arg(format!("measure-ms={measure_ms}"))
                .arg(format!("warmup-ms={warm_up_ms}"));
            return command;
        }
        let mut command = Command::new(program("clients"));
        command
            .args(["--client", self.name(), end])
            .args(["--channel", arguments.channel])
            .args(["--aeron-dir", &directory.to_string()])
            .args(["--length", &length.to_string()])
            .args(["--client-idle", &arguments.idle.to_string()])
            .args(["--measure-ms", &measure_ms.to_string()])
            .args(["--warmup-ms", &warm_up_ms.to_string()]);
        command
    }

    /// Returns the reason why it cannot run on this machine, if there is one.
    pub(crate) fn problem(self) -> Option<String> {
        if self != Implementation::Java {
            return None;
        }
        let jar = interop(JAR);
        if !jar.exists() {
            return Some(format!(
                "{} does not exist; run `mvn package` in interop/ (needs a JDK and Maven)",
                jar.display()
            ));
        }
        let version = Command::new("java")
            .arg("-version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        version
            .err()
            .map(|error| format!("java cannot be run ({error}); install a JDK"))
    }
}

/// Returns the command of the Java driver: options are system properties, directory and threading mode are arguments of our
/// main class.
fn java(directory: &Path, options: &[(&str, &str)]) -> Command {
    let mut command = virtual_machine();
    for (name, value) in options {
        command.arg(format!("-D{name}={value}"));
    }
    let threading = options
        .iter()
        .rfind(|(name, _)| *name == "aeron.threading.mode")
        .map_or("DEDICATED", |(_, value)| value);
    command
        .args(["io.taran.interop.Main", "driver"])
        .arg(format!("dir={}", directory.display()))
        .arg(format!("threading={threading}"));
    command
}

/// Returns a `java` command with our classes and the official jar on the class path; the main class is appended by the caller.
fn virtual_machine() -> Command {
    let class_path = format!(
        "{}:{}",
        interop("interop.jar").display(),
        interop(JAR).display()
    );
    let mut command = Command::new("java");
    command
        .args(["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"])
        .args(["--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED"])
        .args(["-XX:+UseSerialGC", "-cp", &class_path]);
    command
}

fn interop(name: &str) -> PathBuf {
    root().join("interop/target").join(name)
}

/// Returns the root folder of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the path of a benchmark program; all are built into one folder.
pub(crate) fn program(name: &str) -> PathBuf {
    let here = std::env::current_exe().unwrap_or_default();
    here.with_file_name(name)
}
