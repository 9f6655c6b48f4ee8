//! Machines: memory, clock, driver.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taran_core::agent::Agent;
use taran_core::clock::{Now, WallClock, saturating_nanos};
use taran_core::counters::CountersReader;
use taran_core::memory::MemoryStorage;
use taran_driver::{DriverContext, DriverError, DriverParts, Environment};
use taran_protocol::counter::SystemCounter;

use super::clock::HostClock;
use super::pace::Rest;
use super::{HostIndex, World};
use crate::check::counter_consistency::CounterCheck;
use crate::check::leaks::LeakCheck;
use crate::check::streams::Streams;
use crate::check::{Violation, flow, positions};
use crate::network::{HostId, HostTraffic, SimHost};

/// How a host differs from others.
#[derive(Clone, Debug, Default)]
pub struct HostSpec {
    options: Vec<(String, String)>,
    ahead: Duration,
    is_ipv6: bool,
}

impl HostSpec {
    /// A host with small terms, and the driver's defaults otherwise.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
            .option("aeron.term.buffer.length", "64k")
            .option("aeron.ipc.term.buffer.length", "64k")
    }

    /// Sets an option of the driver.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.push((name.into(), value.into()));
        self
    }

    /// A host that has an address of IPv6 alone.
    #[must_use]
    pub fn ipv6(self) -> Self {
        Self {
            is_ipv6: true,
            ..self
        }
    }

    /// Whether its driver loses on purpose what comes in.
    fn loses_on_purpose(&self) -> bool {
        let mut names = self.options.iter().map(|(name, _)| name);
        names.any(|name| name.contains("INTERCEPTORS"))
    }

    /// The address of the host with this number at the place with this number.
    fn address(&self, index: usize, place: u8) -> IpAddr {
        // Worlds are small.
        let number = index as u8 + 1;
        if self.is_ipv6 {
            IpAddr::from([0xfd00, 0, 0, 0, 0, 0, u16::from(place), u16::from(number)])
        } else {
            IpAddr::from([10, 0, place, number])
        }
    }

    /// Sets the host's clocks ahead of the others'.
    #[must_use]
    pub fn clocks_ahead(self, ahead: Duration) -> Self {
        Self { ahead, ..self }
    }
}

/// A machine.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) storage: MemoryStorage,
    pub(super) directory: PathBuf,
    pub(super) network: SimHost,
    pub(super) driver: Option<Driver>,
    /// Its driver takes no turn before.
    pub(super) stalled_until_ns: i64,
    /// How many drivers it has had.
    lives: u64,
    wall: HostClock,
    spec: HostSpec,
    /// How often it has moved.
    place: u8,
}

/// A driver that lives.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) parts: DriverParts,
    /// Of its conductor.
    pub(super) rest: Rest,
    streams: Streams,
    counters: CounterCheck,
    leaks: LeakCheck,
}

impl Driver {
    /// Checks what must hold at any time. To be called after each turn in which anything was done or seen: what happened
    /// between two looks is known then.
    pub(super) fn look(&mut self) -> Result<(), Violation> {
        if !self.streams.refresh() {
            return Ok(());
        }
        positions::check(&self.streams)?;
        flow::check(&self.streams)
    }

    /// The same after a turn of the conductor, who alone makes and frees counters.
    pub(super) fn look_anew(&mut self) -> Result<(), Violation> {
        self.streams.rescan_counters();
        self.look()
    }

    /// The same after a turn of a receiver that had nothing to do.
    pub(super) fn look_settled(&mut self) -> Result<(), Violation> {
        self.look()?;
        self.streams.mark_all_known();
        Ok(())
    }

    /// The same between turns, with what has passed the edge of its host.
    pub(super) fn check_against_traffic(&mut self, traffic: &HostTraffic) -> Result<(), Violation> {
        self.look()?;
        self.counters.check(&self.streams, traffic)
    }
}

impl Host {
    /// The time as this host sees it.
    pub(super) fn at(&self, now: Now) -> Now {
        let nanos = saturating_nanos(self.spec.ahead);
        Now {
            nanos: now.nanos + nanos,
            epoch_millis: self.wall.epoch_nanos().div_euclid(1_000_000),
        }
    }
}

