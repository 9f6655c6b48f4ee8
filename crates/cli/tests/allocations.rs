//! The proof that the road of a message allocates nothing: offers, claims, sender, receiver, polls, and everything that
//! the conductors do meanwhile, under an allocator that counts.
//!
//! Driver and client are invoked on the one thread of the test, so that whatever is allocated is allocated by what the
//! test calls, and counted. Counts are per thread: the test harness may do what it likes on its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use taran::{
    Action, Client, Context, ControlledFragmentAssembler, ExclusivePublication, FragmentAssembler,
    OfferError, Pending, Publication, Subscription,
};
use taran_driver::{DriverContext, MediaDriver};
use taran_net::{FaultRates, FaultSpec, Faulty, Network, SocketNetwork};
use taran_protocol::option::ThreadingMode;

thread_local! {
    /// Whether this thread is watched, and what it has allocated meanwhile. Neither is ever dropped, so that the
    /// allocator may use them at any time.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, and a count.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes to the system's allocator with the same arguments, so its guarantees are kept; what is done
// besides uses memory of the thread that is there already, or, once a failure is certain, allocates unwatched.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: as above; `block` came from the system's allocator, as every block does.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Counts an allocation of a watched thread, and says where the first one came from.
fn note(size: usize) {
    if WATCHED.get() {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        if ALLOCATIONS.get() == 1 {
            WATCHED.set(false);
            eprintln!(
                "{size} bytes were allocated here:\n{}",
                Backtrace::force_capture()
            );
            WATCHED.set(true);
        }
    }
}

/// How many allocations `work` makes.
fn allocations(work: impl FnOnce()) -> u64 {
    ALLOCATIONS.set(0);
    WATCHED.set(true);
    work();
    WATCHED.set(false);
    ALLOCATIONS.get()
}

const PATIENCE: Duration = Duration::from_secs(60);
/// Short terms, so that many of them are filled, rotated and cleaned.
const TERM_LENGTH: i64 = 64 * 1024;
const MTU_AND_MORE: usize = 4_000;
const FRAGMENT_LIMIT: usize = 10;

/// A driver and a client, run by whoever calls [`Self::turn`].
struct World {
    driver: MediaDriver,
    client: Client,
}

impl World {
    fn new(network: impl Network + 'static) -> World {
        let context = DriverContext::new()
            .network(network)
            .threading_mode(ThreadingMode::Invoker)
            // So that the conductor does all that it does each second many times while it is watched.
            .timer_interval(Duration::from_millis(5));
        let driver = MediaDriver::launch_embedded(context).expect("the driver starts");
        let client = Context::new()
            .aeron_dir(driver.aeron_dir())
            .keepalive_interval(Duration::from_millis(5))
            .invoker(true)
            .connect()
            .expect("the driver is there");
        World { driver, client }
    }

    fn turn(&mut self) {
        self.driver.invoke();
        self.client.invoke();
    }

    fn turn_until<T>(&mut self, mut condition: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(result) = condition() {
                return result;
            }
            assert!(Instant::now() < deadline, "nothing comes");
            self.turn();
        }
    }

    fn added<T>(&mut self, pending: Result<Pending<T>, taran::AddError>) -> T {
        let mut pending = pending.expect("the command is sent");
        self.turn_until(|| pending.poll())
            .expect("the driver agrees")
    }
}

/// One stream with all ways to send and to receive.
struct Road {
    shared: Publication,
    exclusive: ExclusivePublication,
    polled: (Subscription, FragmentAssembler),
    steered: (Subscription, ControlledFragmentAssembler),
    long: Vec<u8>,
}

