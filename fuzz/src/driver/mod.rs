// SPDX-License-Identifier: Apache-2.0
//! A whole driver in memory and virtual time, a client of it with a stream that the inputs must not disturb, and remote
//! hosts on the network.

mod good;
pub mod wire;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taran::{
    Client, ClientBuilder, ExclusivePublication, Pending, Progress, Publication, Subscription,
};
use taran_core::agent::Agent;
use taran_core::clock::{ManualClock, Now};
use taran_core::error_log;
use taran_core::memory::{MemoryStorage, Storage};
use taran_driver::{DriverContext, DriverParts, Environment, NameResolver};
use taran_net::{Network, ReceiveBatch, SocketSpec, Transmit, Transport};
use taran_protocol::cnc::{CNC_FILE_NAME, Cnc};
use taran_protocol::counter::SystemCounter;
use taran_sim::network::{HostId, SimNetwork};

use crate::allocation;
use good::GoodStream;

/// The driver's address.
pub const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Addresses of the remote hosts, which have a socket on each of [`PORTS`].
pub const REMOTE_HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3)];
/// Ports of the remote hosts.
pub const PORTS: [u16; 2] = [30_001, 30_002];

const DIRECTORY: &str = "/fuzz";
const START: Now = Now {
    nanos: 1_000_000_000_000,
    epoch_millis: 1_700_000_000_000,
};
/// Total bytes of files that can be reserved, including the logs that remote hosts cause.
const CAPACITY: u64 = 64 << 20;
/// Timer interval of the driver; all timeouts below are multiples of it.
pub const TICK: Duration = Duration::from_millis(20);

/// Pauses between datagrams of remote hosts.
pub const TIMES: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_micros(1),
    Duration::from_millis(1),
    Duration::from_millis(20),
    Duration::from_millis(60),
    Duration::from_millis(250),
];

/// Short timeouts, so that remote state expires soon.
const TIMEOUTS: [(&str, Duration); 11] = [
    ("aeron.image.liveness.timeout", IMAGE_TIMEOUT),
    ("aeron.rcv.status.message.timeout", STATUS_TIMEOUT),
    (
        "aeron.publication.linger.timeout",
        Duration::from_millis(40),
    ),
    (
        "aeron.publication.connection.timeout",
        Duration::from_millis(200),
    ),
    ("aeron.client.liveness.timeout", CLIENT_TIMEOUT),
    ("aeron.publication.unblock.timeout", Duration::from_secs(2)),
    (
        "aeron.counters.free.to.reuse.timeout",
        Duration::from_millis(20),
    ),
    (
        "aeron.untethered.window.limit.timeout",
        Duration::from_millis(200),
    ),
    (
        "aeron.untethered.linger.timeout",
        Duration::from_millis(100),
    ),
    (
        "aeron.untethered.resting.timeout",
        Duration::from_millis(100),
    ),
    ("aeron.retransmit.unicast.linger", Duration::from_millis(20)),
];
/// Timeout of silent clients and of unfinished ring claims.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(1);
/// Three heartbeats of an idle publication.
const IMAGE_TIMEOUT: Duration = Duration::from_millis(300);
const STATUS_TIMEOUT: Duration = Duration::from_millis(20);
/// Duty cycles after which a driver must be idle if time does not advance: one cycle per command.
const MAX_CYCLES: usize = 100_000;
/// Interval of checks for remaining resources.
const PAUSE: Duration = Duration::from_millis(80);

/// The smallest buffers, because a new driver fills its buffers with zeros.
const OPTIONS: &[(&str, &str)] = &[
    ("aeron.term.buffer.length", "64k"),
    ("aeron.ipc.term.buffer.length", "64k"),
    ("aeron.counters.buffer.length", "1m"),
    ("aeron.loss.report.buffer.length", "64k"),
    ("aeron.low.file.store.warning.threshold", "0"),
    ("aeron.timer.interval", "20ms"),
];

/// Resolver of every name that starts with `host`.
#[derive(Debug, Default)]
struct Names(VecDeque<(u64, Result<Vec<IpAddr>, String>)>);

