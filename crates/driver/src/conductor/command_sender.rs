//! Sending side of a command queue to a network agent.

use std::collections::VecDeque;

use taran_core::agent::AgentWaker;
use taran_core::counters::Counter;
use taran_core::queue;

/// Sends commands in order. Commands are buffered while the queue is full. The conductor takes no client command while
/// commands are buffered, which bounds the buffer.
#[derive(Debug)]
pub(crate) struct CommandSender<T> {
    queue: queue::Sender<T>,
    waiting: VecDeque<T>,
    failed_offers: Counter,
    doorbell: AgentWaker,
}

impl<T> CommandSender<T> {
    pub(crate) fn new(
        queue: queue::Sender<T>,
        failed_offers: Counter,
        doorbell: AgentWaker,
    ) -> Self {
        Self {
            queue,
            doorbell,
            waiting: VecDeque::new(),
            failed_offers,
        }
    }

    /// Sends a command, or buffers it until the queue has room.
    pub(crate) fn send(&mut self, command: T) {
        self.waiting.push_back(command);
        self.flush();
    }

    /// Moves buffered commands to the queue. Returns true if none is left.
    pub(crate) fn flush(&mut self) -> bool {
        let before = self.waiting.len();
        while let Some(command) = self.waiting.pop_front() {
            if let Err(command) = self.queue.try_send(command) {
                self.failed_offers.increment();
                self.waiting.push_front(command);
                break;
            }
        }
        if self.waiting.len() < before {
            // An idle agent may be parked for a long time.
            self.doorbell.wake();
        }
        self.waiting.is_empty()
    }
}
