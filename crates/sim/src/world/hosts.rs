//! Hosts: memory, clock, driver.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taran_core::agent::Agent;
use taran_core::clock::{Now, saturating_nanos};
use taran_core::counters::CountersReader;
use taran_core::memory::MemoryStorage;
use taran_driver::{DriverContext, DriverError, DriverParts, Environment};
use taran_protocol::counter::SystemCounter;

use super::clock::HostClock;
use super::resolver::Names;
use super::time_stepper::StallMeter;
use super::{HostIndex, World};
use crate::check::counter_consistency::CounterCheck;
use crate::check::leaks::LeakCheck;
use crate::check::streams::Streams;
use crate::check::{Violation, flow, positions};
use crate::network::{HostId, HostTraffic, SimHost};

/// Specification of a host.
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

    /// Gives the host only an IPv6 address.
    #[must_use]
    pub fn ipv6(self) -> Self {
        Self {
            is_ipv6: true,
            ..self
        }
    }

    /// Returns true if its driver drops received frames on purpose.
    fn drops_received_frames(&self) -> bool {
        let mut names = self.options.iter().map(|(name, _)| name);
        names.any(|name| name.contains("INTERCEPTORS"))
    }

    /// Returns the address of a host by its number and its number of relocations.
    fn address(&self, index: usize, relocations: u8) -> IpAddr {
        // Worlds have few hosts.
        let number = index as u8 + 1;
        if self.is_ipv6 {
            IpAddr::from([
                0xfd00,
                0,
                0,
                0,
                0,
                0,
                u16::from(relocations),
                u16::from(number),
            ])
        } else {
            IpAddr::from([10, 0, relocations, number])
        }
    }

    /// Sets an offset of the host's clocks.
    #[must_use]
    pub fn clocks_ahead(self, ahead: Duration) -> Self {
        Self { ahead, ..self }
    }
}

/// A host.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) storage: MemoryStorage,
    pub(super) directory: PathBuf,
    pub(super) network: SimHost,
    pub(super) driver: Option<Driver>,
    /// Until this time its driver does not run.
    pub(super) stalled_until_ns: i64,
    /// Number of drivers started so far.
    generation: u64,
    clock: HostClock,
    spec: HostSpec,
    /// Number of relocations.
    relocations: u8,
}

/// Handles to what a host has, for the environment of its processes.
#[derive(Clone, Debug)]
pub(crate) struct HostParts {
    pub(crate) clock: HostClock,
    pub(crate) storage: MemoryStorage,
    pub(crate) directory: PathBuf,
    pub(crate) network: SimHost,
    pub(crate) names: Names,
}

/// A running driver.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) parts: DriverParts,
    /// Gaps between duty cycles of its conductor.
    pub(super) conductor_stalls: StallMeter,
    streams: Streams,
    counters: CounterCheck,
    leaks: LeakCheck,
}

impl Driver {
    /// Checks the invariants that hold at any time. Must be called after each duty cycle that did or observed anything,
    /// so that all changes between two checks are known.
    pub(super) fn check(&mut self) -> Result<(), Violation> {
        if !self.streams.refresh() {
            return Ok(());
        }
        positions::check(&self.streams)?;
        flow::check(&self.streams)
    }

    /// The same after a duty cycle of the conductor, the only agent that allocates and frees counters.
    pub(super) fn check_after_conductor(&mut self) -> Result<(), Violation> {
        self.streams.rescan_counters();
        self.check()
    }

    /// The same after a duty cycle of a receiver without work.
    pub(super) fn check_after_idle_receiver(&mut self) -> Result<(), Violation> {
        self.check()?;
        self.streams.mark_all_known();
        Ok(())
    }

    /// The same between duty cycles, against the traffic of its host.
    pub(super) fn check_against_traffic(&mut self, traffic: &HostTraffic) -> Result<(), Violation> {
        self.check()?;
        self.counters.check(&self.streams, traffic)
    }
}

