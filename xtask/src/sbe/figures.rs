//! What codecs cost, as a table, and whether ours cost no more than the others.

use std::fmt;

/// How much more than the official codecs ours may take before that is called slower: instructions are the same in each
/// run, but for where the compiler puts things; times are not.
const INSTRUCTIONS: f64 = 1.02;
const TIME: f64 = 1.15;

/// What one codec takes for one message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// The least that was measured.
    pub(super) nanoseconds: f64,
    /// None where nobody could count them.
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

/// What was measured: for each message ours, the official codec, and prost.
#[derive(Debug, Default)]
pub(super) struct Figures(Vec<(String, [Cost; 3])>);

impl Figures {
    pub(super) fn add(&mut self, verb: &str, message: &str, costs: [Cost; 3]) {
        self.0.push((format!("{verb} {message}"), costs));
    }

    /// An error where ours takes more than one of the others.
    pub(super) fn judge(&self) -> Result<(), String> {
        let mut slower = Vec::new();
        for (name, [ours, others @ ..]) in &self.0 {
            for (other, codec) in others.iter().zip(["official", "prost"]) {
                let counts = ours.instructions.zip(other.instructions);
                if counts.is_some_and(|(ours, other)| ours > other * INSTRUCTIONS) {
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
        for (name, [ours, official, prost]) in &self.0 {
            writeln!(out, "| {name} | {ours} | {official} | {prost} |")?;
        }
        write!(
            out,
            "nanoseconds on a processor, the least of what was measured, and instructions; ours may take {:.0} % more time and \
             {:.0} % more instructions than the official codecs before that is an error",
            (TIME - 1.0) * 100.0,
            (INSTRUCTIONS - 1.0) * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(ours: (f64, Option<f64>), official: (f64, Option<f64>)) -> Result<(), String> {
        let cost = |(nanoseconds, instructions)| Cost {
            nanoseconds,
            instructions,
        };
        let mut figures = Figures::default();
        let prost = (1_000.0, Some(9_000.0));
        figures.add("encode", "order", [ours, official, prost].map(cost));
        figures.judge()
    }

    #[test]
    fn slower_codecs_are_an_error_by_either_measure() {
        assert_eq!(judged((10.0, Some(100.0)), (10.0, Some(100.0))), Ok(()));
        assert_eq!(judged((11.4, Some(102.0)), (10.0, Some(100.0))), Ok(()));
        let time = judged((11.6, Some(100.0)), (10.0, Some(100.0)));
        assert_eq!(
            time,
            Err("slower than others: encode order takes longer than official".to_owned())
        );
        let count = judged((9.0, Some(103.0)), (10.0, Some(100.0)));
        assert_eq!(
            count,
            Err(
                "slower than others: encode order takes more instructions than official".to_owned()
            )
        );
        assert_eq!(judged((10.0, None), (10.0, None)), Ok(()));
        let both = judged((2_000.0, None), (10.0, None)).unwrap_err();
        assert!(both.ends_with("longer than official; encode order takes longer than prost"));
    }

    #[test]
    fn figures_are_a_table() {
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
        figures.add("encode", "order", costs);
        let table = figures.to_string();
        let row = table.lines().nth(2);
        assert_eq!(
            row,
            Some("| encode order | 3.1 ns, 45 | 14.8 ns, 162 | inf ns |")
        );
    }
}
