//! How bad a network is, from a seed.

use std::time::Duration;

use crate::network::LinkFaults;

/// A network that delays, and nothing else.
#[must_use]
pub fn fair(random: &mut fastrand::Rng) -> LinkFaults {
    LinkFaults {
        delay: micros(random, 0..500),
        jitter: micros(random, 0..200),
        ..LinkFaults::default()
    }
}

/// A network with its share of faults, none of which damages a datagram in a way that UDP's checksum would let through
/// and that no receiver could notice: it loses, repeats, reorders, shortens, and is too busy to accept.
#[must_use]
pub fn foul(random: &mut fastrand::Rng) -> LinkFaults {
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
        ..fair(random)
    }
}

/// The same, and bits turn over: contents cannot be relied on, as the protocol has no checksum of its own.
#[must_use]
pub fn corrupting(random: &mut fastrand::Rng) -> LinkFaults {
    LinkFaults {
        corrupt: random.f64() * 0.1,
        ..foul(random)
    }
}

fn micros(random: &mut fastrand::Rng, range: std::ops::Range<u64>) -> Duration {
    Duration::from_micros(random.u64(range))
}
