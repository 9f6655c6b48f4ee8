//! Positions never go back and never pass their limits.
//!
//! Input: [`PositionsCheck::look`] after each step, with the counters of one driver. Counters come and go; ids are given
//! away again. So the table is read anew every few steps, and whenever a counter turns out to be another one.

use taran_core::counters::{Counter, CounterState, CountersReader};
use taran_protocol::counter::type_id;

use super::{Violation, violation};

/// Steps after which new counters are noticed.
const RESCAN: u32 = 64;

/// The longest claim, framed, and thus the longest padding within a term.
const PADDING: i64 = 64 * 1024;

/// The counters of one driver.
#[derive(Debug)]
pub struct PositionsCheck {
    reader: CountersReader,
    watched: Vec<Watched>,
    pairs: Vec<Pair>,
    until_rescan: u32,
}

#[derive(Debug)]
struct Watched {
    counter: Counter,
    type_id: i32,
    registration_id: i64,
    reference_id: i64,
    value: i64,
    /// The highest value so far.
    peak: i64,
}

/// Two watched counters of the same stream, the first of which must not pass the second.
#[derive(Debug)]
struct Pair {
    low: usize,
    high: usize,
}

impl Watched {
    fn is_same(&self) -> bool {
        self.counter.registration_id() == self.registration_id
    }

    /// Padding counts as its header against the limit of a sender (spec/02 §3.4), which its body may therefore pass. What
    /// leads to the end of a term may be longer; terms end at multiples of the shortest.
    fn slack(&self) -> i64 {
        match self.type_id {
            type_id::SENDER_POSITION if self.value % (64 * 1024) == 0 => i64::MAX,
            type_id::SENDER_POSITION => PADDING,
            _ => 0,
        }
    }

    /// What a stream's counters have in common: the id of the publication or the image.
    fn stream(&self) -> i64 {
        if self.type_id == type_id::SUBSCRIBER_POSITION {
            self.reference_id
        } else {
            self.registration_id
        }
    }
}

/// Counters of these types are positions of a stream.
const POSITIONS: [i32; 7] = [
    type_id::PUBLISHER_LIMIT,
    type_id::SENDER_POSITION,
    type_id::SENDER_LIMIT,
    type_id::PUBLISHER_POSITION,
    type_id::RECEIVER_HIGH_WATER_MARK,
    type_id::RECEIVER_POSITION,
    type_id::SUBSCRIBER_POSITION,
];

/// A publisher's limit falls to where the stream stands when nobody is left to receive it, a sender's to what the slowest
/// receiver of a group takes.
const MAY_FALL: [i32; 2] = [type_id::PUBLISHER_LIMIT, type_id::SENDER_LIMIT];

/// The first of these never passes the second.
const ORDERED: [(i32, i32); 3] = [
    (type_id::SENDER_POSITION, type_id::SENDER_LIMIT),
    (
        type_id::RECEIVER_POSITION,
        type_id::RECEIVER_HIGH_WATER_MARK,
    ),
    (
        type_id::SUBSCRIBER_POSITION,
        type_id::RECEIVER_HIGH_WATER_MARK,
    ),
];

impl PositionsCheck {
    /// A check of the counters in `reader`.
    #[must_use]
    pub fn new(reader: CountersReader) -> Self {
        Self {
            reader,
            watched: Vec::new(),
            pairs: Vec::new(),
            until_rescan: 0,
        }
    }

    /// Compares all positions with those of the last look, and with each other.
    ///
    /// # Errors
    /// One of them went back, or passed its limit.
    pub fn look(&mut self) -> Result<(), Violation> {
        if self.until_rescan == 0 || self.watched.iter().any(|watched| !watched.is_same()) {
            self.rescan();
        }
        self.until_rescan -= 1;
        for watched in &mut self.watched {
            let value = watched.counter.get();
            if value < watched.value && !MAY_FALL.contains(&watched.type_id) {
                violation!(
                    "{} went back from {} to {value}",
                    name(&self.reader, watched),
                    watched.value
                );
            }
            watched.value = value;
            watched.peak = watched.peak.max(value);
        }
        for Pair { low, high } in &self.pairs {
            let (low, high) = (&self.watched[*low], &self.watched[*high]);
            // What was sent under a limit that has fallen since is sent.
            let limit = high.peak.saturating_add(low.slack());
            if low.value > limit && low.is_same() && high.is_same() {
                violation!(
                    "{} is at {}, beyond {} at {}",
                    name(&self.reader, low),
                    low.value,
                    name(&self.reader, high),
                    high.value
                );
            }
        }
        Ok(())
    }

