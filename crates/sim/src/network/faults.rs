//! What a link does to datagrams.

use std::time::Duration;

/// Properties of a link in one direction. Rates are from 0 (never) to 1 (always), and each is thrown by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkFaults {
    /// How long a datagram takes at least.
    pub delay: Duration,
    /// How much longer it takes at most. Datagrams of a link do not overtake each other for that.
    pub jitter: Duration,
    /// The datagram never arrives.
    pub loss: f64,
    /// The datagram arrives twice.
    pub duplicate: f64,
    /// The datagram takes longer, by up to `reorder_delay`, and may be overtaken.
    pub reorder: f64,
    /// How much longer a reordered datagram takes at most.
    pub reorder_delay: Duration,
    /// One bit of the datagram is turned over.
    pub corrupt: f64,
    /// The end of the datagram is missing.
    pub truncate: f64,
    /// The sender's buffer is full: the datagram and those behind it in the batch are not accepted.
    pub refuse: f64,
}

impl LinkFaults {
    /// Only loss.
    #[must_use]
    pub fn loss(rate: f64) -> Self {
        Self {
            loss: rate,
            ..Self::default()
        }
    }
}

/// How much was put on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Datagrams, those that were lost included.
    pub datagrams: u64,
    /// Their bytes, without headers of lower layers.
    pub bytes: u64,
}

/// Datagrams by what happened to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounts {
    /// Accepted from senders (once for each host that a group's datagram goes to).
    pub sent: u64,
    /// Put into the queue of a socket.
    pub delivered: u64,
    /// Lost by rate.
    pub lost: u64,
    /// Lost because the link was cut.
    pub cut: u64,
    /// Lost because no host has the address or no socket the port.
    pub unreachable: u64,
    /// Lost because the queue was full.
    pub overflowed: u64,
    /// Sent on twice.
    pub duplicated: u64,
    /// Made late.
    pub reordered: u64,
    /// Damaged.
    pub corrupted: u64,
    /// Shortened.
    pub truncated: u64,
    /// Not accepted from senders.
    pub refused: u64,
    /// Trains of datagrams that a receiver had come straight into the log of who expected them, be it that some of them
    /// turned out to be others.
    pub in_place: u64,
}

/// Throws with a rate. A rate of zero uses up no chance.
pub(super) fn happens(random: &mut fastrand::Rng, rate: f64) -> bool {
    rate > 0.0 && random.f64() < rate
}

/// Nanoseconds up to `most`.
pub(super) fn up_to(random: &mut fastrand::Rng, most: Duration) -> i64 {
    match i64::try_from(most.as_nanos()).unwrap_or(i64::MAX) {
        0 => 0,
        most => random.i64(0..=most),
    }
}
