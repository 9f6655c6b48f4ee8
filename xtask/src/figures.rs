//! The figures of the first message: our driver and the official Java driver under the same clients, alternating.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Runs of each measurement; the median of them is printed.
const DEFAULT_ROUNDS: usize = 3;
const ECHO_RATES: [u64; 3] = [10_000, 100_000, 500_000];
const LENGTHS: [u64; 3] = [32, 288, 1_344];
const IDLE_SECONDS: u64 = 5;
/// What the directories of drivers begin with; the process id of their run follows.
const DIRECTORY: &str = "/dev/shm/taran-figures-";

/// `cargo xtask figures [rounds] [threading mode]`.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let rounds = match arguments.first() {
        Some(text) => text
            .parse()
            .map_err(|error| format!("rounds {text:?}: {error}"))?,
        None => DEFAULT_ROUNDS,
    };
    let threading = arguments.get(1).map_or("SHARED", String::as_str);
    remove_leftovers();
    super::run(Command::new("cargo").args(["build", "--release", "--quiet", "--bin", "taran"]))?;
    super::run(
        Command::new("mvn")
            .args(["--quiet", "--batch-mode", "package"])
            .current_dir(root().join("interop")),
    )?;
    println!("threading mode {threading}, medians of {rounds} rounds, ours / official Java");
    for rate in ECHO_RATES {
        let (ours, theirs) = alternate(rounds, threading, |driver| echo(driver, rate))?;
        for (index, name) in ["p50", "p90", "p99", "p99.9", "max", "msg/s"]
            .iter()
            .enumerate()
        {
            print_row(
                &format!("echo {rate}/s {name}"),
                column(&ours, index),
                column(&theirs, index),
            );
        }
    }
    for (medium, channel) in [
        ("ipc", "aeron:ipc?term-length=16m"),
        ("udp", "aeron:udp?endpoint=127.0.0.1:20130|term-length=16m"),
    ] {
        for length in LENGTHS {
            let (ours, theirs) =
                alternate(rounds, threading, |driver| stream(driver, channel, length))?;
            print_row(
                &format!("{medium} stream {length} B msg/s"),
                column(&ours, 0),
                column(&theirs, 0),
            );
        }
    }
    let (ours, theirs) = alternate(rounds, threading, |driver| Ok(vec![driver.idle_cpu()?]))?;
    print_row(
        "idle driver, % of a core",
        column(&ours, 0),
        column(&theirs, 0),
    );
    Ok(())
}

/// Removes the directories of runs that were killed: such a run could not do it.
fn remove_leftovers() {
    let Ok(entries) = std::fs::read_dir("/dev/shm") else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let process = path.to_str().and_then(|path| path.strip_prefix(DIRECTORY));
        let is_dead = |id: u32| !Path::new(&format!("/proc/{id}")).exists();
        if process.and_then(|id| id.parse().ok()).is_some_and(is_dead) {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

fn column(rounds: &[Vec<f64>], index: usize) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(|round| round[index]).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print_row(what: &str, ours: f64, theirs: f64) {
    println!(
        "{what:<32} {ours:>14.1} {theirs:>14.1}   ratio {:.2}",
        ours / theirs
    );
}

/// Rows of figures, one for each round.
type Rounds = Vec<Vec<f64>>;

/// A B A B: a fresh driver of each kind in every round.
fn alternate(
    rounds: usize,
    threading: &str,
    measure: impl Fn(&Driver) -> Result<Vec<f64>, String>,
) -> Result<(Rounds, Rounds), String> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        ours.push(measure(&Driver::start(Kind::Taran, threading)?)?);
        theirs.push(measure(&Driver::start(Kind::Java, threading)?)?);
    }
    Ok((ours, theirs))
}

fn echo(driver: &Driver, rate: u64) -> Result<Vec<f64>, String> {
    let rate = rate.to_string();
    let text = taran(
        driver,
        &[
            "bench",
            "echo",
            "--rate",
            &rate,
            "--warmup",
            "1s",
            "--duration",
            "3s",
            "--quiet",
        ],
    )?;
    ["p50", "p90", "p99", "p99.9", "max", "rate achieved, msg/s"]
        .iter()
        .map(|name| figure(&text, name))
        .collect()
}

