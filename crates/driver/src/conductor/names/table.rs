// SPDX-License-Identifier: Apache-2.0
//! Name table: maps names to other names or addresses. Each row has a counter by which a test or an operator selects
//! its target (docs/spec/uri-and-configuration.md §2.9: `csv_table`).

use taran_core::counters::Counter;

use super::super::counters::Counters;
use super::super::failure::Failure;
use crate::context::TableRow;

/// Values of a row's counter: unresolvable, first host, other host.
const UNKNOWN: i64 = -1;
const FIRST: i64 = 0;
const OTHER: i64 = 1;

/// The rows with their counters.
#[doc(alias = "CsvTableNameResolver")]
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    rows: Vec<(TableRow, Counter)>,
}

/// Mapping of a host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Redirect<'a> {
    /// Mapped to this host.
    To(&'a str),
    /// Treated as unresolvable.
    Unresolvable,
}

impl NameTable {
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

    /// Returns the current mapping of the host; `None` if no row has this name.
    pub(crate) fn redirect(&self, host: &str) -> Option<Redirect<'_>> {
        let (row, counter) = self.rows.iter().find(|(row, _)| row.name == host)?;
        match counter.get() {
            UNKNOWN => Some(Redirect::Unresolvable),
            FIRST => Some(Redirect::To(&row.first)),
            OTHER => Some(Redirect::To(&row.other)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_follows_row_counter() {
        let row = TableRow {
            name: "peer".to_owned(),
            first: "10.0.0.1".to_owned(),
            other: "10.0.0.2".to_owned(),
        };
        let counter = Counter::detached();
        let table = NameTable {
            rows: vec![(row, counter.clone())],
        };
        assert_eq!(table.redirect("peers"), None);
        for (value, expected) in [
            (0, Some(Redirect::To("10.0.0.1"))),
            (1, Some(Redirect::To("10.0.0.2"))),
            (-1, Some(Redirect::Unresolvable)),
            (7, None),
        ] {
            counter.set(value);
            assert_eq!(table.redirect("peer"), expected, "{value}");
        }
    }
}
