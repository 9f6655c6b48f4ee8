//! What came out of all rounds, and what it says.

use std::fmt;

use serde::Serialize;
use taran_peers::measured::Measured;

use crate::plan::{Bound, Case, Kind, Target};
use crate::subject::Implementation;

/// All rounds of one measurement.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The measurement.
    pub(crate) name: String,
    /// What its figures count.
    pub(crate) kind: Kind,
    /// A row for each subject, in their order.
    pub(crate) rows: Vec<Row>,
    targets: Vec<Target>,
}

/// What one subject showed.
#[derive(Debug)]
pub(crate) struct Row {
    /// Who, for people.
    pub(crate) label: String,
    /// Whose driver or client.
    pub(crate) implementation: Implementation,
    /// The row that it is compared with.
    pub(crate) against: usize,
    /// Round by round.
    pub(crate) rounds: Vec<Measured>,
}

/// A figure over the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Figure {
    /// The middle one.
    pub(crate) median: f64,
    /// The least.
    pub(crate) least: f64,
    /// The most.
    pub(crate) most: f64,
}

/// A target, and what came out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    /// What the figure had to be.
    pub(crate) bound: Bound,
    /// In proportion to implementation, if so.
    pub(crate) to: Option<String>,
    /// What it is.
    pub(crate) value: f64,
    /// Whether that is enough.
    pub(crate) status: Status,
}

/// A target with all that there is to say about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TargetResult<'a> {
    /// The measurement.
    pub(crate) name: &'a str,
    /// Which of its figures.
    pub(crate) figure: &'static str,
    /// What it had to be.
    pub(crate) bound: Bound,
    /// What ours is.
    pub(crate) of: Option<Figure>,
    /// In proportion to implementation it is judged, if so.
    pub(crate) to: Option<&'a str>,
    /// What came out; nothing if it could not be measured.
    pub(crate) verdict: Option<Verdict>,
}

impl TargetResult<'_> {
    /// In a word.
    pub(crate) fn status(&self) -> Status {
        self.verdict
            .as_ref()
            .map_or(Status::Unknown, |it| it.status)
    }
}

/// Whether a result is status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// The figure would do, but messages were lost on the way to it, or the rate was not held.
    Unsound,
    /// What it is about could not be measured.
    Unknown,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Yes => "met",
            Status::No => "NOT MET",
            Status::Unsound => "NOT SOUND",
            Status::Unknown => "NOT MEASURED",
        })
    }
}

impl Outcome {
    /// Nothing yet.
    pub(crate) fn new(case: &Case) -> Outcome {
        let row = |subject: &crate::plan::Subject| Row {
            label: subject.label.clone(),
            implementation: subject.implementation,
            against: subject.against,
            rounds: Vec::new(),
        };
        Outcome {
            name: case.name.clone(),
            kind: case.kind(),
            rows: case.subjects.iter().map(row).collect(),
            targets: case.targets.clone(),
        }
    }

    /// One more round of the subject with this index.
    pub(crate) fn add(&mut self, index: usize, measured: Measured) {
        self.rows[index].rounds.push(measured);
    }

    /// A figure of a row; `None` if it was not measured.
    pub(crate) fn figure(&self, row: usize, figure: usize) -> Option<Figure> {
        self.rows.get(row)?.figure(self.kind, figure)
    }

    /// The median of a row in proportion to that of the row that it is compared with.
    pub(crate) fn ratio(&self, row: usize, figure: usize) -> Option<f64> {
        self.proportion(row, self.rows[row].against, figure)
    }

    /// The targets of a figure of a row.
    pub(crate) fn verdicts(&self, row: usize, figure: usize) -> Vec<Verdict> {
        let targets = self.targets.iter();
        targets
            .filter(|target| (target.of, target.figure) == (row, figure))
            .filter_map(|target| self.verdict(target))
            .collect()
    }

    /// Everything that was target_result about it.
    pub(crate) fn target_results(&self) -> impl Iterator<Item = TargetResult<'_>> {
        self.targets.iter().map(|target| TargetResult {
            name: &self.name,
            figure: self.kind.names()[target.figure],
            bound: target.bound,
            of: self.figure(target.of, target.figure),
            to: target.to.map(|to| self.rows[to].label.as_str()),
            verdict: self.verdict(target),
        })
    }

    fn verdict(&self, target: &Target) -> Option<Verdict> {
        let value = match target.to {
            Some(to) => self.proportion(target.of, to, target.figure)?,
            None => self.figure(target.of, target.figure)?.median,
        };
        Some(Verdict {
            bound: target.bound,
            to: target.to.map(|to| self.rows[to].label.clone()),
            value,
            status: match target.bound.is_met_by(value) {
                false => Status::No,
                true if self.rows[target.of].is_sound() => Status::Yes,
                true => Status::Unsound,
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
                Kind::Rate | Kind::Load => Some(round.rate),
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

    /// Whether nothing was lost in any round, and the rate held in most.
    fn is_sound(&self) -> bool {
        let held = self.rounds.iter().filter(|round| round.is_held).count();
        2 * held > self.rounds.len() && self.rounds.iter().all(|round| round.defects == 0)
    }

    /// What went wrong in some of its rounds, if anything did.
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

/// The middle one of sorted values, or the mean of the two in the middle.
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

    /// An outcome of the case with this name in which each subject has these rates.
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
    fn figures_are_medians_with_their_spread() {
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
    fn a_floor_is_met_or_not() {
        let name = "driver stream loopback invoker 288B";
        let status = |ours: f64| outcome(name, &[&[ours], &[1.0]]).verdicts(0, 0)[0].status;
        assert_eq!(status(8.6), Status::Yes);
        assert_eq!(status(8.5), Status::No);
        assert!(outcome(name, &[&[8.6], &[1.0]]).verdicts(1, 0).is_empty());
    }

    #[test]
    fn what_was_not_measured_has_no_verdict() {
        let outcome = outcome("driver stream loopback invoker 288B", &[&[8.6]]);
        assert_eq!(
            outcome.target_results().next().unwrap().status(),
            Status::Unknown
        );
        assert!(outcome.verdicts(0, 0).is_empty());
        assert_eq!(outcome.ratio(0, 0), None);
    }

    #[test]
    fn a_figure_can_stand_for_itself() {
        let outcome = outcome("defaults idle", &[&[0.4]]);
        let verdicts = outcome.verdicts(0, 0);
        assert_eq!((verdicts[0].value, verdicts[0].status), (0.4, Status::Yes));
    }

    #[test]
    fn losses_are_told() {
        let mut outcome = outcome("defaults idle", &[&[0.4]]);
        assert_eq!(outcome.rows[0].warning(), None);
        outcome.rows[0].rounds[0].defects = 2;
        let warning = outcome.rows[0].warning().unwrap();
        assert_eq!(warning, "Taran: 2 messages lost, repeated or damaged");
    }

    #[test]
    fn a_floor_is_not_met_by_losing_messages_or_by_going_slowly() {
        let status = |spoil: fn(&mut Measured)| {
            let mut outcome = outcome("defaults idle", &[&[0.4, 0.4, 0.4]]);
            outcome.rows[0].rounds.iter_mut().take(2).for_each(spoil);
            outcome.verdicts(0, 0)[0].status
        };
        assert_eq!(status(|_| ()), Status::Yes);
        assert_eq!(status(|round| round.defects = 1), Status::Unsound);
        assert_eq!(status(|round| round.is_held = false), Status::Unsound);
    }
}
