// SPDX-License-Identifier: Apache-2.0
//! C programs against header and library: the examples, the whole surface used well and badly, and the death of a driver.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The tests use the library by its C interface alone; this makes Cargo build it first.
use taran_c as _;

/// Time for a program to say that it is ready, and to end: twice what the programs themselves wait for.
const LIMIT: Duration = Duration::from_secs(120);

/// Time without another line after which the output of a killed program counts as ended.
const DRAIN: Duration = Duration::from_secs(1);

/// A folder that is removed at the end: libraries under their installed names, programs, and the directory of a driver.
struct Workshop(PathBuf);

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(Clone, Copy)]
enum Link {
    Shared,
    Static,
}

impl Workshop {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("taran-capi-{}-{count}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        // Cargo puts the library next to the test.
        let test = std::env::current_exe().unwrap();
        let built = test.parent().unwrap();
        let version = concat!(
            env!("CARGO_PKG_VERSION_MAJOR"),
            ".",
            env!("CARGO_PKG_VERSION_MINOR")
        );
        let soname = format!("libtaran.so.{version}");
        let link =
            |from: PathBuf, to: &str| std::os::unix::fs::symlink(from, folder.join(to)).unwrap();
        link(built.join("libtaran_c.so"), &soname);
        link(folder.join(&soname), "libtaran.so");
        link(built.join("libtaran_c.a"), "libtaran.a");
        Self(folder)
    }

    /// Compiles a program; the path is relative to the package.
    fn compile(&self, source: &str, link: Link, definitions: &[&str]) -> PathBuf {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = self.0.join(Path::new(source).file_stem().unwrap());
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&program)
            .args(sanitizer())
            .args(definitions)
            .arg("-I")
            .arg(package.join("include"))
            .arg(package.join(source));
        match link {
            Link::Shared => cc.arg(format!("-L{}", self.0.display())).arg("-ltaran"),
            // The libraries that `rustc --print native-static-libs` names.
            Link::Static => cc.arg(self.0.join("libtaran.a")).args([
                "-lgcc_s",
                "-lutil",
                "-lrt",
                "-lpthread",
                "-lm",
                "-ldl",
            ]),
        };
        let output = cc.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        program
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", &self.0);
        command
    }

    fn run(&self, program: &Path) {
        Running::start(&mut self.command(program)).finish();
    }

    /// Starts a driver in a directory of this folder, and returns when it is ready.
    fn driver(&self, link: Link) -> (Running, PathBuf) {
        let program = self.compile("tests/c/driver.c", link, &[]);
        // In memory, like each test of a driver.
        let name = format!("taran-test-capi-{}", self.0.file_name().unwrap().display());
        let directory = Path::new("/dev/shm").join(name);
        let mut command = self.command(&program);
        let driver = Running::ready(command.arg(&directory).stdin(Stdio::piped()));
        (driver, directory)
    }
}

/// The option for C programs that use a library with a sanitizer, as `cargo xtask asan` builds it. The library brings no run-time
/// library of the sanitizer, and that of the C compiler has the same interface.
fn sanitizer() -> Option<String> {
    let sanitizer = std::env::var("TARAN_SANITIZER").ok()?;
    Some(format!("-fsanitize={sanitizer}"))
}

/// A process whose output is collected. One that is not done in time is killed, and its output is shown; it is killed at the latest
/// when this is dropped.
struct Running {
    child: Child,
    lines: Receiver<Line>,
    stdout: String,
    stderr: String,
}

