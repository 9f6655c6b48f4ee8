// SPDX-License-Identifier: Apache-2.0
//! Finds or builds the official jar once, and runs it in other processes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::program::Program;

/// Returns the class path, or `None` if there is no JDK or Maven; the caller then skips its test. With
/// `TARAN_REQUIRE_INTEROP=1` that is a failure.
pub(crate) fn jar() -> Option<&'static str> {
    static CLASS_PATH: OnceLock<Result<String, String>> = OnceLock::new();
    match CLASS_PATH.get_or_init(build) {
        Ok(class_path) => Some(class_path),
        Err(reason) => {
            assert!(
                std::env::var_os("TARAN_REQUIRE_INTEROP").is_none_or(|value| value != "1"),
                "interop tests are required, but {reason}"
            );
            eprintln!("SKIPPED: no interop with the official jar: {reason}");
            None
        }
    }
}

/// Returns from the calling test, with a message, if the official jar cannot be run.
#[macro_export]
macro_rules! require_java {
    () => {
        if $crate::java::jar().is_none() {
            return;
        }
    };
}

fn build() -> Result<String, String> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop");
    let jars =
        ["interop.jar", "aeron-all-1.51.0.jar"].map(|name| project.join("target").join(name));
    let sources_newer = newest(&project.join("src")) > newest(&jars[0]);
    if sources_newer || !jars.iter().all(|jar| jar.exists()) {
        let output = Command::new("mvn")
            .args(["--quiet", "--batch-mode", "package"])
            .current_dir(&project)
            .output()
            .map_err(|error| format!("mvn cannot be run: {error}"))?;
        if !output.status.success() {
            return Err(format!(
                "mvn package failed in interop/: {}",
                String::from_utf8_lossy(&output.stdout)
            ));
        }
    }
    Command::new("java")
        .arg("-version")
        .output()
        .map_err(|error| format!("java cannot be run: {error}"))?;
    Ok(jars.map(|jar| jar.display().to_string()).join(":"))
}

/// Returns the time of the newest file at or below `path`; the epoch if there is none.
fn newest(path: &Path) -> std::time::SystemTime {
    let own = path
        .metadata()
        .and_then(|metadata| metadata.modified())
        .unwrap_or(std::time::UNIX_EPOCH);
    if !path.is_dir() {
        return own;
    }
    std::fs::read_dir(path).map_or(std::time::UNIX_EPOCH, |entries| {
        entries
            .flatten()
            .map(|entry| newest(&entry.path()))
            .max()
            .unwrap_or(std::time::UNIX_EPOCH)
    })
}

/// Starts `Main <program> arguments...` of the interop project.
pub(crate) fn start(program: &str, arguments: &[String]) -> Program {
    start_with(program, &[], arguments)
}

/// The same, with options for the virtual machine, such as `-Daeron.mtu.length=8k`.
pub(crate) fn start_with(program: &str, options: &[String], arguments: &[String]) -> Program {
    let class_path = jar().expect("require_java! comes first");
    Program::start(
        program,
        Command::new("java")
            // A virtual machine that reads these variables prints a line about them.
            .env_remove("JAVA_TOOL_OPTIONS")
            .args(["-XX:+UseSerialGC", "-Xmx512m", "-XX:+PerfDisableSharedMem"])
            .args(["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"])
            .args(["--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED"])
            .args(options)
            .args(["-cp", class_path, "io.taran.interop.Main", program])
            .args(arguments),
    )
}

/// Returns `key=value` as an argument.
pub(crate) fn argument(key: &str, value: impl std::fmt::Display) -> String {
    format!("{key}={value}")
}

/// Returns a path under `/dev/shm` that no other test uses.
pub(crate) fn directory(name: &str) -> PathBuf {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    PathBuf::from(format!(
        "/dev/shm/taran-test-{}-{number}-{name}",
        std::process::id()
    ))
}
