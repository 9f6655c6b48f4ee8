// SPDX-License-Identifier: Apache-2.0
//! Reports of errors to the program: the first of equal errors at once, and how often they came again at most once per second.
//!
//! **Input**: [`Reports::note`] takes each error. **Output**: it returns true if the error is to be reported now;
//! [`Reports::next_due`] returns texts about repetitions that are due, and is called until it returns none. Errors are equal if
//! their texts are. Of an error that is forgotten, repetitions that were not reported yet are not.

use crate::consensus::Nanos;

/// Shortest time between two reports of equal errors.
const INTERVAL: Nanos = 1_000_000_000;

/// Errors that are kept apart. Of more, those reported longest ago are forgotten, so that the next equal one counts as new.
const CAPACITY: usize = 16;

/// Errors that were reported lately, in the order of these reports.
#[derive(Debug, Default)]
pub(crate) struct Reports(Vec<Report>);

#[derive(Debug)]
struct Report {
    text: String,
    /// Errors since the last report.
    repeated: u64,
    /// Time of the next report.
    due: Nanos,
}

impl Reports {
    /// Takes an error. Returns true if it is to be reported now.
    pub(crate) fn note(&mut self, now: Nanos, text: &str) -> bool {
        if let Some(report) = self.0.iter_mut().find(|report| report.text == text) {
            report.repeated += 1;
            return false;
        }
        if self.0.len() == CAPACITY {
            self.0.remove(0);
        }
        self.0.push(Report {
            text: text.to_owned(),
            repeated: 0,
            due: now + INTERVAL,
        });
        true
    }

    /// Returns a text about repetitions that are due, and forgets errors that were not repeated.
    pub(crate) fn next_due(&mut self, now: Nanos) -> Option<String> {
        self.0
            .retain(|report| now < report.due || report.repeated > 0);
        let at = self.0.iter().position(|report| now >= report.due)?;
        let mut report = self.0.remove(at);
        let repeated = std::mem::take(&mut report.repeated);
        let text = format!("{} (and {repeated} more times since)", report.text);
        report.due = now + INTERVAL;
        self.0.push(report);
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn equal_errors_are_reported_once_and_then_counted_once_per_second() {
        let mut reports = Reports::default();
        let mut said = Vec::new();
        for at in 0..2_500 {
            for text in ["a", "b"] {
                if reports.note(at * MS, text) {
                    said.push((at, text.to_owned()));
                }
            }
            while let Some(text) = reports.next_due(at * MS) {
                said.push((at, text));
            }
        }
        let expected = [
            (0, "a"),
            (0, "b"),
            (1_000, "a (and 1000 more times since)"),
            (1_000, "b (and 1000 more times since)"),
            (2_000, "a (and 1000 more times since)"),
            (2_000, "b (and 1000 more times since)"),
        ];
        assert_eq!(said, expected.map(|(at, text)| (at, text.to_owned())));
    }

    #[test]
    fn error_that_comes_again_after_a_second_is_reported_at_once() {
        let mut reports = Reports::default();
        assert!(reports.note(0, "a"));
        assert_eq!(reports.next_due(1_000 * MS), None);
        assert!(reports.note(1_000 * MS, "a"));
        // The oldest is forgotten for others.
        for number in 0..CAPACITY {
            assert!(reports.note(1_001 * MS, &number.to_string()));
        }
        assert!(reports.note(1_002 * MS, "a"));
    }
}
