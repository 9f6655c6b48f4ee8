// SPDX-License-Identifier: Apache-2.0
//! JSON output, the input of `--markdown`.

use serde_json::{Value, json};

use crate::about::About;
use crate::figures::{Outcome, Row, TargetResult};
use crate::table::{bound_text, verdict_text};

/// Version of the format; readers reject unknown versions.
pub(crate) const SCHEMA: u64 = 1;

/// Returns commit and machine, and for each measurement figures, ratios, targets and the values of each round.
pub(crate) fn value(outcomes: &[Outcome], about: &About) -> Value {
    json!({
        "schema": SCHEMA,
        "about": about,
        "measurements": measurements(outcomes),
    })
}

fn measurements(outcomes: &[Outcome]) -> Value {
    outcomes.iter().map(measurement).collect()
}

fn measurement(outcome: &Outcome) -> Value {
    let rows = outcome.rows.iter().enumerate();
    json!({
        "name": outcome.name,
        "client_idle": outcome.client_idle.map(|idle| idle.to_string()),
        "kind": outcome.kind,
        "targets": outcome.target_results().map(|result| target_result(&result)).collect::<Value>(),
        "rows": rows.map(|(index, row)| subject(outcome, index, row)).collect::<Value>(),
    })
}

fn target_result(result: &TargetResult<'_>) -> Value {
    json!({
        "figure": result.figure,
        "bound": bound_text(result),
        "over_rounds": result.of,
        "value": result.verdict.as_ref().map(|verdict| verdict.value),
        "status": result.status().to_string(),
    })
}

fn subject(outcome: &Outcome, index: usize, row: &Row) -> Value {
    let figures = outcome.kind.figures().iter().enumerate();
    let figures = figures.map(|(figure, spec)| {
        json!({
            "name": spec.name,
            "over_rounds": outcome.figure(index, figure),
            "ratio": outcome.ratio(index, figure),
            "verdicts": outcome.verdicts(index, figure).iter().map(verdict_text).collect::<Value>(),
        })
    });
    json!({
        "label": row.label,
        "implementation": row.implementation,
        "baseline": outcome.rows[row.baseline].label,
        "warning": row.warning(),
        "figures": figures.collect::<Value>(),
        "rounds": row.rounds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::outcome;

    #[test]
    fn value_has_figures_ratios_targets_and_rounds() {
        let name = "driver stream loopback invoker 288B";
        let value = measurements(&[outcome(name, &[&[30.0, 10.0, 20.0], &[2.0]])]);
        let ours = &value[0]["rows"][0];
        assert_eq!(value[0]["name"], name);
        assert_eq!(value[0]["targets"][0]["value"], 10.0);
        assert_eq!(value[0]["targets"][0]["status"], "met");
        assert_eq!(ours["figures"][0]["over_rounds"]["median"], 20.0);
        assert_eq!(ours["figures"][0]["ratio"], 10.0);
        assert_eq!(
            ours["figures"][0]["verdicts"][0],
            "[at least 8.6 of official C, is 10.00: met]"
        );
        assert_eq!(ours["rounds"][1]["rate"], 10.0);
    }
}
