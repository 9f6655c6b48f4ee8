//! What came out of all rounds, and what it says.

use std::fmt;

use serde::Serialize;
use taran_peers::measured::Measured;

use crate::contender::Contender;
use crate::plan::{Bound, Case, Floor, Kind};

/// All rounds of one measurement.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The measurement.
    pub(crate) name: String,
    /// What its figures count.
    pub(crate) kind: Kind,
    /// A row for each contestant, in their order.
    pub(crate) rows: Vec<Row>,
    floors: Vec<Floor>,
}

/// What one contestant showed.
#[derive(Debug)]
pub(crate) struct Row {
    /// Who, for people.
    pub(crate) label: String,
    /// Whose driver or client.
    pub(crate) whose: Contender,
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

/// A floor, and what came out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    /// What the figure had to be.
    pub(crate) bound: Bound,
    /// In proportion to whose, if so.
    pub(crate) to: Option<String>,
    /// What it is.
    pub(crate) value: f64,
    /// Whether that is enough.
    pub(crate) kept: Kept,
}

/// A floor with all that there is to say about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Promise<'a> {
    /// The measurement.
    pub(crate) name: &'a str,
    /// Which of its figures.
    pub(crate) figure: &'static str,
    /// What it had to be.
    pub(crate) bound: Bound,
    /// What ours is.
    pub(crate) of: Option<Figure>,
    /// In proportion to whose it is judged, if so.
    pub(crate) to: Option<&'a str>,
    /// What came out; nothing if it could not be measured.
    pub(crate) verdict: Option<Verdict>,
}

impl Promise<'_> {
    /// In a word.
    pub(crate) fn is_kept(&self) -> Kept {
        self.verdict.as_ref().map_or(Kept::Unknown, |it| it.kept)
    }
}

/// Whether a promise is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// The figure would do, but messages were lost on the way to it, or the rate was not held.
    Unsound,
    /// What it is about could not be measured.
    Unknown,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kept::Yes => "met",
            Kept::No => "NOT MET",
            Kept::Unsound => "NOT SOUND",
            Kept::Unknown => "NOT MEASURED",
        })
    }
}

impl Outcome {
    /// Nothing yet.
    pub(crate) fn new(case: &Case) -> Outcome {
        let row = |contestant: &crate::plan::Contestant| Row {
            label: contestant.label.clone(),
            whose: contestant.whose,
            against: contestant.against,
            rounds: Vec::new(),
        };
        Outcome {
            name: case.name.clone(),
            kind: case.kind(),
            rows: case.contestants.iter().map(row).collect(),
            floors: case.floors.clone(),
        }
    }

    /// One more round of the contestant with this index.
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

    /// The floors of a figure of a row.
    pub(crate) fn verdicts(&self, row: usize, figure: usize) -> Vec<Verdict> {
        let floors = self.floors.iter();
        floors
            .filter(|floor| (floor.of, floor.figure) == (row, figure))
            .filter_map(|floor| self.verdict(floor))
            .collect()
    }

    /// Everything that was promised about it.
    pub(crate) fn promises(&self) -> impl Iterator<Item = Promise<'_>> {
        self.floors.iter().map(|floor| Promise {
            name: &self.name,
            figure: self.kind.names()[floor.figure],
            bound: floor.bound,
            of: self.figure(floor.of, floor.figure),
            to: floor.to.map(|to| self.rows[to].label.as_str()),
            verdict: self.verdict(floor),
        })
    }

    fn verdict(&self, floor: &Floor) -> Option<Verdict> {
        let value = match floor.to {
            Some(to) => self.proportion(floor.of, to, floor.figure)?,
            None => self.figure(floor.of, floor.figure)?.median,
        };
        Some(Verdict {
            bound: floor.bound,
            to: floor.to.map(|to| self.rows[to].label.clone()),
            value,
            kept: match floor.bound.is_met_by(value) {
                false => Kept::No,
                true if self.rows[floor.of].is_sound() => Kept::Yes,
                true => Kept::Unsound,
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
        2 * held > self.rounds.len() && self.rounds.iter().all(|round| round.troubles == 0)
    }

    /// What went wrong in some of its rounds, if anything did.
    pub(crate) fn complaint(&self) -> Option<String> {
        let troubles: u64 = self.rounds.iter().map(|round| round.troubles).sum();
        let not_held = self.rounds.iter().filter(|round| !round.is_held).count();
        let mut parts = Vec::new();
        if troubles > 0 {
            parts.push(format!("{troubles} messages lost, repeated or damaged"));
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

    /// An outcome of the case with this name in which each contestant has these rates.
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
        let kept = |ours: f64| outcome(name, &[&[ours], &[1.0]]).verdicts(0, 0)[0].kept;
        assert_eq!(kept(8.6), Kept::Yes);
        assert_eq!(kept(8.5), Kept::No);
        assert!(outcome(name, &[&[8.6], &[1.0]]).verdicts(1, 0).is_empty());
    }

    #[test]
    fn what_was_not_measured_has_no_verdict() {
        let outcome = outcome("driver stream loopback invoker 288B", &[&[8.6]]);
        assert_eq!(outcome.promises().next().unwrap().is_kept(), Kept::Unknown);
        assert!(outcome.verdicts(0, 0).is_empty());
        assert_eq!(outcome.ratio(0, 0), None);
    }

    #[test]
    fn a_figure_can_stand_for_itself() {
        let outcome = outcome("defaults idle", &[&[0.4]]);
        let verdicts = outcome.verdicts(0, 0);
        assert_eq!((verdicts[0].value, verdicts[0].kept), (0.4, Kept::Yes));
    }

    #[test]
    fn losses_are_told() {
        let mut outcome = outcome("defaults idle", &[&[0.4]]);
        assert_eq!(outcome.rows[0].complaint(), None);
        outcome.rows[0].rounds[0].troubles = 2;
        let complaint = outcome.rows[0].complaint().unwrap();
        assert_eq!(complaint, "Taran: 2 messages lost, repeated or damaged");
    }

    #[test]
    fn a_floor_is_not_met_by_losing_messages_or_by_going_slowly() {
        let kept = |spoil: fn(&mut Measured)| {
            let mut outcome = outcome("defaults idle", &[&[0.4, 0.4, 0.4]]);
            outcome.rows[0].rounds.iter_mut().take(2).for_each(spoil);
            outcome.verdicts(0, 0)[0].kept
        };
        assert_eq!(kept(|_| ()), Kept::Yes);
        assert_eq!(kept(|round| round.troubles = 1), Kept::Unsound);
        assert_eq!(kept(|round| round.is_held = false), Kept::Unsound);
    }
}
