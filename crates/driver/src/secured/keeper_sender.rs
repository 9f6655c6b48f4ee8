// SPDX-License-Identifier: Apache-2.0
//! Way from the layers of secured sockets to the conductor, and the counters of the data path.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taran_core::agent::AgentWaker;
use taran_core::counters::Counter;
use taran_core::queue;
use taran_protocol::frame::FrameType;
use taran_secure::frame::PairFrames;
use taran_secure::keeper::Port;
use taran_secure::seal::{Refused, SealKey};

use super::messages::{Input, P, PortInput};
use super::port_layer::Arrived;
use crate::clock_jumps::ClockJumps;

/// Limit of wake-ups of the conductor per second by the layers: several for each handshake of the default
/// `taran.secure.handshake.rate`.
const WAKES_PER_SECOND: u32 = 1_024;

/// Counters of the data path (docs/spec/transport-security.md §4.5).
#[derive(Clone, Debug)]
pub(super) struct PathCounters {
    pub(super) bytes_sealed: Counter,
    pub(super) bytes_opened: Counter,
    pub(super) failed_opens: Counter,
    pub(super) replayed: Counter,
    pub(super) unknown_keys: Counter,
    pub(super) plain_refused: Counter,
    pub(super) out_of_bounds: Counter,
    pub(super) refused_sends: Counter,
}

/// Clocks as an agent that seals has seen them in this duty cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct SealClock {
    jumps: u64,
    nanos: u64,
}

impl SealClock {
    #[cfg(test)]
    pub(super) const fn at(nanos: u64) -> Self {
        Self { jumps: 0, nanos }
    }

    /// Returns the time of the agents in nanoseconds, which advances up to three times in a second.
    pub(super) const fn nanos(self) -> u64 {
        self.nanos
    }

    /// Returns true if a key may seal: no jump of the wall clock has come since it was drawn under `jumps` of them, and it has
    /// not reached its hard age. Its agent decides that alone, so that it holds while the conductor does not run.
    #[inline]
    pub(super) const fn allows(self, key: &SealKey<P>, jumps: u64) -> bool {
        self.jumps == jumps && !key.is_expired(self.nanos)
    }
}

/// Ends the wait of the conductor when there is a message that a handshake or link waits for. A flood of such frames ends it
/// [`WAKES_PER_SECOND`] times in a second: beyond that they wait for its next duty cycle. Clones share everything.
///
/// Contract: an agent calls [`on_posted`](Self::on_posted) after such a message is in its queue. The conductor calls
/// [`begin_poll`](Self::begin_poll) before it takes messages from the queues. Then that poll sees the message, or
/// the wait after it ends for another one.
#[derive(Clone, Debug)]
pub(super) struct ConductorWaker {
    conductor: AgentWaker,
    /// The conductor was woken since the begin of its last poll.
    is_woken: Arc<AtomicBool>,
    /// Wakes left in this second.
    left: Arc<AtomicU32>,
}

impl ConductorWaker {
    pub(super) fn new(conductor: AgentWaker) -> Self {
        Self {
            conductor,
            is_woken: Arc::default(),
            left: Arc::new(AtomicU32::new(WAKES_PER_SECOND)),
        }
    }

    /// Registers the calling thread as that of the conductor.
    pub(super) fn register(&self) {
        self.conductor.register();
    }

    /// Begins another second.
    pub(super) fn refill(&self) {
        // Only a number passes: nothing is published with it.
        self.left.store(WAKES_PER_SECOND, Ordering::Relaxed);
    }

    /// Begins a poll of the queues: the first message that is posted from here on ends a wait again.
    pub(super) fn begin_poll(&self) {
        // Where the load sees no wake-up, one that it missed ends the next wait. The swap acquires what was posted before each
        // `on_posted` that it ends the effect of; a store would not.
        if self.is_woken.load(Ordering::Relaxed) {
            self.is_woken.swap(false, Ordering::Acquire);
        }
    }

    /// Ends the wait of the conductor for a message in a queue, unless a wake-up is on its way to a poll that takes the message.
    fn on_posted(&self) {
        // Released to the next `begin_poll`, also through the swaps of other agents between them.
        if !self.is_woken.swap(true, Ordering::Release) {
            self.wake();
        }
    }

