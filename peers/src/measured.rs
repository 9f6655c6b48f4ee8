//! What a benchmark program tells on its last line, as JSON.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Shares of all round trips at which their distribution is judged.
const QUANTILES: [f64; 21] = [
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99, 0.995, 0.999,
    0.9995, 0.9999, 0.99999, 1.0,
];

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Messages a second: received of streams, sent of a run with a schedule, there and back of a ping-pong. Of an idle
    /// driver, per cent of a core.
    pub rate: f64,
    /// Messages missing, repeated or damaged.
    pub defects: u64,
    /// Whether the rate that was asked for was held, where one was.
    pub is_held: bool,
    /// Round trips in nanoseconds at shares of all of them; of a stream, none.
    pub round_trips: Vec<(f64, u64)>,
}

impl Measured {
    /// A figure without round trips.
    #[must_use]
    pub fn of(rate: f64) -> Measured {
        Measured {
            rate,
            defects: 0,
            is_held: true,
            round_trips: Vec::new(),
        }
    }

    /// The same with round trips in nanoseconds.
    #[must_use]
    pub fn with_round_trips(mut self, histogram: &Histogram<u64>) -> Measured {
        let at = |share| (share, histogram.value_at_quantile(share));
        self.round_trips = QUANTILES.into_iter().map(at).collect();
        self
    }

    /// The round trip that `quantile` of all do not exceed, in nanoseconds.
    #[must_use]
    pub fn round_trip(&self, quantile: f64) -> Option<u64> {
        let is_it = |(share, _): &&(f64, u64)| (share - quantile).abs() < 1e-9;
        self.round_trips.iter().find(is_it).map(|(_, nanos)| *nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_what_was_measured() {
        let mut histogram = Histogram::new(3).unwrap();
        for nanos in 1..=1_000 {
            histogram.record(nanos).unwrap();
        }
        let measured = Measured::of(1_000.5).with_round_trips(&histogram);
        assert_eq!(measured.round_trip(0.5), Some(500));
        assert_eq!(measured.round_trip(0.99), Some(990));
        assert_eq!(measured.round_trip(0.123), None, "not among those judged");
        let line = serde_json::to_string(&measured).unwrap();
        assert_eq!(serde_json::from_str::<Measured>(&line).unwrap(), measured);
    }
}
