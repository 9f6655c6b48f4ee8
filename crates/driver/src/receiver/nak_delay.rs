// SPDX-License-Identifier: Apache-2.0
//! Delay of NAKs (docs/spec/wire.md §5.5).

use crate::boundary::NakDelaySpec;

/// Delay generator: a fixed delay for unicast; a random one for multicast, so that most receivers get the
/// retransmission requested by another receiver before their own NAK is due.
#[doc(alias = "FeedbackDelayGenerator")]
#[doc(alias = "OptimalMulticastDelayGenerator")]
#[doc(alias = "StaticDelayGenerator")]
#[derive(Debug)]
pub(super) struct NakDelay {
    spec: NakDelaySpec,
    rng: fastrand::Rng,
}

impl NakDelay {
    pub(super) fn new(spec: NakDelaySpec, seed: u64) -> Self {
        Self {
            spec,
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// Returns true if gaps are repaired by the sender, false if they are filled with padding.
    pub(super) fn is_reliable(&self) -> bool {
        self.spec != NakDelaySpec::Unreliable
    }

    /// Returns the delay from the detection of a gap to the first NAK.
    pub(super) fn initial_delay_ns(&mut self) -> i64 {
        match self.spec {
            NakDelaySpec::Unicast { delay_ns, .. } => delay_ns,
            NakDelaySpec::Group {
                max_backoff_ns,
                group_size,
            } => self.multicast_delay_ns(max_backoff_ns, group_size),
            NakDelaySpec::Unreliable => 0,
        }
    }

    /// Returns the delay from one NAK to the next.
    pub(super) fn retry_delay_ns(&mut self) -> i64 {
        match self.spec {
            NakDelaySpec::Unicast { retry_ns, .. } => retry_ns,
            NakDelaySpec::Group { .. } | NakDelaySpec::Unreliable => self.initial_delay_ns(),
        }
    }

    /// Optimal multicast feedback delay: a truncated exponential distribution.
    fn multicast_delay_ns(&mut self, max_backoff_ns: i64, group_size: u32) -> i64 {
        let t = max_backoff_ns as f64;
        let lambda = f64::from(group_size.max(1)).ln() + 1.0;
        let growth = lambda.exp() - 1.0;
        let x = self.rng.f64() * (lambda / t) + lambda / (t * growth);
        ((t / lambda) * (x * growth * t / lambda).ln()) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unicast_delays_are_constant() {
        let mut delay = NakDelay::new(
            NakDelaySpec::Unicast {
                delay_ns: 1_000,
                retry_ns: 100_000,
            },
            1,
        );
        assert_eq!(
            (
                delay.initial_delay_ns(),
                delay.retry_delay_ns(),
                delay.is_reliable()
            ),
            (1_000, 100_000, true)
        );
    }

    #[test]
    fn unreliable_delays_are_zero() {
        let mut delay = NakDelay::new(NakDelaySpec::Unreliable, 1);
        assert_eq!(
            (
                delay.initial_delay_ns(),
                delay.retry_delay_ns(),
                delay.is_reliable()
            ),
            (0, 0, false)
        );
    }

    #[test]
    fn multicast_delays_are_exponentially_distributed_up_to_max_backoff() {
        let max_backoff_ns = 10_000_000;
        let mut delay = NakDelay::new(
            NakDelaySpec::Group {
                max_backoff_ns,
                group_size: 10,
            },
            7,
        );
        let mut samples: Vec<i64> = (0..10_000).map(|_| delay.initial_delay_ns()).collect();
        samples.sort_unstable();
        assert!(samples[0] >= 0 && samples[9_999] <= max_backoff_ns);
        // The density grows exponentially towards the end: the median of this distribution is at 0.8 of the maximum.
        assert!(
            (7_500_000..8_500_000).contains(&samples[5_000]),
            "{}",
            samples[5_000]
        );
    }
}
