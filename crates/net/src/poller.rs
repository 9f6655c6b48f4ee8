// SPDX-License-Identifier: Apache-2.0
//! Pollers: which transports of an agent may have received something, and waiting for that.

use std::fmt::Debug;
use std::os::fd::RawFd;
use std::task::Waker;
use std::thread;
use std::time::Duration;

use taran_core::agent::AgentWaker;

use crate::Capabilities;

/// Finds the transports of one agent that may have received something, and waits for the first of them.
///
/// Created by [`Network::poller`](crate::Network::poller), one for each agent, and owned by it. A poller reports
/// readiness and moves no datagrams: the agent then calls [`receive`](crate::Transport::receive), or
/// [`receive_parts`](crate::Transport::receive_parts) if it knows where the bytes belong. A backend with one queue for
/// many sockets sorts the queue in [`poll`](Self::poll). Transports also receive without a poller.
///
/// Contract: [`start`](Self::start) on the agent's thread, then any of the other methods on that thread in any order.
/// `poll` and `flush` neither wait nor allocate.
pub trait Poller: Send + Debug {
    /// Called once on the thread that the agent runs on. A poller whose [`wait`](Self::wait) does more than park the thread
    /// registers it ([`register_wait`](crate::register_wait)), so that wakers of other agents of the thread end it too.
    fn start(&mut self) {}

    /// Replaces the set of transports; each is reported by its index in `sources`
    /// ([`Transport::poll_source`](crate::Transport::poll_source)). A transport is taken out of the set before it is
    /// closed, or right after.
    fn set_sources(&mut self, sources: &[PollSource]);

    /// Calls `receive` with the index of each transport that may have received something, in ascending order, and
    /// returns the sum of the results. One call for a transport, not for a datagram.
    fn poll(&mut self, receive: &mut dyn FnMut(usize) -> usize) -> usize;

    /// Starts the transmission of all datagrams that transports of this agent have accepted. A backend that queues
    /// datagrams starts it in `poll` and `wait` too, or whenever its queue is full; others transmit in `send`.
    fn flush(&mut self) {}

    /// Waits until a transport may have received something, until the waker or another waker of the thread is used, or for
    /// at most `max`. May end early without a reason.
    fn wait(&mut self, max: Duration);

    /// Returns a waker that ends the current wait, or the next one. It may be used on any thread.
    fn waker(&self) -> Waker;

    /// Returns a descriptor that is readable while a transport whose arrivals have none
    /// ([`Arrivals::Queue`]) may have received something, so that one wait covers several backends ([`Backends`](crate::Backends)).
    /// Without it, such a wait is cut into short ones.
    fn descriptor(&self) -> Option<RawFd> {
        None
    }
}

/// The agent that uses a transport. A backend with queues gives each agent queues of its own. Exhaustive for that reason:
/// a backend without queues for an agent must not compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentRole {
    /// Resolves names of other drivers; low traffic.
    Conductor,
    /// Sends data and receives control frames.
    Sender,
    /// Receives data and sends control frames.
    Receiver,
}

/// A transport as its poller knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PollSource {
    /// Name of the backend.
    pub backend: &'static str,
    /// Detection of arrivals.
    pub arrivals: Arrivals,
    /// True if the transport is reported by each poll: a layer may hold datagrams that the backend has delivered.
    pub is_always_ready: bool,
}

/// Detection of arrivals at a transport. A poller treats one that it does not know as [`Unknown`](Self::Unknown).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arrivals {
    /// By trying to receive.
    Unknown,
    /// This descriptor becomes readable.
    Descriptor(RawFd),
    /// By the backend, which gave the transport this number.
    Queue(usize),
}

impl PollSource {
    /// A transport that is reported by each poll.
    pub const UNKNOWN: Self = Self::new(Capabilities::PLAIN.backend, Arrivals::Unknown);

    /// A transport without layers that hold datagrams.
    #[must_use]
    pub const fn new(backend: &'static str, arrivals: Arrivals) -> Self {
        Self {
            backend,
            arrivals,
            is_always_ready: false,
        }
    }
}

/// A poller that reports all transports, and waits by parking the thread: for backends that can do no better, such as
/// networks in memory.
#[derive(Debug, Default)]
pub struct UnconditionalPoller {
    sources: usize,
    thread: AgentWaker,
}

impl Poller for UnconditionalPoller {
    fn start(&mut self) {
        self.thread.register();
    }

    fn set_sources(&mut self, sources: &[PollSource]) {
        self.sources = sources.len();
    }

    fn poll(&mut self, receive: &mut dyn FnMut(usize) -> usize) -> usize {
        (0..self.sources).map(receive).sum()
    }

    fn wait(&mut self, max: Duration) {
        thread::park_timeout(max);
    }

    fn waker(&self) -> Waker {
        self.thread.task_waker()
    }
}
