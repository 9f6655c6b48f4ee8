// SPDX-License-Identifier: Apache-2.0
//! Destinations of a multi-destination (MDC) channel (docs/spec/wire.md §2.9).
//!
//! With manual control they are added and removed by command. With dynamic control the source of a status message is
//! added, and removed when it stops sending them. Input: `add`, `remove`, `set_address`, and `on_status` for each
//! accepted status message. Output: `send`, and `silent_named` for names that should be resolved again.

use std::net::SocketAddr;

use taran_core::counters::Counter;
use taran_net::{NetError, Transmit, Transport};

use super::liveness_table::LivenessTable;
use crate::boundary::SendDestination;

/// Time without status messages after which a destination is removed, or its name resolved again.
pub(super) const DESTINATION_TIMEOUT_NS: i64 = 5_000_000_000;

/// Id of a destination that was not added by command.
const NO_ID: i64 = -1;

/// Destinations of a channel.
#[derive(Debug)]
#[doc(alias = "MultiSndDestination")]
pub(super) struct Destinations {
    entries: LivenessTable<Entry>,
    is_manual: bool,
    /// Index of the destination that the next send begins with.
    first: usize,
    /// `mdc-num-dest`
    count: Counter,
}

#[derive(Debug)]
struct Entry {
    id: i64,
    /// `None` while its name is not resolved: nothing is sent there.
    address: Option<SocketAddr>,
    is_named: bool,
    /// Set by the first status message.
    receiver_id: Option<i64>,
}

impl Entry {
    /// Returns true if a control frame came from this destination. Behind a NAT router the address may differ, so once
    /// the receiver is known, its id and port are compared.
    fn is_source(&self, receiver_id: i64, source: SocketAddr) -> bool {
        let Some(address) = self.address else {
            return false;
        };
        address.port() == source.port()
            && match self.receiver_id {
                Some(known) => known == receiver_id,
                None => address.ip() == source.ip(),
            }
    }

    /// Returns true if a receiver without a destination of its own may be reached here: a member of a multicast group,
    /// whose frames come from its own address but the port of the group, or a receiver behind a NAT router that maps
    /// its port.
    fn may_reach(&self, source: SocketAddr) -> bool {
        let Some(address) = self.address else {
            return false;
        };
        if address.ip().is_multicast() {
            return address.port() == source.port();
        }
        self.receiver_id.is_none() && address.ip() == source.ip()
    }

    fn is_at(&self, source: SocketAddr) -> bool {
        self.address
            .is_some_and(|address| address.ip() == source.ip())
    }
}

impl Destinations {
    /// Returns destinations that are added by command.
    pub(super) fn manual(count: Counter) -> Self {
        Self::new(true, count)
    }

    /// Returns destinations that are added by status messages.
    pub(super) fn dynamic(count: Counter) -> Self {
        Self::new(false, count)
    }

    fn new(is_manual: bool, count: Counter) -> Self {
        Self {
            entries: LivenessTable::expiring_after(DESTINATION_TIMEOUT_NS),
            is_manual,
            first: 0,
            count,
        }
    }

    pub(super) fn add(&mut self, destination: SendDestination, now_ns: i64) {
        if self.is_manual {
            let entry = Entry {
                id: destination.id,
                address: destination.address,
                is_named: destination.is_named,
                receiver_id: None,
            };
            self.entries.insert_unbounded(entry, now_ns);
            self.update_count();
        }
    }

    pub(super) fn remove(&mut self, id: i64) {
        self.entries.remove(|entry| entry.id == id);
        self.update_count();
    }

    /// Sets the new address of a destination. The receiver there may be another one.
    pub(super) fn set_address(&mut self, id: i64, address: SocketAddr) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) {
            entry.address = Some(address);
            entry.receiver_id = None;
        }
    }

    /// Handles an accepted status message.
    pub(super) fn on_status(&mut self, receiver_id: i64, source: SocketAddr, now_ns: i64) {
        let known = self
            .entries
            .iter_mut()
            .find(|entry| entry.is_source(receiver_id, source));
        if let Some(entry) = known {
            entry.receiver_id = Some(receiver_id);
            if !self.is_manual {
                // The receiver may have moved: with its first address it would not be reached again.
                entry.address = Some(source);
            }
            // A status message from another address does not refresh the entry: its name is to be resolved again.
            self.entries.refresh(now_ns, |entry| {
                entry.is_source(receiver_id, source) && entry.is_at(source)
            });
        } else if !self.is_manual {
            let entry = Entry {
                id: NO_ID,
                address: Some(source),
                is_named: false,
                receiver_id: Some(receiver_id),
            };
            self.entries.insert(entry, now_ns, |_| {});
            self.update_count();
        }
    }

    /// Returns true if a receiver was rejected since the last call.
    pub(super) fn take_rejected(&mut self) -> bool {
        self.entries.take_rejected()
    }

    /// Returns the registration id of the destination that a control frame came from; -1 if none was added by command.
    pub(super) fn id_of(&self, receiver_id: i64, source: SocketAddr) -> i64 {
        self.entries
            .iter()
            .find(|entry| entry.is_source(receiver_id, source))
            .map_or(NO_ID, |entry| entry.id)
    }

    /// Returns the addresses by which the sender of a control frame is reached: its own destination, else each that may
    /// reach it.
    pub(super) fn addresses_of(
        &self,
        receiver_id: i64,
        source: SocketAddr,
    ) -> impl Iterator<Item = SocketAddr> {
        let mut entries = self.entries.iter();
        let own = entries.find(|entry| entry.is_source(receiver_id, source));
        let others = self
            .entries
            .iter()
            .filter(move |entry| own.is_none() && entry.may_reach(source));
        own.into_iter()
            .chain(others)
            .filter_map(|entry| entry.address)
    }

    /// Passes on each destination whose name should be resolved again, and restarts its timeout.
    pub(super) fn silent_named(&mut self, now_ns: i64, mut take: impl FnMut(i64)) {
        self.entries
            .restart_expired(now_ns, |entry| entry.is_named, |entry| take(entry.id));
    }

    /// Sends a batch to each destination, beginning with a different one each time. Returns the bytes that were sent to
    /// all: the rest is offered to all again. A destination to which a send fails does not delay the others: the error
    /// is passed to `on_error`, and its receiver has to recover the loss.
    pub(super) fn send(
        &mut self,
        transport: &mut dyn Transport,
        batch: &mut [Transmit<'_>],
        now_ns: i64,
        mut on_error: impl FnMut(&NetError),
    ) -> usize {
        if !self.is_manual {
            self.remove_expired(now_ns);
        }
        let mut accepted: usize = batch.iter().map(|transmit| transmit.payload.len()).sum();
        let entries = self.entries.iter_from(self.first);
        for address in entries.filter_map(|entry| entry.address) {
            for transmit in batch.iter_mut() {
                transmit.destination = Some(address);
            }
            match transport.send(batch) {
                Ok(bytes) => accepted = accepted.min(bytes),
                Err(error) => on_error(&error),
            }
        }
        self.first += 1;
        if self.first >= self.entries.len() {
            self.first = 0;
        }
        accepted
    }

    fn remove_expired(&mut self, now_ns: i64) {
        if self.entries.remove_expired(now_ns, |_| {}) {
            self.update_count();
        }
    }

    fn update_count(&self) {
        self.count.set(self.entries.len() as i64);
    }
}
