//! What has to come out at least.

use std::fmt;

/// A result about one figure of one subject.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// Which figure, by its place among [`super::Kind::names`].
    pub(crate) figure: usize,
    /// Whose, by its place in the case.
    pub(crate) of: usize,
    /// In proportion to implementation; `None` for the figure by itself.
    pub(crate) to: Option<usize>,
    /// What it has to be.
    pub(crate) bound: Bound,
}

/// What a figure has to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

impl Bound {
    /// Whether a value keeps it.
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
    /// At least so many times what another subject has.
    pub(crate) fn times(bound: f64, of: usize, to: usize) -> Target {
        Target {
            figure: 0,
            of,
            to: Some(to),
            bound: Bound::AtLeast(bound),
        }
    }

    /// A figure at most so many times that of another subject.
    pub(crate) fn within(figure: usize, bound: f64, of: usize, to: usize) -> Target {
        Target {
            figure,
            of,
            to: Some(to),
            bound: Bound::AtMost(bound),
        }
    }
}
