// SPDX-License-Identifier: Apache-2.0
//! Sanitizers and Miri of the nightly toolchain. Without the toolchain they are skipped.

use std::path::Path;
use std::process::Command;

use crate::packages::{PackageTests, choose};
use crate::{Completion, TaskResult, run};

/// Crates with unsafe code, and crates whose tests run it on real mappings, with the test selection of each.
const ADDRESSES: &[PackageTests] = &[
    ("taran-core", &["--lib", "--tests"]),
    ("taran-net", &["--lib", "--tests"]),
    ("taran", &["--test", "driver", "--test", "client"]),
    ("taran-c", &["--lib", "--test", "programs"]),
];

/// Crates with memory that threads share, with the test selection of each.
const THREADS: &[PackageTests] = &[
    ("taran-core", &["--lib"]),
    ("taran-protocol", &["--lib"]),
    ("taran-driver", &["--test", "launch"]),
    ("taran", &["--test", "driver", "--test", "client"]),
];

/// Modules and tests that Miri can run, by package: without files and system calls, and without property tests, which take hours.
const MIRI: &[(&str, &[&str])] = &[
    (
        "taran-core",
        &[
            "ring::",
            "broadcast::",
            "queue::",
            "counters::",
            "memory::tests::accesses_outside",
            "memory::tests::views_keep",
            "memory::tests::claim_is",
            "memory::tests::racing_copies",
        ],
    ),
    ("taran-c", &["call::", "publication::"]),
];

/// Runs AddressSanitizer on all crates or on the named ones.
pub(crate) fn asan(packages: &[String]) -> TaskResult {
    let crates = choose(ADDRESSES, packages)?;
    match nightly("") {
        Ok(()) => sanitize("address", &[], crates),
        Err(missing) => Ok(Completion::Skipped(missing)),
    }
}

/// Runs ThreadSanitizer on all crates or on the named ones. The standard library is instrumented too; otherwise its
/// synchronization would be invisible.
pub(crate) fn tsan(packages: &[String]) -> TaskResult {
    let crates = choose(THREADS, packages)?;
    match nightly("").and_then(|()| library_source()) {
        Ok(()) => sanitize("thread", &["-Zbuild-std"], crates),
        Err(missing) => Ok(Completion::Skipped(missing)),
    }
}

fn sanitize(
    sanitizer: &str,
    flags: &[&str],
    crates: impl Iterator<Item = &'static PackageTests>,
) -> TaskResult {
    for (package, tests) in crates {
        run(Command::new("cargo")
            .args(["+nightly", "test", "--package", package])
            .args(*tests)
            .args(flags)
            .args(["--target", "x86_64-unknown-linux-gnu"])
            .args(["--target-dir", &format!("target/{sanitizer}-sanitizer")])
            .env("RUSTFLAGS", format!("-Zsanitizer={sanitizer}"))
            // For tests that compile C programs.
            .env("TARAN_SANITIZER", sanitizer))?;
    }
    Ok(Completion::Ran)
}

/// `cargo xtask miri [PACKAGE [TEST...]]`: runs Miri on the named tests, or on all that it can run.
pub(crate) fn miri(arguments: &[String]) -> TaskResult {
    if let Err(missing) = nightly("miri").and_then(|()| library_source()) {
        return Ok(Completion::Skipped(missing));
    }
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    for (package, tests) in chosen_for_miri(&words)? {
        run(Command::new("cargo")
            .args(["+nightly", "miri", "test", "--package", package, "--lib"])
            .args(["--target-dir", "target/miri", "--"])
            .args(tests)
            .env("MIRIFLAGS", "-Zmiri-disable-isolation"))?;
    }
    Ok(Completion::Ran)
}

/// Returns packages with their tests.
fn chosen_for_miri<'a>(words: &[&'a str]) -> Result<Vec<(&'static str, Vec<&'a str>)>, String> {
    let Some((name, tests)) = words.split_first() else {
        return Ok(MIRI
            .iter()
            .map(|(package, tests)| (*package, tests.to_vec()))
            .collect());
    };
    let known = MIRI.iter().find(|(package, _)| package == name);
    let (package, all) = known.ok_or_else(|| {
        let names: Vec<&str> = MIRI.iter().map(|(package, _)| *package).collect();
        format!(
            "{name} is not a package of this check; its packages: {}",
            names.join(", ")
        )
    })?;
    let tests = if tests.is_empty() { *all } else { tests };
    Ok(vec![(package, tests.to_vec())])
}

/// Returns an error with the remedy unless a nightly toolchain is installed, with this cargo subcommand if one is named.
pub(crate) fn nightly(subcommand: &str) -> Result<(), String> {
    let mut command = Command::new("cargo");
    // The check must not install the toolchain.
    command.arg("+nightly").env("RUSTUP_AUTO_INSTALL", "0");
    if !subcommand.is_empty() {
        command.arg(subcommand);
    }
    let output = command.arg("--version").output();
    if output.is_ok_and(|output| output.status.success()) {
        return Ok(());
    }
    Err(if subcommand.is_empty() {
        "no nightly toolchain (rustup toolchain install nightly)".to_owned()
    } else {
        format!(
            "no {subcommand} in the nightly toolchain (rustup toolchain install nightly --component {subcommand})"
        )
    })
}

/// Returns an error with the remedy unless the nightly toolchain has the source of the standard library.
fn library_source() -> Result<(), String> {
    let mut command = Command::new("rustc");
    command.args(["+nightly", "--print", "sysroot"]);
    let output = command.env("RUSTUP_AUTO_INSTALL", "0").output();
    let is_installed = output.is_ok_and(|output| {
        let sysroot = String::from_utf8_lossy(&output.stdout).into_owned();
        Path::new(sysroot.trim())
            .join("lib/rustlib/src/rust/library/Cargo.lock")
            .exists()
    });
    if is_installed {
        Ok(())
    } else {
        Err(
            "no source of the standard library (rustup component add rust-src --toolchain nightly)"
                .to_owned(),
        )
    }
}
