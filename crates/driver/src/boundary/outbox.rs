//! An agent's end of the event queue.

use std::collections::VecDeque;

use taran_core::counters::Counter;
use taran_core::queue;

use super::ConductorEvent;

/// Sends events to the conductor. Events that must arrive wait here while the queue is full; an agent takes no further
/// command while some do, which bounds how many there can be.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: queue::Sender<ConductorEvent>,
    waiting: VecDeque<ConductorEvent>,
    failed_offers: Counter,
}

impl Outbox {
    pub(crate) fn new(queue: queue::Sender<ConductorEvent>, failed_offers: Counter) -> Self {
        Self {
            queue,
            waiting: VecDeque::new(),
            failed_offers,
        }
    }

    /// Sends an event that its cause repeats. False: there was no room, the event is gone and counted.
    #[must_use]
    pub(crate) fn offer(&mut self, event: ConductorEvent) -> bool {
        let accepted = self.waiting.is_empty() && self.queue.try_send(event).is_ok();
        if !accepted {
            self.failed_offers.increment();
        }
        accepted
    }

    /// Sends an event that must arrive, sooner or later, in order.
    pub(crate) fn post(&mut self, event: ConductorEvent) {
        self.waiting.push_back(event);
        self.flush();
    }

    /// Moves what waits into the queue, as far as there is room. True when nothing waits any more.
    pub(crate) fn flush(&mut self) -> bool {
        while let Some(event) = self.waiting.pop_front() {
            if let Err(event) = self.queue.try_send(event) {
                self.failed_offers.increment();
                self.waiting.push_front(event);
                return false;
            }
        }
        true
    }
}
