//! Sanitizers and Miri of the nightly toolchain. Without the toolchain they are skipped with a message.

use std::path::Path;
use std::process::Command;

use crate::run;

/// Crates with unsafe code, and crates whose tests run it on real mappings, with the test selection of each.
const ADDRESSES: &[(&str, &[&str])] = &[
    ("taran-core", &["--lib", "--tests"]),
    ("taran-net", &["--lib", "--tests"]),
    ("taran", &["--test", "driver", "--test", "client"]),
];

/// Crates with memory that threads share, with the test selection of each.
const THREADS: &[(&str, &[&str])] = &[
    ("taran-core", &["--lib"]),
    ("taran-protocol", &["--lib"]),
    ("taran-driver", &["--test", "launch"]),
    ("taran", &["--test", "driver", "--test", "client"]),
];

/// Modules and tests of `taran-core` that Miri can run: without files and system calls, and without property tests, which take
/// hours.
const MIRI: &[&str] = &[
    "ring::",
    "broadcast::",
    "queue::",
    "counters::",
    "memory::tests::accesses_outside",
    "memory::tests::views_keep",
    "memory::tests::claim_is",
    "memory::tests::racing_copies",
];

/// Runs AddressSanitizer on all crates or on the named ones.
pub(crate) fn asan(packages: &[String]) -> Result<(), String> {
    sanitize("address", &[], ADDRESSES, packages)
}

/// Runs ThreadSanitizer on all crates or on the named ones. The standard library is instrumented too; otherwise its
/// synchronization would be invisible.
pub(crate) fn tsan(packages: &[String]) -> Result<(), String> {
    if !has_library_source() {
        return Ok(());
    }
    sanitize("thread", &["-Zbuild-std"], THREADS, packages)
}

fn sanitize(
    sanitizer: &str,
    flags: &[&str],
    crates: &[(&str, &[&str])],
    packages: &[String],
) -> Result<(), String> {
    let is_known = |name: &String| crates.iter().any(|(package, _)| package == name);
    if let Some(unknown) = packages.iter().find(|name| !is_known(name)) {
        let known: Vec<&str> = crates.iter().map(|(package, _)| *package).collect();
        return Err(format!(
            "{unknown} is unknown; known packages: {}",
            known.join(", ")
        ));
    }
    if !has_nightly("") {
        return Ok(());
    }
    for (package, tests) in crates {
        if !packages.is_empty() && !packages.iter().any(|name| name == package) {
            continue;
        }
        run(Command::new("cargo")
            .args(["+nightly", "test", "--package", package])
            .args(*tests)
            .args(flags)
            .args(["--target", "x86_64-unknown-linux-gnu"])
            .args(["--target-dir", &format!("target/{sanitizer}-sanitizer")])
            .env("RUSTFLAGS", format!("-Zsanitizer={sanitizer}")))?;
    }
    Ok(())
}

/// Runs Miri on the named tests, or on all that it can run.
pub(crate) fn miri(arguments: &[String]) -> Result<(), String> {
    if !has_nightly("miri") || !has_library_source() {
        return Ok(());
    }
    let tests: Vec<&str> = match arguments {
        [] => MIRI.to_vec(),
        chosen => chosen.iter().map(String::as_str).collect(),
    };
    run(Command::new("cargo")
        .args([
            "+nightly",
            "miri",
            "test",
            "--package",
            "taran-core",
            "--lib",
        ])
        .args(["--target-dir", "target/miri", "--"])
        .args(tests)
        .env("MIRIFLAGS", "-Zmiri-disable-isolation"))
}

/// Returns true if a nightly toolchain is installed, with this cargo subcommand if one is named; prints a message otherwise.
pub(crate) fn has_nightly(subcommand: &str) -> bool {
    let mut command = Command::new("cargo");
    // The check must not install the toolchain.
    command.arg("+nightly").env("RUSTUP_AUTO_INSTALL", "0");
    if !subcommand.is_empty() {
        command.arg(subcommand);
    }
    let output = command.arg("--version").output();
    let is_installed = output.is_ok_and(|output| output.status.success());
    if !is_installed {
        eprintln!("SKIPPED: no nightly toolchain (rustup toolchain install nightly) {subcommand}");
    }
    is_installed
}

/// Returns true if the nightly toolchain has the source of the standard library; prints a message otherwise.
fn has_library_source() -> bool {
    let mut command = Command::new("rustc");
    command.args(["+nightly", "--print", "sysroot"]);
    let output = command.env("RUSTUP_AUTO_INSTALL", "0").output();
    let is_installed = output.is_ok_and(|output| {
        let sysroot = String::from_utf8_lossy(&output.stdout).into_owned();
        Path::new(sysroot.trim())
            .join("lib/rustlib/src/rust/library/Cargo.lock")
            .exists()
    });
    if !is_installed {
        eprintln!(
            "SKIPPED: no source of the standard library (rustup component add rust-src --toolchain nightly)"
        );
    }
    is_installed
}