impl World {
    /// Adds a host and starts its driver. It is called `host0`, has the address 10.0.0.1 (or fd00::1) if it is the first,
    /// and so on.
    pub fn add_host(&mut self, spec: HostSpec) -> HostIndex {
        let index = self.hosts.len();
        let host = Host {
            storage: MemoryStorage::new(),
            directory: PathBuf::from(format!("/aeron-{index}")),
            network: self.network.host(&[spec.address(index, 0)]),
            driver: None,
            stalled_until_ns: 0,
            lives: 0,
            wall: HostClock::new(self.clock.clone(), spec.ahead),
            spec,
            place: 0,
        };
        self.hosts.push(host);
        let host = HostIndex(index);
        self.name(&format!("host{index}"), host);
        self.start_driver(host);
        host
    }

    /// Moves a host to another address, which is returned. Its names mean that one from now on.
    pub fn relocate(&mut self, index: HostIndex) -> IpAddr {
        self.tell("relocate", index.0);
        let host = &mut self.hosts[index.0];
        host.place += 1;
        let address = host.spec.address(index.0, host.place);
        self.network.set_addresses(host.network.id(), &[address]);
        address
    }

    /// Lets a name mean a host from now on, whatever it meant before.
    pub fn name(&mut self, name: &str, host: HostIndex) {
        let id = self.network_id(host);
        self.names.set(name, id);
    }

