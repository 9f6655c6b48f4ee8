// SPDX-License-Identifier: Apache-2.0
//! Steps of the wall clock.

use taran_core::clock::Now;

/// Difference of two readings that is no step: what the precision of the readings and the slewing of a clock explain.
const TOLERANCE_MS: i64 = 1_000;
const NANOS_PER_MILLI: i64 = 1_000_000;

/// Watches the wall clock for being set forward: what was recorded before looks older then than it is.
///
/// Contract: [`on_reading`](Self::on_reading) takes each reading of the clocks, in their order, and returns a step once.
/// [`steady_ms`](Self::steady_ms) is the time since the last one by the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct ClockSteps {
    /// Wall clock less monotonic clock, at the last reading.
    offset_ms: Option<i64>,
    stepped_at_ns: Option<i64>,
}

impl ClockSteps {
    /// Takes a reading; returns by how many milliseconds the wall clock was set forward since the one before, if it was.
    pub(crate) fn on_reading(&mut self, now: Now) -> Option<i64> {
        let offset_ms = now.epoch_millis.saturating_sub(now.nanos / NANOS_PER_MILLI);
        let step_ms = offset_ms.saturating_sub(self.offset_ms.replace(offset_ms)?);
        if step_ms <= TOLERANCE_MS {
            return None;
        }
        self.stepped_at_ns = Some(now.nanos);
        Some(step_ms)
    }

    /// Returns for how many milliseconds the wall clock was not set forward; `i64::MAX` if it never was.
    pub(crate) fn steady_ms(&self, now: Now) -> i64 {
        self.stepped_at_ns.map_or(i64::MAX, |stepped_at_ns| {
            now.nanos.saturating_sub(stepped_at_ns) / NANOS_PER_MILLI
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64, epoch_millis: i64) -> Now {
        Now {
            nanos: ms * NANOS_PER_MILLI,
            epoch_millis,
        }
    }

    #[test]
    fn clock_that_is_set_forward_is_not_steady_for_a_while() {
        let mut steps = ClockSteps::default();
        assert_eq!(steps.on_reading(at(0, 1_000_000)), None);
        assert_eq!(steps.on_reading(at(10, 1_000_011)), None);
        assert_eq!(steps.steady_ms(at(10, 0)), i64::MAX);
        assert_eq!(steps.on_reading(at(20, 4_600_020)), Some(3_599_999));
        assert_eq!(steps.on_reading(at(30, 4_600_030)), None);
        assert_eq!(steps.steady_ms(at(5_020, 0)), 5_000);
    }

    #[test]
    fn slewed_clock_and_one_that_is_set_back_are_steady() {
        let mut steps = ClockSteps::default();
        for ms in 0..100_000 {
            // 500 parts per million.
            assert_eq!(steps.on_reading(at(ms, 1_000_000 + ms + ms / 2_000)), None);
        }
        assert_eq!(steps.on_reading(at(100_000, 5)), None);
        assert_eq!(steps.steady_ms(at(100_000, 5)), i64::MAX);
    }
}
