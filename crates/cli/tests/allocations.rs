// SPDX-License-Identifier: Apache-2.0
//! Verifies that the data path allocates nothing: offers, claims, sender, receiver, polls, and the duty cycles of the
//! conductors, under a counting allocator. So do recordings and replays of an archive.
//!
//! Driver and client are invoked on the thread of the test, so every allocation of theirs is counted. Counts are per
//! thread; other threads of the test harness do not matter.

#[path = "allocations/archive.rs"]
mod archive;
#[allow(dead_code, reason = "a part of other tests")]
#[path = "../../archive/tests/invoked/fixture.rs"]
mod invoked;
#[allow(dead_code, clippy::unwrap_used, reason = "a part of other tests")]
#[path = "../../net/tests/ring_backend/network.rs"]
mod network;
#[allow(dead_code, clippy::unwrap_used, reason = "a part of other tests")]
#[path = "../../net/tests/ring_backend/queue.rs"]
mod queue;
#[allow(dead_code, reason = "a part of other tests")]
#[path = "../../net/tests/shared/sealer.rs"]
mod sealer;
#[allow(dead_code, clippy::unwrap_used, reason = "a part of other tests")]
#[path = "../../net/tests/ring_backend/transport.rs"]
mod transport;

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use network::{RingNetwork, Wire};
use sealer::SealerLayer;
use taran::{
    Action, Client, ControlledFragmentAssembler, ExclusivePublication, FragmentAssembler,
    OfferError, Pending, Publication, Subscription,
};
use taran_core::agent::{Agent, AgentEnd};
use taran_core::clock::Now;
use taran_driver::{AgentPlacement, DriverContext, MediaDriver};
use taran_net::{
    Backends, FaultLayer, FaultRates, FaultSpec, LayeredNetwork, Network, SocketNetwork,
};
use taran_protocol::option::ThreadingMode;

thread_local! {
    /// A flag that counts allocations of this thread, and their number. Neither value has a destructor, so the
    /// allocator may access them at any time.
    static COUNTING: Cell<bool> = const { Cell::new(false) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system allocator with a counter.
struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

// SAFETY: every call is forwarded to the system allocator with the same arguments, so its guarantees hold. The
// additional code uses existing thread-local memory, or, once a failure is certain, allocates uncounted.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_allocation(layout.size());
        // SAFETY: the caller upholds the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_allocation(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_allocation(size);
        // SAFETY: as above; `block` came from the system allocator, as every block does.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Counts an allocation of a measured thread, and prints the origin of the first one.
fn count_allocation(size: usize) {
    if COUNTING.get() {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        if ALLOCATIONS.get() == 1 {
            COUNTING.set(false);
            eprintln!(
                "{size} bytes were allocated here:\n{}",
                Backtrace::force_capture()
            );
            COUNTING.set(true);
        }
    }
}

/// Returns the number of allocations that `work` makes.
fn allocations(work: impl FnOnce()) -> u64 {
    ALLOCATIONS.set(0);
    COUNTING.set(true);
    work();
    COUNTING.set(false);
    ALLOCATIONS.get()
}

const TIMEOUT: Duration = Duration::from_secs(60);
/// Short terms, so that many of them are filled, rotated and cleaned.
const TERM_LENGTH: i64 = 64 * 1024;
const FRAGMENTED_LENGTH: usize = 4_000;
const FRAGMENT_LIMIT: usize = 10;

/// An agent of the embedding program on the driver's thread.
struct IdleAgent;

impl Agent for IdleAgent {
    fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
        Ok(0)
    }

    fn role_name(&self) -> &'static str {
        "idle"
    }
}

/// A driver with an added agent, and a client, invoked by [`Self::duty_cycle`].
struct Fixture {
    driver: MediaDriver,
    client: Client,
}

impl Fixture {
    fn new(network: impl Network + 'static) -> Fixture {
        Fixture::of(DriverContext::new(), network)
    }

    fn of(context: DriverContext, network: impl Network + 'static) -> Fixture {
        let context = context
            .network(network)
            .threading_mode(ThreadingMode::Invoker)
            // The conductor performs its one-second timer work many times during the measurement.
            .timer_interval(Duration::from_millis(5));
        let mut driver = MediaDriver::launch_embedded(context).expect("the driver starts");
        driver
            .add_agent(IdleAgent, AgentPlacement::DriverThread)
            .expect("the driver runs");
        let client = Client::builder()
            .aeron_dir(driver.aeron_dir())
            .keepalive_interval(Duration::from_millis(5))
            .invoker(true)
            .connect()
            .expect("the driver is there");
        Fixture { driver, client }
    }