impl Host {
    /// Returns the time as this host sees it.
    pub(super) fn at(&self, now: Now) -> Now {
        self.clock.at(now)
    }

    /// Returns handles to what the host has.
    pub(super) fn parts(&self, names: &Names) -> HostParts {
        HostParts {
            clock: self.clock.clone(),
            storage: self.storage.clone(),
            directory: self.directory.clone(),
            network: self.network.clone(),
            names: names.clone(),
        }
    }
}

impl World {
    /// Adds a host and starts its driver. The first one is called `host0` and has the address 10.0.0.1 (or fd00::1),
    /// and so on.
    pub fn add_host(&mut self, spec: HostSpec) -> HostIndex {
        let host = self.add_host_without_driver(spec);
        self.start_driver(host);
        host
    }

    /// Adds a host with the same name and address, but starts no driver.
    pub fn add_host_without_driver(&mut self, spec: HostSpec) -> HostIndex {
        let index = self.hosts.len();
        let host = Host {
            storage: MemoryStorage::new(),
            directory: PathBuf::from(format!("/aeron-{index}")),
            network: self.network.host(&[spec.address(index, 0)]),
            driver: None,
            stalled_until_ns: 0,
            generation: 0,
            clock: HostClock::new(self.clock.clone(), spec.ahead),
            spec,
            relocations: 0,
        };
        self.hosts.push(host);
        let host = HostIndex(index);
        self.set_host_name(&format!("host{index}"), host);
        host
    }

    /// Returns the number of hosts.
    #[must_use]
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// Moves a host to another address, which is returned. Its names resolve to that address from now on.
    pub fn relocate(&mut self, index: HostIndex) -> IpAddr {
        self.record_op("relocate", index.0);
        let host = &mut self.hosts[index.0];
        host.relocations += 1;
        let address = host.spec.address(index.0, host.relocations);
        self.network.set_addresses(host.network.id(), &[address]);
        address
    }

