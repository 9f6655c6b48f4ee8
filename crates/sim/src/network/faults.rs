// SPDX-License-Identifier: Apache-2.0
//! Faults of a link.

use std::time::Duration;

/// Properties of a link in one direction. Rates range from 0 (never) to 1 (always) and are drawn independently.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkFaults {
    /// Minimum delay of a datagram.
    pub delay: Duration,
    /// Maximum additional delay. Jitter does not reorder the datagrams of a link.
    pub jitter: Duration,
    /// Rate at which a datagram is lost.
    pub loss: f64,
    /// Rate at which a datagram is delivered twice.
    pub duplicate: f64,
    /// Rate at which a datagram is delayed by up to `reorder_delay`, so that later ones may overtake it.
    pub reorder: f64,
    /// Maximum additional delay of a reordered datagram.
    pub reorder_delay: Duration,
    /// Rate at which one bit of a datagram is flipped.
    pub corrupt: f64,
    /// Rate at which the end of a datagram is cut off.
    pub truncate: f64,
    /// Rate at which the send buffer is full: the datagram and those after it in the batch are not accepted.
    pub refuse: f64,
}

impl LinkFaults {
    /// Faults of a link that only loses datagrams.
    #[must_use]
    pub fn loss(rate: f64) -> Self {
        Self {
            loss: rate,
            ..Self::default()
        }
    }
}

/// Datagrams and bytes, for example those sent on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounts {
    /// Number of datagrams, including lost ones.
    pub datagrams: u64,
    /// Bytes of the datagrams, without headers of lower layers.
    pub bytes: u64,
}

/// Datagrams by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounts {
    /// Accepted from senders, once per destination host of a multicast datagram.
    pub sent: u64,
    /// Placed in the queue of a socket.
    pub delivered: u64,
    /// Lost by the loss rate.
    pub lost: u64,
    /// Lost because the link was cut.
    pub cut: u64,
    /// Lost because no host has the address or no socket is bound to the port.
    pub unreachable: u64,
    /// Lost because the socket's queue was full.
    pub overflowed: u64,
    /// Duplicated.
    pub duplicated: u64,
    /// Delayed by reordering.
    pub reordered: u64,
    /// Corrupted.
    pub corrupted: u64,
    /// Truncated.
    pub truncated: u64,
    /// Not accepted from senders.
    pub refused: u64,
    /// Receives of a GRO segment run directly into the log of the predicted stream, mispredictions included.
    pub direct_receives: u64,
}

/// Draws with a rate. A rate of zero draws no random number.
pub(super) fn happens(random: &mut fastrand::Rng, rate: f64) -> bool {
    rate > 0.0 && random.f64() < rate
}

/// Returns a random number of nanoseconds up to `most`.
pub(super) fn up_to(random: &mut fastrand::Rng, most: Duration) -> i64 {
    match i64::try_from(most.as_nanos()).unwrap_or(i64::MAX) {
        0 => 0,
        most => random.i64(0..=most),
    }
}
