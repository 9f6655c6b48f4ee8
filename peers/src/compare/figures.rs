// SPDX-License-Identifier: Apache-2.0
//! Evaluation of all rounds: medians, spreads, ratios and targets.

use std::fmt;

use serde::Serialize;
use taran_bench::client_idle::ClientIdle;
use taran_peers::measured::Measured;

use crate::plan::{Bound, Case, Kind, Target};
use crate::subject::Implementation;

/// All rounds of one measurement.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The measurement.
    pub(crate) name: String,
    /// Idle strategy of the clients' threads, if there are clients that idle.
    pub(crate) client_idle: Option<ClientIdle>,
    /// The quantity that its figures measure.
    pub(crate) kind: Kind,
    /// One row for each subject, in the order of the case.
    pub(crate) rows: Vec<Row>,
    targets: Vec<Target>,
}

/// Results of one subject.
#[derive(Debug)]
pub(crate) struct Row {
    /// Display name of the subject.
    pub(crate) label: String,
    /// The implementation of the driver or client.
    pub(crate) implementation: Implementation,
    /// Index of the baseline's row.
    pub(crate) baseline: usize,
    /// Results in the order of the rounds.
    pub(crate) rounds: Vec<Measured>,
}

/// A figure over the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Figure {
    /// Median of the rounds.
    pub(crate) median: f64,
    /// Minimum of the rounds.
    pub(crate) least: f64,
    /// Maximum of the rounds.
    pub(crate) most: f64,
}

/// Evaluated target.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    /// Required bound.
    pub(crate) bound: Bound,
    /// Label of the baseline; `None` if the bound is absolute.
    pub(crate) to: Option<String>,
    /// Measured value, or ratio to the baseline.
    pub(crate) value: f64,
    /// Result of the comparison.
    pub(crate) status: Status,
}

/// A target with its measurement, for the summaries.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TargetResult<'a> {
    /// The measurement.
    pub(crate) name: &'a str,
    /// Name of the figure.
    pub(crate) figure: &'static str,
    /// Required bound.
    pub(crate) bound: Bound,
    /// Our figure.
    pub(crate) of: Option<Figure>,
    /// Label of the baseline; `None` if the bound is absolute.
    pub(crate) to: Option<&'a str>,
    /// The evaluation; `None` if it was not measured.
    pub(crate) verdict: Option<Verdict>,
}

impl TargetResult<'_> {
    /// Returns the status; a target without evaluation is not measured.
    pub(crate) fn status(&self) -> Status {
        self.verdict
            .as_ref()
            .map_or(Status::NotMeasured, |verdict| verdict.status)
    }
}

/// Text of [`Status::Met`], on pages and in result files.
pub(crate) const MET: &str = "met";
/// Text of [`Status::Missed`].
pub(crate) const MISSED: &str = "MISSED";
/// Text of [`Status::Invalid`].
pub(crate) const INVALID: &str = "INVALID";
/// Text of [`Status::NotMeasured`].
pub(crate) const NOT_MEASURED: &str = "NOT MEASURED";

/// Status of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The figure is within the bound.
    Met,
    /// The figure is outside the bound.
    Missed,
    /// The figure is within the bound, but messages were lost or the rate was not held; or the baseline's were, whatever the figure.
    Invalid,
    /// A subject of the target was not measured.
    NotMeasured,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Met => MET,
            Status::Missed => MISSED,
            Status::Invalid => INVALID,
            Status::NotMeasured => NOT_MEASURED,
        })
    }
}

impl Outcome {
    /// Returns the name of the measurement with the idle strategy of its clients.
    pub(crate) fn title(&self) -> String {
        let clients = self.client_idle.map(|idle| format!(", clients {idle}"));
        format!("{}{}", self.name, clients.unwrap_or_default())
    }

    /// Creates an outcome without rounds.
    pub(crate) fn new(case: &Case) -> Outcome {
        let row = |subject: &crate::plan::Subject| Row {
            label: subject.label.clone(),
            implementation: subject.implementation,
            baseline: subject.baseline,
            rounds: Vec::new(),
        };
        Outcome {
            name: case.name.clone(),
            client_idle: case.client_idle(),
            kind: case.kind(),
            rows: case.subjects.iter().map(row).collect(),
            targets: case.targets.clone(),
        }
    }

    /// Adds a round of the subject with this index.
    pub(crate) fn add(&mut self, index: usize, measured: Measured) {
        self.rows[index].rounds.push(measured);
    }

    /// Returns a figure of a row, or `None` if it was not measured.
    pub(crate) fn figure(&self, row: usize, figure: usize) -> Option<Figure> {
        self.rows.get(row)?.figure(self.kind, figure)
    }

    /// Returns the ratio of a row's median to that of its baseline.
    pub(crate) fn ratio(&self, row: usize, figure: usize) -> Option<f64> {
        self.proportion(row, self.rows[row].baseline, figure)
    }

