// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask api`: compares the public API of the crates with the snapshots in `docs/api`, so that a change of what
//! applications build on is seen in review. The API is read from the documentation as JSON, which the nightly toolchain writes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sources::root;
use crate::{Completion, TaskResult, run as run_command};

const USAGE: &str = "cargo xtask api [--write]";

/// Crates whose API is kept, with the features that add to it.
const CRATES: &[(&str, &str)] = &[
    ("taran", "async,tracing"),
    ("taran-driver", "secure"),
    ("taran-net", ""),
    ("taran-storage", ""),
];

/// Format of the documentation that the release of `public-api` in `xtask/api` reads; it changes with the nightly toolchain.
const FORMAT: &str = "\"format_version\":57";

/// Compares each crate with its snapshot, or writes the snapshots.
pub(crate) fn run(arguments: &[String]) -> TaskResult {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let write = match words[..] {
        [] => false,
        ["--write"] => true,
        _ => return Err(format!("usage: {USAGE}")),
    };
    let mut changed = Vec::new();
    for &(package, features) in CRATES {
        let json = match documentation(package, features)? {
            Documentation::Written(path) => path,
            Documentation::Unavailable(reason) => return Ok(Completion::Skipped(reason)),
        };
        let now = items(&json)?;
        let snapshot = root().join(format!("docs/api/{package}.txt"));
        if write {
            fs::write(&snapshot, &now)
                .map_err(|error| format!("{}: {error}", snapshot.display()))?;
            continue;
        }
        let before = fs::read_to_string(&snapshot)
            .map_err(|error| format!("{}: {error}", snapshot.display()))?;
        let difference = difference(&before, &now);
        if !difference.is_empty() {
            println!("{package}:\n{difference}");
            changed.push(package);
        }
    }
    if changed.is_empty() {
        Ok(Completion::Ran)
    } else {
        Err(format!(
            "the public API of {} differs from docs/api; if that is intended, run `cargo xtask api --write`, commit the \
             snapshots, and name the change in CHANGELOG.md",
            changed.join(", ")
        ))
    }
}

/// Outcome of writing a crate's documentation as JSON.
enum Documentation {
    Written(PathBuf),
    /// The toolchain is missing, or writes another format; the reason says which.
    Unavailable(String),
}

fn documentation(package: &str, features: &str) -> Result<Documentation, String> {
    let has_nightly = Command::new("cargo")
        .args(["+nightly", "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !has_nightly {
        let reason = "no nightly toolchain (rustup toolchain install nightly)";
        return Ok(Documentation::Unavailable(reason.to_owned()));
    }
    run_command(
        Command::new("cargo")
            .args(["+nightly", "rustdoc", "--quiet", "--locked", "--lib"])
            .args(["--package", package, "--features", features])
            .args(["--target-dir", "target/api", "--"])
            .args(["-Z", "unstable-options", "--output-format", "json"])
            .args(["--cap-lints", "allow"])
            .current_dir(root()),
    )?;
    let file = package.replace('-', "_");
    let path = root().join(format!("target/api/doc/{file}.json"));
    let json = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(if json.contains(FORMAT) {
        Documentation::Written(path)
    } else {
        Documentation::Unavailable(format!(
            "this nightly toolchain does not write documentation with {FORMAT}"
        ))
    })
}

/// Returns the public items of a crate, one per line.
fn items(json: &Path) -> Result<String, String> {
    let output = Command::new("cargo")
        .args(["run", "--quiet", "--locked", "--manifest-path"])
        .arg(root().join("xtask/api/Cargo.toml"))
        .args(["--target-dir", "target/api", "--"])
        .arg(json)
        .current_dir(root())
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if output.status.success() {
        String::from_utf8(output.stdout).map_err(|error| error.to_string())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Returns the lines that were removed, with `-`, and those that were added, with `+`.
fn difference(before: &str, now: &str) -> String {
    let old: BTreeSet<&str> = before.lines().collect();
    let new: BTreeSet<&str> = now.lines().collect();
    let removed = old.difference(&new).map(|line| format!("- {line}\n"));
    let added = new.difference(&old).map(|line| format!("+ {line}\n"));
    removed.chain(added).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_lists_removed_and_added_items() {
        let difference = difference("pub fn a()\npub fn b()\n", "pub fn b()\npub fn c()\n");
        assert_eq!(difference, "- pub fn a()\n+ pub fn c()\n");
    }
}
