// SPDX-License-Identifier: Apache-2.0
//! Distinct errors of a driver, an archive or a member of a cluster, as the tools show them.

use std::fmt::Write as _;

use serde::Serialize;
use taran_core::error_log::{self, ErrorObservation};
use taran_core::memory::Region;

use crate::date;
use crate::failure::Failure;
use crate::output;
use crate::printable;

/// A distinct error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DistinctError {
    pub(crate) observations: i32,
    pub(crate) first_observation_ms: i64,
    pub(crate) last_observation_ms: i64,
    pub(crate) error: String,
}

impl From<&ErrorObservation> for DistinctError {
    fn from(observation: &ErrorObservation) -> Self {
        Self {
            observations: observation.count,
            first_observation_ms: observation.first_ms,
            last_observation_ms: observation.last_ms,
            error: observation.text.clone(),
        }
    }
}

/// Returns the errors of a log, oldest first.
pub(crate) fn read(log: &Region) -> Vec<DistinctError> {
    let mut errors = Vec::new();
    error_log::read(log, 0, |observation| errors.push(observation.into()));
    errors
}

/// Prints errors as text, in the format of the official tools, or as one JSON document.
pub(crate) fn show(errors: &[DistinctError], json: bool) -> Result<(), Failure> {
    if json {
        output::json(&errors)
    } else {
        output::text(&report(errors))
    }
}

fn report(errors: &[DistinctError]) -> String {
    let mut text = String::new();
    for error in errors {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            text,
            "***\n{} observations from {} to {} for:\n{}",
            error.observations,
            date::format(error.first_observation_ms),
            date::format(error.last_observation_ms),
            printable::lines(&error.error)
        );
    }
    let _ = writeln!(text, "\n{} distinct errors observed.", errors.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use taran_core::error_log::ErrorLog;

    #[test]
    fn report_lists_and_counts_distinct_errors() {
        let region = Region::anonymous(4096).unwrap();
        let mut log = ErrorLog::open(region.clone());
        let _ = log.record(1_000, 0, "one");
        let _ = log.record(2_000, 0, "two");
        let _ = log.record(3_000, 0, "one");
        let text = report(&read(&region));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 8, "{text}");
        assert_eq!(lines[0], "***");
        assert!(lines[1].starts_with("2 observations from 19"), "{text}");
        assert!(lines[1].ends_with(" for:"), "{text}");
        assert_eq!(lines[2], "one");
        assert!(lines[4].starts_with("1 observations from 19"), "{text}");
        assert_eq!(lines[5..], ["two", "", "2 distinct errors observed."]);
    }

    #[test]
    fn report_of_empty_log_counts_zero_errors() {
        let region = Region::anonymous(4096).unwrap();
        assert_eq!(report(&read(&region)), "\n0 distinct errors observed.\n");
    }
}
