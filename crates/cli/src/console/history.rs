// SPDX-License-Identifier: Apache-2.0
//! Rates, lags and NAKs of the last minutes.
//!
//! Contract: [`History::push`] takes each view in order; [`Serialize`] yields what a page needs that has just been opened: of each
//! series the last values, the latest one last. Series of streams that a view does not contain are forgotten.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::Serialize;

use super::view::{Driver, View};

/// Values of a series: three minutes at one per second.
const LENGTH: usize = 180;

/// The last values of all drivers and streams.
#[derive(Debug, Serialize)]
pub(super) struct History {
    interval_ms: u64,
    length: usize,
    times: Series<i64>,
    drivers: Vec<DriverHistory>,
    streams: BTreeMap<u64, StreamHistory>,
}

/// A bounded series of values.
type Series<T> = VecDeque<T>;

#[derive(Clone, Debug, Default, Serialize)]
struct DriverHistory {
    sent: Series<Option<u64>>,
    received: Series<Option<u64>>,
    naks: Series<Option<f32>>,
}

#[derive(Debug, Default, Serialize)]
struct StreamHistory {
    rate: Series<Option<u64>>,
    lag: Series<i64>,
    naks: Series<Option<f32>>,
}

impl History {
    pub(super) fn new(drivers: usize, interval: Duration) -> Self {
        Self {
            interval_ms: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX),
            length: LENGTH,
            times: Series::new(),
            drivers: vec![DriverHistory::default(); drivers],
            streams: BTreeMap::new(),
        }
    }

    pub(super) fn push(&mut self, view: &View) {
        push(&mut self.times, view.time_ms);
        for (history, driver) in self.drivers.iter_mut().zip(&view.drivers) {
            history.push(driver);
        }
        let mut before = std::mem::take(&mut self.streams);
        for stream in view.drivers.iter().flat_map(|driver| &driver.streams) {
            let mut history = before.remove(&stream.id).unwrap_or_default();
            push(&mut history.rate, whole(stream.row.rate));
            push(&mut history.lag, stream.row.lag);
            push(&mut history.naks, tenths(stream.row.naks_per_second));
            self.streams.insert(stream.id, history);
        }
    }
}

impl DriverHistory {
    fn push(&mut self, driver: &Driver) {
        push(&mut self.sent, whole(driver.totals.sent));
        push(&mut self.received, whole(driver.totals.received));
        push(&mut self.naks, tenths(driver.totals.naks));
    }
}

fn push<T>(series: &mut Series<T>, value: T) {
    if series.len() == LENGTH {
        series.pop_front();
    }
    series.push_back(value);
}

/// Returns a rate without its fraction.
fn whole(rate: Option<f64>) -> Option<u64> {
    rate.map(|rate| rate as u64)
}

/// Returns a rate with one decimal.
fn tenths(rate: Option<f64>) -> Option<f32> {
    rate.map(|rate| ((rate * 10.0).round() / 10.0) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::view::Stream;
    use crate::console::watch::tests::absent;
    use crate::live::StreamRow;

    fn view(time_ms: i64, ids: &[u64]) -> View {
        let stream = |&id| Stream {
            id,
            row: StreamRow {
                rate: Some(1.7),
                lag: time_ms,
                ..StreamRow::default()
            },
        };
        let mut driver = absent();
        driver.streams = ids.iter().map(stream).collect();
        View {
            time_ms,
            attention: Vec::new(),
            drivers: vec![driver],
        }
    }

    #[test]
    fn push_keeps_the_last_values_of_present_streams() {
        let mut history = History::new(1, Duration::from_secs(1));
        for time_ms in 0..200 {
            history.push(&view(time_ms, &[7, 8]));
        }
        history.push(&view(200, &[8, 9]));
        assert_eq!(history.times.len(), LENGTH);
        assert_eq!(history.drivers[0].sent.len(), LENGTH);
        assert_eq!(history.streams.keys().copied().collect::<Vec<_>>(), [8, 9]);
        assert_eq!(history.streams[&8].lag.front(), Some(&21));
        assert_eq!(history.streams[&9].rate, [Some(1)]);
        assert_eq!(history.streams[&9].naks, [None]);
    }
}
