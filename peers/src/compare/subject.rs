//! Who is measured.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

/// The version of the official jar that the project in `interop` brings.
const JAR: &str = "aeron-all-1.51.0.jar";

/// Whose driver, or implementation client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Implementation {
    /// Ours.
    Taran,
    /// The official one in C.
    C,
    /// The official one in Java.
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

/// What an end of a benchmark of clients is judged.
pub(crate) struct Told<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) channel: &'a str,
    /// Payload bytes of a message.
    pub(crate) length: usize,
    pub(crate) measure_ms: u64,
    pub(crate) warm_up_ms: u64,
}

impl Implementation {
    /// What the benchmark programs call it. They have no driver in Java, and need none: it is a process.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Implementation::Taran | Implementation::Java => "taran",
            Implementation::C => "c",
        }
    }

    /// Its driver as a program, without its options.
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

    /// One end of a benchmark of its client: `publish`, `subscribe`, `ping` or `pong`, on the driver that lives there.
    pub(crate) fn client(self, end: &str, judged: &Told<'_>) -> Command {
        let [length, measure_ms, warm_up_ms] =
            [judged.length as u64, judged.measure_ms, judged.warm_up_ms];
        let directory = judged.directory.display();
        if self == Implementation::Java {
            let mut command = virtual_machine();
            command
                .args(["io.taran.interop.Main", &format!("bench-{end}")])
                .arg(format!("dir={directory}"))
                .arg(format!("channel={}", judged.channel))
                .arg(format!("length={length}"))
                .arg(format!("measure-ms={measure_ms}"))
                .arg(format!("warmup-ms={warm_up_ms}"));
            return command;
        }
        let mut command = Command::new(program("clients"));
        command
            .args(["--client", self.name(), end])
            .args(["--channel", judged.channel])
            .args(["--aeron-dir", &directory.to_string()])
            .args(["--length", &length.to_string()])
            .args(["--measure-ms", &measure_ms.to_string()])
            .args(["--warmup-ms", &warm_up_ms.to_string()]);
        command
    }

    /// Why it cannot be measured here, if so.
    pub(crate) fn is_missing(self) -> Option<String> {
        if self != Implementation::Java {
            return None;
        }
        let jar = interop(JAR);
        if !jar.exists() {
            return Some(format!(
                "{} is not there; `mvn package` in interop/ makes it, with a JDK and Maven",
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

/// The Java driver takes options as properties, and its directory and mode as arguments of the program around it.
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

/// With our Java programs and the official jar; what it runs comes behind.
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

/// The folder of the whole project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A benchmark program: they are built together, and lie in one folder.
pub(crate) fn program(name: &str) -> PathBuf {
    let here = std::env::current_exe().unwrap_or_default();
    here.with_file_name(name)
}
