// SPDX-License-Identifier: Apache-2.0
//! Text output of one refresh: a header and one line per counter.

use std::collections::HashMap;
use std::fmt::Write;
use std::time::Instant;

use taran_core::counters::CountersReader;

use crate::attach::Attached;
use crate::date;

use super::filter::Filter;

/// Width of the value column, as in the official tool.
const VALUE_WIDTH: usize = 26;
const RULE_WIDTH: usize = 70;
/// Width of the column of rates.
const RATE_WIDTH: usize = 18;

/// Selection and columns beyond those of the official tool.
#[derive(Debug, Default)]
pub(super) struct Columns {
    /// Counters with the value 0 are left out.
    pub(super) nonzero: bool,
    pub(super) rates: Option<Rates>,
}

/// Changes per second from refresh to refresh.
#[derive(Debug, Default)]
pub(super) struct Rates {
    before: Option<(Instant, HashMap<i32, i64>)>,
}

impl Rates {
    /// Takes the values at `now`. Returns the change per second of each counter that was there before.
    fn take(&mut self, now: Instant, values: HashMap<i32, i64>) -> HashMap<i32, f64> {
        let mut rates = HashMap::new();
        if let Some((then, before)) = &self.before {
            let seconds = now.duration_since(*then).as_secs_f64();
            for (id, value) in &values {
                if let Some(old) = before.get(id).filter(|_| seconds > 0.0) {
                    rates.insert(*id, value.saturating_sub(*old) as f64 / seconds);
                }
            }
        }
        self.before = Some((now, values));
        rates
    }
}

/// Appends one refresh to `text`.
pub(super) fn write(
    text: &mut String,
    attached: &Attached,
    counters: &CountersReader,
    filter: &Filter,
    columns: &mut Columns,
) {
    let now = date::format(chrono::Utc::now().timestamp_millis());
    let version = attached.version();
    let age = match attached.heartbeat_age_ms() {
        Some(age) => format!("heartbeat age {age}ms"),
        None => "shut down".to_owned(),
    };
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "{now} - Taran Stat (CnC v{version}), pid {}, {age}",
        attached.pid()
    );
    let _ = writeln!(text, "{}", "=".repeat(RULE_WIDTH));
    lines(text, counters, filter, columns);
}

fn lines(text: &mut String, counters: &CountersReader, filter: &Filter, columns: &mut Columns) {
    let mut shown = Vec::new();
    counters.for_each(|counter| {
        if filter.passes(counter)
            && let Some(value) = counters.value(counter.id)
            && !(columns.nonzero && value == 0)
        {
            shown.push((counter.id, value, counter.label.clone()));
        }
    });
    // Counters are ordered by id, so the last id is the widest.
    let width = shown.last().map_or(1, |(id, ..)| id.to_string().len());
    let rates = columns.rates.as_mut().map(|rates| {
        let values = shown.iter().map(|(id, value, _)| (*id, *value));
        rates.take(Instant::now(), values.collect())
    });
    for (id, value, label) in &shown {
        let _ = write!(text, "{id:>width$}: {:>VALUE_WIDTH$}", grouped(*value));
        if let Some(rates) = &rates {
            let rate = rates
                .get(id)
                .map_or("-".to_owned(), |rate| grouped(rate.round() as i64));
            let _ = write!(text, " {rate:>RATE_WIDTH$}/s");
        }
        let _ = writeln!(text, " - {label}");
    }
}

/// `-1,234,567`.
fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::with_capacity(VALUE_WIDTH);
    if value < 0 {
        text.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use taran_core::counters::{CounterTable, METADATA_LENGTH, VALUES_LENGTH};
    use taran_core::memory::Region;

    #[test]
    fn grouped_separates_thousands() {
        for (value, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (-1_234_567, "-1,234,567"),
            (i64::MAX, "9,223,372,036,854,775,807"),
            (i64::MIN, "-9,223,372,036,854,775,808"),
        ] {
            assert_eq!(grouped(value), text);
        }
    }

    #[test]
    fn lines_align_to_the_widest_id() {
        let metadata = Region::anonymous(16 * METADATA_LENGTH).unwrap();
        let values = Region::anonymous(16 * VALUES_LENGTH).unwrap();
        let mut table = CounterTable::new(metadata.clone(), values.clone(), Duration::ZERO);
        for id in 0..11 {
            let counter = table
                .allocate(1_000, &[], &format!("counter {id}"), 0)
                .unwrap();
            counter.set(i64::from(id) * 1_000);
        }
        let mut text = String::new();
        lines(
            &mut text,
            &CountersReader::new(metadata, values),
            &Filter::default(),
            &mut Columns::default(),
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[0], " 0:                          0 - counter 0");
        assert_eq!(lines[10], "10:                     10,000 - counter 10");
    }
}
