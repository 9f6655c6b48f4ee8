// SPDX-License-Identifier: Apache-2.0
//! Random link faults of different severity.

use std::time::Duration;

use crate::network::LinkFaults;

/// A network that only delays.
#[must_use]
pub fn clean(random: &mut fastrand::Rng) -> LinkFaults {
    LinkFaults {
        delay: micros(random, 0..500),
        jitter: micros(random, 0..200),
        ..LinkFaults::default()
    }
}

/// A network with loss, duplication, reordering, truncation and full send buffers. None of these damages a datagram
/// such that the UDP checksum passes and no receiver can detect it.
#[must_use]
pub fn faulty(random: &mut fastrand::Rng) -> LinkFaults {
    let mut rate = |most: f64| match random.u32(0..3) {
        0 => 0.0,
        1 => random.f64() * most / 10.0,
        _ => random.f64() * most,
    };
    let (loss, duplicate, reorder, truncate, refuse) =
        (rate(0.2), rate(0.1), rate(0.2), rate(0.05), rate(0.1));
    LinkFaults {
        loss,
        duplicate,
        reorder,
        truncate,
        refuse,
        reorder_delay: micros(random, 0..5_000),
        ..clean(random)
    }
}

/// The same with bit flips. Contents cannot be verified then, because the protocol has no checksum of its own.
#[must_use]
pub fn corrupting(random: &mut fastrand::Rng) -> LinkFaults {
    LinkFaults {
        corrupt: random.f64() * 0.1,
        ..faulty(random)
    }
}

fn micros(random: &mut fastrand::Rng, range: std::ops::Range<u64>) -> Duration {
    Duration::from_micros(random.u64(range))
}
