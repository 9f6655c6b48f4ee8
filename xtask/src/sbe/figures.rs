//! What codecs cost, as a table, and whether ours cost no more than the others.

use std::fmt;

/// How much more time than the others ours may take before that is called slower: of two programs with the same instructions
/// one takes so much more than the other, as whatever else the machine does has it. Instructions are the same in each run, and
/// may be no more by a single one.
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

/// What was measured: ours, the official codec, and prost.
#[derive(Debug)]
struct Row {
    name: String,
    costs: [Cost; 3],
    is_judged: bool,
}

/// All that was measured.
#[derive(Debug, Default)]
pub(super) struct Figures(Vec<Row>);

impl Figures {
    /// Ours has to take no more here than the others.
    pub(super) fn judge(&mut self, name: String, costs: [Cost; 3]) {
        self.add(name, costs, true);
    }

    /// What ours takes here is told.
    pub(super) fn tell(&mut self, name: String, costs: [Cost; 3]) {
        self.add(name, costs, false);
    }

    fn add(&mut self, name: String, costs: [Cost; 3], is_judged: bool) {
        self.0.push(Row {
            name,
            costs,
            is_judged,
        });
    }

    /// An error where ours takes more than one of the others.
    pub(super) fn verdict(&self) -> Result<(), String> {
        let mut slower = Vec::new();
        for row in self.0.iter().filter(|row| row.is_judged) {
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
            "nanoseconds on a processor, the least of what was measured, and instructions; ours may take no more instructions than \
             the others, nor {:.0} % more time, but where it iterates over entries with data, which is not judged",
            (TIME - 1.0) * 100.0,
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
        figures.judge("encode order".to_owned(), [ours, official, prost].map(cost));
        figures.tell(
            "decode order".to_owned(),
            [cost((9e9, None)), cost(official), cost(prost)],
        );
        figures.verdict()
    }

    #[test]
    fn slower_codecs_are_an_error_by_either_measure() {
        assert_eq!(judged((10.0, Some(100.0)), (10.0, Some(100.0))), Ok(()));
        assert_eq!(judged((11.4, Some(100.4)), (10.0, Some(100.0))), Ok(()));
        let time = judged((11.6, Some(100.0)), (10.0, Some(100.0)));
        assert_eq!(
            time,
            Err("slower than others: encode order takes longer than official".to_owned())
        );
        let count = judged((9.0, Some(101.0)), (10.0, Some(100.0)));
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
        figures.judge("encode order".to_owned(), costs);
        let table = figures.to_string();
        let row = table.lines().nth(2);
        assert_eq!(
            row,
            Some("| encode order | 3.1 ns, 45 | 14.8 ns, 162 | inf ns |")
        );
    }
}
