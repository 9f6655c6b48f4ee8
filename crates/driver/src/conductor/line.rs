//! The conductor's end of a command queue to a network agent.

use std::collections::VecDeque;

use taran_core::agent::Doorbell;
use taran_core::counters::Counter;
use taran_core::queue;

/// Sends commands in order. What does not fit waits here, and while something waits the conductor takes no command of a
/// client, which bounds how much it can be.
#[derive(Debug)]
pub(crate) struct Line<T> {
    queue: queue::Sender<T>,
    waiting: VecDeque<T>,
    failed_offers: Counter,
    doorbell: Doorbell,
}

impl<T> Line<T> {
    pub(crate) fn new(queue: queue::Sender<T>, failed_offers: Counter, doorbell: Doorbell) -> Self {
        Self {
            queue,
            doorbell,
            waiting: VecDeque::new(),
            failed_offers,
        }
    }

    /// Sends a command, now or as soon as there is room.
    pub(crate) fn post(&mut self, command: T) {
        self.waiting.push_back(command);
        self.flush();
    }

    /// Moves what waits, as far as there is room. True if nothing waits any more.
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
            // Whoever had nothing to do may be parked for long.
            self.doorbell.ring();
        }
        self.waiting.is_empty()
    }
}
