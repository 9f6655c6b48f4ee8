use super::*;

/// Returns the first failing scenario of a defect, and the number of scenarios tried.
fn find(defect: Defect, limit: u64) -> Option<(u64, Scenario)> {
    (0..limit)
        .map(|seed| Scenario::random(seed, Some(defect)))
        .enumerate()
        .find(|(_, scenario)| scenario.run().is_err())
        .map(|(index, scenario)| (index as u64, scenario))
}

#[test]
fn log_writer_without_defect_survives_power_cuts() {
    let mut power_cuts = 0;
    let mut acknowledged = 0;
    for seed in 0..2_000 {
        let scenario = Scenario::random(seed, None);
        let outcome = scenario
            .run()
            .unwrap_or_else(|failure| panic!("{failure}\n{}", scenario.shrink()));
        power_cuts += outcome.power_cuts;
        acknowledged += outcome.acknowledged;
    }
    assert!(power_cuts > 5_000, "{power_cuts} power cuts");
    assert!(acknowledged > 20_000, "{acknowledged} records acknowledged");
}

#[test]
fn each_defect_is_found_and_shrunk() {
    for defect in Defect::ALL {
        let (tried, failing) =
            find(defect, 20_000).unwrap_or_else(|| panic!("{defect:?} was not found"));
        let shortest = failing.shrink();
        println!(
            "after {tried} scenarios of {} steps: {shortest}",
            failing.steps.len()
        );
        assert!(shortest.run().is_err());
        assert!(shortest.steps.len() <= 8, "{shortest}");
    }
}

#[test]
fn same_scenario_gives_the_same_result() {
    for seed in 0..100 {
        let scenario = Scenario::random(seed, Some(Defect::ForgetsDirectorySync));
        assert_eq!(scenario.run(), scenario.run());
    }
}

#[test]
fn passing_scenario_is_not_shrunk() {
    let scenario = Scenario::random(1, None);
    assert_eq!(scenario, scenario.shrink());
}