    /// Returns the evaluated targets of a figure of a row.
    pub(crate) fn verdicts(&self, row: usize, figure: usize) -> Vec<Verdict> {
        let targets = self.targets.iter();
        targets
            .filter(|target| (target.of, target.figure) == (row, figure))
            .filter_map(|target| self.verdict(target))
            .collect()
    }

    /// Returns the results of all targets of this measurement.
    pub(crate) fn target_results(&self) -> impl Iterator<Item = TargetResult<'_>> {
        self.targets.iter().map(|target| {
            let target = self.in_force(target);
            TargetResult {
                name: &self.name,
                figure: self.kind.figures()[target.figure].name,
                bound: target.bound,
                of: self.figure(target.of, target.figure),
                to: target.to.map(|to| self.rows[to].label.as_str()),
                verdict: self.evaluate(&target),
            }
        })
    }

    /// Returns the target with the other baseline if it is met with that one only, or measured with that one only.
    fn in_force(&self, target: &Target) -> Target {
        let Some((to, bound)) = target.or else {
            return *target;
        };
        let other = Target {
            to: Some(to),
            bound,
            or: None,
            ..*target
        };
        let status = |target| self.evaluate(target).map(|verdict| verdict.status);
        match (status(target), status(&other)) {
            (Some(Status::Met), _) => *target,
            (None, _) | (_, Some(Status::Met)) => other,
            _ => *target,
        }
    }

    fn verdict(&self, target: &Target) -> Option<Verdict> {
        self.evaluate(&self.in_force(target))
    }

    fn evaluate(&self, target: &Target) -> Option<Verdict> {
        let value = match target.to {
            Some(to) => self.proportion(target.of, to, target.figure)?,
            None => self.figure(target.of, target.figure)?.median,
        };
        Some(Verdict {
            bound: target.bound,
            to: target.to.map(|to| self.rows[to].label.clone()),
            value,
            status: if target.to.is_some_and(|to| !self.rows[to].is_valid()) {
                // A ratio to an overloaded or lossy baseline says nothing.
                Status::Invalid
            } else if !target.bound.is_met_by(value) {
                Status::Missed
            } else if self.rows[target.of].is_valid() {
                Status::Met
            } else {
                Status::Invalid
            },
        })
    }

    fn proportion(&self, of: usize, to: usize, figure: usize) -> Option<f64> {
        Some(self.figure(of, figure)?.median / self.figure(to, figure)?.median)
    }
}

impl Row {
    fn figure(&self, kind: Kind, index: usize) -> Option<Figure> {
        const SHARES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];
        let mut values: Vec<f64> = self
            .rounds
            .iter()
            .filter_map(|round| match kind {
                Kind::Rate | Kind::Load | Kind::Throughput | Kind::Time | Kind::Memory => {
                    Some(round.rate)
                }
                Kind::RoundTrips => Some(round.round_trip(SHARES[index])? as f64 / 1_000.0),
            })
            .collect();
        values.sort_by(f64::total_cmp);
        Some(Figure {
            median: median(&values)?,
            least: *values.first()?,
            most: *values.last()?,
        })
    }

    /// Returns true if no round lost messages and more than half of the rounds held the rate.
    fn is_valid(&self) -> bool {
        let held = self.rounds.iter().filter(|round| round.is_held).count();
        2 * held > self.rounds.len() && self.rounds.iter().all(|round| round.defects == 0)
    }

    /// Returns a description of lost messages and missed rates, if there are any.
    pub(crate) fn warning(&self) -> Option<String> {
        let defects: u64 = self.rounds.iter().map(|round| round.defects).sum();
        let not_held = self.rounds.iter().filter(|round| !round.is_held).count();
        let mut parts = Vec::new();
        if defects > 0 {
            parts.push(format!("{defects} messages lost, repeated or damaged"));
        }
        if not_held > 0 {
            let rounds = self.rounds.len();
            parts.push(format!(
                "the rate was not held in {not_held} of {rounds} rounds"
            ));
        }
        (!parts.is_empty()).then(|| format!("{}: {}", self.label, parts.join("; ")))
    }
}

