// SPDX-License-Identifier: Apache-2.0
//! Bounded set of connections. When all slots are in use, a new connection evicts one that has got its response and does not
//! close, else the oldest one that has not sent its request yet, so silent connections cannot block others.

use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Slots for connections.
#[derive(Debug)]
pub(super) struct ConnectionSlots {
    capacity: usize,
    used: Mutex<UsedSlots>,
}

#[derive(Debug, Default)]
struct UsedSlots {
    /// Connections that can be evicted, the next one first: those that have got their responses, then those whose requests are being
    /// read, oldest first.
    evictable: VecDeque<(u64, Arc<TcpStream>)>,
    responding: usize,
    next_id: u64,
}

/// Slot of one connection; released when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<ConnectionSlots>,
    id: u64,
    is_responding: bool,
}

impl ConnectionSlots {
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            capacity,
            used: Mutex::default(),
        })
    }

    /// Returns a slot for a connection. If all slots are used, evicts a connection; returns `None` if all connections are being
    /// responded to.
    pub(super) fn acquire(self: &Arc<Self>, stream: &Arc<TcpStream>) -> Option<Slot> {
        let mut used = self.lock();
        if used.evictable.len() + used.responding >= self.capacity {
            let (_, oldest) = used.evictable.pop_front()?;
            // Ends the read of its thread.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let id = used.next_id;
        used.next_id += 1;
        used.evictable.push_back((id, Arc::clone(stream)));
        Some(Slot {
            slots: Arc::clone(self),
            id,
            is_responding: false,
        })
    }

    fn lock(&self) -> MutexGuard<'_, UsedSlots> {
        // No code panics while the lock is held.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Marks the request as read: the slot can no longer be evicted. Returns false if it has been evicted already.
    pub(super) fn begin_response(&mut self) -> bool {
        let mut used = self.slots.lock();
        if used.remove_evictable(self.id) {
            used.responding += 1;
            self.is_responding = true;
        }
        self.is_responding
    }

    /// Marks the response as sent: the slot can be evicted while the client has not closed the connection.
    pub(super) fn end_response(&mut self, stream: &Arc<TcpStream>) {
        if self.is_responding {
            let mut used = self.slots.lock();
            used.responding -= 1;
            used.evictable.push_front((self.id, Arc::clone(stream)));
            self.is_responding = false;
        }
    }
}

impl UsedSlots {
    /// Removes a connection that can be evicted. Returns true if it was present.
    fn remove_evictable(&mut self, id: u64) -> bool {
        let count = self.evictable.len();
        self.evictable.retain(|(other, _)| *other != id);
        self.evictable.len() < count
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut used = self.slots.lock();
        if self.is_responding {
            used.responding -= 1;
        } else {
            used.remove_evictable(self.id);
        }
    }
}
