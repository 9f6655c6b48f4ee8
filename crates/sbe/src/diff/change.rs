//! A change, and what it does.

use std::fmt;

use serde::Serialize;

/// What a change does to those who have the other version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Impact {
    /// Nothing.
    None,
    /// Old and new understand each other: what is new is passed over by the one, and missing for the other.
    Extension,
    /// They do, but programs that were written for the old names have to be changed.
    Code,
    /// One takes for something else what the other says.
    Breaking,
}

impl fmt::Display for Impact {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::None => "same",
            Self::Extension => "extension",
            Self::Code => "code",
            Self::Breaking => "breaking",
        })
    }
}

/// One thing that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What it does.
    pub impact: Impact,
    /// What changed, such as `Car.fuelFigures.speed`.
    pub path: String,
    /// How.
    pub what: String,
    /// Where that is written, in the new schema, or in the old one where the new one has it no more.
    #[serde(rename = "at")]
    pub position: String,
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            impact,
            path,
            what,
            position,
        } = self;
        write!(out, "{position}: {impact}: {path}: {what}")
    }
}
