// SPDX-License-Identifier: Apache-2.0
//! Tasks of the project: `cargo xtask NAME`.

#![forbid(unsafe_code)]

mod api;
mod archive;
mod browser;
mod changes;
mod compare;
mod consensus;
mod deb;
mod fuzz;
mod kills;
#[cfg(test)]
mod language;
#[cfg(test)]
mod licences;
mod packages;
mod packaging;
mod properties;
mod protections;
mod python;
mod readme;
mod sanitizers;
mod sbe;
mod sim;
mod soak;
mod sources;
mod suites;
mod targets;

use std::process::{Command, ExitCode};

use packages::{PackageTests, choose};

/// Outcome of a task that did not fail.
#[derive(Debug)]
enum Completion {
    Ran,
    /// This machine lacks what the task needs; the reason says what, and how to get it.
    Skipped(String),
}

type TaskResult = Result<Completion, String>;

/// Returns the outcome of a task that needs nothing special.
fn ran((): ()) -> Completion {
    Completion::Ran
}

/// Task of the project.
struct Task {
    name: &'static str,
    /// Arguments and description. Tasks with a `--help` of their own are listed in [`main`].
    help: &'static str,
    run: fn(&[String]) -> TaskResult,
}

const TASKS: &[Task] = &[
    Task {
        name: "loom",
        help: "[PACKAGE...]: check the lock-free data structures under every interleaving within loom's bounds",
        run: |arguments| loom(arguments).map(ran),
    },
    Task {
        name: "asan",
        help: "[PACKAGE...]: run the tests of the crates with unsafe code under AddressSanitizer (needs a nightly toolchain)",
        run: sanitizers::asan,
    },
    Task {
        name: "tsan",
        help: "[PACKAGE...]: run the tests with threads under ThreadSanitizer (needs a nightly toolchain with rust-src)",
        run: sanitizers::tsan,
    },
    Task {
        name: "miri",
        help: "[PACKAGE [TEST...]]: run what needs no files of taran-core and taran-c under Miri (needs a nightly toolchain with miri)",
        run: sanitizers::miri,
    },
    Task {
        name: "compare",
        help: "[--only PART,...] [--rounds N] [--list]: benchmark our driver and client against the official ones, alternating (see \
               --help; needs clang, libbsd-dev and CMake or Python, and for all cases also root, a JDK and Maven)",
        run: |arguments| compare::run(arguments).map(ran),
    },
    Task {
        name: "sbe-peers",
        help: "[--criterion [BENCHMARK]]: measure our SBE codecs against the official tool's Rust output and prost, and fail if they are slower (needs a JDK and Maven, and valgrind to count instructions)",
        run: |arguments| sbe::peers(arguments).map(ran),
    },
    Task {
        name: "kills",
        help: "[--kills N] [--at-once N] | --drivers N | --members N, [--seed N]: kill thousands of clients of one driver, or \
               drivers, and check the survivors; or kill members of a cluster, and check what its clients have seen",
        run: |arguments| kills::kills(arguments).map(ran),
    },
    Task {
        name: "readme",
        help: "[test-command]: run the commands of README.md as written, in a fresh clone of HEAD; or print its test command",
        run: |arguments| readme::run(arguments).map(ran),
    },
    Task {
        name: "api",
        help: "[--write]: compare the public API of the crates with the snapshots in docs/api, or write these (needs a nightly \
               toolchain)",
        run: api::run,
    },
    Task {
        name: "soak",
        help: "[--minutes M | --seconds S]: run all kinds of streams between our drivers and the official one over a lossy link (needs root and a JDK)",
        run: soak::run,
    },
    Task {
        name: "churn",
        help: "[--publications N] [--rounds N]: open and close thousands of publications and check that no resource leaks",
        run: |arguments| kills::churn(arguments).map(ran),
    },
    Task {
        name: "fuzz",
        help: "[TARGET... | --area archive|cluster|fix|sbe|transport] [--runs N] [--seconds S] [--seed N] [--fast] [--asan] [--minimise] [--story FILE]: replay the fuzz targets' corpora \
               and try new inputs, or minimise the corpora",
        run: fuzz::run,
    },
    Task {
        name: "sim",
        help: "[--seeds N] [--seed S] [--minutes M] [--jobs J] [--scenario FILE]: run random scenarios; see --help",
        run: |arguments| sim::run(arguments).map(ran),
    },
    Task {
        name: "consensus",
        help: "[--seeds N] [--seed FIRST] | --states N: run random schedules of the consensus core, with all invariants checked, or search from its stories",
        run: |arguments| consensus::run(arguments).map(ran),
    },
    Task {
        name: "archive",
        help: "[--seeds N] [--seed FIRST]: run random worlds with an archive, and a crash at each operation of a script",
        run: |arguments| archive::run(arguments).map(ran),
    },
    Task {
        name: "properties",
        help: "[--seed N] [--seeds N]: run the property tests with new random seeds, and print these",
        run: |arguments| properties::run(arguments).map(ran),
    },
    Task {
        name: "protections",
        help: "[--only TEXT] [--list]: remove the protections of transport security one at a time, and check that a test fails each time",
        run: |arguments| protections::run(arguments).map(ran),
    },
    Task {
        name: "power-cuts",
        help: "[--cuts N] [--seed S] [--defects]: cut the power under a log writer on a simulated disk a million times",
        run: |arguments| sim::power_cuts(arguments).map(ran),
    },
    Task {
        name: "python",
        help: ": build the wheel of the Python package, check its types and run its tests (needs Python 3.11 with venv)",
        run: python::python,
    },
    Task {
        name: "deb",
        help: "[--quick] [--target TARGET] [--output DIR]: build the Debian package, with manual pages and completions, and try it in a copy of this system (needs dpkg-dev; root for the trial)",
        run: deb::deb,
    },
    Task {
        name: "lint-packaging",
        help: "check images, units, manifests and workflows (needs Python, systemd-analyze and actionlint; does with what there is)",
        run: packaging::lint,
    },
    Task {
        name: "targets",
        help: "[TARGET...]: build the command for the other targets of a release, static and for aarch64, and run it (needs musl-tools, gcc-aarch64-linux-gnu, qemu-user; does with what there is)",
        run: targets::targets,
    },
    Task {
        name: "browser",
        help: "look at the page of the console in headless Chromium (needs chromium and Python)",
        run: browser::run,
    },
    Task {
        name: "slices",
        help: "[--base REV | --all] [--list]: run the gate's slice of each expensive suite that the change since REV can affect",
        run: |arguments| suites::slices(arguments).map(ran),
    },
    Task {
        name: "nightly",
        help: "[--only NAME,...] [--list]: run all expensive suites in full, for hours",
        run: |arguments| suites::nightly(arguments).map(ran),
    },
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next();
    let arguments: Vec<String> = arguments.collect();
    let Some(task) = TASKS.iter().find(|task| Some(task.name) == name.as_deref()) else {
        let usage = usage();
        if name.is_some_and(|name| ["--help", "-h", "help"].contains(&name.as_str())) {
            print!("{usage}");
            return ExitCode::SUCCESS;
        }
        eprint!("{usage}");
        return ExitCode::from(2);
    };
    if !["compare", "sim"].contains(&task.name)
        && arguments.iter().any(|argument| argument == "--help")
    {
        println!("cargo xtask {} {}", task.name, task.help);
        return ExitCode::SUCCESS;
    }
    let result = (task.run)(&arguments).and_then(|completion| {
        if let Completion::Skipped(reason) = completion {
            eprintln!("SKIPPED: cargo xtask {}: {reason}", task.name);
            suites::report_skip(&reason)?;
        }
        Ok(())
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("cargo xtask {}: {reason}", task.name);
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut usage = "usage: cargo xtask NAME, where NAME is one of\n".to_owned();
    for task in TASKS {
        usage += &format!("  {:<10} {}\n", task.name, task.help);
    }
    usage
}

/// Parses a count of at least one.
fn at_least_one(option: &str, text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err(format!("{option} needs at least 1")),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{option} needs a number, not {text:?}: {error}")),
    }
}

/// Packages with loom models, and the arguments of `cargo test` that select these.
const LOOM: &[PackageTests] = &[
    ("taran-core", &["--release", "--test", "loom"]),
    ("taran-protocol", &["--release", "--test", "loom"]),
    ("taran-storage", &["--release", "--test", "loom"]),
    // Small models: with --release, most of the time would go into optimising the driver.
    ("taran-driver", &["--lib", "boundary::models"]),
];

fn loom(packages: &[String]) -> Result<(), String> {
    for (package, tests) in choose(LOOM, packages)? {
        run(Command::new("cargo")
            .args(["test", "--package", package])
            .args(*tests)
            .args(["--target-dir", "target/loom"])
            .env("RUSTFLAGS", "--cfg loom"))?;
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = command
        .status()
        .map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command:?} ended with {status}"))
    }
}
