// SPDX-License-Identifier: Apache-2.0
//! Sender and receiver on one thread.

use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use taran_core::agent::{Agent, AgentEnd};
use taran_core::clock::Now;

/// Sender and receiver as one agent, without a dynamic call per duty cycle. They start in this order and close in reverse
/// order.
pub(crate) struct NetworkAgents<S, R> {
    sender: S,
    receiver: R,
    role_name: String,
}

impl<S: Agent, R: Agent> NetworkAgents<S, R> {
    pub(crate) fn new(sender: S, receiver: R) -> Self {
        let role_name = format!("[{}, {}]", sender.role_name(), receiver.role_name());
        Self {
            sender,
            receiver,
            role_name,
        }
    }
}

impl<S: Agent, R: Agent> Agent for NetworkAgents<S, R> {
    #[inline]
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd> {
        Ok(self.sender.do_work(now)? + self.receiver.do_work(now)?)
    }

    fn role_name(&self) -> &str {
        &self.role_name
    }

    fn on_start(&mut self) {
        self.sender.on_start();
        self.receiver.on_start();
    }

    /// Closes both, even if the receiver panics.
    fn on_close(&mut self) {
        // A panicked agent is not used again, and the sender does not share its state.
        let closed = panic::catch_unwind(AssertUnwindSafe(|| self.receiver.on_close()));
        self.sender.on_close();
        if let Err(payload) = closed {
            panic::resume_unwind(payload);
        }
    }

    /// Parks through the receiver, so that the park ends when a datagram arrives.
    fn park(&mut self, max: Duration) {
        self.receiver.park(max);
    }

    fn park_multiplier(&self) -> u32 {
        self.sender
            .park_multiplier()
            .min(self.receiver.park_multiplier())
    }

    fn on_long_park(&mut self) {
        self.sender.on_long_park();
        self.receiver.on_long_park();
    }

    /// The first deadline, if each agent knows its own.
    fn next_deadline_ns(&self) -> Option<i64> {
        let sender_ns = self.sender.next_deadline_ns()?;
        Some(sender_ns.min(self.receiver.next_deadline_ns()?))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Appends its calls to a list.
    struct ListedAgent {
        name: &'static str,
        calls: Arc<Mutex<Vec<String>>>,
        deadline_ns: Option<i64>,
        close_panics: bool,
    }

    impl ListedAgent {
        fn add(&self, call: &str) {
            let text = format!("{} {call}", self.name);
            self.calls.lock().unwrap().push(text);
        }
    }

    impl Agent for ListedAgent {
        fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
            self.add("work");
            Ok(2)
        }

        fn role_name(&self) -> &'static str {
            self.name
        }

        fn on_start(&mut self) {
            self.add("start");
        }

        fn on_close(&mut self) {
            self.add("close");
            assert!(!self.close_panics, "panics on request");
        }

        fn park(&mut self, _max: Duration) {
            self.add("park");
        }

        fn next_deadline_ns(&self) -> Option<i64> {
            self.deadline_ns
        }
    }

    fn agents(
        deadlines: [Option<i64>; 2],
        close_panics: bool,
    ) -> (
        NetworkAgents<ListedAgent, ListedAgent>,
        Arc<Mutex<Vec<String>>>,
    ) {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let agent = |name, deadline_ns, close_panics| ListedAgent {
            name,
            calls: Arc::clone(&calls),
            deadline_ns,
            close_panics,
        };
        let sender = agent("sender", deadlines[0], false);
        let receiver = agent("receiver", deadlines[1], close_panics);
        (NetworkAgents::new(sender, receiver), calls)
    }

    #[test]
    fn calls_reach_both_agents_and_parks_the_receiver() {
        let (mut both, calls) = agents([None, None], false);
        assert_eq!(both.role_name(), "[sender, receiver]");
        both.on_start();
        assert_eq!(both.do_work(Now::default()).unwrap(), 4);
        both.park(Duration::ZERO);
        both.on_close();
        let expected = [
            "sender start",
            "receiver start",
            "sender work",
            "receiver work",
            "receiver park",
            "receiver close",
            "sender close",
        ];
        assert_eq!(*calls.lock().unwrap(), expected);
    }

    #[test]
    fn close_closes_the_sender_if_the_receiver_panics() {
        let (mut both, calls) = agents([None, None], true);
        let closed = panic::catch_unwind(AssertUnwindSafe(|| both.on_close()));
        assert!(closed.is_err());
        let calls = calls.lock().unwrap();
        assert_eq!(*calls, ["receiver close", "sender close"]);
    }

    #[test]
    fn next_deadline_is_the_first_if_both_are_known() {
        for (deadlines, expected) in [
            ([Some(3), Some(5)], Some(3)),
            ([Some(5), Some(3)], Some(3)),
            ([None, Some(3)], None),
            ([Some(3), None], None),
        ] {
            assert_eq!(agents(deadlines, false).0.next_deadline_ns(), expected);
        }
    }
}
