// SPDX-License-Identifier: Apache-2.0
//! Bounded set of connections. When all slots are in use, a new connection evicts the oldest one that has not sent its
//! request yet, so silent connections cannot block others.

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
    /// Connections whose requests are being read, oldest first.
    reading: VecDeque<(u64, Arc<TcpStream>)>,
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

    /// Returns a slot for a connection. If all slots are used, evicts the oldest connection whose request is being
    /// read; returns `None` if all connections are being responded to.
    pub(super) fn acquire(self: &Arc<Self>, stream: &Arc<TcpStream>) -> Option<Slot> {
        let mut used = self.lock();
        if used.reading.len() + used.responding >= self.capacity {
            let (_, oldest) = used.reading.pop_front()?;
            // Ends the read of its thread.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let id = used.next_id;
        used.next_id += 1;
        used.reading.push_back((id, Arc::clone(stream)));
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
        if used.remove_reading(self.id) {
            used.responding += 1;
            self.is_responding = true;
        }
        self.is_responding
    }
}

impl UsedSlots {
    /// Removes a connection whose request is being read. Returns true if it was present.
    fn remove_reading(&mut self, id: u64) -> bool {
        let count = self.reading.len();
        self.reading.retain(|(other, _)| *other != id);
        self.reading.len() < count
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut used = self.slots.lock();
        if self.is_responding {
            used.responding -= 1;
        } else {
            used.remove_reading(self.id);
        }
    }
}
