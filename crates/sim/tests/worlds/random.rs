//! Random worlds: a few of those that `cargo xtask sim` plays by the thousand, and what is made of one that fails.

use taran_sim::story::{Coverage, Failure, Plan, attempt, attempt_with, shrink};
use taran_sim::{HostIndex, World};

/// How many stories are played to make one short, at most.
const ATTEMPTS: u64 = 2_000;

/// How many stories are played here.
const SEEDS: u64 = 8;

#[test]
fn a_few_random_worlds() {
    let mut coverage = Coverage::default();
    for seed in 0..SEEDS {
        match attempt(&Plan::random(seed)) {
            Ok(happened) => coverage.merge(&happened),
            Err(Failure { text, .. }) => {
                panic!(
                    "seed {seed} fails, and is made short with: cargo xtask sim --seeds 1 --seed {seed}\n{text}"
                )
            }
        }
    }
    eprintln!("{coverage}");
    for what in [
        "messages delivered",
        "images that went",
        "datagrams lost",
        "drivers that returned",
    ] {
        assert!(coverage.of(what) > 0, "{what}");
    }
}

#[test]
fn the_same_plan_is_the_same_story() {
    let plan = Plan::random(7);
    assert_eq!(
        attempt(&plan),
        attempt(&Plan::from_text(&plan.to_text()).unwrap())
    );
}

/// A defect that is none: something is delivered on the second host while the first has no driver.
fn defect(world: &World) {
    let deserted = !world.has_driver(HostIndex::at(0));
    assert!(
        !deserted || world.delivered_on(HostIndex::at(1)) < 5,
        "planted"
    );
}

fn play(plan: &Plan) -> Option<Failure> {
    attempt_with(plan, &mut |world| defect(world)).err()
}

#[test]
fn a_story_that_fails_is_made_short_and_fails_again_from_its_text() {
    let found = (0..200).map(Plan::random).find_map(|plan| {
        let failure = play(&plan).filter(|failure| failure.text.contains("planted"));
        failure.map(|failure| (plan, failure))
    });
    let (plan, failure) = found.expect("one of these stories has it");
    let shrunk = shrink(&plan, &failure, |attempts| attempts >= ATTEMPTS, play);
    eprintln!("{} attempts:\n{}", shrunk.attempts, shrunk.plan.to_text());
    // A client and a subscriber there, a client and a publisher that it hears, some time, and the end of the driver here.
    assert!(
        plan.events.len() > 20 && shrunk.plan.events.len() <= 7,
        "{:?}",
        shrunk.plan.events
    );
    let again = Plan::from_text(&shrunk.plan.to_text()).unwrap();
    assert_eq!(play(&again).unwrap().kind, failure.kind);
}

#[test]
fn a_story_that_fails_in_no_other_way_stays_as_it_is_also_where_its_times_are_in_no_order() {
    let is_out_of_order = |plan: &Plan| !plan.events.is_sorted_by_key(|event| event.at_ms);
    let found = (0..200).map(Plan::random).find(is_out_of_order);
    let plan = found.expect("one of these stories is");
    let failure = Failure {
        kind: "planted".to_owned(),
        text: "planted".to_owned(),
    };
    let shrunk = shrink(&plan, &failure, |attempts| attempts >= ATTEMPTS, |_| None);
    assert_eq!((shrunk.plan, shrunk.failure), (plan, failure));
}