    fn duty_cycle(&mut self) {
        self.driver.invoke();
        self.client.invoke();
    }

    fn run_until<T>(&mut self, mut condition: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(result) = condition() {
                return result;
            }
            assert!(Instant::now() < deadline, "timed out");
            self.duty_cycle();
        }
    }

    fn await_added<T>(&mut self, pending: Result<Pending<T>, taran::CommandError>) -> T {
        let mut pending = pending.expect("the command is sent");
        self.run_until(|| pending.poll())
            .expect("the driver agrees")
    }
}

/// One stream with all kinds of publications and subscriptions.
struct AllOperations {
    shared: Publication,
    exclusive: ExclusivePublication,
    polled: (Subscription, FragmentAssembler),
    controlled: (Subscription, ControlledFragmentAssembler),
    long: Vec<u8>,
}

impl AllOperations {
    fn new(fixture: &mut Fixture, channel: &str) -> AllOperations {
        let channel = format!("{channel}term-length={TERM_LENGTH}");
        let [polled, controlled] = [(); 2].map(|()| {
            let subscription = fixture.client.async_add_subscription(&channel, 1);
            fixture.await_added(subscription)
        });
        let shared = fixture.client.async_add_publication(&channel, 1);
        let shared = fixture.await_added(shared);
        let exclusive = fixture.client.async_add_exclusive_publication(&channel, 1);
        let exclusive = fixture.await_added(exclusive);
        fixture.run_until(|| {
            let complete = polled.image_count() == 2 && controlled.image_count() == 2;
            (complete && shared.is_connected() && exclusive.is_connected()).then_some(())
        });
        AllOperations {
            shared,
            exclusive,
            polled: (polled, FragmentAssembler::new()),
            controlled: (controlled, ControlledFragmentAssembler::new()),
            long: vec![7; FRAGMENTED_LENGTH],
        }
    }

    /// Sends and receives in every way, until both publications have advanced by `terms` terms.
    fn drive(&mut self, fixture: &mut Fixture, terms: i64) {
        let deadline = Instant::now() + TIMEOUT;
        let ends = [self.shared.position(), self.exclusive.position()]
            .map(|start| start + terms * TERM_LENGTH);
        let mut iteration = 0_usize;
        while self.shared.position() < ends[0] || self.exclusive.position() < ends[1] {
            self.send(iteration);
            fixture.duty_cycle();
            self.receive(iteration);
            iteration += 1;
            assert!(
                !iteration.is_multiple_of(1024) || Instant::now() < deadline,
                "the operations is blocked"
            );
        }
    }

    fn send(&mut self, iteration: usize) {
        let AllOperations {
            shared,
            exclusive,
            long,
            ..
        } = self;
        match iteration % 5 {
            0 => {
                accept(shared.offer(&long[..100]));
                accept(exclusive.offer(&long[..100]));
            }
            1 => {
                accept(shared.offer(long));
                accept(exclusive.offer(long));
            }
            2 => {
                accept(shared.offer_parts(&[&long[..10], &long[..20]]));
                accept(exclusive.offer_parts(&[long, long]));
            }
            3 => {
                accept(shared.try_claim(288).map(|mut claim| {
                    claim.fill(3);
                    claim.commit();
                }));
                accept(exclusive.try_claim(288).map(|mut claim| {
                    claim.fill(4);
                    claim.commit();
                }));
            }
            // Aborted claims.
            _ => {
                accept(shared.try_claim(64).map(drop));
                accept(exclusive.try_claim(64).map(drop));
            }
        }
    }

    fn receive(&mut self, iteration: usize) {
        let mut bytes = 0;
        let (subscription, assembler) = &mut self.polled;
        let handler = assembler.wrap(|message, _| bytes += message.len());
        let fragments = if iteration.is_multiple_of(2) {
            subscription.poll(handler, FRAGMENT_LIMIT)
        } else {
            subscription.bounded_poll(handler, i64::MAX, FRAGMENT_LIMIT)
        };
        fragments.expect("the client lives");
        let (subscription, assembler) = &mut self.controlled;
        let handler = assembler.wrap(|message, _| {
            bytes += message.len();
            Action::Commit
        });
        subscription
            .controlled_poll(handler, FRAGMENT_LIMIT)
            .expect("the client lives");
    }
}