impl NameResolver for Names {
    fn start(&mut self, ticket: u64, host: &str) {
        let answer = match host.starts_with("host") {
            true => Ok(vec![REMOTE_HOSTS[0].into()]),
            false => Err("no such name".to_owned()),
        };
        self.0.push_back((ticket, answer));
    }

    fn poll(&mut self) -> Option<(u64, Result<Vec<IpAddr>, String>)> {
        self.0.pop_front()
    }
}

/// Driver with its environment.
#[derive(Debug)]
pub struct DriverFixture {
    /// Virtual time.
    pub clock: ManualClock,
    /// The driver's files.
    pub storage: MemoryStorage,
    /// The network.
    pub network: SimNetwork,
    /// The driver.
    pub parts: DriverParts,
    /// The well-behaved client, whose resources the inputs must not disturb.
    pub client: Client,
    host: HostId,
    remotes: Vec<Box<dyn Transport>>,
    receive_batch: ReceiveBatch,
    good: GoodStream,
    baseline: Option<Resources>,
    /// Allocated bytes at the baseline.
    held: isize,
    /// Datagrams sent by remote hosts.
    sent: u64,
}

/// Resources of a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Resources {
    /// Ids and types.
    counters: Vec<(i32, i32)>,
    files: Vec<PathBuf>,
    sockets: usize,
}

