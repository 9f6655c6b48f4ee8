//! The outcome for people, on standard output.

use std::fmt::Write as _;

use crate::figures::{Outcome, Verdict};

/// One measurement: a line for each figure and contestant, with what it is to whom it is compared with, and the floors.
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
                let _ = write!(text, "  {}", told(&verdict));
            }
            text.push('\n');
        }
    }
    for complaint in outcome.rows.iter().filter_map(|row| row.complaint()) {
        let _ = writeln!(text, "  {complaint}");
    }
    text
}

/// A floor and whether it is met.
pub(crate) fn told(verdict: &Verdict) -> String {
    let is_met = if verdict.is_met { "met" } else { "NOT MET" };
    let to = match &verdict.to {
        Some(to) => format!(" of {to}, is {:.2}", verdict.value),
        None => String::new(),
    };
    format!("[{}{to}: {is_met}]", verdict.bound)
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