    fn rescan(&mut self) {
        self.until_rescan = RESCAN;
        let before = std::mem::take(&mut self.watched);
        for id in 0..=self.reader.max_id() {
            match self.reader.state(id) {
                CounterState::Unused => break,
                CounterState::Reclaimed => continue,
                CounterState::Allocated => {}
            }
            let Some(type_id) = self.reader.type_id(id).filter(|id| POSITIONS.contains(id)) else {
                continue;
            };
            let Some(counter) = self.reader.counter(id) else {
                continue;
            };
            let (registration_id, reference_id) =
                (counter.registration_id(), counter.reference_id());
            let known = before
                .iter()
                .find(|known| known.counter.id() == id && known.registration_id == registration_id);
            self.watched.push(Watched {
                type_id,
                registration_id,
                reference_id,
                value: known.map_or(i64::MIN, |known| known.value),
                peak: known.map_or(i64::MIN, |known| known.peak),
                counter,
            });
        }
        self.pair_up();
    }

    fn pair_up(&mut self) {
        self.pairs.clear();
        for (low, first) in self.watched.iter().enumerate() {
            for (high, second) in self.watched.iter().enumerate() {
                if first.stream() == second.stream()
                    && ORDERED.contains(&(first.type_id, second.type_id))
                {
                    self.pairs.push(Pair { low, high });
                }
            }
        }
    }
}

fn name(reader: &CountersReader, watched: &Watched) -> String {
    let id = watched.counter.id();
    let label = reader.label(id).map(|label| label.to_string());
    format!("counter {id} ({})", label.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use taran_core::counters::{CounterSpec, CounterTable};
    use taran_core::memory::Region;

    use super::*;

    fn table() -> CounterTable {
        let (metadata, values) = (Region::anonymous(512 * 16), Region::anonymous(128 * 16));
        CounterTable::new(metadata.unwrap(), values.unwrap(), Duration::ZERO)
    }

    fn allocate(table: &mut CounterTable, type_id: i32, registration_id: i64) -> Counter {
        let spec = CounterSpec {
            type_id,
            registration_id,
            ..CounterSpec::default()
        };
        table.allocate_with(&spec, 0).unwrap()
    }

    #[test]
    fn a_position_that_goes_back_is_found_and_a_limit_may() {
        let mut table = table();
        let position = allocate(&mut table, type_id::RECEIVER_POSITION, 1);
        let limit = allocate(&mut table, type_id::PUBLISHER_LIMIT, 2);
        let mut check = PositionsCheck::new(table.reader());
        position.set(64);
        limit.set(64);
        check.look().unwrap();
        limit.set(32);
        check.look().unwrap();
        position.set(32);
        check.look().unwrap_err();
    }

    #[test]
    fn a_position_beyond_its_limit_is_found() {
        let mut table = table();
        let position = allocate(&mut table, type_id::SENDER_POSITION, 1);
        let limit = allocate(&mut table, type_id::SENDER_LIMIT, 1);
        let other = allocate(&mut table, type_id::SENDER_LIMIT, 2);
        let mut check = PositionsCheck::new(table.reader());
        limit.set(64);
        other.set(32);
        position.set(64);
        check.look().unwrap();
        position.set(64 * 1024);
        check.look().unwrap();
        limit.set(64 * 1024);
        position.set(64 * 1024 + PADDING + 32);
        check.look().unwrap_err();
    }

    #[test]
    fn an_id_that_was_given_away_again_starts_anew() {
        let mut table = table();
        let first = allocate(&mut table, type_id::SENDER_POSITION, 1);
        first.set(1000);
        let mut check = PositionsCheck::new(table.reader());
        check.look().unwrap();
        table.free(first.id(), 0);
        let second = allocate(&mut table, type_id::SENDER_POSITION, 2);
        assert_eq!(first.id(), second.id());
        check.look().unwrap();
    }
}
