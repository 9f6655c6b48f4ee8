//! The outcome for people, on standard output.

use std::fmt::Write as _;

use crate::figures::{Figure, Outcome, Status, TargetResult, Verdict};

/// One measurement: a line for each figure and subject, with what it is to whom it is compared with, and the targets.
pub(crate) fn text(outcome: &Outcome) -> String {
    let mut text = format!("\n{}\n", outcome.name);
    for (figure, name) in outcome.kind.names().iter().enumerate() {
        for (index, row) in outcome.rows.iter().enumerate() {
            let Some(values) = outcome.figure(index, figure) else {
                continue;
            };
            let ratio = outcome
                .ratio(index, figure)
                .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
            let _ = write!(
                text,
                "  {name:<12} {:<26} {:>12} {:>12} .. {:<12} {ratio:>7}",
                row.label,
                number(values.median),
                number(values.least),
                number(values.most),
            );
            for verdict in outcome.verdicts(index, figure) {
                let _ = write!(text, "  {}", judged(&verdict));
            }
            text.push('\n');
        }
    }
    for warning in outcome.rows.iter().filter_map(|row| row.warning()) {
        let _ = writeln!(text, "  {warning}");
    }
    text
}

/// What was target_result about all that was measured, a line for each, and how many of them are not status; nothing if nothing
/// was.
pub(crate) fn target_results(outcomes: &[Outcome]) -> (String, usize) {
    let all: Vec<TargetResult<'_>> = outcomes.iter().flat_map(Outcome::target_results).collect();
    let broken = all.iter().filter(|one| one.status() != Status::Yes).count();
    let mut text = String::new();
    if !all.is_empty() {
        let _ = writeln!(
            text,
            "\nPROMISES: {} of {} status",
            all.len() - broken,
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
    (text, broken)
}

/// A median with the least and the most.
pub(crate) fn spread(figure: &Figure) -> String {
    let [median, least, most] = [figure.median, figure.least, figure.most].map(number);
    format!("{median} ({least} .. {most})")
}

/// What a result is judged by, if that is a ratio.
pub(crate) fn ratio(result: &TargetResult<'_>) -> String {
    match (&result.verdict, result.to) {
        (Some(verdict), Some(_)) => format!("{:.2}", verdict.value),
        _ => "-".to_owned(),
    }
}

/// What a result asks for.
pub(crate) fn bound_text(result: &TargetResult<'_>) -> String {
    let to = result
        .to
        .map_or_else(String::new, |to| format!(" times {to}"));
    format!("{}{to}", result.bound)
}

/// A target and whether it is met.
pub(crate) fn judged(verdict: &Verdict) -> String {
    let to = match &verdict.to {
        Some(to) => format!(" of {to}, is {:.2}", verdict.value),
        None => String::new(),
    };
    format!("[{}{to}: {}]", verdict.bound, verdict.status)
}

/// With as many digits as say something.
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
    fn numbers_are_grouped() {
        assert_eq!(number(9.994), "9.99");
        assert_eq!(number(999.94), "999.9");
        assert_eq!(number(1_234_567.0), "1,234,567");
        assert_eq!(number(123_456.0), "123,456");
    }

    #[test]
    fn all_promises_are_told_at_the_end() {
        let name = "driver stream loopback invoker 288B";
        let outcomes = [
            outcome(name, &[&[900.0], &[100.0]]),
            outcome(name, &[&[100.0, 300.0], &[100.0]]),
            outcome(name, &[&[100.0]]),
            outcome("client ping ipc 32B", &[]),
        ];
        let (text, broken) = target_results(&outcomes);
        assert_eq!(broken, 2);
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(lines[1], "PROMISES: 1 of 3 status");
        assert_eq!(
            lines[3],
            format!(
                "NOT MET {name} msg/s 200.0 (100.0 .. 300.0) 2.00 at least 8.6 times official C"
            )
        );
        assert!(lines[4].starts_with("NOT MEASURED"), "{}", lines[4]);
    }

    #[test]
    fn a_line_says_who_how_much_and_whether_that_is_enough() {
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
