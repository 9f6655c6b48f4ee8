// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask properties`: runs the property tests with new random seeds. The gate uses one fixed seed, so that a random case
//! does not fail an unrelated change.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sources::{files_below, root};
use crate::{at_least_one, run as run_command};

const USAGE: &str = "cargo xtask properties [--seed N] [--seeds N]";

/// Runs all property tests, once per seed.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let (mut first, mut count) = (None, 1);
    for pair in arguments.chunks(2) {
        match pair {
            [option, text] if option == "--seed" => {
                let seed = text.parse::<u64>();
                first =
                    Some(seed.map_err(|error| {
                        format!("--seed needs a number, not {text:?}: {error}")
                    })?);
            }
            [option, text] if option == "--seeds" => count = at_least_one(option, text)?,
            _ => return Err(format!("usage: {USAGE}")),
        }
    }
    // The keys of a `RandomState` are random.
    let first = first.unwrap_or_else(|| RandomState::new().hash_one(0));
    let tests = property_tests();
    for seed in (0..count).map(|number| first.wrapping_add(number)) {
        println!("property tests with the random seed {seed}");
        run_seed(&tests, seed).map_err(|error| {
            format!("seed {seed} (cargo xtask properties --seed {seed}): {error}")
        })?;
    }
    Ok(())
}

fn run_seed(tests: &BTreeMap<String, BTreeSet<String>>, seed: u64) -> Result<(), String> {
    for (package, names) in tests {
        run_command(
            Command::new("cargo")
                .args(["test", "--quiet", "--locked", "--no-fail-fast"])
                .args(["--package", package, "--tests", "--"])
                .args(names)
                .env("PROPTEST_RNG_SEED", seed.to_string()),
        )?;
    }
    Ok(())
}

/// Names of the property tests by package.
fn property_tests() -> BTreeMap<String, BTreeSet<String>> {
    let mut tests: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files_below(&root().join("crates"), &[".rs"]) {
        let names = names_in(&fs::read_to_string(&path).unwrap_or_default());
        if let (false, Some(package)) = (names.is_empty(), package_of(&path)) {
            tests.entry(package).or_default().extend(names);
        }
    }
    tests
}

/// Names of the functions within `proptest! { … }` that are tests: their arguments are drawn from strategies.
fn names_in(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    // Indentation of the macro, whose closing brace has the same.
    let mut indentation = None;
    let mut is_test = false;
    for line in source.lines() {
        let depth = line.len() - line.trim_start().len();
        let text = line.trim_start();
        if text == "proptest! {" {
            indentation = Some(depth);
        } else if text == "}" && indentation == Some(depth) {
            indentation = None;
        } else if indentation.is_some() && text == "#[test]" {
            is_test = true;
        } else if is_test && let Some(rest) = text.strip_prefix("fn ") {
            names.extend(rest.split('(').next().map(str::to_owned));
            is_test = false;
        }
    }
    names
}

/// Returns the name of the package that a file belongs to.
fn package_of(file: &Path) -> Option<String> {
    let manifest: PathBuf = file
        .ancestors()
        .map(|folder| folder.join("Cargo.toml"))
        .find(|manifest| manifest.exists())?;
    let text = fs::read_to_string(manifest).ok()?;
    let (_, name) = text.split_once("\nname = \"")?;
    name.split('"').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_takes_tests_of_property_macros_only() {
        let source = "#[test]\nfn plain() {}\nproptest! {\n    #[test]\n    fn drawn(it in 0..9) {\n        if it {\n        }\n    }\n}\n\
                      #[test]\nfn after() {}\n";
        assert_eq!(names_in(source), BTreeSet::from(["drawn".to_owned()]));
    }

    #[test]
    fn property_tests_are_found_in_each_file_that_has_the_macro() {
        for path in files_below(&root().join("crates"), &[".rs"]) {
            let text = fs::read_to_string(&path).unwrap();
            let has_macro = text.lines().any(|line| line.trim() == "proptest! {");
            assert_eq!(has_macro, !names_in(&text).is_empty(), "{}", path.display());
        }
        let tests = property_tests();
        for package in [
            "taran",
            "taran-core",
            "taran-driver",
            "taran-protocol",
            "taran-sbe",
        ] {
            assert!(tests.contains_key(package), "{:?}", tests.keys());
        }
    }
}
