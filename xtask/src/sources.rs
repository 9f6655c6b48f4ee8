// SPDX-License-Identifier: Apache-2.0
//! Files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// Root of the repository. This file is also a module of a test of `crates/cli`.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_root = |folder: &&Path| folder.join("Cargo.lock").exists();
    package
        .ancestors()
        .find(is_root)
        .unwrap_or(package)
        .to_owned()
}

/// Returns the files below a folder whose names have one of these ends; without build output, fuzzing corpora and folders with
/// names that start with a dot.
pub(crate) fn files_below(folder: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(folder, ends, &mut found);
    found
}

fn collect(folder: &Path, ends: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "corpus" {
                collect(&path, ends, found);
            }
        } else if ends.iter().any(|end| name.ends_with(end)) {
            found.push(path);
        }
    }
}
