// SPDX-License-Identifier: Apache-2.0
//! Sending side of an agent's event queue.

use std::collections::VecDeque;

use taran_core::counters::Counter;
use taran_core::queue;

use super::ConductorEvent;

/// Maximum number of conductor commands that an agent takes in one duty cycle. A command is cheap compared with a duty
/// cycle over many streams.
const COMMANDS_PER_CYCLE: usize = 4;

/// Polls commands one by one until `poll_one` returns 0 or the limit is reached. Returns the number taken.
pub(crate) fn poll_commands(mut poll_one: impl FnMut() -> usize) -> usize {
    let mut taken = 0;
    while taken < COMMANDS_PER_CYCLE && poll_one() == 1 {
        taken += 1;
    }
    taken
}

/// Sends events to the conductor. Events that must not be lost are buffered while the queue is full. An agent takes no
/// command while events are buffered, which bounds the buffer.
#[doc(alias = "DriverConductorProxy")]
#[derive(Debug)]
pub(crate) struct EventSender {
    queue: queue::Sender<ConductorEvent>,
    buffered: VecDeque<ConductorEvent>,
    failed_offers: Counter,
}

impl EventSender {
    pub(crate) fn new(queue: queue::Sender<ConductorEvent>, failed_offers: Counter) -> Self {
        Self {
            queue,
            buffered: VecDeque::new(),
            failed_offers,
        }
    }

    /// Returns true if no event is buffered.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffered.is_empty()
    }

    /// Sends an event that is sent again if it is lost. Returns false if the queue is full; the event is then dropped
    /// and counted.
    #[must_use]
    pub(crate) fn offer(&mut self, event: ConductorEvent) -> bool {
        let accepted = self.buffered.is_empty() && self.queue.try_send(event).is_ok();
        if !accepted {
            self.failed_offers.increment();
        }
        accepted
    }

    /// Sends an event that must not be lost, in order; buffers it while the queue is full.
    pub(crate) fn send(&mut self, event: ConductorEvent) {
        self.buffered.push_back(event);
        self.flush();
    }

    /// Returns the next command for the agent; `None` while events are buffered.
    pub(crate) fn next_command<T>(&mut self, commands: &mut queue::Receiver<T>) -> Option<T> {
        self.flush().then(|| commands.try_recv()).flatten()
    }

    /// Moves buffered events to the queue. Returns true if none is left.
    pub(crate) fn flush(&mut self) -> bool {
        while let Some(event) = self.buffered.pop_front() {
            if let Err(event) = self.queue.try_send(event) {
                self.failed_offers.increment();
                self.buffered.push_front(event);
                return false;
            }
        }
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::boundary::EndpointId;

    #[test]
    fn event_sender_with_full_queue_withholds_commands() {
        let (sender, mut events) = queue::spsc(1);
        let mut event_sender = EventSender::new(sender, Counter::detached());
        let (mut conductor, mut commands) = queue::spsc(4);
        for command in 1..=3 {
            conductor.try_send(command).unwrap();
        }
        let event = || ConductorEvent::ReResolveEndpoint(EndpointId(1));
        assert_eq!(event_sender.next_command(&mut commands), Some(1));
        event_sender.send(event());
        assert_eq!(event_sender.next_command(&mut commands), Some(2));
        event_sender.send(event());
        assert_eq!(
            event_sender.next_command(&mut commands),
            None,
            "the queue is full"
        );
        assert!(events.try_recv().is_some());
        assert_eq!(event_sender.next_command(&mut commands), Some(3));
        assert_eq!(event_sender.next_command(&mut commands), None);
    }
}
