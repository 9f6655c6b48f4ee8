//! Runs under instruments of the nightly toolchain: sanitizers and Miri. Without the toolchain they are skipped, loudly.

use std::path::Path;
use std::process::Command;

use crate::run;

/// The crates with unsafe code, and those whose tests lay it over real mappings: each with what of it is run.
const ADDRESSES: &[(&str, &[&str])] = &[
    ("taran-core", &["--lib", "--tests"]),
    ("taran-net", &["--lib", "--tests"]),
    ("taran", &["--test", "driver", "--test", "client"]),
];

/// Where threads share memory.
const THREADS: &[(&str, &[&str])] = &[
    ("taran-core", &["--lib"]),
    ("taran-protocol", &["--lib"]),
    ("taran-driver", &["--test", "launch"]),
    ("taran", &["--test", "driver", "--test", "client"]),
];

/// The pieces of `taran-core` that Miri can run: no files, no system calls, no properties, for which it takes hours.
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

/// AddressSanitizer, for all of the crates or for those that are named.
pub(crate) fn asan(packages: &[String]) -> Result<(), String> {
    sanitize("address", &[], ADDRESSES, packages)
}

/// ThreadSanitizer, likewise. The standard library is built with it, or what it does for synchronization would go unseen.
pub(crate) fn tsan(packages: &[String]) -> Result<(), String> {
    if !has_library_source() {
        return Ok(());
    }
    sanitize("thread", &["-Zbuild-std"], THREADS, packages)
}

fn sanitize(
    what: &str,
    flags: &[&str],
    crates: &[(&str, &[&str])],
    packages: &[String],
) -> Result<(), String> {
    let is_known = |name: &String| crates.iter().any(|(package, _)| package == name);
    if let Some(unknown) = packages.iter().find(|name| !is_known(name)) {
        let known: Vec<&str> = crates.iter().map(|(package, _)| *package).collect();
        return Err(format!("{unknown}: known are {}", known.join(", ")));
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
            .args(["--target-dir", &format!("target/{what}-sanitizer")])
            .env("RUSTFLAGS", format!("-Zsanitizer={what}")))?;
    }
    Ok(())
}

/// Miri, which sees every access that the rules of the language do not allow.
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

/// Whether there is a nightly toolchain, with this subcommand if one is named.
pub(crate) fn has_nightly(subcommand: &str) -> bool {
    let mut command = Command::new("cargo");
    // Asking for a toolchain must not install it.
    command.arg("+nightly").env("RUSTUP_AUTO_INSTALL", "0");
    if !subcommand.is_empty() {
        command.arg(subcommand);
    }
    let output = command.arg("--version").output();
    let there = output.is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("SKIPPED: no nightly toolchain (rustup toolchain install nightly) {subcommand}");
    }
    there
}

/// Whether the nightly toolchain has the source of the standard library.
fn has_library_source() -> bool {
    let mut command = Command::new("rustc");
    command.args(["+nightly", "--print", "sysroot"]);
    let output = command.env("RUSTUP_AUTO_INSTALL", "0").output();
    let there = output.is_ok_and(|output| {
        let sysroot = String::from_utf8_lossy(&output.stdout).into_owned();
        Path::new(sysroot.trim())
            .join("lib/rustlib/src/rust/library/Cargo.lock")
            .exists()
    });
    if !there {
        eprintln!(
            "SKIPPED: no source of the standard library (rustup component add rust-src --toolchain nightly)"
        );
    }
    there
}
