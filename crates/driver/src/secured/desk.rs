//! Memory and counters that the secured sockets of one agent share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taran_core::counters::Counter;
use taran_core::queue;
use taran_net::{ReceiveBatch, TransmitScratch};
use taran_secure::keeper::Port;

use super::messages::{Input, PortInput};
use crate::clock_jumps::ClockJumps;

/// Slots of the batch for sealed datagrams: as many as any caller offers.
const SLOTS: usize = 16;

/// Counters of the data path (docs/spec/transport-security.md §4.5).
#[derive(Clone, Debug)]
pub(super) struct DeskCounters {
    pub(super) bytes_sealed: Counter,
    pub(super) bytes_opened: Counter,
    pub(super) failed_opens: Counter,
    pub(super) replayed: Counter,
    pub(super) unknown_keys: Counter,
    pub(super) plain_refused: Counter,
    pub(super) out_of_bounds: Counter,
    pub(super) refused_sends: Counter,
}

/// Memory for sealed datagrams, and the way to the conductor. One per agent, so that ten thousand sockets do not have ten
/// thousand buffers.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) scratch: TransmitScratch,
    pub(super) sealed: ReceiveBatch,
    pub(super) to_keeper: KeeperSender,
}

/// Counters, and the queue to the conductor.
#[derive(Debug)]
pub(super) struct KeeperSender {
    queue: queue::Sender<PortInput>,
    pub(super) counters: DeskCounters,
    jumps: ClockJumps,
}

impl KeeperSender {
    /// Returns the number of jumps of the wall clock: keys that were made under another number seal nothing.
    #[inline]
    pub(super) fn clock_jumps(&self) -> u64 {
        self.jumps.count()
    }

    /// Passes a message to the conductor. It is dropped while the queue is full, so that a flood fills no memory: all that
    /// matters is repeated.
    pub(super) fn post(&mut self, port: Port, input: impl FnOnce() -> Input) {
        if self.queue.len() < self.queue.capacity() {
            // The agent is the only sender, so that there is room.
            let _ = self.queue.try_send(PortInput {
                port,
                input: input(),
            });
        }
    }
}

impl Desk {
    pub(super) fn new(
        queue: queue::Sender<PortInput>,
        counters: DeskCounters,
        jumps: ClockJumps,
    ) -> Self {
        Self {
            scratch: TransmitScratch::new(),
            sealed: ReceiveBatch::new(SLOTS),
            to_keeper: KeeperSender {
                queue,
                counters,
                jumps,
            },
        }
    }
}

/// Locks what only one agent uses: a desk, or the keys of a port. It never waits.
pub(super) fn lock<T>(shared: &Arc<Mutex<T>>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
