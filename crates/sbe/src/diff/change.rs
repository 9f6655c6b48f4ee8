// SPDX-License-Identifier: Apache-2.0
//! Changes and their impact.

use std::fmt;

use serde::Serialize;

/// Impact of a change on users of the other schema version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Impact {
    /// No impact.
    None,
    /// Both versions interoperate: older readers skip the new element, and newer readers treat it as absent in older
    /// messages.
    Extension,
    /// Both versions interoperate, but source code that uses the old names must change.
    Code,
    /// One version misinterprets messages of the other.
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

/// Difference between two schemas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Impact.
    pub impact: Impact,
    /// Path of the element, such as `Car.fuelFigures.speed`.
    pub path: String,
    /// Description of the change.
    pub what: String,
    /// Position in the new schema, or in the old schema if the element was removed.
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