impl Road {
    fn new(world: &mut World, channel: &str) -> Road {
        let channel = format!("{channel}term-length={TERM_LENGTH}");
        let [polled, steered] = [(); 2].map(|()| {
            let subscription = world.client.async_add_subscription(&channel, 1);
            world.added(subscription)
        });
        let shared = world.client.async_add_publication(&channel, 1);
        let shared = world.added(shared);
        let exclusive = world.client.async_add_exclusive_publication(&channel, 1);
        let exclusive = world.added(exclusive);
        world.turn_until(|| {
            let complete = polled.image_count() == 2 && steered.image_count() == 2;
            (complete && shared.is_connected() && exclusive.is_connected()).then_some(())
        });
        Road {
            shared,
            exclusive,
            polled: (polled, FragmentAssembler::new()),
            steered: (steered, ControlledFragmentAssembler::new()),
            long: vec![7; MTU_AND_MORE],
        }
    }

    /// Sends in every way, once each, and receives in every way, until both streams have passed `terms` more terms.
    fn drive(&mut self, world: &mut World, terms: i64) {
        let deadline = Instant::now() + PATIENCE;
        let ends = [self.shared.position(), self.exclusive.position()]
            .map(|start| start + terms * TERM_LENGTH);
        let mut turn = 0_usize;
        while self.shared.position() < ends[0] || self.exclusive.position() < ends[1] {
            self.send(turn);
            world.turn();
            self.receive(turn);
            turn += 1;
            assert!(
                !turn.is_multiple_of(1024) || Instant::now() < deadline,
                "the road is blocked"
            );
        }
    }

    fn send(&mut self, turn: usize) {
        let Road {
            shared,
            exclusive,
            long,
            ..
        } = self;
        match turn % 5 {
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
            // Abandoned claims.
            _ => {
                accept(shared.try_claim(64).map(drop));
                accept(exclusive.try_claim(64).map(drop));
            }
        }
    }

    fn receive(&mut self, turn: usize) {
        let mut bytes = 0;
        let (subscription, assembler) = &mut self.polled;
        let handler = assembler.wrap(|message, _| bytes += message.len());
        let fragments = if turn.is_multiple_of(2) {
            subscription.poll(handler, FRAGMENT_LIMIT)
        } else {
            subscription.bounded_poll(handler, i64::MAX, FRAGMENT_LIMIT)
        };
        fragments.expect("the client lives");
        let (subscription, assembler) = &mut self.steered;
        let handler = assembler.wrap(|message, _| {
            bytes += message.len();
            Action::Commit
        });
        subscription
            .controlled_poll(handler, FRAGMENT_LIMIT)
            .expect("the client lives");
    }
}

/// Back-pressure and term rotations are part of the road; everything else is a failure of the test.
#[allow(clippy::needless_pass_by_value)] // what a send returns is judged where it is made
fn accept<T>(result: Result<T, OfferError>) {
    if let Err(error) = result {
        assert!(error.is_retryable(), "{error}");
    }
}

fn prove(channel: &str, network: impl Network + 'static) {
    let mut world = World::new(network);
    let mut road = Road::new(&mut world, channel);
    // Set-up ends when every buffer has had its longest content, and every file each of its pages.
    road.drive(&mut world, 8);
    let counted = allocations(|| road.drive(&mut world, 24));
    assert_eq!(counted, 0, "allocations on the road of {channel}");
}

fn udp() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let address = socket.local_addr().expect("a bound socket has an address");
    format!("aeron:udp?endpoint={address}|")
}

#[test]
fn nothing_is_allocated_between_processes() {
    prove("aeron:ipc?", SocketNetwork::new());
}

#[test]
fn nothing_is_allocated_over_the_network() {
    prove(&udp(), SocketNetwork::new());
}

#[test]
fn nothing_is_allocated_when_datagrams_are_lost() {
    let spec = FaultSpec {
        incoming: FaultRates::loss(0.02),
        outgoing: FaultRates::default(),
        seed: 7,
    };
    let network = Faulty::new(SocketNetwork::new(), spec);
    let control = network.control();
    prove(&udp(), network);
    assert!(control.counts().lost > 0);
}

#[test]
fn the_allocator_counts() {
    let counted = allocations(|| drop(std::hint::black_box(vec![1_u8; 100])));
    assert_eq!(counted, 1);
}
