// SPDX-License-Identifier: Apache-2.0
//! Result of a benchmark program, printed as JSON on its last line.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Quantiles at which the distribution of round trips is reported.
const QUANTILES: [f64; 21] = [
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99, 0.995, 0.999,
    0.9995, 0.9999, 0.99999, 1.0,
];

/// Result of one measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Messages per second: received for streams, sent for scheduled round trips, completed round trips for a ping-pong. Of an
    /// idle process it is per cent of a core. Other measurements have megabytes per second, milliseconds or KiB.
    pub rate: f64,
    /// Number of missing, repeated and damaged messages.
    pub defects: u64,
    /// True if the requested rate was held, or none was requested.
    pub is_held: bool,
    /// Pairs of quantile and round trip in nanoseconds; empty for streams.
    pub round_trips: Vec<(f64, u64)>,
}

impl Measured {
    /// Creates a result without round trips.
    #[must_use]
    pub fn of(rate: f64) -> Measured {
        Measured {
            rate,
            defects: 0,
            is_held: true,
            round_trips: Vec::new(),
        }
    }

    /// Adds the distribution of round trips, recorded in nanoseconds.
    #[must_use]
    pub fn with_round_trips(mut self, histogram: &Histogram<u64>) -> Measured {
        let at = |share| (share, histogram.value_at_quantile(share));
        self.round_trips = QUANTILES.into_iter().map(at).collect();
        self
    }

    /// Returns the round trip at a reported quantile, in nanoseconds.
    #[must_use]
    pub fn round_trip(&self, quantile: f64) -> Option<u64> {
        let is_requested = |(share, _): &&(f64, u64)| (share - quantile).abs() < 1e-9;
        self.round_trips
            .iter()
            .find(is_requested)
            .map(|(_, nanos)| *nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_json_round_trip_is_lossless() {
        let mut histogram = Histogram::new(3).unwrap();
        for nanos in 1..=1_000 {
            histogram.record(nanos).unwrap();
        }
        let measured = Measured::of(1_000.5).with_round_trips(&histogram);
        assert_eq!(measured.round_trip(0.5), Some(500));
        assert_eq!(measured.round_trip(0.99), Some(990));
        assert_eq!(measured.round_trip(0.123), None, "not a reported quantile");
        let line = serde_json::to_string(&measured).unwrap();
        assert_eq!(serde_json::from_str::<Measured>(&line).unwrap(), measured);
    }
}
