//! Datagrams that are held back.

use std::net::SocketAddr;

/// Datagrams held back at a time; more pass at once.
const CAPACITY: usize = 32;

/// The longest datagram.
const LENGTH: usize = 65_536;

/// Calls after which a datagram goes on even if nothing overtook it.
const PATIENCE: u32 = 64;

/// A datagram that waits to be overtaken.
#[derive(Debug)]
pub(super) struct HeldDatagram {
    /// The other end: destination or source.
    pub(super) address: Option<SocketAddr>,
    pub(super) timestamp_ns: Option<i64>,
    pub(super) bytes: Vec<u8>,
    overtakers: u32,
    calls: u32,
}

/// The datagrams of one direction that are held back. Buffers are there from the start.
#[derive(Debug)]
pub(super) struct Held {
    waiting: Vec<HeldDatagram>,
    spare: Vec<Vec<u8>>,
}

impl Held {
    pub(super) fn new() -> Self {
        Self {
            waiting: Vec::with_capacity(CAPACITY),
            spare: (0..CAPACITY).map(|_| Vec::with_capacity(LENGTH)).collect(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() == CAPACITY
    }

    /// Keeps a datagram until `overtakers` later ones have gone on.
    pub(super) fn keep(
        &mut self,
        address: Option<SocketAddr>,
        timestamp_ns: Option<i64>,
        datagram: &[u8],
        overtakers: u32,
    ) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(datagram);
        self.waiting.push(HeldDatagram {
            address,
            timestamp_ns,
            bytes,
            overtakers,
            calls: PATIENCE,
        });
    }

    /// `count` datagrams have gone on.
    pub(super) fn overtaken(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        for held in &mut self.waiting {
            held.overtakers = held.overtakers.saturating_sub(count);
        }
    }

    /// How many datagrams may go on before one of those that wait must follow; at least one.
    pub(super) fn before_next(&self) -> usize {
        let next = self.waiting.iter().map(|held| held.overtakers).min();
        next.map_or(usize::MAX, |overtakers| overtakers.max(1) as usize)
    }

    /// The transport was called once more.
    pub(super) fn called(&mut self) {
        for held in &mut self.waiting {
            held.calls = held.calls.saturating_sub(1);
        }
    }

    /// Offers the datagrams that have waited enough to `go_on`, oldest first, until it refuses one.
    pub(super) fn release(&mut self, mut go_on: impl FnMut(&HeldDatagram) -> bool) {
        let mut index = 0;
        while let Some(held) = self.waiting.get(index) {
            if held.overtakers > 0 && held.calls > 0 {
                index += 1;
            } else if go_on(held) {
                self.spare.push(self.waiting.remove(index).bytes);
            } else {
                return;
            }
        }
    }
}
