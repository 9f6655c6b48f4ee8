// SPDX-License-Identifier: Apache-2.0
//! Memory for sealed datagrams on their way to and from the layers below.
//!
//! It holds nothing from one call to the next, so that all secured sockets of a thread use the same: ten thousand sockets do
//! not have ten thousand buffers, and no lock is needed. A thread allocates it at the first call.

use std::cell::Cell;

use taran_net::{ReceiveBatch, TransmitScratch};

/// Slots of the batch for sealed datagrams: as many as any caller offers.
const SLOTS: usize = 16;

thread_local! {
    static MEMORY: Cell<Option<Box<SealedMemory>>> = const { Cell::new(None) };
}

/// Memory for sealed datagrams. It holds no plain bytes between two calls.
#[derive(Debug)]
pub(super) struct SealedMemory {
    /// Datagrams to send.
    pub(super) scratch: TransmitScratch,
    /// Datagrams that arrived.
    pub(super) received: ReceiveBatch,
}

impl Default for SealedMemory {
    fn default() -> Self {
        Self {
            scratch: TransmitScratch::new(),
            received: ReceiveBatch::new(SLOTS),
        }
    }
}

/// Passes the memory of the calling thread to `act`.
#[inline]
pub(super) fn with_memory<R>(act: impl FnOnce(&mut SealedMemory) -> R) -> R {
    // While the thread ends, there is none to be kept.
    let kept = MEMORY.try_with(Cell::take).ok().flatten();
    let mut memory = kept.unwrap_or_default();
    let result = act(&mut memory);
    let _ = MEMORY.try_with(|kept| kept.set(Some(memory)));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_memory_gives_the_same_memory_again() {
        let address = |memory: &mut SealedMemory| std::ptr::from_mut(memory).addr();
        let first = with_memory(address);
        // A use within a use gets memory of its own.
        let inner = with_memory(|_| with_memory(address));
        assert_ne!(inner, first);
        assert_eq!(with_memory(address), first);
    }
}