fn stream(driver: &Driver, channel: &str, length: u64) -> Result<Vec<f64>, String> {
    let length = length.to_string();
    let text = taran(
        driver,
        &[
            "bench",
            "stream",
            "--channel",
            channel,
            "--length",
            &length,
            "--warmup",
            "1s",
            "--duration",
            "2s",
        ],
    )?;
    Ok(vec![figure(&text, "received, msg/s")?])
}

/// The number at the end of the line that begins with `name`.
fn figure(text: &str, name: &str) -> Result<f64, String> {
    text.lines()
        .find_map(|line| {
            let rest = line.trim_start().strip_prefix(name)?;
            rest.starts_with(' ').then(|| rest.trim().parse().ok())?
        })
        .ok_or_else(|| format!("no line {name:?} in\n{text}"))
}

fn taran(driver: &Driver, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(root().join("target/release/taran"))
        .args(arguments)
        .arg("--aeron-dir")
        .arg(&driver.dir)
        .current_dir(std::env::temp_dir())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("taran cannot be run: {error}"))?;
    // A rate that is not held is a figure too.
    match output.status.code() {
        Some(0 | 4) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => Err(format!("taran {arguments:?} ended with {}", output.status)),
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Taran,
    Java,
}

/// A running driver; dropping it stops it.
struct Driver {
    child: Child,
    dir: PathBuf,
}

impl Driver {
    fn start(kind: Kind, threading: &str) -> Result<Driver, String> {
        let dir = PathBuf::from(format!("{DIRECTORY}{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let mut command = match kind {
            Kind::Taran => {
                let mut command = Command::new(root().join("target/release/taran"));
                command
                    .arg("driver")
                    .env("AERON_DIR", &dir)
                    // Where a signal ends us both, nobody else does it.
                    .env("AERON_DIR_DELETE_ON_SHUTDOWN", "true")
                    .env("AERON_THREADING_MODE", threading);
                command
            }
            Kind::Java => java(&dir, threading),
        };
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let mut driver = Driver { child, dir };
        driver.await_ready(kind)?;
        Ok(driver)
    }

    fn await_ready(&mut self, kind: Kind) -> Result<(), String> {
        if let Kind::Java = kind {
            let mut line = String::new();
            let output = self.child.stdout.take().ok_or("stdout is piped")?;
            BufReader::new(output)
                .read_line(&mut line)
                .map_err(|error| error.to_string())?;
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.dir.join("cnc.dat").exists() {
            if Instant::now() > deadline {
                return Err("the driver did not start".to_owned());
            }
            thread::sleep(Duration::from_millis(10));
        }
        // Past the start-up of a virtual machine, which would be measured otherwise.
        thread::sleep(Duration::from_secs(1));
        Ok(())
    }

    /// CPU time of the driver while nobody uses it, in per cent of a core.
    fn idle_cpu(&self) -> Result<f64, String> {
        let ticks = || -> Result<f64, String> {
            let path = format!("/proc/{}/stat", self.child.id());
            let text =
                std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
            let fields: Vec<&str> = text
                .rsplit(')')
                .next()
                .unwrap_or("")
                .split_whitespace()
                .collect();
            // utime and stime are fields 14 and 15, counted from 1; the name's end is field 2.
            let field = |index: usize| {
                fields
                    .get(index - 3)
                    .and_then(|field| field.parse::<f64>().ok())
                    .ok_or_else(|| format!("{path}: no field {index}"))
            };
            Ok(field(14)? + field(15)?)
        };
        thread::sleep(Duration::from_secs(2));
        let before = ticks()?;
        let start = Instant::now();
        thread::sleep(Duration::from_secs(IDLE_SECONDS));
        // A tick is 10 ms on every Linux that we know.
        Ok((ticks()? - before) / start.elapsed().as_secs_f64())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn java(dir: &Path, threading: &str) -> Command {
    let target = root().join("interop/target");
    let class_path = format!(
        "{}:{}",
        target.join("interop.jar").display(),
        target.join("aeron-all-1.51.0.jar").display()
    );
    let mut command = Command::new("java");
    command
        .args(["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"])
        .args(["--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED"])
        .args([
            "-XX:+UseSerialGC",
            "-cp",
            &class_path,
            "io.taran.interop.Main",
            "driver",
        ])
        .arg(format!("dir={}", dir.display()))
        .arg(format!("threading={threading}"));
    command
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
