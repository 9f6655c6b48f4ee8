// SPDX-License-Identifier: Apache-2.0
use std::sync::{Arc, Mutex};

use taran_sim::scenario::{Coverage, Failure, Scenario, silence_panics, without_panic_output};

use super::journal::Counts;
use super::*;

/// Runs scenarios of these seeds, and returns what happened. All of them run, so that failures can be compared.
fn run(seeds: std::ops::Range<u64>) -> (Coverage, Counts) {
    let total: Arc<Mutex<Counts>> = Arc::default();
    let sink = Arc::clone(&total);
    let suite = suite(None).finish(move |world| {
        let counts = world
            .shared::<Journal>()
            .map(|journal| journal.counts)
            .unwrap_or_default();
        sink.lock().unwrap().merge(&counts);
        Ok(())
    });
    let mut coverage = Coverage::default();
    let mut failed = Vec::new();
    for seed in seeds {
        match suite.run(&suite.random(seed)) {
            Ok(happened) => coverage.merge(&happened),
            Err(failure) => {
                println!("seed {seed}: {}", failure.text);
                if std::env::var_os("TARAN_ARCHIVE_PRINT").is_some() {
                    println!("{}", suite.random(seed).to_text());
                }
                failed.push(seed);
            }
        }
    }
    assert!(failed.is_empty(), "seeds {failed:?} failed");
    let counts = *total.lock().unwrap();
    (coverage, counts)
}

#[test]
fn archive_survives_random_worlds() {
    let (coverage, counts) = run(0..40);
    println!("{counts:?}\n{coverage}");
}

/// Runs many seeds, for `cargo xtask archive`.
#[test]
#[ignore = "takes minutes: cargo xtask archive --seeds N"]
fn many_random_worlds() {
    let number = |name: &str, default: u64| {
        let text = std::env::var(name).ok();
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    let first = number("TARAN_ARCHIVE_SEED", 1_000_000);
    let count = number("TARAN_ARCHIVE_SEEDS", 1_000);
    let (coverage, counts) = run(first..first + count);
    println!("{counts:?}\n{coverage}");
}

/// Returns the first scenario that fails with a defect.
fn find(suite: &Suite, limit: u64) -> Option<(u64, Scenario, Failure)> {
    without_panic_output(|| {
        (0..limit).find_map(|seed| {
            let scenario = suite.random(seed);
            let failure = suite.run(&scenario).err()?;
            Some((seed, scenario, failure))
        })
    })
}

#[test]
fn each_defect_is_found() {
    silence_panics();
    for defect in Defect::ALL {
        let suite = suite(Some(defect));
        let (seed, _, failure) =
            find(&suite, 400).unwrap_or_else(|| panic!("{defect:?} was not found"));
        let line = failure.text.lines().find(|line| line.contains("recording"));
        println!("{defect:?} found by seed {seed}: {line:?}");
        assert!(line.is_some(), "{}", failure.text);
    }
}
