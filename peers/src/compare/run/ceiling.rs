// SPDX-License-Identifier: Apache-2.0
//! Search for the highest rate with an acceptable latency.

use taran_peers::measured::Measured;

use crate::interrupt;

/// Limit of the 99th percentile in nanoseconds; a rate that exceeds it is too high.
const TOO_LONG: u64 = 1_000_000;
/// Initial rate in messages per second; each step doubles or halves it.
const FIRST: f64 = 100_000.0;
/// Largest number of doublings or halvings.
const STEPS: u32 = 6;
/// Number of bisections between an acceptable rate and one that is too high.
const CUTS: u32 = 3;
/// Attempts at a rate before it counts as too high: an unrelated process may have taken the core for a moment.
const TRIES: u32 = 3;

/// Returns the measurement at the highest acceptable rate, found within one twelfth.
pub(super) fn highest(
    mut echo: impl FnMut(u64) -> Result<Measured, String>,
) -> Result<Measured, String> {
    let mut good = |rate: f64| -> Result<Option<Measured>, String> {
        for _ in 0..TRIES {
            let result = echo(rate as u64);
            interrupt::check()?;
            // At rates that are far too high the benchmark itself may fail, which counts as too high.
            if let Ok(measured) = result
                && is_good(&measured)
            {
                return Ok(Some(measured));
            }
        }
        Ok(None)
    };
    let mut rate = FIRST;
    let mut best = good(rate)?;
    let goes_up = best.is_some();
    for _ in 0..STEPS {
        let next = if goes_up { rate * 2.0 } else { rate / 2.0 };
        let found = good(next)?;
        let is_over = found.is_some() != goes_up;
        if found.is_some() {
            best = found;
        }
        if is_over {
            rate = if goes_up { rate } else { next };
            break;
        }
        rate = next;
    }
    let mut best = best.ok_or("no rate is acceptable")?;
    let mut step = 2.0_f64;
    for _ in 0..CUTS {
        step = step.sqrt();
        if let Some(measured) = good(rate * step)? {
            best = measured;
            rate *= step;
        }
    }
    Ok(best)
}

fn is_good(measured: &Measured) -> bool {
    let is_short = |nanos| nanos < TOO_LONG;
    measured.is_held && measured.defects == 0 && measured.round_trip(0.99).is_some_and(is_short)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(limit: u64) -> Result<f64, String> {
        let found = highest(|rate| {
            Ok(Measured {
                round_trips: vec![(0.99, if rate <= limit { 10_000 } else { 5_000_000 })],
                ..Measured::of(rate as f64)
            })
        });
        found.map(|measured| measured.rate)
    }

    #[test]
    fn highest_finds_limit_within_a_twelfth() {
        for highest in [2_000, 99_000, 100_000, 350_000, 5_000_000] {
            let found = search(highest).unwrap();
            let share = found / highest as f64;
            assert!(share <= 1.0 && share > 0.91, "{found} for {highest}");
        }
    }

    #[test]
    fn highest_repeats_failed_attempts() {
        let mut tries = 0;
        let found = highest(|rate| {
            tries += 1;
            Ok(Measured {
                is_held: rate < 300_000.0 as u64 && tries % 2 == 0,
                round_trips: vec![(0.99, 10_000)],
                ..Measured::of(rate as f64)
            })
        });
        assert!(found.unwrap().rate > 270_000.0);
    }

    #[test]
    fn highest_without_acceptable_rate_fails() {
        assert_eq!(search(0), Err("no rate is acceptable".to_owned()));
    }
}