/// Returns the median of sorted values; of an even number, the mean of the two middle values.
pub(crate) fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len().is_multiple_of(2) {
        Some((sorted[middle - 1] + upper) / 2.0)
    } else {
        Some(upper)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::plan;

    /// Returns an outcome of the named case with the given rates, one list for each subject.
    pub(crate) fn outcome(name: &str, rates: &[&[f64]]) -> Outcome {
        let cases = plan::all();
        let case = cases.iter().find(|case| case.name == name).unwrap();
        let mut outcome = Outcome::new(case);
        for (index, rates) in rates.iter().enumerate() {
            for rate in *rates {
                outcome.add(index, Measured::of(*rate));
            }
        }
        outcome
    }

    #[test]
    fn figure_is_median_with_minimum_and_maximum() {
        let outcome = outcome(
            "driver stream loopback invoker 288B",
            &[&[9.0, 30.0, 10.0], &[1.0]],
        );
        let figure = outcome.figure(0, 0).unwrap();
        assert_eq!(
            (figure.median, figure.least, figure.most),
            (10.0, 9.0, 30.0)
        );
        assert_eq!(outcome.ratio(0, 0), Some(10.0));
        assert_eq!(outcome.ratio(1, 0), Some(1.0));
        assert_eq!(median(&[1.0, 3.0]), Some(2.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn verdict_at_least_bound_includes_the_bound() {
        let name = "driver stream loopback invoker 288B";
        let status = |ours: f64| outcome(name, &[&[ours], &[1.0]]).verdicts(0, 0)[0].status;
        assert_eq!(status(8.6), Status::Met);
        assert_eq!(status(8.5), Status::Missed);
        assert!(outcome(name, &[&[8.6], &[1.0]]).verdicts(1, 0).is_empty());
    }

    #[test]
    fn verdict_without_measurement_is_absent() {
        let outcome = outcome("driver stream loopback invoker 288B", &[&[8.6]]);
        assert_eq!(
            outcome.target_results().next().unwrap().status(),
            Status::NotMeasured
        );
        assert!(outcome.verdicts(0, 0).is_empty());
        assert_eq!(outcome.ratio(0, 0), None);
    }

    #[test]
    fn verdict_without_baseline_uses_the_median() {
        let outcome = outcome("defaults idle", &[&[0.4]]);
        let verdicts = outcome.verdicts(0, 0);
        assert_eq!((verdicts[0].value, verdicts[0].status), (0.4, Status::Met));
    }

    #[test]
    fn verdict_with_two_baselines_needs_one() {
        let verdict = |ours: f64| {
            let outcome = outcome("archive record ipc 288B", &[&[ours], &[1.0], &[10.0]]);
            outcome.verdicts(0, 0).remove(0)
        };
        let baseline = |ours| verdict(ours).to.unwrap();
        assert_eq!(verdict(9.5).status, Status::Met);
        assert_eq!(baseline(9.5), "official Java");
        let slow_official = outcome("archive record ipc 288B", &[&[9.5], &[9.0], &[10.0]]);
        let found = slow_official.verdicts(0, 0).remove(0);
        assert_eq!(found.status, Status::Met);
        assert_eq!(found.to.unwrap(), "limit: pwrite");
        assert_eq!(verdict(1.5).status, Status::Missed);
        let without_official = outcome("archive record ipc 288B", &[&[9.5], &[], &[10.0]]);
        assert_eq!(without_official.verdicts(0, 0)[0].status, Status::Met);
    }

    #[test]
    fn warning_reports_losses() {
        let mut outcome = outcome("defaults idle", &[&[0.4]]);
        assert_eq!(outcome.rows[0].warning(), None);
        outcome.rows[0].rounds[0].defects = 2;
        let warning = outcome.rows[0].warning().unwrap();
        assert_eq!(warning, "Taran: 2 messages lost, repeated or damaged");
    }

    #[test]
    fn verdict_with_losses_or_low_rate_is_invalid() {
        let status = |spoil: fn(&mut Measured)| {
            let mut outcome = outcome("defaults idle", &[&[0.4, 0.4, 0.4]]);
            outcome.rows[0].rounds.iter_mut().take(2).for_each(spoil);
            outcome.verdicts(0, 0)[0].status
        };
        assert_eq!(status(|_| ()), Status::Met);
        assert_eq!(status(|round| round.defects = 1), Status::Invalid);
        assert_eq!(status(|round| round.is_held = false), Status::Invalid);
    }

    #[test]
    fn verdict_with_invalid_baseline_is_invalid_and_another_baseline_decides() {
        let status = |ours: f64, spoil: fn(&mut Measured)| {
            let mut outcome = outcome("driver stream loopback invoker 288B", &[&[ours], &[1.0]]);
            outcome.rows[1].rounds.iter_mut().for_each(spoil);
            outcome.verdicts(0, 0)[0].status
        };
        for ours in [8.6, 8.5] {
            assert_eq!(status(ours, |round| round.is_held = false), Status::Invalid);
            assert_eq!(status(ours, |round| round.defects = 1), Status::Invalid);
        }
        let mut outcome = outcome("archive record ipc 288B", &[&[9.5], &[1.0], &[10.0]]);
        outcome.rows[1].rounds[0].defects = 1;
        let verdict = outcome.verdicts(0, 0).remove(0);
        assert_eq!(verdict.to.unwrap(), "limit: pwrite");
        assert_eq!(verdict.status, Status::Met);
    }
}
