//! Names that a table redirects to other names or addresses, with a counter for each row by which a test or an operator
//! moves it (docs/spec/uri-and-configuration.md §2.9: `csv_table`).

use taran_core::counters::Counter;

use super::super::counters::Counters;
use super::super::failure::Failure;
use crate::context::TableRow;

/// What a row's counter says: the name is unknown, means the first host, or the other one.
const UNKNOWN: i64 = -1;
const FIRST: i64 = 0;
const OTHER: i64 = 1;

/// The rows, each with its counter.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<(TableRow, Counter)>,
}

/// What a table says of a host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Redirection<'a> {
    /// It stands for this one.
    To(&'a str),
    /// It is as good as unknown for now.
    Nowhere,
}

impl Table {
    /// Allocates the counters of the rows.
    pub(crate) fn new(rows: &[TableRow], counters: &mut Counters) -> Result<Self, Failure> {
        let rows = rows.iter().map(|row| {
            let counter = counters.name_entry(&row.name, &row.first, &row.other)?;
            Ok((row.clone(), counter))
        });
        Ok(Self {
            rows: rows.collect::<Result<_, Failure>>()?,
        })
    }

    /// What the host stands for now; `None` where no row is about it.
    pub(crate) fn redirect(&self, host: &str) -> Option<Redirection<'_>> {
        let (row, counter) = self.rows.iter().find(|(row, _)| row.name == host)?;
        match counter.get() {
            UNKNOWN => Some(Redirection::Nowhere),
            FIRST => Some(Redirection::To(&row.first)),
            OTHER => Some(Redirection::To(&row.other)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rows_counter_says_what_its_name_stands_for() {
        let row = TableRow {
            name: "peer".to_owned(),
            first: "10.0.0.1".to_owned(),
            other: "10.0.0.2".to_owned(),
        };
        let counter = Counter::detached();
        let table = Table {
            rows: vec![(row, counter.clone())],
        };
        assert_eq!(table.redirect("peers"), None);
        for (value, expected) in [
            (0, Some(Redirection::To("10.0.0.1"))),
            (1, Some(Redirection::To("10.0.0.2"))),
            (-1, Some(Redirection::Nowhere)),
            (7, None),
        ] {
            counter.set(value);
            assert_eq!(table.redirect("peer"), expected, "{value}");
        }
    }
}
