// SPDX-License-Identifier: Apache-2.0
use std::sync::{Arc, Mutex};

use taran_sim::scenario::{Coverage, Failure, Scenario, silence_panics, without_panic_output};

use super::journal::Counts;
use super::*;

/// Number of worlds among which each kind of event is expected.
const COVERING: u64 = 40;

/// Events of some worlds, counted.
#[derive(Debug, Default)]
struct Totals {
    /// Until the operations of the scenarios were over.
    scenarios: Counts,
    /// In all.
    all: Counts,
}

impl Totals {
    /// Checks that each guarantee was tried: a world in which nothing happens violates none.
    fn expect_coverage(&self) {
        let Self { scenarios, all } = self;
        for (what, count) in [
            ("power cuts", scenarios.power_cuts),
            ("recoveries", scenarios.recoveries),
            ("frames in recovered files", scenarios.verified_frames),
            ("replays to an end", scenarios.replays_ended),
            ("replayed frames", scenarios.replayed_frames),
            ("listings", scenarios.listed),
            ("extended recordings", scenarios.extensions),
            ("truncated recordings", scenarios.truncations),
            ("purged recordings", scenarios.purges),
            ("purges of segments", scenarios.segment_purges),
            ("purges by retention", scenarios.retained),
            ("replications to an end", scenarios.replications_ended),
            ("replications that join a live stream", scenarios.merges),
            ("replays of all that was acknowledged", all.replays_complete),
            ("frames of replicas and their sources", all.compared_frames),
        ] {
            assert!(count > 0, "no {what} in all worlds: {self:?}");
        }
    }
}

/// Runs scenarios of these seeds, and returns what happened. All of them run, so that failures can be compared.
fn run(seeds: impl IntoIterator<Item = u64>) -> (Coverage, Totals) {
    let totals: Arc<Mutex<Totals>> = Arc::default();
    let sink = Arc::clone(&totals);
    let suite = suite(None).finish(move |world| {
        if let Some(journal) = world.shared::<Journal>() {
            let mut totals = sink.lock().unwrap();
            totals.scenarios.merge(&journal.scenario_counts);
            totals.all.merge(&journal.counts);
        }
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
    let totals = std::mem::take(&mut *totals.lock().unwrap());
    (coverage, totals)
}

#[test]
fn archive_survives_random_worlds() {
    let (coverage, totals) = run(0..COVERING);
    println!("{totals:?}\n{coverage}");
    totals.expect_coverage();
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
    let (coverage, totals) = run(first..first + count);
    println!("{totals:?}\n{coverage}");
    if count >= COVERING {
        totals.expect_coverage();
    }
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
        let line = failure
            .text
            .lines()
            .find(|line| line.contains(defect.symptom()));
        println!("{defect:?} found by seed {seed}: {line:?}");
        assert!(line.is_some(), "{defect:?}: {}", failure.text);
    }
}
