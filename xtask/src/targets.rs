// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask targets`: builds the command for the targets of the releases besides the usual one, and runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::packages::PackageTests;
use crate::packaging::runs;
use crate::sources::root;
use crate::{Completion, TaskResult, run};

const TARGET_DIR: &str = "target/targets";

/// Far longer than a driver takes to start, also in an emulator.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Target of a release that is not the one of this machine.
struct Target {
    triple: &'static str,
    /// Compiler and linker, and the Debian package that has it.
    compiler: (&'static str, &'static str),
    /// Program and arguments that run a binary, with the Debian package of the program; none for those that run as they are.
    emulator: Option<(&'static [&'static str], &'static str)>,
    /// Tests that run, too. In an emulator of user mode, a test cannot run a program of the target, not even itself.
    tests: &'static [PackageTests],
    /// Messages per second of the round trips, which an emulator manages as well.
    rate: &'static str,
}

const TARGETS: &[Target] = &[
    Target {
        triple: "x86_64-unknown-linux-musl",
        compiler: ("musl-gcc", "musl-tools"),
        emulator: None,
        tests: &[
            ("taran-net", &["--lib", "--tests"]),
            ("taran-storage", &["--lib", "--tests"]),
        ],
        rate: "1k",
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        compiler: ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
        emulator: Some((
            &["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
            "qemu-user",
        )),
        tests: &[
            ("taran-sbe", &["--lib", "--test", "schema"]),
            ("taran-storage", &["--lib", "--tests"]),
        ],
        rate: "100",
    },
];

/// `cargo xtask targets [TARGET...]`.
pub(crate) fn targets(arguments: &[String]) -> TaskResult {
    let known = TARGETS.iter().map(|target| target.triple);
    let known: Vec<&str> = known.collect();
    if let Some(unknown) = arguments
        .iter()
        .find(|name| !known.contains(&name.as_str()))
    {
        let known = known.join(", ");
        return Err(format!("{unknown} is not a target of this task: {known}"));
    }
    let chosen = TARGETS.iter().filter(|target| {
        arguments.is_empty() || arguments.iter().any(|name| name == target.triple)
    });
    let mut missing = Vec::new();
    for target in chosen {
        match target.missing() {
            None => target.check()?,
            Some(what) => missing.push(format!("{} needs {what}", target.triple)),
        }
    }
    if missing.is_empty() {
        Ok(Completion::Ran)
    } else {
        Ok(Completion::Skipped(missing.join("; ")))
    }
}

impl Target {
    /// Returns what this machine lacks for the target.
    fn missing(&self) -> Option<String> {
        let (compiler, package) = self.compiler;
        if !runs(compiler, &["--version"]) {
            return Some(format!("{compiler} (Debian package {package})"));
        }
        if let Some(([emulator, ..], package)) = self.emulator
            && !runs(emulator, &["--version"])
        {
            return Some(format!("{emulator} (Debian package {package})"));
        }
        // Without effect if the target is installed.
        let added = runs("rustup", &["target", "add", self.triple]);
        (!added).then(|| format!("`rustup target add {}`", self.triple))
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let name = self.triple.to_uppercase().replace('-', "_");
        let mut cargo = Command::new("cargo");
        cargo
            .args(arguments)
            .args(["--locked", "--target", self.triple])
            .args(["--target-dir", TARGET_DIR])
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .current_dir(root());
        if let Some((emulator, _)) = self.emulator {
            cargo
                .env(format!("CARGO_TARGET_{name}_LINKER"), self.compiler.0)
                .env(format!("CARGO_TARGET_{name}_RUNNER"), emulator.join(" "));
        }
        cargo
    }

    /// Returns a command with the binary of this target.
    fn taran(&self, arguments: &[&str]) -> Command {
        let binary = root().join(TARGET_DIR).join(self.triple);
        let binary = binary.join("debug/taran");
        let mut command = match self.emulator {
            Some(([emulator, options @ ..], _)) => {
                let mut command = Command::new(emulator);
                command.args(options).arg(binary);
                command
            }
            _ => Command::new(binary),
        };
        command.args(arguments);
        command
    }

    fn check(&self) -> Result<(), String> {
        println!("-- {}", self.triple);
        run(&mut self.cargo(&["build", "--package", "taran-cli"]))?;
        run(&mut self.taran(&["version"]))?;
        run(&mut self.taran(&["sbe", "check", "crates/sbe/codecs/schema/garage_v2.xml"]))?;
        self.exchange()?;
        for (package, tests) in self.tests {
            run(self.cargo(&["test", "--package", package]).args(*tests))?;
        }
        Ok(())
    }

    /// Measures round trips between two processes over a driver, by UDP.
    fn exchange(&self) -> Result<(), String> {
        let directory = Path::new("/dev/shm").join(format!("taran-targets-{}", std::process::id()));
        let driver = self.start_driver(&directory)?;
        let place = directory.display().to_string();
        let histogram = directory.join("echo.hgrm").display().to_string();
        let echo = ["bench", "echo", "--aeron-dir", &place, "--rate", self.rate];
        let measured = self
            .taran(&echo)
            .args([
                "--duration",
                "1s",
                "--warmup",
                "200ms",
                "--output",
                &histogram,
            ])
            .status();
        drop(driver);
        match measured.map(|status| status.code()) {
            // 4: all messages came back, but not at the rate.
            Ok(Some(0 | 4)) => Ok(()),
            other => Err(format!("{}: bench echo ended with {other:?}", self.triple)),
        }
    }

    /// Starts a driver, and waits until the command of the same target finds it alive.
    fn start_driver(&self, directory: &Path) -> Result<Driver, String> {
        let define = format!("-Daeron.dir={}", directory.display());
        let child = self
            .taran(&["driver", &define, "-Daeron.term.buffer.length=1m"])
            .spawn()
            .map_err(|error| format!("cannot start a driver: {error}"))?;
        let driver = Driver {
            child,
            directory: directory.to_owned(),
        };
        let started = Instant::now();
        let place = directory.display().to_string();
        loop {
            let mut info = self.taran(&["driver-info", "-d", &place]);
            let info = info.stdout(Stdio::null()).stderr(Stdio::null()).status();
            if info.is_ok_and(|status| status.success()) {
                return Ok(driver);
            }
            if started.elapsed() > TIMEOUT {
                return Err(format!("{}: the driver does not start", self.triple));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Driver that ends, with its directory, when this is dropped.
struct Driver {
    child: Child,
    directory: PathBuf,
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Errors mean that it has ended by itself, which the exchange has noticed.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
