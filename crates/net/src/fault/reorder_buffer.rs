// SPDX-License-Identifier: Apache-2.0
//! Delayed datagrams.

use std::net::SocketAddr;

/// Largest number of delayed datagrams; further ones pass immediately.
const CAPACITY: usize = 32;

/// The longest datagram.
const LENGTH: usize = 65_536;

/// Calls of the transport after which a datagram is released even if nothing overtook it.
const MAX_CALLS: u32 = 64;

/// A datagram that is released after later ones.
#[derive(Debug)]
pub(super) struct DelayedDatagram {
    /// Destination or source.
    pub(super) address: Option<SocketAddr>,
    pub(super) timestamp_ns: Option<i64>,
    pub(super) bytes: Vec<u8>,
    overtakers: u32,
    calls: u32,
}

/// The delayed datagrams of one direction. All buffers are allocated at creation.
#[derive(Debug)]
pub(super) struct ReorderBuffer {
    waiting: Vec<DelayedDatagram>,
    spare: Vec<Vec<u8>>,
}

impl ReorderBuffer {
    pub(super) fn new() -> Self {
        Self {
            waiting: Vec::with_capacity(CAPACITY),
            spare: (0..CAPACITY).map(|_| Vec::with_capacity(LENGTH)).collect(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() == CAPACITY
    }

    /// Delays a datagram until `overtakers` later ones have passed.
    pub(super) fn push(
        &mut self,
        address: Option<SocketAddr>,
        timestamp_ns: Option<i64>,
        datagram: &[u8],
        overtakers: u32,
    ) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(datagram);
        self.waiting.push(DelayedDatagram {
            address,
            timestamp_ns,
            bytes,
            overtakers,
            calls: MAX_CALLS,
        });
    }

    /// Records that `count` datagrams have passed.
    pub(super) fn on_passed(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        for held in &mut self.waiting {
            held.overtakers = held.overtakers.saturating_sub(count);
        }
    }

    /// Returns how many datagrams may pass before a delayed one must be released; at least one.
    pub(super) fn until_next_release(&self) -> usize {
        let next = self.waiting.iter().map(|held| held.overtakers).min();
        next.map_or(usize::MAX, |overtakers| overtakers.max(1) as usize)
    }

    /// Records one more call of the transport.
    pub(super) fn on_call(&mut self) {
        for held in &mut self.waiting {
            held.calls = held.calls.saturating_sub(1);
        }
    }

    /// Offers the datagrams that are due to `send`, oldest first, until it refuses one.
    pub(super) fn release(&mut self, mut send: impl FnMut(&DelayedDatagram) -> bool) {
        let mut index = 0;
        while let Some(held) = self.waiting.get(index) {
            if held.overtakers > 0 && held.calls > 0 {
                index += 1;
            } else if send(held) {
                self.spare.push(self.waiting.remove(index).bytes);
            } else {
                return;
            }
        }
    }
}
