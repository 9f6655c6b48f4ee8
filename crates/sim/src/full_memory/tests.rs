// SPDX-License-Identifier: Apache-2.0
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::*;
use crate::scenario::{Coverage, Scenario, silence_panics, without_panic_output};

#[test]
fn streams_survive_full_file_systems() {
    let totals: Arc<Mutex<Totals>> = Arc::default();
    let sink = Arc::clone(&totals);
    let suite = suite(None).finish(move |world| {
        let (all, new) = (&mut *sink.lock().unwrap(), streams::totals(world));
        all.refused += new.refused;
        all.back_pressured += new.back_pressured;
        all.waited += new.waited;
        all.wrapped += new.wrapped;
        Ok(())
    });
    let mut coverage = Coverage::default();
    for seed in 0..50 {
        match suite.run(&suite.random(seed)) {
            Ok(happened) => coverage.merge(&happened),
            Err(failure) => panic!("seed {seed}: {}", failure.text),
        }
    }
    let totals = *totals.lock().unwrap();
    println!("{totals:?}\n{coverage}");
    for (what, count, least) in [
        (
            "changes of limits",
            coverage.get("operation: memory limit"),
            150,
        ),
        ("operations", coverage.get("operation: long stream"), 150),
        ("refused publications", totals.refused, 5),
        ("back-pressured streams", totals.back_pressured, 20),
        ("streams that waited for space", totals.waited, 5),
        ("streams that went around their log", totals.wrapped, 5),
    ] {
        assert!(count >= least, "{what}: {count} times");
    }
}

#[test]
fn limit_that_passes_the_reservation_is_found_and_shrunk() {
    silence_panics();
    let start = Instant::now();
    let suite = suite(Some(Defect::LimitPassesReservation));
    let found = without_panic_output(|| {
        (0..200).find_map(|seed| {
            let scenario = suite.random(seed);
            let failure = suite.run(&scenario).err()?;
            Some((seed, scenario, failure))
        })
    });
    let (seed, scenario, failure) = found.expect("the defect was not found");
    let found_after = start.elapsed();
    assert!(failure.text.contains("not reserved"), "{}", failure.text);
    let shrunk = suite.shrink(&scenario, &failure, |attempts| attempts > 400);
    let text = shrunk.scenario.to_text();
    println!(
        "found by seed {seed} after {found_after:?}, shrunk from {} operations by {} attempts to\n{text}{}",
        scenario.ops.len(),
        shrunk.attempts,
        shrunk.failure.text
    );
    assert!(shrunk.scenario.ops.len() <= 6, "{text}");
    let replayed = suite.run(&Scenario::from_text(&text).unwrap());
    assert_eq!(replayed.unwrap_err().text, shrunk.failure.text);
}