    /// Lets a name resolve to a host from now on.
    pub fn set_host_name(&mut self, name: &str, host: HostIndex) {
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
        self.record_op("start driver", index.0);
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
            wall_clock: Arc::new(host.clock.clone()),
            pid: index.0 as i64 + 1,
        };
        let mut parts = DriverParts::build(context, environment)?;
        self.network.forget_streams(host.network.id());
        parts.conductor.on_start();
        parts.sender.on_start();
        parts.receiver.on_start();
        host.generation += 1;
        host.driver = Some(Driver {
            streams: Streams::new(
                parts.counters.clone(),
                host.storage.clone(),
                host.directory.clone(),
            ),
            counters: CounterCheck::new(
                &parts.counters,
                self.network
                    .with_traffic(host.network.id(), |traffic| *traffic.counts()),
                host.spec.drops_received_frames(),
            ),
            leaks: LeakCheck::new(
                &parts.counters,
                self.network.open_sockets(host.network.id()),
            ),
            conductor_stalls: StallMeter::new(host.at(now).nanos),
            parts,
        });
        Ok(())
    }

    /// Stops a driver in an orderly way.
    pub fn stop_driver(&mut self, host: HostIndex) {
        self.record_op("stop driver", host.0);
        if let Some(Driver { mut parts, .. }) = self.hosts[host.0].driver.take() {
            parts.sender.on_close();
            parts.receiver.on_close();
            parts.conductor.on_close();
        }
    }

    /// Ends a driver like `kill -9`: its sockets are closed, its files remain.
    pub fn kill_driver(&mut self, host: HostIndex) {
        self.record_op("kill driver", host.0);
        self.hosts[host.0].driver = None;
    }

    /// Pauses a driver, like `SIGSTOP`.
    pub fn stall_driver(&mut self, host: HostIndex, pause: Duration) {
        self.record_op("stall driver", host.0);
        let until_ns = self.clock.read().nanos + saturating_nanos(pause);
        self.hosts[host.0].stalled_until_ns = until_ns;
    }

    /// Pauses all processes of a host. A pause of zero resumes them.
    pub fn stall_host(&mut self, host: HostIndex, pause: Duration) {
        self.record_op("stall host", host.0);
        let until_ns = self.clock.read().nanos + saturating_nanos(pause);
        self.hosts[host.0].stalled_until_ns = until_ns;
        self.processes.stall_host(host, until_ns);
        for client in self.clients.iter_mut().filter(|client| client.host == host) {
            client.stalled_until_ns = until_ns;
        }
    }

    /// Steps the wall clock of a host forward or backward.
    pub fn step_clock(&mut self, host: HostIndex, by_ms: i64) {
        self.record_op("step clock", host.0);
        self.hosts[host.0].clock.step(by_ms);
    }

    /// Returns true while a host has a driver.
    #[must_use]
    pub fn has_driver(&self, host: HostIndex) -> bool {
        self.hosts[host.0].driver.is_some()
    }

    /// Returns the number of drivers started on a host so far, including the current one.
    #[must_use]
    pub fn driver_generation(&self, host: HostIndex) -> u64 {
        self.hosts[host.0].generation
    }

    /// Returns the longest gap between two duty cycles of a host's conductor so far, or zero without a driver.
    #[must_use]
    pub fn longest_driver_stall(&self, host: HostIndex) -> Duration {
        let host = &self.hosts[host.0];
        let driver = host.driver.as_ref();
        let longest = driver.map(|it| {
            it.conductor_stalls
                .longest(host.at(self.clock.read()).nanos)
        });
        longest.unwrap_or_default()
    }

    /// Returns the current address of a host.
    #[must_use]
    pub fn address(&self, host: HostIndex) -> IpAddr {
        self.network.addresses(self.network_id(host))[0]
    }

    /// Removes all files of a host, like a reboot.
    pub fn remove_files(&mut self, host: HostIndex) {
        self.hosts[host.0].storage = MemoryStorage::new();
    }

    /// Returns the network id of a host, which selects its links.
    #[must_use]
    pub fn network_id(&self, host: HostIndex) -> HostId {
        self.hosts[host.0].network.id()
    }

    /// Returns the files of a host.
    #[must_use]
    pub fn storage(&self, host: HostIndex) -> &MemoryStorage {
        &self.hosts[host.0].storage
    }

    /// Returns the Aeron directory of a host's driver.
    #[must_use]
    pub fn directory(&self, host: HostIndex) -> &Path {
        &self.hosts[host.0].directory
    }

    /// Returns the counters of a host's driver.
    ///
    /// # Panics
    /// If the host has no driver.
    #[must_use]
    pub fn counters(&self, host: HostIndex) -> &CountersReader {
        match &self.hosts[host.0].driver {
            Some(driver) => &driver.parts.counters,
            None => panic!("host {} has no driver", host.0),
        }
    }

    /// Returns the value of a system counter of a host's driver.
    ///
    /// # Panics
    /// If the host has no driver.
    #[must_use]
    pub fn system(&self, host: HostIndex, counter: SystemCounter) -> i64 {
        self.counters(host).value(counter.id()).unwrap_or_default()
    }

    /// Checks that drivers without clients have no resources left. Call it some time after
    /// [`close_all`](Self::close_all), which waits long enough.
    ///
    /// # Panics
    /// If a resource is left.
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
    use crate::traffic::{PublisherSpec, SubscriberSpec};

    #[test]
    fn checkers_see_the_log_and_the_consumer_of_each_stream() {
        let mut world = World::new(1);
        let host = world.add_host(HostSpec::new());
        let client = world.connect(host);
        let flows = ["aeron:ipc", "aeron:udp?endpoint=127.0.0.1:40123"].map(|channel| {
            let subscriber = world.subscribe(client, SubscriberSpec::new(channel, 1));
            let publisher_spec = PublisherSpec::new(channel, 1).messages(10);
            (subscriber, world.publish(client, publisher_spec))
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
