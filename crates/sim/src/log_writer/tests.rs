// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::scenario::{Coverage, Failure, Scenario, silence_panics};

/// Returns the first failing scenario of a defect, and the number of scenarios tried.
fn find(suite: &Suite, limit: u64) -> Option<(u64, Scenario, Failure)> {
    crate::scenario::without_panic_output(|| {
        (0..limit).find_map(|seed| {
            let scenario = suite.random(seed);
            let failure = suite.run(&scenario).err()?;
            Some((seed, scenario, failure))
        })
    })
}

#[test]
fn log_writer_without_defect_survives_power_cuts() {
    let suite = suite(None);
    let mut coverage = Coverage::default();
    for seed in 0..1_000 {
        match suite.run(&suite.random(seed)) {
            Ok(happened) => coverage.merge(&happened),
            Err(failure) => panic!("seed {seed}: {}", failure.text),
        }
    }
    for (what, least) in [
        ("power cut", 4_000),
        ("boot", 4_000),
        ("operation: append", 5_000),
        ("operation: kill writer", 500),
        ("operation: disk fault", 2_000),
    ] {
        let count = coverage.get(what);
        assert!(count > least, "{what}: {count} times");
    }
}

#[test]
fn each_defect_is_found_and_shrunk() {
    silence_panics();
    for defect in Defect::ALL {
        let suite = suite(Some(defect));
        let found = find(&suite, 20_000);
        let (seed, scenario, failure) = found.unwrap_or_else(|| panic!("{defect:?} was not found"));
        let shrunk = suite.shrink(&scenario, &failure, |attempts| attempts > 50_000);
        let text = shrunk.scenario.to_text();
        println!(
            "{defect:?} found by seed {seed}, shrunk from {} operations by {} attempts to\n{text}{}",
            scenario.ops.len(),
            shrunk.attempts,
            shrunk.failure.text
        );
        assert!(shrunk.scenario.ops.len() <= 8, "{defect:?}: {text}");
        let replayed = suite.run(&Scenario::from_text(&text).unwrap());
        assert_eq!(replayed.unwrap_err().text, shrunk.failure.text);
    }
}

#[test]
fn same_scenario_gives_the_same_result() {
    silence_panics();
    let suite = suite(Some(Defect::ForgetsDirectorySync));
    crate::scenario::without_panic_output(|| {
        for seed in 0..100 {
            let scenario = suite.random(seed);
            assert_eq!(suite.run(&scenario), suite.run(&scenario));
        }
    });
}
