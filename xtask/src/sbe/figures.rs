// SPDX-License-Identifier: Apache-2.0
//! Costs of the codecs as a table, and the check that ours cost no more than the others.

use std::fmt;

/// Largest ratio of our time to that of another codec. Times of two programs with the same instructions differ by this much
/// because of other load on the machine. Instruction counts are deterministic and have no tolerance.
const TIME: f64 = 1.15;

/// Cost of one operation of a codec on one message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// Minimum over all rounds.
    pub(super) nanoseconds: f64,
    /// `None` without valgrind.
    pub(super) instructions: Option<f64>,
}

impl Default for Cost {
    fn default() -> Self {
        Self {
            nanoseconds: f64::INFINITY,
            instructions: None,
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = format!("{:.1} ns", self.nanoseconds);
        match self.instructions {
            Some(count) => out.pad(&format!("{time}, {count:.0}")),
            None => out.pad(&time),
        }
    }
}

/// Costs of our codec, the official codec and prost for one operation.
#[derive(Debug)]
struct Row {
    name: String,
    costs: [Cost; 3],
    is_checked: bool,
}

/// All measured costs.
#[derive(Debug, Default)]
pub(super) struct Figures(Vec<Row>);

impl Figures {
    /// Adds a row in which our codec must not cost more than the others.
    pub(super) fn add_checked(&mut self, name: String, costs: [Cost; 3]) {
        self.add(name, costs, true);
    }

    /// Adds a row that is only reported.
    pub(super) fn add_unchecked(&mut self, name: String, costs: [Cost; 3]) {
        self.add(name, costs, false);
    }

    fn add(&mut self, name: String, costs: [Cost; 3], is_checked: bool) {
        self.0.push(Row {
            name,
            costs,
            is_checked,
        });
    }

    /// Returns an error that lists each checked row in which our codec costs more than another one.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut slower = Vec::new();
        for row in self.0.iter().filter(|row| row.is_checked) {
            let (name, [ours, others @ ..]) = (&row.name, &row.costs);
            for (other, codec) in others.iter().zip(["official", "prost"]) {
                let counts = ours.instructions.zip(other.instructions);
                if counts.is_some_and(|(ours, other)| ours.round() > other.round()) {
                    slower.push(format!("{name} takes more instructions than {codec}"));
                }
                if ours.nanoseconds > other.nanoseconds * TIME {
                    slower.push(format!("{name} takes longer than {codec}"));
                }
            }
        }
        if slower.is_empty() {
            return Ok(());
        }
        Err(format!("slower than others: {}", slower.join("; ")))
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "| | ours | official | prost |\n|---|---|---|---|")?;
        for row in &self.0 {
            let (name, [ours, official, prost]) = (&row.name, &row.costs);
            writeln!(out, "| {name} | {ours} | {official} | {prost} |")?;
        }
        write!(
            out,
            "CPU time in nanoseconds (minimum of all rounds) and instructions. Our codec may take no more instructions and at most \
             {:.0} % more time than the others; rows that iterate over entries with data are not checked",
            (TIME - 1.0) * 100.0,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ours: (f64, Option<f64>), official: (f64, Option<f64>)) -> Result<(), String> {
        let cost = |(nanoseconds, instructions)| Cost {
            nanoseconds,
            instructions,
        };
        let mut figures = Figures::default();
        let prost = (1_000.0, Some(9_000.0));
        figures.add_checked("encode order".to_owned(), [ours, official, prost].map(cost));
        figures.add_unchecked(
            "decode order".to_owned(),
            [cost((9e9, None)), cost(official), cost(prost)],
        );
        figures.check()
    }

    #[test]
    fn check_slower_by_time_or_instructions_fails() {
        assert_eq!(check((10.0, Some(100.0)), (10.0, Some(100.0))), Ok(()));
        assert_eq!(check((11.4, Some(100.4)), (10.0, Some(100.0))), Ok(()));
        let time = check((11.6, Some(100.0)), (10.0, Some(100.0)));
        assert_eq!(
            time,
            Err("slower than others: encode order takes longer than official".to_owned())
        );
        let count = check((9.0, Some(101.0)), (10.0, Some(100.0)));
        assert_eq!(
            count,
            Err(
                "slower than others: encode order takes more instructions than official".to_owned()
            )
        );
        assert_eq!(check((10.0, None), (10.0, None)), Ok(()));
        let both = check((2_000.0, None), (10.0, None)).unwrap_err();
        assert!(both.ends_with("longer than official; encode order takes longer than prost"));
    }

    #[test]
    fn display_prints_a_table() {
        let mut figures = Figures::default();
        let cost = |nanoseconds, instructions| Cost {
            nanoseconds,
            instructions,
        };
        let costs = [
            cost(3.12, Some(45.0)),
            cost(14.8, Some(162.4)),
            Cost::default(),
        ];
        figures.add_checked("encode order".to_owned(), costs);
        let table = figures.to_string();
        let row = table.lines().nth(2);
        assert_eq!(
            row,
            Some("| encode order | 3.1 ns, 45 | 14.8 ns, 162 | inf ns |")
        );
    }
}
