// SPDX-License-Identifier: Apache-2.0
//! Sets `TARAN_COMMIT` for the program: the variable of that name, or the commit of the sources.

mod commit;

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed=TARAN_COMMIT");
    let given = std::env::var("TARAN_COMMIT").ok();
    let given = given.filter(|commit| !commit.is_empty());
    let of_package = || commit::of_package(Path::new("."));
    // Builds for development do not look: each commit would link the program and its tests again.
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let of_checkout = || {
        let checkout = commit::of_checkout(Path::new("../..")).filter(|_| is_release)?;
        for path in &checkout.changes_with {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        Some(checkout.commit)
    };
    let commit = given
        .or_else(of_package)
        .or_else(of_checkout)
        .unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=TARAN_COMMIT={commit}");
}