impl DriverFixture {
    /// Starts a driver with additional options, and the undisturbed stream.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(options: &[(&str, &str)]) -> Self {
        let clock = ManualClock::new(START);
        let network = SimNetwork::new(1, clock.clone());
        let here = network.host(&[HERE.into()]);
        let host = here.id();
        let there = network.host(&REMOTE_HOSTS.map(IpAddr::from));
        let storage = MemoryStorage::with_capacity(CAPACITY);
        let mut context = DriverContext::new().aeron_dir(DIRECTORY);
        for (name, timeout) in TIMEOUTS {
            context = context.option(name, format!("{}ms", timeout.as_millis()));
        }
        for (name, value) in OPTIONS.iter().chain(options) {
            context = context.option(name, value);
        }
        let environment = Environment::new(
            Arc::new(storage.clone()),
            Box::new(here),
            Box::new(Names::default()),
            Arc::new(clock.clone()),
            START,
            7,
        )
        .with_pid(42);
        let mut parts = DriverParts::build(context, environment).expect("the driver starts");
        parts.conductor.on_start();
        parts.sender.on_start();
        parts.receiver.on_start();
        let remotes = REMOTE_HOSTS.into_iter().flat_map(|address| {
            PORTS.map(|port| {
                let spec = SocketSpec::bound(SocketAddr::from((address, port)));
                there.clone().open(&spec).expect("the port is free")
            })
        });
        let remotes = remotes.collect();
        let client = connect(&storage, &clock);
        let mut driver = Self {
            clock,
            storage,
            network,
            parts,
            client,
            host,
            remotes,
            receive_batch: ReceiveBatch::new(1),
            good: GoodStream::default(),
            baseline: None,
            held: 0,
            sent: 0,
        };
        let channel = "aeron:udp?endpoint=127.0.0.1:20000";
        let subscription = driver.subscribe(channel, 1);
        let publication = driver.publish(channel, 1);
        driver.good = GoodStream::new(publication, subscription);
        driver
    }

    /// Records the current resources as the baseline of an undisturbed driver.
    pub fn set_baseline(&mut self) {
        self.check_good_stream();
        for _ in 0..12 {
            self.step(4 * TICK);
        }
        self.baseline = Some(self.resources());
        self.held = allocation::held();
    }

    /// Records the allocated bytes as the baseline of [`check_held`](Self::check_held).
    pub fn set_held_baseline(&mut self) {
        self.held = allocation::held();
    }

    /// Connects another client in invoker mode.
    pub fn connect(&self) -> Client {
        connect(&self.storage, &self.clock)
    }

    /// Checks that at most `most` bytes are allocated beyond the baseline.
    ///
    /// # Panics
    /// If more are.
    pub fn check_held(&self, most: isize) {
        let held = allocation::held() - self.held;
        assert!(held < most, "{held} bytes are held");
    }

    /// Runs one duty cycle of client and driver and returns the work count.
    pub fn run_cycle(&mut self) -> usize {
        let now = self.clock.read();
        self.client.do_work(now)
            + self.parts.conductor.do_work(now)
            + self.parts.sender.do_work(now)
            + self.parts.receiver.do_work(now)
    }

    /// Runs duty cycles without advancing time until all agents are idle.
    ///
    /// # Panics
    /// If the agents still have work after the maximum number of cycles.
    pub fn settle(&mut self) {
        for _ in 0..MAX_CYCLES {
            if self.run_cycle() == 0 {
                return;
            }
        }
        panic!("agents still have work after {MAX_CYCLES} duty cycles");
    }

    /// Advances time in steps of at most `PAUSE`, with duty cycles until idle after each step but the last, and one cycle after
    /// that. In a single step of an image's timeout, the receiver would process one batch and then time out the images whose
    /// frames are still queued.
    pub fn step(&mut self, mut time: Duration) {
        while time > PAUSE {
            self.clock.advance(PAUSE);
            self.settle();
            time -= PAUSE;
        }
        self.clock.advance(time);
        self.run_cycle();
    }

    /// Advances time by timer intervals.
    pub fn rest(&mut self, ticks: usize) {
        for _ in 0..ticks {
            self.step(TICK);
        }
    }

    /// Checks that no more datagrams were invalid than remotes have sent, each to at most `copies` sockets.
    ///
    /// # Panics
    /// If more were, or something is in the error log that does not contain one of `allowed`.
    pub fn check_counts(&self, copies: u64, allowed: &[&str]) {
        let invalid = self.system(SystemCounter::InvalidPackets).unsigned_abs();
        let most = self.sent * copies;
        assert!(invalid <= most, "{invalid} of {most} are invalid");
        for error in self.errors() {
            assert!(allowed.iter().any(|text| error.contains(text)), "{error}");
        }
    }

    /// Waits for the response of the driver.
    ///
    /// # Panics
    /// If there is none, or it is an error.
    pub fn answer<T>(&mut self, mut pending: Pending<T>) -> T {
        for _ in 0..100 {
            if let Some(answer) = pending.poll() {
                return answer.expect("the command is fine");
            }
            self.step(Duration::from_millis(1));
        }
        panic!("no answer");
    }

    /// Adds a publication.
    pub fn publish(&mut self, channel: &str, stream_id: i32) -> Publication {
        let pending = self.client.async_add_publication(channel, stream_id);
        self.answer(pending.expect("the command ring has space"))
    }

    /// Adds an exclusive publication.
    pub fn publish_exclusive(&mut self, channel: &str, stream_id: i32) -> ExclusivePublication {
        let pending = self
            .client
            .async_add_exclusive_publication(channel, stream_id);
        self.answer(pending.expect("the command ring has space"))
    }

    /// Adds a subscription.
    pub fn subscribe(&mut self, channel: &str, stream_id: i32) -> Subscription {
        let pending = self.client.async_add_subscription(channel, stream_id);
        self.answer(pending.expect("the command ring has space"))
    }

    /// Sends a datagram from a remote host.
    pub fn send(&mut self, remote: usize, to: SocketAddr, datagram: &[u8]) {
        let count = self.remotes.len();
        self.sent += 1;
        let transmit = Transmit::to(to, datagram);
        // Errors are ignored: the input may have chosen an address without a socket.
        let _ = self.remotes[remote % count].send(&[transmit]);
    }

    /// Returns the number of datagrams that the remote hosts received since the last call.
    pub fn take_received(&mut self) -> usize {
        let mut received = 0;
        for remote in &mut self.remotes {
            while let Ok(count @ 1..) = remote.receive(&mut self.receive_batch) {
                received += count;
            }
        }
        received
    }

    /// Returns the value of a system counter.
    pub fn system(&self, counter: SystemCounter) -> i64 {
        self.parts.counters.value(counter.id()).unwrap_or(0)
    }

    /// Opens the driver's `cnc.dat`.
    ///
    /// # Panics
    /// If the file does not exist.
    pub fn cnc(&self) -> Cnc {
        let path = Path::new(DIRECTORY).join(CNC_FILE_NAME);
        let region = self.storage.open(&path).expect("the file exists");
        Cnc::open(&region).expect("the file is valid")
    }

    /// Returns the texts of the driver's error log.
    pub fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        error_log::read(&self.cnc().error_log, i64::MIN, |error| {
            errors.push(error.text.clone());
        });
        errors
    }

    /// Checks that the stream that the inputs must not disturb still flows, in order and intact.
    ///
    /// # Panics
    /// If it does not.
    pub fn check_good_stream(&mut self) {
        let mut good = std::mem::take(&mut self.good);
        good.offer(self);
        for _ in 0..200 {
            if good.take() {
                self.good = good;
                return;
            }
            self.step(Duration::from_millis(1));
        }
        panic!(
            "the good stream is stuck: {good:?}\n{}",
            self.errors().join("\n")
        );
    }

    /// Checks that the driver releases all resources that remote hosts caused within the sum of all timeouts. Remote hosts send
    /// nothing from now on.
    ///
    /// # Panics
    /// If the resources differ from the baseline.
    pub fn check_baseline(&mut self) {
        self.settle();
        let mut left = expiry();
        while Some(&self.resources()) != self.baseline.as_ref() && !left.is_zero() {
            self.clock.advance(PAUSE);
            self.settle();
            left = left.saturating_sub(PAUSE);
        }
        let baseline = self
            .baseline
            .as_ref()
            .map_or(0, |baseline| baseline.counters.len());
        let now = self.resources();
        assert_eq!(
            Some(&now),
            self.baseline.as_ref(),
            "{baseline} counters are in the baseline, left are\n{}",
            self.describe()
        );
    }

    /// Returns the counters except system counters, one per line.
    fn describe(&self) -> String {
        let mut text = String::new();
        self.parts.counters.for_each(|meta| {
            let value = self.parts.counters.value(meta.id).unwrap_or(0);
            if SystemCounter::from_id(meta.id).is_none() {
                text.push_str(&format!(
                    "{value:>12} of client {} {}\n",
                    meta.owner_id,
                    meta.label.as_str()
                ));
            }
        });
        text
    }

    fn resources(&self) -> Resources {
        let mut counters = Vec::new();
        self.parts
            .counters
            .for_each(|meta| counters.push((meta.id, meta.type_id)));
        Resources {
            counters,
            files: self.storage.mapped_files(),
            sockets: self.network.open_sockets(self.host),
        }
    }
}

/// Returns the time after which all state of silent remote hosts has expired: each timeout once, an image's twice (for its
/// publisher and for its subscribers), that of status messages five times more (for the last of them), and for each the
/// delay of one pause until it is noticed.
fn expiry() -> Duration {
    let timeouts = TIMEOUTS.iter().map(|(_, timeout)| *timeout + PAUSE);
    timeouts.sum::<Duration>() + IMAGE_TIMEOUT + 5 * STATUS_TIMEOUT + 2 * PAUSE
}

/// Connects a client in invoker mode.
fn connect(storage: &MemoryStorage, clock: &ManualClock) -> Client {
    let nothing: [(&str, &str); 0] = [];
    let builder = ClientBuilder::with_environment(nothing)
        .aeron_dir(DIRECTORY)
        .storage(Arc::new(storage.clone()))
        .clock(clock.clone())
        .on_error(|_| ())
        // Logs that a client keeps mapped for a while would count as held.
        .resource_linger(Duration::ZERO)
        .invoker(true);
    match builder.connecting().poll(clock.read()) {
        Ok(Progress::Connected(client)) => client,
        other => panic!("not connected: {other:?}"),
    }
}
