// SPDX-License-Identifier: Apache-2.0
//! Layout tables as text.

use std::fmt;

use super::{Description, Row, Table, What};

impl fmt::Display for Description {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            package,
            id,
            version,
            byte_order,
            ..
        } = self;
        writeln!(
            out,
            "schema {id} version {version}, {byte_order}, package {package}"
        )?;
        write!(out, "\n{}", self.header)?;
        for message in &self.messages {
            write!(out, "\n{message}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(out, "{id} {}, block of {}", self.name, self.block_length)?,
            None => write!(out, "{}, {} bytes", self.name, self.block_length)?,
        }
        if let Some(lifetime) = lifetime(self.since_version, self.deprecated) {
            write!(out, ", {lifetime}")?;
        }
        writeln!(out)?;
        // Formatted twice rather than stored: notes can be long and numerous.
        let lines = || {
            let headings = std::iter::once(HEADINGS.map(str::to_owned));
            headings.chain(self.rows.iter().map(cells))
        };
        let mut widths = [0; 4];
        for line in lines() {
            for (width, cell) in widths.iter_mut().zip(&line) {
                *width = cell.chars().count().max(*width).min(WIDEST);
            }
        }
        for [offset, length, name, kind, note] in lines() {
            let line = format!(
                "  {offset:>0$}  {length:>1$}  {name:<2$}  {kind:<3$}  {note}",
                widths[0], widths[1], widths[2], widths[3]
            );
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Maximum column width. Without it, one long name would widen every line.
const WIDEST: usize = 96;

const HEADINGS: [&str; 5] = ["offset", "length", "name", "type", ""];

fn cells(row: &Row) -> [String; 5] {
    let indent = "  ".repeat(row.depth);
    let name = match row.what {
        What::Gap => format!("{indent}-"),
        What::Group => format!("{indent}{} [group]", row.name),
        What::Data => format!("{indent}{} [data]", row.name),
        What::Field | What::Member => format!("{indent}{}", row.name),
    };
    let length = match row.what {
        What::Data => format!("{}+", row.length),
        _ => row.length.to_string(),
    };
    let notes = [
        row.note.clone(),
        lifetime(row.since_version, row.deprecated),
    ];
    [
        row.offset.map_or_else(String::new, |at| at.to_string()),
        length,
        name,
        row.kind.clone(),
        notes.into_iter().flatten().collect::<Vec<_>>().join(", "),
    ]
}

fn lifetime(since: u32, deprecated: Option<u32>) -> Option<String> {
    match (since, deprecated) {
        (0, None) => None,
        (0, Some(deprecated)) => Some(format!("deprecated in version {deprecated}")),
        (since, None) => Some(format!("since version {since}")),
        (since, Some(deprecated)) => {
            Some(format!("since version {since}, deprecated in {deprecated}"))
        }
    }
}
