// SPDX-License-Identifier: Apache-2.0
//! Targets.

use std::fmt;

/// Target for one figure of one subject.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// Index of the figure in [`super::Kind::figures`].
    pub(crate) figure: usize,
    /// Index of the subject in the case.
    pub(crate) of: usize,
    /// Index of the baseline; `None` if the bound is absolute.
    pub(crate) to: Option<usize>,
    /// Required bound of the figure, or of its ratio to the baseline.
    pub(crate) bound: Bound,
    /// Baseline and bound that are sufficient in place of the others.
    pub(crate) or: Option<(usize, Bound)>,
}

/// Bound of a figure or ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    /// Lower bound, inclusive.
    AtLeast(f64),
    /// Upper bound, inclusive.
    AtMost(f64),
}

impl Bound {
    /// Returns true if the value is within the bound.
    pub(crate) fn is_met_by(self, value: f64) -> bool {
        match self {
            Bound::AtLeast(least) => value >= least,
            Bound::AtMost(most) => value <= most,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::AtLeast(least) => write!(f, "at least {least}"),
            Bound::AtMost(most) => write!(f, "at most {most}"),
        }
    }
}

impl Target {
    /// Requires the first figure to be at least `bound` times that of the baseline.
    pub(crate) fn times(bound: f64, of: usize, to: usize) -> Target {
        Target {
            figure: 0,
            of,
            to: Some(to),
            bound: Bound::AtLeast(bound),
            or: None,
        }
    }

    /// Makes it sufficient that the figure is at least `bound` times that of another baseline.
    pub(crate) fn or_times(mut self, bound: f64, to: usize) -> Target {
        self.or = Some((to, Bound::AtLeast(bound)));
        self
    }

    /// Requires a figure to be at most `bound`.
    pub(crate) fn at_most(figure: usize, bound: f64, of: usize) -> Target {
        Target {
            figure,
            of,
            to: None,
            bound: Bound::AtMost(bound),
            or: None,
        }
    }

    /// Requires a figure to be at most `bound` times that of the baseline.
    pub(crate) fn within(figure: usize, bound: f64, of: usize, to: usize) -> Target {
        Target {
            figure,
            of,
            to: Some(to),
            bound: Bound::AtMost(bound),
            or: None,
        }
    }
}