    /// Starts a driver on a host that has none.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_driver(&mut self, host: HostIndex) {
        let started = self.try_start_driver(host);
        started.unwrap_or_else(|error| panic!("driver of host {}: {error}", host.0));
    }

    /// Starts a driver on a host.
    ///
    /// # Errors
    /// As [`DriverParts::build`].
    pub fn try_start_driver(&mut self, index: HostIndex) -> Result<(), DriverError> {
        self.tell("start driver", index.0);
        let (now, seed) = (self.clock.read(), self.random.u64(..));
        let host = &mut self.hosts[index.0];
        let context = DriverContext::new().aeron_dir(&host.directory);
        let options = host.spec.options.iter();
        let context = options.fold(context, |context, (name, value)| {
            context.option(name, value)
        });
        let environment = Environment {
            storage: Arc::new(host.storage.clone()),
            network: Box::new(host.network.clone()),
            resolver: Box::new(self.names.resolver()),
            seed,
            now: host.at(now),
            wall_clock: Arc::new(host.wall.clone()),
            pid: index.0 as i64 + 1,
        };
        let mut parts = DriverParts::build(context, environment)?;
        self.network.forget_streams(host.network.id());
        parts.conductor.on_start();
        parts.sender.on_start();
        parts.receiver.on_start();
        host.lives += 1;
        host.driver = Some(Driver {
            streams: Streams::new(
                parts.counters.clone(),
                host.storage.clone(),
                host.directory.clone(),
            ),
            counters: CounterCheck::new(
                &parts.counters,
                self.network
                    .with_traffic(host.network.id(), |edge| *edge.counts()),
                host.spec.loses_on_purpose(),
            ),
            leaks: LeakCheck::new(
                &parts.counters,
                self.network.open_sockets(host.network.id()),
            ),
            rest: Rest::since(host.at(now).nanos),
            parts,
        });
        Ok(())
    }

    /// Stops a driver in an orderly way.
    pub fn stop_driver(&mut self, host: HostIndex) {
        self.tell("stop driver", host.0);
        if let Some(Driver { mut parts, .. }) = self.hosts[host.0].driver.take() {
            parts.sender.on_close();
            parts.receiver.on_close();
            parts.conductor.on_close();
        }
    }

    /// Ends a driver as `kill -9` does: its sockets are closed, its files stay as they are.
    pub fn kill_driver(&mut self, host: HostIndex) {
        self.tell("kill driver", host.0);
        self.hosts[host.0].driver = None;
    }

    /// Stops a driver for some time, as `SIGSTOP` does.
    pub fn stall_driver(&mut self, host: HostIndex, pause: Duration) {
        self.tell("stall driver", host.0);
        let until_ns = self.clock.read().nanos + saturating_nanos(pause);
        self.hosts[host.0].stalled_until_ns = until_ns;
    }

    /// Stops all processes of a host for some time: a machine that pauses. No time at all lets them go on.
    pub fn stall_host(&mut self, host: HostIndex, pause: Duration) {
        self.tell("stall host", host.0);
        let until_ns = self.clock.read().nanos + saturating_nanos(pause);
        self.hosts[host.0].stalled_until_ns = until_ns;
        for client in self.clients.iter_mut().filter(|client| client.host == host) {
            client.stalled_until_ns = until_ns;
        }
    }

    /// Sets the wall clock of a host this much forwards or backwards.
    pub fn step_clock(&mut self, host: HostIndex, by_ms: i64) {
        self.tell("step clock", host.0);
        self.hosts[host.0].wall.step(by_ms);
    }

    /// True while a host has a driver.
    #[must_use]
    pub fn has_driver(&self, host: HostIndex) -> bool {
        self.hosts[host.0].driver.is_some()
    }

    /// How many drivers a host has had, one that it has included.
    #[must_use]
    pub fn lives(&self, host: HostIndex) -> u64 {
        self.hosts[host.0].lives
    }

    /// The longest time in which the driver of a host had no turn so far; none if there is no driver.
    #[must_use]
    pub fn driver_rested(&self, host: HostIndex) -> Duration {
        let host = &self.hosts[host.0];
        let driver = host.driver.as_ref();
        let rested = driver.map(|it| it.rest.longest(host.at(self.clock.read()).nanos));
        rested.unwrap_or_default()
    }

    /// The address of a host at present.
    #[must_use]
    pub fn address(&self, host: HostIndex) -> IpAddr {
        self.network.addresses(self.network_id(host))[0]
    }

    /// Removes all files of a host, as a reboot does.
    pub fn forget_files(&mut self, host: HostIndex) {
        self.hosts[host.0].storage = MemoryStorage::new();
    }

    /// The host on the network, for faults of its links.
    #[must_use]
    pub fn network_id(&self, host: HostIndex) -> HostId {
        self.hosts[host.0].network.id()
    }

    /// The files of a host.
    #[must_use]
    pub fn storage(&self, host: HostIndex) -> &MemoryStorage {
        &self.hosts[host.0].storage
    }

    /// Where the driver of a host has its files.
    #[must_use]
    pub fn directory(&self, host: HostIndex) -> &Path {
        &self.hosts[host.0].directory
    }

    /// The counters of a host's driver.
    ///
    /// # Panics
    /// If it has none.
    #[must_use]
    pub fn counters(&self, host: HostIndex) -> &CountersReader {
        match &self.hosts[host.0].driver {
            Some(driver) => &driver.parts.counters,
            None => panic!("host {} has no driver", host.0),
        }
    }

    /// A system counter of a host's driver.
    ///
    /// # Panics
    /// If the host has no driver.
    #[must_use]
    pub fn system(&self, host: HostIndex, counter: SystemCounter) -> i64 {
        self.counters(host).value(counter.id()).unwrap_or_default()
    }

    /// Checks that drivers whose clients are all gone have nothing left. To be called some time after
    /// [`close_all`](Self::close_all), which waits long enough for that.
    ///
    /// # Panics
    /// If something is left.
    pub fn expect_nothing_left(&self) {
        for host in &self.hosts {
            let Some(driver) = &host.driver else { continue };
            let sockets = self.network.open_sockets(host.network.id());
            let checked = driver.leaks.check(
                &driver.parts.counters,
                &host.storage,
                &host.directory,
                sockets,
            );
            if let Err(violation) = checked {
                panic!("{violation}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::traffic::{Publishing, Subscribing};

    #[test]
    fn the_checkers_see_the_log_and_the_subscriber_of_each_stream() {
        let mut world = World::new(1);
        let host = world.add_host(HostSpec::new());
        let client = world.connect(host);
        let flows = ["aeron:ipc", "aeron:udp?endpoint=127.0.0.1:40123"].map(|channel| {
            let subscriber = world.subscribe(client, Subscribing::new(channel, 1));
            let publishing = Publishing::new(channel, 1).messages(10);
            (subscriber, world.publish(client, publishing))
        });
        let has_all = |world: &World| {
            let mut flows = flows.iter();
            flows.all(|(subscriber, publisher)| world.has_all(*subscriber, *publisher))
        };
        world.run_until("everything", Duration::from_secs(10), has_all);
        let driver = world.hosts[host.0].driver.as_ref().unwrap();
        let streams = driver.streams.streams();
        assert_eq!(streams.len(), 3, "{streams:?}");
        for stream in streams {
            let log = stream.log.as_ref().unwrap();
            let is_image = stream.high_water.is_some();
            assert_eq!(log.publication_window > 0, !is_image);
            assert!(stream.sender.is_some() || stream.consumers.len() == 1);
        }
    }
}
