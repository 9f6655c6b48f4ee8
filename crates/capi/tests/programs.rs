// SPDX-License-Identifier: Apache-2.0
//! C programs against header and library: the examples, the whole surface used well and badly, and the death of a driver.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The tests use the library by its C interface alone; this makes Cargo build it first.
use taran_c as _;

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
        assert!(output.status.success(), "{}", text(&output));
        program
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", &self.0);
        command
    }

    fn run(&self, program: &Path) {
        let output = self.command(program).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
    }

    /// Starts a driver in a directory of this folder, and returns when it is ready.
    fn driver(&self, link: Link) -> (Running, PathBuf) {
        let program = self.compile("tests/c/driver.c", link, &[]);
        // In memory, like each test of a driver.
        let name = format!("taran-test-capi-{}", self.0.file_name().unwrap().display());
        let directory = Path::new("/dev/shm").join(name);
        let mut command = self.command(&program);
        let driver = Running::start(command.arg(&directory).stdin(Stdio::piped()));
        (driver, directory)
    }
}

/// A process that has printed "ready"; killed at the latest when this is dropped.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let running = Self(child);
        if line != "ready\n" {
            panic!("not ready: {}", text(&running.end()));
        }
        running
    }

    fn end(mut self) -> Output {
        drop(self.0.stdin.take());
        let mut stderr = Vec::new();
        if let Some(mut pipe) = self.0.stderr.take() {
            std::io::Read::read_to_end(&mut pipe, &mut stderr).unwrap();
        }
        Output {
            status: self.0.wait().unwrap(),
            stdout: Vec::new(),
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn text(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
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
        "-DPING_CHANNEL=\"aeron:ipc\"",
        "-DPONG_CHANNEL=\"aeron:ipc\"",
    ];
    let pong = workshop.compile("examples/pong.c", Link::Shared, &definitions);
    let ping = workshop.compile("examples/ping.c", Link::Shared, &definitions);
    let mut pong = workshop.command(&pong);
    pong.env("AERON_DIR", &directory).stdout(Stdio::piped());
    let pong = pong.spawn().unwrap();
    let ping = workshop
        .command(&ping)
        .env("AERON_DIR", &directory)
        .output();
    let (ping, pong) = (ping.unwrap(), pong.wait_with_output().unwrap());
    assert!(ping.status.success(), "{}", text(&ping));
    let times = String::from_utf8(ping.stdout).unwrap();
    assert_eq!(times.lines().count(), 5, "{times}");
    assert!(
        times.starts_with("   50 % of round trips within "),
        "{times}"
    );
    assert!(pong.status.success(), "{}", text(&pong));
    assert_eq!(pong.stdout, b"100 messages sent back\n");
    let driver = driver.end();
    assert!(driver.status.success(), "{}", text(&driver));
    let _ = fs::remove_dir_all(directory);
}

#[test]
fn program_outlives_its_killed_driver() {
    let workshop = Workshop::new();
    let (driver, directory) = workshop.driver(Link::Shared);
    let program = workshop.compile("tests/c/driver_death.c", Link::Shared, &[]);
    let client = Running::start(workshop.command(&program).arg(&directory));
    drop(driver);
    let client = client.end();
    assert!(client.status.success(), "{}", text(&client));
    let _ = fs::remove_dir_all(directory);
}
