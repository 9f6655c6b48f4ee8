// SPDX-License-Identifier: Apache-2.0
//! The sending end of a queue between agents.

use std::collections::VecDeque;

use taran_core::queue::Sender;

/// A queue to another agent, with what it has no room for yet. The order is kept, and nothing is lost.
#[derive(Debug)]
pub(crate) struct Outgoing<T> {
    queue: Sender<T>,
    waiting: VecDeque<T>,
}

impl<T> Outgoing<T> {
    pub(crate) fn new(queue: Sender<T>) -> Self {
        Self {
            queue,
            waiting: VecDeque::new(),
        }
    }

    /// Sends a value, or keeps it for [`forward`](Self::forward).
    pub(crate) fn send(&mut self, value: T) {
        self.waiting.push_back(value);
        self.forward();
    }

    /// Sends what waits, as far as there is room. Called in each duty cycle.
    pub(crate) fn forward(&mut self) {
        while let Some(value) = self.waiting.pop_front() {
            if let Err(value) = self.queue.try_send(value) {
                self.waiting.push_front(value);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use taran_core::queue::spsc;

    use super::*;

    #[test]
    fn outgoing_queue_without_room_keeps_the_order() {
        let (sender, mut receiver) = spsc(2);
        let mut outgoing = Outgoing::new(sender);
        for value in 0..10 {
            outgoing.send(value);
        }
        let mut received = Vec::new();
        for _ in 0..10 {
            received.extend(receiver.try_recv());
            outgoing.forward();
        }
        assert_eq!(received, (0..10).collect::<Vec<_>>());
    }
}
