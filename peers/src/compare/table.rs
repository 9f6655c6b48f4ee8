// SPDX-License-Identifier: Apache-2.0
//! Text output.

use std::fmt::Write as _;

use crate::figures::{Figure, Outcome, Status, TargetResult, Verdict};

/// Formats one measurement: a line for each figure and subject, with the ratio to its baseline and the targets.
pub(crate) fn text(outcome: &Outcome) -> String {
    let mut text = format!(
        "
{}
",
        outcome.title()
    );
    for (figure, spec) in outcome.kind.figures().iter().enumerate() {
        for (index, row) in outcome.rows.iter().enumerate() {
            let Some(values) = outcome.figure(index, figure) else {
                continue;
            };
            let ratio = outcome
                .ratio(index, figure)
                .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
            let _ = write!(
                text,
                "  {:<12} {:<26} {:>12} {:>12} .. {:<12} {ratio:>7}",
                spec.name,
                row.label,
                number(values.median),
                number(values.least),
                number(values.most),
            );
            for verdict in outcome.verdicts(index, figure) {
                let _ = write!(text, "  {}", verdict_text(&verdict));
            }
            text.push('\n');
        }
    }
    for warning in outcome.rows.iter().filter_map(|row| row.warning()) {
        let _ = writeln!(text, "  {warning}");
    }
    text
}

/// Formats all targets of the outcomes, one line each, and returns the text with the number of targets that are not met. The
/// text is empty if there are no targets.
pub(crate) fn target_results(outcomes: &[Outcome]) -> (String, usize) {
    let all: Vec<TargetResult<'_>> = outcomes.iter().flat_map(Outcome::target_results).collect();
    let missed = all
        .iter()
        .filter(|result| result.status() != Status::Met)
        .count();
    let mut text = String::new();
    if !all.is_empty() {
        let _ = writeln!(
            text,
            "\nTARGETS: {} of {} met",
            all.len() - missed,
            all.len()
        );
    }
    for result in &all {
        let _ = writeln!(
            text,
            "  {:<12} {:<38} {:<11} {:>30} {:>7}  {}",
            result.status().to_string(),
            result.name,
            result.figure,
            result.of.map_or_else(|| "-".to_owned(), |of| spread(&of)),
            ratio(result),
            bound_text(result),
        );
    }
    (text, missed)
}

/// Formats a median with minimum and maximum.
pub(crate) fn spread(figure: &Figure) -> String {
    let [median, least, most] = [figure.median, figure.least, figure.most].map(number);
    format!("{median} ({least} .. {most})")
}

/// Formats the ratio to the baseline, or `-` if the target is absolute.
pub(crate) fn ratio(result: &TargetResult<'_>) -> String {
    match (&result.verdict, result.to) {
        (Some(verdict), Some(_)) => format!("{:.2}", verdict.value),
        _ => "-".to_owned(),
    }
}

/// Formats the bound of a target with its baseline.
pub(crate) fn bound_text(result: &TargetResult<'_>) -> String {
    let to = result
        .to
        .map_or_else(String::new, |to| format!(" times {to}"));
    format!("{}{to}", result.bound)
}

/// Formats a target with the measured ratio and the status.
pub(crate) fn verdict_text(verdict: &Verdict) -> String {
    let to = match &verdict.to {
        Some(to) => format!(" of {to}, is {:.2}", verdict.value),
        None => String::new(),
    };
    format!("[{}{to}: {}]", verdict.bound, verdict.status)
}

/// Formats a number: two decimals below 100, one below 1,000, and grouped digits from there on.
pub(crate) fn number(value: f64) -> String {
    if value.abs() < 100.0 {
        return format!("{value:.2}");
    }
    if value.abs() < 1_000.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::outcome;

    #[test]
    fn number_from_1000_has_grouped_digits() {
        assert_eq!(number(9.994), "9.99");
        assert_eq!(number(999.94), "999.9");
        assert_eq!(number(1_234_567.0), "1,234,567");
        assert_eq!(number(123_456.0), "123,456");
    }

    #[test]
    fn target_results_lists_every_target_with_its_status() {
        let name = "driver stream loopback invoker 288B";
        let outcomes = [
            outcome(name, &[&[900.0], &[100.0]]),
            outcome(name, &[&[100.0, 300.0], &[100.0]]),
            outcome(name, &[&[100.0]]),
            outcome("client stream ipc 1344B", &[]),
        ];
        let (text, missed) = target_results(&outcomes);
        assert_eq!(missed, 2);
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(lines[1], "TARGETS: 1 of 3 met");
        assert_eq!(
            lines[3],
            format!(
                "MISSED {name} msg/s 200.0 (100.0 .. 300.0) 2.00 at least 8.6 times official C"
            )
        );
        assert!(lines[4].starts_with("NOT MEASURED"), "{}", lines[4]);
    }

    #[test]
    fn text_line_has_subject_figures_ratio_and_status() {
        let outcome = outcome("driver stream loopback invoker 288B", &[&[900.0], &[100.0]]);
        let text = text(&outcome);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[1].join(" "), "driver stream loopback invoker 288B");
        assert_eq!(
            lines[2].join(" "),
            "msg/s Taran 900.0 900.0 .. 900.0 9.00 [at least 8.6 of official C, is 9.00: met]"
        );
        assert_eq!(
            lines[3].join(" "),
            "msg/s official C 100.0 100.0 .. 100.0 1.00"
        );
    }
}
