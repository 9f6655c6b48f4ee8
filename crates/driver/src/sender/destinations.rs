//! The destinations of a channel that has several (docs/spec/wire.md §2.9).
//!
//! Under manual control they come and go by command; under dynamic control receivers announce themselves with status
//! messages, and are forgotten when they stop. Input: `add`, `remove`, `set_address`, and `on_status` for each status
//! message that is accepted. Output: `send`, and `silent_named` for names that should be resolved again.

use std::net::SocketAddr;

use taran_core::counters::Counter;
use taran_net::{NetError, Transmit, Transport};

use super::liveness_table::LivenessTable;
use crate::boundary::SendDestination;

/// A destination that was silent for so long is forgotten, or its name resolved again.
pub(super) const DESTINATION_TIMEOUT_NS: i64 = 5_000_000_000;

/// Id of a destination that nobody added by command.
const NO_ID: i64 = -1;

#[derive(Debug)]
pub(super) struct Destinations {
    entries: LivenessTable<Entry>,
    is_manual: bool,
    /// Where the next send begins.
    first: usize,
    /// `mdc-num-dest`
    count: Counter,
}

#[derive(Debug)]
struct Entry {
    id: i64,
    /// `None` as long as its name has no address: nothing is sent there.
    address: Option<SocketAddr>,
    is_named: bool,
    /// Once a status message told it.
    receiver_id: Option<i64>,
}

impl Entry {
    /// Whether a control frame is from here. Behind a router the address may be another, so once the receiver is known
    /// its id and port will do.
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

    /// Whether a receiver that has no destination of its own may be reached here: one of a group, which speaks from its
    /// own address but at the port of the group, or one behind a router that gives it another port.
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
    /// By command.
    pub(super) fn manual(count: Counter) -> Self {
        Self::new(true, count)
    }

    /// By announcement.
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

    /// The name of a destination resolved to another address, where somebody else may live by now.
    pub(super) fn set_address(&mut self, id: i64, address: SocketAddr) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) {
            entry.address = Some(address);
            entry.receiver_id = None;
        }
    }

    /// A receiver spoke.
    pub(super) fn on_status(&mut self, receiver_id: i64, source: SocketAddr, now_ns: i64) {
        let known = self
            .entries
            .iter_mut()
            .find(|entry| entry.is_source(receiver_id, source));
        if let Some(entry) = known {
            entry.receiver_id = Some(receiver_id);
            if !self.is_manual {
                // It announces itself from where it is by now. Kept at its first address it would never be reached again.
                entry.address = Some(source);
            }
            // One that was added by name and speaks from elsewhere has moved: its name is to be looked up.
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

    /// Whether a receiver that announced itself was turned away since this was last asked.
    pub(super) fn take_rejected(&mut self) -> bool {
        self.entries.take_rejected()
    }

    /// Registration id of the destination that a control frame came from; -1 if none was added by command there.
    pub(super) fn id_of(&self, receiver_id: i64, source: SocketAddr) -> i64 {
        self.entries
            .iter()
            .find(|entry| entry.is_source(receiver_id, source))
            .map_or(NO_ID, |entry| entry.id)
    }

    /// Where the stream is sent for the receiver that a control frame is from: its own destination, else each that it may
    /// be behind.
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

    /// Hands out each destination whose name should be resolved again. It is given as much time as before then.
    pub(super) fn silent_named(&mut self, now_ns: i64, mut take: impl FnMut(i64)) {
        self.entries
            .restart_expired(now_ns, |entry| entry.is_named, |entry| take(entry.id));
    }

    /// Sends a batch to each destination, beginning with another one each time. Returns how many bytes of it all of them
    /// took: what is missing is offered to all again. A destination that cannot be sent to does not hold back the others:
    /// its loss is told to `on_error`, and is for its receiver to have repaired.
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
