// SPDX-License-Identifier: Apache-2.0
//! Random scenarios: a few of those that `cargo xtask sim` runs by the thousand, and the shrinking of a failed one.

use taran_sim::scenario::{Coverage, Failure, Scenario, run, run_with, shrink};
use taran_sim::{HostIndex, World};

/// Maximum number of runs while shrinking.
const ATTEMPTS: u64 = 2_000;

/// Number of scenarios run here.
const SEEDS: u64 = 8;

#[test]
fn random_scenarios_keep_all_invariants() {
    let mut coverage = Coverage::default();
    for seed in 0..SEEDS {
        match run(&Scenario::random(seed)) {
            Ok(happened) => coverage.merge(&happened),
            Err(Failure { text, .. }) => {
                panic!(
                    "seed {seed} fails; shrink it with: cargo xtask sim --seeds 1 --seed {seed}\n{text}"
                )
            }
        }
    }
    eprintln!("{coverage}");
    for what in [
        "messages delivered",
        "images unavailable",
        "datagrams lost",
        "drivers restarted",
    ] {
        assert!(coverage.get(what) > 0, "{what}");
    }
}

#[test]
fn scenario_parsed_from_its_text_runs_identically() {
    let scenario = Scenario::random(7);
    assert_eq!(
        run(&scenario),
        run(&Scenario::from_text(&scenario.to_text()).unwrap())
    );
}

/// An artificial defect: deliveries on the second host while the first has no driver.
fn defect(world: &World) {
    let has_no_driver = !world.has_driver(HostIndex::at(0));
    assert!(
        !has_no_driver || world.delivered_on(HostIndex::at(1)) < 5,
        "planted"
    );
}

fn find_defect(scenario: &Scenario) -> Option<Failure> {
    run_with(scenario, &mut |world| defect(world)).err()
}

#[test]
fn failing_scenario_is_shrunk_and_fails_from_its_text() {
    let found = (0..200).map(Scenario::random).find_map(|scenario| {
        let failure = find_defect(&scenario).filter(|failure| failure.text.contains("planted"));
        failure.map(|failure| (scenario, failure))
    });
    let (scenario, failure) = found.expect("one of these scenarios has the defect");
    let shrunk = shrink(
        &scenario,
        &failure,
        |attempts| attempts >= ATTEMPTS,
        find_defect,
    );
    eprintln!(
        "{} attempts:\n{}",
        shrunk.attempts,
        shrunk.scenario.to_text()
    );
    // What remains: a client and a subscriber there, a client and a publisher that reaches it, some time, and the end
    // of the driver here.
    assert!(
        scenario.ops.len() > 20 && shrunk.scenario.ops.len() <= 7,
        "{:?}",
        shrunk.scenario.ops
    );
    let again = Scenario::from_text(&shrunk.scenario.to_text()).unwrap();
    assert_eq!(find_defect(&again).unwrap().kind, failure.kind);
}

#[test]
fn scenario_that_does_not_fail_again_is_not_changed() {
    let is_out_of_order = |scenario: &Scenario| !scenario.ops.is_sorted_by_key(|op| op.at_ms);
    let found = (0..200).map(Scenario::random).find(is_out_of_order);
    let scenario = found.expect("one of these scenarios is out of order");
    let failure = Failure {
        kind: "planted".to_owned(),
        text: "planted".to_owned(),
    };
    let shrunk = shrink(
        &scenario,
        &failure,
        |attempts| attempts >= ATTEMPTS,
        |_| None,
    );
    assert_eq!((shrunk.scenario, shrunk.failure), (scenario, failure));
}
