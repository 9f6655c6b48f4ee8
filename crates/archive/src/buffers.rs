// SPDX-License-Identifier: Apache-2.0
//! Buffers for blocks of frames, shared by all recordings or replays.

use taran_storage::AlignedBuf;

/// Buffers that are not in use. They are made when they are needed, up to a limit.
#[derive(Debug)]
pub(crate) struct BufferPool {
    free: Vec<AlignedBuf>,
    length: usize,
    left: usize,
}

impl BufferPool {
    /// A pool of at most `limit` buffers of `length` bytes.
    pub(crate) fn new(length: usize, limit: usize) -> Self {
        Self {
            free: Vec::with_capacity(limit),
            length,
            left: limit,
        }
    }

    pub(crate) fn take(&mut self) -> Option<AlignedBuf> {
        self.free.pop().or_else(|| {
            self.left = self.left.checked_sub(1)?;
            Some(AlignedBuf::new(self.length))
        })
    }

    pub(crate) fn give_back(&mut self, buffer: AlignedBuf) {
        self.free.push(buffer);
    }
}
