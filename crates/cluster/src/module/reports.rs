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

/// Longest part of a channel in a report, in characters.
const CHANNEL_LIMIT: usize = 200;

/// Clients that the authenticator has rejected. They may choose their channels freely, so that reports are limited for all of them
/// together: the first at once, and then at most one per second, with their number and one channel.
///
/// **Input**: [`Rejections::note`] takes each client. **Output**: [`Rejections::next_due`] returns the report that is due.
#[derive(Debug, Default)]
pub(crate) struct Rejections {
    count: u64,
    channel: String,
    due: Option<Nanos>,
}

impl Rejections {
    /// Takes the response channel of a client.
    pub(crate) fn note(&mut self, channel: String) {
        self.count += 1;
        self.channel = channel;
    }

    /// Returns the report, and how many clients it is about.
    pub(crate) fn next_due(&mut self, now: Nanos) -> Option<(u64, String)> {
        if self.count == 0 || self.due.is_some_and(|due| now < due) {
            return None;
        }
        self.due = Some(now + INTERVAL);
        let count = std::mem::take(&mut self.count);
        // Control characters would change the lines of a terminal or a log.
        let channel = std::mem::take(&mut self.channel);
        let channel: String = channel.escape_debug().take(CHANNEL_LIMIT).collect();
        let text = match count {
            1 => format!("{REJECTED}; its response channel is {channel}"),
            _ => format!(
                "{REJECTED} ({count} clients; the response channel of the last is {channel})"
            ),
        };
        Some((count, text))
    }
}

/// Text about rejected clients in the error log, which keeps each text once and counts it.
pub(crate) const REJECTED: &str = "a client is rejected: it failed authentication";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_clients_are_reported_at_once_and_then_together_once_per_second() {
        let mut rejections = Rejections::default();
        assert_eq!(rejections.next_due(0), None);
        rejections.note("aeron:udp?endpoint=a:1".to_owned());
        let (count, text) = rejections.next_due(0).unwrap();
        assert_eq!(count, 1);
        assert!(
            text.ends_with("response channel is aeron:udp?endpoint=a:1"),
            "{text}"
        );
        for port in 2..1_000 {
            rejections.note(format!("aeron:udp?endpoint=a:{port}"));
            assert_eq!(rejections.next_due(999 * MS), None);
        }
        let (count, text) = rejections.next_due(1_000 * MS).unwrap();
        assert_eq!(count, 998);
        assert!(
            text.contains("998 clients") && text.contains("a:999)"),
            "{text}"
        );
        assert_eq!(rejections.next_due(5_000 * MS), None);
    }

    #[test]
    fn channel_of_a_rejected_client_is_one_line_of_bounded_length() {
        let mut rejections = Rejections::default();
        rejections.note(format!("aeron:udp?alias=\n\u{1b}{}", "x".repeat(4_000)));
        let (_, text) = rejections.next_due(0).unwrap();
        assert!(
            !text.contains(['\n', '\u{1b}']) && text.len() < 300,
            "{text}"
        );
    }

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