/// A line of a process, with its end.
enum Line {
    Stdout(String),
    Stderr(String),
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        forward(child.stdout.take().unwrap(), Line::Stdout, sender.clone());
        forward(child.stderr.take().unwrap(), Line::Stderr, sender);
        Self {
            child,
            lines,
            stdout: String::new(),
            stderr: String::new(),
        }
    }

    /// Starts a process and waits until it prints "ready".
    fn ready(command: &mut Command) -> Self {
        let mut running = Self::start(command);
        let ready = running.collect(LIMIT, |stdout| stdout == "ready\n");
        ready.unwrap_or_else(|failure| panic!("{failure}"));
        if running.stdout != "ready\n" {
            let status = running.child.wait().unwrap();
            panic!("ended with {status} before it was ready: {running}");
        }
        running
    }

    /// Closes the standard input and waits for success; returns the standard output.
    fn finish(self) -> String {
        let (running, status) = self.end();
        assert!(status.success(), "ended with {status}: {running}");
        running.stdout.clone()
    }

    fn end(mut self) -> (Self, ExitStatus) {
        drop(self.child.stdin.take());
        // The pipes end with the process: no program closes its own.
        let ended = self.collect(LIMIT, |_| false);
        ended.unwrap_or_else(|failure| panic!("{failure}"));
        let status = self.child.wait().unwrap();
        (self, status)
    }

    /// Collects lines until the standard output meets a condition, or there are no more. Kills a process that takes longer, and
    /// returns its output.
    fn collect(&mut self, limit: Duration, is_enough: impl Fn(&str) -> bool) -> Result<(), String> {
        let deadline = Instant::now() + limit;
        while !is_enough(&self.stdout) {
            let left = deadline.saturating_duration_since(Instant::now());
            let next = if left.is_zero() {
                Err(RecvTimeoutError::Timeout)
            } else {
                self.lines.recv_timeout(left)
            };
            match next {
                Ok(line) => self.add(line),
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {
                    let id = self.child.id();
                    self.child.kill().unwrap();
                    while let Ok(line) = self.lines.recv_timeout(DRAIN) {
                        self.add(line);
                    }
                    return Err(format!("process {id} killed after {limit:?}: {self}"));
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, line: Line) {
        match line {
            Line::Stdout(line) => self.stdout += &line,
            Line::Stderr(line) => self.stderr += &line,
        }
    }
}

impl std::fmt::Display for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n{}", self.stdout, self.stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends the lines of a pipe until it ends.
fn forward(pipe: impl Read + Send + 'static, kind: fn(String) -> Line, lines: Sender<Line>) {
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        loop {
            let mut line = Vec::new();
            if pipe.read_until(b'\n', &mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = String::from_utf8_lossy(&line).into_owned();
            if lines.send(kind(line)).is_err() {
                return;
            }
        }
    });
}

#[test]
fn whole_surface_works_and_misuse_is_an_error() {
    let workshop = Workshop::new();
    let program = workshop.compile("tests/c/surface.c", Link::Shared, &[]);
    workshop.run(&program);
}

#[test]
fn whole_surface_works_with_the_static_library() {
    let workshop = Workshop::new();
    let program = workshop.compile("tests/c/surface.c", Link::Static, &[]);
    workshop.run(&program);
}

#[test]
fn examples_measure_round_trips_over_a_driver_that_ends_orderly() {
    let workshop = Workshop::new();
    let (driver, directory) = workshop.driver(Link::Static);
    let definitions = [
        "-DROUNDS=50",
        "-DTIMEOUT=60",
        "-DPING_CHANNEL=\"aeron:ipc\"",
        "-DPONG_CHANNEL=\"aeron:ipc\"",
    ];
    let start = |source| {
        let program = workshop.compile(source, Link::Shared, &definitions);
        Running::start(workshop.command(&program).env("AERON_DIR", &directory))
    };
    let pong = start("examples/pong.c");
    let times = start("examples/ping.c").finish();
    assert_eq!(times.lines().count(), 5, "{times}");
    assert!(
        times.starts_with("   50 % of round trips within "),
        "{times}"
    );
    assert_eq!(pong.finish(), "100 messages sent back\n");
    driver.finish();
    let _ = fs::remove_dir_all(directory);
}

#[test]
fn program_outlives_its_killed_driver() {
    let workshop = Workshop::new();
    let (driver, directory) = workshop.driver(Link::Shared);
    let program = workshop.compile("tests/c/driver_death.c", Link::Shared, &[]);
    let client = Running::ready(workshop.command(&program).arg(&directory));
    drop(driver);
    client.finish();
    let _ = fs::remove_dir_all(directory);
}

#[test]
fn program_that_hangs_is_killed_and_its_output_shown() {
    let mut command = Command::new("sh");
    command.args(["-c", "echo error >&2; echo ready; exec tail -f /dev/null"]);
    let mut running = Running::ready(&mut command);
    let killed = running.collect(Duration::ZERO, |_| false).unwrap_err();
    assert!(killed.contains("ready\n") && killed.contains("error\n"));
    assert!(!running.child.wait().unwrap().success());
}
