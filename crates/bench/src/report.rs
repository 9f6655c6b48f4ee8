// SPDX-License-Identifier: Apache-2.0
//! Result of an echo run: a table for people and an exit code for scripts.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

/// Upper bound of recorded times in nanoseconds; longer ones count as this long.
const LONGEST: u64 = 100_000_000_000;

/// Returns an empty histogram of times in nanoseconds, with three significant digits up to 100 s.
#[must_use]
pub fn histogram_of_times() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("1 ns to 100 s and three digits are valid")
}

/// Fraction of the requested rate below which the verdict is "rate not held".
pub const RATE_TOLERANCE: f64 = 0.99;

/// Result of an echo run.
#[derive(Debug, Clone)]
pub struct EchoReport {
    /// Requested rate in messages per second.
    pub rate: u64,
    /// Payload length of a message in bytes.
    pub length: usize,
    /// Time from the first due time to the last send of the measured part.
    pub elapsed: Duration,
    /// Number of messages sent in the measured part.
    pub sent: u64,
    /// Number of messages of the measured part that were received.
    pub received: u64,
    /// Number of received messages that were duplicated, out of order or corrupt.
    pub damaged: u64,
    /// Number of sends repeated after back-pressure or a term rotation.
    pub retries: u64,
    /// Round trips in nanoseconds, each from the time at which the message was due.
    pub histogram: Histogram<u64>,
    /// True if the run was interrupted: replies that were on their way are missing, but not lost.
    pub is_interrupted: bool,
}

/// Outcome of a run. The discriminants are the exit codes of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All messages were received at the requested rate.
    Held = 0,
    /// Some messages were lost or damaged.
    Lost = 3,
    /// All messages were received, but sending fell behind the schedule.
    RateNotHeld = 4,
    /// No message was received.
    NothingReceived = 5,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Held => "rate held, nothing lost",
            Verdict::Lost => "messages were lost or damaged",
            Verdict::RateNotHeld => "the rate was not held",
            Verdict::NothingReceived => "no reply was received",
        })
    }
}

impl EchoReport {
    /// Returns the achieved rate in messages per second.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts of messages are far below 2^53
    pub fn achieved_rate(&self) -> f64 {
        self.sent as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Returns the verdict for the exit code: the most severe one that applies.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // rates are far below 2^53
    pub fn verdict(&self) -> Verdict {
        if self.received == 0 {
            Verdict::NothingReceived
        } else if self.received < self.sent || self.damaged > 0 {
            Verdict::Lost
        } else if self.achieved_rate() < self.rate as f64 * RATE_TOLERANCE {
            Verdict::RateNotHeld
        } else {
            Verdict::Held
        }
    }
}

impl fmt::Display for EchoReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "messages sent        {:>14}", self.sent)?;
        writeln!(f, "messages received    {:>14}", self.received)?;
        if self.damaged > 0 {
            writeln!(f, "messages damaged     {:>14}", self.damaged)?;
        }
        writeln!(f, "retried sends        {:>14}", self.retries)?;
        writeln!(f, "target rate, msg/s   {:>14}", self.rate)?;
        writeln!(f, "rate achieved, msg/s {:>14.0}", self.achieved_rate())?;
        writeln!(f, "round trip, microseconds")?;
        for (name, quantile) in [
            ("p50", 0.5),
            ("p90", 0.9),
            ("p99", 0.99),
            ("p99.9", 0.999),
            ("p99.99", 0.9999),
            ("max", 1.0),
        ] {
            let nanos = if quantile < 1.0 {
                self.histogram.value_at_quantile(quantile)
            } else {
                self.histogram.max()
            };
            writeln!(f, "  {name:<19}{:>14.1}", micros(nanos))?;
        }
        if self.is_interrupted {
            return f.write_str("interrupted: the figures are those of the time before");
        }
        write!(f, "verdict: {}", self.verdict())
    }
}

#[allow(clippy::cast_precision_loss)] // a round trip in nanoseconds is far below 2^53
fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(sent: u64, received: u64, elapsed_ms: u64) -> EchoReport {
        let mut histogram = Histogram::new(3).unwrap();
        histogram.record_n(12_000, received).unwrap();
        EchoReport {
            rate: 1_000,
            length: 288,
            elapsed: Duration::from_millis(elapsed_ms),
            sent,
            received,
            damaged: 0,
            retries: 0,
            histogram,
            is_interrupted: false,
        }
    }

    #[test]
    fn verdict_with_several_failures_is_the_most_severe() {
        assert_eq!(report(1_000, 1_000, 1_000).verdict(), Verdict::Held);
        assert_eq!(report(1_000, 1_000, 1_009).verdict(), Verdict::Held);
        assert_eq!(report(1_000, 1_000, 1_020).verdict(), Verdict::RateNotHeld);
        assert_eq!(report(1_000, 999, 1_020).verdict(), Verdict::Lost);
        assert_eq!(report(1_000, 0, 1_000).verdict(), Verdict::NothingReceived);
        let mut damaged = report(1_000, 1_000, 1_000);
        damaged.damaged = 1;
        assert_eq!(damaged.verdict(), Verdict::Lost);
    }

    #[test]
    fn report_text_lists_each_percentile() {
        let text = report(1_000, 1_000, 1_000).to_string();
        for name in [
            "p50",
            "p90",
            "p99",
            "p99.9",
            "p99.99",
            "max",
            "rate achieved",
        ] {
            assert!(text.contains(name), "{name} missing in\n{text}");
        }
        assert!(text.contains("12.0"));
    }
}
