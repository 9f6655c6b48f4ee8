//! The official jar, run as other processes: found or built once, spoken to by lines.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a program may stay silent before the test gives up on it.
const PATIENCE: Duration = Duration::from_secs(240);

/// `None` where there is no JDK or Maven: the caller reports itself as skipped. With
/// `TARAN_REQUIRE_INTEROP=1` that is a failure instead.
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

/// Leaves the calling test, loudly, where the official jar cannot be run.
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

/// Time of the newest file at or below `path`; the beginning of time where there is none.
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

/// One running Java program. Dropping it kills it.
pub(crate) struct Java {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Java {
    /// Starts `Main <program> arguments...` of the interop project.
    pub(crate) fn start(program: &str, arguments: &[String]) -> Java {
        Java::start_with(program, &[], arguments)
    }

    /// The same, with options for the virtual machine, such as `-Daeron.mtu.length=8k`.
    pub(crate) fn start_with(program: &str, options: &[String], arguments: &[String]) -> Java {
        let class_path = jar().expect("require_java! comes first");
        let mut child = Command::new("java")
            .args([
                "-XX:+UseSerialGC",
                "-Xshare:auto",
                "-Xmx512m",
                "-XX:+PerfDisableSharedMem",
            ])
            .args(["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"])
            .args(["--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED"])
            .args(options)
            .args(["-cp", class_path, "io.taran.interop.Main", program])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("java starts");
        let (sender, lines) = channel();
        let output = child.stdout.take().expect("stdout is piped");
        let errors = child.stderr.take().expect("stderr is piped");
        let stderr_sender = sender.clone();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                let _ = stderr_sender.send(format!("stderr: {line}"));
            }
        });
        Java {
            name: program.to_owned(),
            input: child.stdin.take(),
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// Waits for the next line that starts with `word`, and gives what follows the word.
    pub(crate) fn expect(&mut self, word: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    let found = line.strip_prefix(word).map(|rest| rest.trim().to_owned());
                    self.seen.push(line);
                    if let Some(rest) = found {
                        return rest;
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.fail(&format!("no line {word:?} in time")),
                Err(RecvTimeoutError::Disconnected) => {
                    self.fail(&format!("ended without a line {word:?}"));
                }
            }
        }
    }

    /// Value of `key=value` in a line.
    pub(crate) fn value<T: std::str::FromStr>(line: &str, key: &str) -> T {
        line.split_whitespace()
            .find_map(|field| field.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
            .unwrap_or_else(|| panic!("no {key}= in {line:?}"))
    }

    /// Closes the program's standard input, which most of them take as the sign to end.
    pub(crate) fn release(&mut self) {
        self.input = None;
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("a running process can be killed");
        self.child.wait().expect("a killed process ends");
    }

    /// Waits for the end, asserts success, and gives every line that was printed.
    pub(crate) fn finish(mut self) -> Vec<String> {
        self.release();
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().expect("the process is ours") {
                Some(status) => break status,
                None if Instant::now() > deadline => self.fail("did not end in time"),
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        self.seen.extend(self.lines.iter());
        if !status.success() {
            self.fail(&format!("ended with {status}"));
        }
        std::mem::take(&mut self.seen)
    }

    fn fail(&mut self, reason: &str) -> ! {
        self.seen.extend(self.lines.try_iter());
        panic!(
            "java {}: {reason}; it said:\n{}",
            self.name,
            self.seen.join("\n")
        );
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `key=value` as an argument.
pub(crate) fn argument(key: &str, value: impl std::fmt::Display) -> String {
    format!("{key}={value}")
}

/// A directory name under `/dev/shm` that no other test uses.
pub(crate) fn directory(name: &str) -> PathBuf {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    PathBuf::from(format!(
        "/dev/shm/taran-test-{}-{number}-{name}",
        std::process::id()
    ))
}