/// Back-pressure and term rotations are expected; any other error fails the test.
#[allow(clippy::needless_pass_by_value)] // what a send returns is judged where it is made
fn accept<T>(result: Result<T, OfferError>) {
    if let Err(error) = result {
        assert!(error.is_retryable(), "{error}");
    }
}

fn assert_no_allocations(channel: &str, network: impl Network + 'static) {
    let mut fixture = Fixture::new(network);
    let mut operations = AllOperations::new(&mut fixture, channel);
    // Warm-up: afterwards every buffer has reached its maximum length and every file page has been touched.
    operations.drive(&mut fixture, 8);
    let counted = allocations(|| operations.drive(&mut fixture, 24));
    assert_eq!(counted, 0, "allocations on the operations of {channel}");
}

fn udp() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let address = socket.local_addr().expect("a bound socket has an address");
    format!("aeron:udp?endpoint={address}|")
}

#[test]
fn data_path_over_ipc_allocates_nothing() {
    assert_no_allocations("aeron:ipc?", SocketNetwork::new());
}

#[test]
fn data_path_over_udp_allocates_nothing() {
    assert_no_allocations(&udp(), SocketNetwork::new());
}

#[test]
fn data_path_with_loss_allocates_nothing() {
    let spec = FaultSpec {
        incoming: FaultRates::loss(0.02),
        outgoing: FaultRates::default(),
        seed: 7,
    };
    let layer = FaultLayer::new(spec);
    let control = layer.control();
    let network = LayeredNetwork::with_layer(SocketNetwork::new(), layer);
    assert_no_allocations(&udp(), network);
    assert!(control.counts().lost() > 0);
}

#[test]
fn data_path_through_a_layer_that_expands_datagrams_allocates_nothing() {
    let network = LayeredNetwork::with_layer(SocketNetwork::new(), SealerLayer);
    assert_no_allocations(&udp(), network);
}

/// A host of a wire in memory, with queues and frames of its own.
fn ring() -> RingNetwork {
    RingNetwork::new(&Wire::default(), Ipv4Addr::new(10, 0, 0, 1).into())
}

const RING: &str = "aeron:udp?endpoint=10.0.0.1:40123|";

#[test]
fn data_path_over_a_backend_with_queues_allocates_nothing() {
    assert_no_allocations(RING, ring());
    assert_no_allocations(RING, LayeredNetwork::with_layer(ring(), SealerLayer));
}

#[test]
fn data_path_over_a_chosen_backend_allocates_nothing() {
    let network = Backends::new(SocketNetwork::new()).with(ring());
    assert_no_allocations(&format!("{RING}taran.net=ring|"), network);
    let network = Backends::new(ring()).with(SocketNetwork::new());
    assert_no_allocations(&format!("{}taran.net=sockets|", udp()), network);
}

/// Random bytes of a seed.
#[cfg(feature = "secure")]
struct Seeded(u64);

#[cfg(feature = "secure")]
impl taran_secure::keeper::Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            *byte = (self.0 >> 56) as u8;
        }
    }
}

/// Links are tested every two seconds, which makes frames of their own: some windows have no such moment, and in those nothing
/// is allocated, whatever their messages are.
#[cfg(feature = "secure")]
#[test]
fn data_path_over_a_secured_channel_allocates_nothing_per_message() {
    use taran_driver::DriverKeys;
    use taran_secure::Secret;
    use taran_secure::identity::{Identity, public_key_text};
    use taran_secure::provider::DefaultProvider;
    use taran_secure::trust::TrustStore;

    let identity = Identity::from_private::<DefaultProvider>(Secret::new([1; 32]));
    // The driver is at both ends.
    let key = public_key_text::<DefaultProvider>(identity.public());
    let trust =
        TrustStore::parse::<DefaultProvider>(&format!("{key} self publish=* subscribe=*\n"));
    let trust = trust.expect("the line is valid");
    let context = DriverContext::new()
        .option("taran.secure.mode", "all")
        .keys(DriverKeys::new(identity, trust, Box::new(Seeded(1))));
    let mut fixture = Fixture::of(context, SocketNetwork::new());
    let mut operations = AllOperations::new(&mut fixture, &udp());
    operations.drive(&mut fixture, 8);
    let deadline = Instant::now() + TIMEOUT;
    while allocations(|| operations.drive(&mut fixture, 2)) > 0 {
        assert!(Instant::now() < deadline, "every window allocates");
    }
}

#[test]
fn allocator_counts_allocations() {
    let counted = allocations(|| drop(std::hint::black_box(vec![1_u8; 100])));
    assert_eq!(counted, 1);
}
