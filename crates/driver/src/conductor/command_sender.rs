// SPDX-License-Identifier: Apache-2.0
//! Sending side of a command queue to a network agent.

use std::collections::VecDeque;
use std::task::Waker;

use taran_core::counters::Counter;
use taran_core::queue;

/// Sends commands in order. Commands are buffered while the queue is full. The conductor takes no client command while
/// commands are buffered, which bounds the buffer.
#[doc(alias = "SenderProxy")]
#[doc(alias = "ReceiverProxy")]
#[derive(Debug)]
pub(crate) struct CommandSender<T> {
    queue: queue::Sender<T>,
    buffered: VecDeque<T>,
    failed_offers: Counter,
    waker: Waker,
}

impl<T> CommandSender<T> {
    pub(crate) fn new(queue: queue::Sender<T>, failed_offers: Counter, waker: Waker) -> Self {
        Self {
            queue,
            waker,
            buffered: VecDeque::new(),
            failed_offers,
        }
    }

    /// Sends a command, or buffers it until the queue has room.
    pub(crate) fn send(&mut self, command: T) {
        self.buffered.push_back(command);
        self.flush();
    }

    /// Returns true if commands are buffered.
    pub(crate) fn has_buffered(&self) -> bool {
        !self.buffered.is_empty()
    }

    /// Moves buffered commands to the queue. Returns true if none is left.
    pub(crate) fn flush(&mut self) -> bool {
        let before = self.buffered.len();
        while let Some(command) = self.buffered.pop_front() {
            if let Err(command) = self.queue.try_send(command) {
                self.failed_offers.increment();
                self.buffered.push_front(command);
                break;
            }
        }
        if self.buffered.len() < before {
            // An idle agent may be parked for a long time.
            self.waker.wake_by_ref();
        }
        self.buffered.is_empty()
    }
}