    fn wake(&self) {
        let left = |left: u32| left.checked_sub(1);
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        if taken.is_ok() {
            self.conductor.wake();
        }
    }
}

/// Counters, and the queues to the conductor. Clones share everything: each port of an agent has one, so that opening and
/// sealing take no lock. A message takes one, which only the other ports of the agent would take.
#[derive(Clone, Debug)]
pub(super) struct KeeperSender {
    /// None if the agent is the conductor.
    waker: Option<ConductorWaker>,
    queues: Arc<Mutex<Queues>>,
    pub(super) counters: PathCounters,
    jumps: ClockJumps,
    /// The next failed open is told to the conductor, once a second.
    tells_failure: Arc<AtomicBool>,
}

/// Queues of an agent to the conductor.
#[derive(Debug)]
struct Queues {
    messages: queue::Sender<PortInput>,
    /// Frames of links, which a flood of other frames does not push out.
    pairs: queue::Sender<PortInput>,
}

impl KeeperSender {
    pub(super) fn new(
        [messages, pairs]: [queue::Sender<PortInput>; 2],
        waker: Option<ConductorWaker>,
        counters: PathCounters,
        jumps: ClockJumps,
        tells_failure: Arc<AtomicBool>,
    ) -> Self {
        Self {
            waker,
            queues: Arc::new(Mutex::new(Queues { messages, pairs })),
            counters,
            jumps,
            tells_failure,
        }
    }

    /// Returns what decides which keys may seal now.
    #[inline]
    pub(super) fn clock(&self) -> SealClock {
        SealClock {
            jumps: self.jumps.count(),
            nanos: self.jumps.nanos(),
        }
    }

    /// Passes a message to the conductor. It is dropped while the queue is full, so that a flood fills no memory: all that
    /// matters is repeated. Returns true if it was passed on.
    pub(super) fn post(&self, port: Port, input: impl FnOnce() -> Input) -> bool {
        post(&mut lock(&self.queues).messages, port, input)
    }

    /// Passes a message to the conductor that a handshake waits for, and ends the wait of the conductor.
    pub(super) fn post_awaited(&self, port: Port, input: impl FnOnce() -> Input) {
        if self.post(port, input) {
            self.on_posted();
        }
    }

    fn on_posted(&self) {
        if let Some(waker) = &self.waker {
            waker.on_posted();
        }
    }

    /// Passes a frame of a handshake to the conductor.
    pub(super) fn post_handshake(&self, port: Port, source: SocketAddr, datagram: &[u8]) {
        self.post_awaited(port, || Input::Datagram {
            source,
            bytes: datagram.into(),
        });
    }

    /// Passes frames of links to the conductor, if it expects one of them. Those of other links are dropped: their links are
    /// over, or never were.
    pub(super) fn post_pair(
        &self,
        port: Port,
        arrived: Arrived<'_>,
        mut frames: PairFrames<'_>,
        is_expected: impl Fn(u64) -> bool,
    ) {
        if frames.any(|frame| is_expected(frame.link_id())) {
            let is_posted = post(&mut lock(&self.queues).pairs, port, || Input::Datagram {
                source: arrived.source,
                bytes: arrived.datagram.into(),
            });
            if is_posted {
                self.on_posted();
            }
        } else {
            self.counters.unknown_keys.increment();
        }
    }

    /// Counts a datagram that is not opened, and tells the conductor of its source now and then.
    pub(super) fn refuse(&self, port: Port, source: SocketAddr, refused: Refused) {
        if matches!(refused, Refused::Replayed(_)) {
            self.counters.replayed.increment();
            return;
        }
        self.counters.failed_opens.increment();
        // Only a hint passes: nothing is published with it.
        if self.tells_failure.swap(false, Ordering::Relaxed) {
            self.post(port, || Input::FailedOpen { source });
        }
    }

    /// Counts a plain frame, and tells the conductor of its source.
    pub(super) fn refuse_plain(&self, port: Port, source: SocketAddr, frame_type: FrameType) {
        self.counters.plain_refused.increment();
        self.post(port, || Input::Plain {
            source,
            frame_type: frame_type.0,
        });
    }
}

