//! The outcome for other programs.

use serde_json::{Value, json};

use crate::about::About;
use crate::figures::{Outcome, Promise, Row};
use crate::table::{told, wanted};

/// What they belong to, and all measurements: figures with their ratios and what was promised, and every round by itself.
pub(crate) fn value(outcomes: &[Outcome], about: &About) -> Value {
    json!({
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
        "kind": outcome.kind,
        "promises": outcome.promises().map(|promise| promised(&promise)).collect::<Value>(),
        "rows": rows.map(|(index, row)| contestant(outcome, index, row)).collect::<Value>(),
    })
}

fn promised(promise: &Promise<'_>) -> Value {
    json!({
        "figure": promise.figure,
        "wanted": wanted(promise),
        "measured": promise.of,
        "judged_by": promise.verdict.as_ref().map(|verdict| verdict.value),
        "is_kept": promise.is_kept().to_string(),
    })
}

fn contestant(outcome: &Outcome, index: usize, row: &Row) -> Value {
    let names = outcome.kind.names().iter().enumerate();
    let figures = names.map(|(figure, name)| {
        json!({
            "name": name,
            "over_rounds": outcome.figure(index, figure),
            "ratio": outcome.ratio(index, figure),
            "promised": outcome.verdicts(index, figure).iter().map(told).collect::<Value>(),
        })
    });
    json!({
        "label": row.label,
        "whose": row.whose,
        "against": outcome.rows[row.against].label,
        "complaint": row.complaint(),
        "figures": figures.collect::<Value>(),
        "rounds": row.rounds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::outcome;

    #[test]
    fn tells_figures_ratios_promises_and_rounds() {
        let name = "driver stream loopback invoker 288B";
        let value = measurements(&[outcome(name, &[&[30.0, 10.0, 20.0], &[2.0]])]);
        let ours = &value[0]["rows"][0];
        assert_eq!(value[0]["name"], name);
        assert_eq!(value[0]["promises"][0]["judged_by"], 10.0);
        assert_eq!(value[0]["promises"][0]["is_kept"], "met");
        assert_eq!(ours["figures"][0]["over_rounds"]["median"], 20.0);
        assert_eq!(ours["figures"][0]["ratio"], 10.0);
        assert_eq!(
            ours["figures"][0]["promised"][0],
            "[at least 8.6 of official C, is 10.00: met]"
        );
        assert_eq!(ours["rounds"][1]["rate"], 10.0);
    }
}