fn post(queue: &mut queue::Sender<PortInput>, port: Port, input: impl FnOnce() -> Input) -> bool {
    // The agent is the only sender, so that room does not vanish.
    queue.len() < queue.capacity()
        && queue
            .try_send(PortInput {
                port,
                input: input(),
            })
            .is_ok()
}

/// Locks what only one agent uses: it never waits.
pub(super) fn lock<T>(shared: &Arc<Mutex<T>>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::{Wake, Waker};

    use taran_core::agent::register_wait;

    use super::*;

    /// Counts ended waits.
    #[derive(Default)]
    pub(in super::super) struct Waits(AtomicUsize);

    impl Waits {
        pub(in super::super) fn count(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    impl Wake for Waits {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns a sender, the ends of its queues, and the waker that it uses.
    pub(in super::super) fn sender() -> (
        KeeperSender,
        [queue::Receiver<PortInput>; 2],
        ConductorWaker,
    ) {
        let [(queue, inputs), (pairs, pair_inputs)] = [(); 2].map(|()| queue::spsc(4));
        let counters = PathCounters {
            bytes_sealed: Counter::detached(),
            bytes_opened: Counter::detached(),
            failed_opens: Counter::detached(),
            replayed: Counter::detached(),
            unknown_keys: Counter::detached(),
            plain_refused: Counter::detached(),
            out_of_bounds: Counter::detached(),
            refused_sends: Counter::detached(),
        };
        let waker = ConductorWaker::new(AgentWaker::default());
        waker.register();
        let sender = KeeperSender::new(
            [queue, pairs],
            Some(waker.clone()),
            counters,
            ClockJumps::default(),
            Arc::default(),
        );
        (sender, [inputs, pair_inputs], waker)
    }

    fn source() -> SocketAddr {
        ([10, 0, 0, 1], 40_000).into()
    }

    /// Posts a message that nothing waits for.
    fn post_plain(sender: &KeeperSender) {
        sender.refuse_plain(Port::Receiver(1), source(), FrameType::DATA);
    }

    fn post_handshake(sender: &KeeperSender) {
        sender.post_handshake(Port::Receiver(1), source(), &[]);
    }

    #[test]
    fn post_awaited_behind_another_message_ends_a_wait() {
        let ended = Arc::<Waits>::default();
        let _wait = register_wait(Waker::from(Arc::clone(&ended)));
        let (sender, [mut inputs, _], _) = sender();
        post_plain(&sender);
        assert_eq!(ended.count(), 0);
        post_handshake(&sender);
        assert_eq!(ended.count(), 1);
        post_handshake(&sender);
        assert_eq!(ended.count(), 1, "one wait for both");
        assert_eq!(std::iter::from_fn(|| inputs.try_recv()).count(), 3);
    }

    #[test]
    fn post_awaited_from_the_begin_of_a_poll_on_ends_a_wait_again() {
        let ended = Arc::<Waits>::default();
        let _wait = register_wait(Waker::from(Arc::clone(&ended)));
        let (sender, [mut inputs, _], waker) = sender();
        for waits in 1..=3 {
            post_handshake(&sender);
            assert_eq!(ended.count(), waits);
            waker.begin_poll();
            if waits == 2 {
                // Of a poll that takes none, the message is still there.
                continue;
            }
            while inputs.try_recv().is_some() {}
        }
    }

    #[test]
    fn post_awaited_to_a_full_queue_ends_no_wait() {
        let ended = Arc::<Waits>::default();
        let _wait = register_wait(Waker::from(Arc::clone(&ended)));
        let (sender, [inputs, _], _) = sender();
        while inputs.len() < 4 {
            post_plain(&sender);
        }
        post_handshake(&sender);
        assert_eq!(ended.count(), 0);
    }

    #[test]
    fn wake_in_a_flood_ends_a_bounded_number_of_waits_in_a_second() {
        let ended = Arc::<Waits>::default();
        let _wait = register_wait(Waker::from(Arc::clone(&ended)));
        let waker = ConductorWaker::new(AgentWaker::default());
        waker.register();
        let most = WAKES_PER_SECOND as usize;
        for seconds in 1..=2 {
            for _ in 0..10 * most {
                waker.wake();
            }
            assert_eq!(ended.count(), seconds * most);
            waker.refill();
        }
    }
}
